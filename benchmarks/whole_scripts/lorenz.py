import numpy as np


def lorenz(state, sigma=10.0, rho=28.0, beta=8 / 3):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rk4(f, state, dt):
    k1 = f(state)
    k2 = f(state + dt / 2 * k1)
    k3 = f(state + dt / 2 * k2)
    k4 = f(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


state = np.array([1.0, 1.0, 1.0])
path = []
for step in range(50000):
    state = rk4(lorenz, state, 0.01)
    path.append(state)
path = np.array(path)
print(path.min(axis=0).round(3), path.max(axis=0).round(3))
