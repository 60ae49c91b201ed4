import numpy as np


class Network:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in zip(sizes, sizes[1:])]

    def forward(self, x):
        self.values = [x]
        for w in self.weights:
            x = np.tanh(x @ w)
            self.values.append(x)
        return x

    def backward(self, error, rate):
        for k in reversed(range(len(self.weights))):
            error = error * (1 - self.values[k + 1] ** 2)
            gradient = self.values[k].T @ error
            error = error @ self.weights[k].T
            self.weights[k] -= rate * gradient


rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, (200, 2))
y = np.sign(x[:, :1] * x[:, 1:])
net = Network([2, 16, 16, 1])
for epoch in range(12000):
    out = net.forward(x)
    net.backward((out - y) / len(x), 0.5)
    if epoch % 4000 == 0:
        print(epoch, round(float(np.mean((out - y) ** 2)), 5))
print("accuracy", np.mean(np.sign(net.forward(x)) == y))
