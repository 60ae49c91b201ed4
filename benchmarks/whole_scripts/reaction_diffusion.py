"""Gray-Scott patterns, shown every ten steps."""
import numpy as np

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None


def laplacian(Z):
    return (Z[:-2, 1:-1] + Z[1:-1, :-2] - 4 * Z[1:-1, 1:-1] + Z[1:-1, 2:] + Z[2:, 1:-1])


n, steps = 160, 6000
Du, Dv, F, k = 0.14, 0.06, 0.035, 0.065
U = np.ones((n + 2, n + 2))
V = np.zeros((n + 2, n + 2))
r = 12
U[n // 2 - r:n // 2 + r, n // 2 - r:n // 2 + r] = 0.50
V[n // 2 - r:n // 2 + r, n // 2 - r:n // 2 + r] = 0.25
rng = np.random.default_rng(3)
U += 0.05 * rng.random(U.shape)
V += 0.05 * rng.random(V.shape)

for i in range(steps):
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    Lu, Lv = laplacian(U), laplacian(V)
    uvv = u * v * v
    u += Du * Lu - uvv + F * (1 - u)
    v += Dv * Lv + uvv - (F + k) * v
    for Z in (U, V):
        Z[0, :] = Z[1, :]
        Z[-1, :] = Z[-2, :]
        Z[:, 0] = Z[:, 1]
        Z[:, -1] = Z[:, -2]
    if i % 10 == 0 and plt is not None:
        plt.pause(0.001)
print(U.mean().round(6), V.mean().round(6), V.max().round(6))
