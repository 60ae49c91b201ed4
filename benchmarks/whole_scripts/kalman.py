import numpy as np

F = np.array([[1.0, 0.1], [0.0, 1.0]])
H = np.array([[1.0, 0.0]])
Q, R = 1e-3 * np.eye(2), np.array([[0.5]])


def predict(x, P):
    return F @ x, F @ P @ F.T + Q


def update(x, P, z):
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    x = x + K @ (z - H @ x)
    return x, (np.eye(2) - K @ H) @ P


rng = np.random.default_rng(3)
x, P = np.zeros(2), np.eye(2)
for k in range(60000):
    z = np.array([0.1 * k * 0.5 + rng.normal()])
    x, P = predict(x, P)
    x, P = update(x, P, z)
print(x.round(4), P.diagonal().round(6))
