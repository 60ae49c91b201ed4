import numpy as np

nx, nt = 60, 500
u = np.ones((nx, nx))
u[20:40, 20:40] = 2.0


def diffuse(u, steps):
    for n in range(steps):
        un = u.copy()
        for i in range(1, nx - 1):
            for j in range(1, nx - 1):
                u[i, j] = un[i, j] + 0.1 * (un[i + 1, j] - 2 * un[i, j] + un[i - 1, j]
                                            + un[i, j + 1] - 2 * un[i, j] + un[i, j - 1])
    return u


diffuse(u, nt)
print(u.sum().round(6), u.max().round(6))
