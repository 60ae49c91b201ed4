import numpy as np

np.random.seed(42)
X = np.c_[np.ones(500), np.random.rand(500, 4)]
y = X @ [1.0, 2.0, -1.0, 0.5, 3.0] + 0.1 * np.random.randn(500)
theta = np.zeros(5)
losses = []
for i in range(60000):
    error = X @ theta - y
    theta -= 0.1 * X.T @ error / len(y)
    losses.append((error**2).mean())
print(theta.round(4), losses[-1])
