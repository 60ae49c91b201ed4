import numpy as np

NX, NY, STEPS = 80, 40, 2500
C = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)


def equilibrium(rho, u):
    cu = np.einsum("id,dxy->ixy", C, u)
    uu = (u**2).sum(axis=0)
    return rho * W[:, None, None] * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * uu)


u = np.zeros((2, NX, NY))
u[0] = 0.1 * (1 + 1e-2 * np.sin(np.arange(NY) / NY * 2 * np.pi))
f = equilibrium(np.ones((NX, NY)), u)
for step in range(STEPS):
    rho = f.sum(axis=0)
    u = np.einsum("id,ixy->dxy", C, f) / rho
    f += (equilibrium(rho, u) - f) / 0.6
    for i, (cx, cy) in enumerate(C):
        f[i] = np.roll(f[i], (cx, cy), axis=(0, 1))
print(rho.mean().round(6), u[0].mean().round(6))
