"""A network with one hidden layer, trained on two spirals."""
import numpy as np


class Network:
    def __init__(self, sizes, rng):
        self.W1 = rng.normal(0, 1 / np.sqrt(sizes[0]), (sizes[0], sizes[1]))
        self.b1 = np.zeros(sizes[1])
        self.W2 = rng.normal(0, 1 / np.sqrt(sizes[1]), (sizes[1], sizes[2]))
        self.b2 = np.zeros(sizes[2])

    def forward(self, X):
        self.h = np.tanh(X @ self.W1 + self.b1)
        scores = self.h @ self.W2 + self.b2
        scores -= scores.max(axis=1, keepdims=True)
        e = np.exp(scores)
        return e / e.sum(axis=1, keepdims=True)

    def step(self, X, Y, rate):
        p = self.forward(X)
        loss = -np.log((p * Y).sum(axis=1)).mean()
        d2 = (p - Y) / len(X)
        d1 = d2 @ self.W2.T * (1 - self.h**2)
        self.W2 -= rate * self.h.T @ d2
        self.b2 -= rate * d2.sum(axis=0)
        self.W1 -= rate * X.T @ d1
        self.b1 -= rate * d1.sum(axis=0)
        return loss


def spirals(n, rng):
    t = np.sqrt(rng.random(n)) * 3 * np.pi
    sign = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.stack([sign * t * np.cos(t), sign * t * np.sin(t)], axis=1) / 10
    return X + rng.normal(0, 0.02, X.shape), np.eye(2)[(np.arange(n) % 2)]


rng = np.random.default_rng(0)
X, Y = spirals(400, rng)
net = Network([2, 32, 2], rng)
losses = []
for epoch in range(12000):
    losses.append(net.step(X, Y, 1.0))
    if epoch % 3000 == 0:
        print(f"epoch {epoch}: loss {losses[-1]:.3f}")
accuracy = (net.forward(X).argmax(axis=1) == Y.argmax(axis=1)).mean()
print("accuracy above 0.6:", accuracy > 0.6)
