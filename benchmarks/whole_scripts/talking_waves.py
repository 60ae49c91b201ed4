"""The wave equation around an obstacle, told step by step."""
import numpy as np

n, c, steps = 300, 0.4, 3000
u = np.zeros((n, n))
before = np.zeros((n, n))
wall = np.zeros((n, n), dtype=bool)
wall[80:100, 60:140] = True
energies = []

for step in range(steps):
    print("step", step)
    laplacian = (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
    after = 2 * u - before + c * laplacian
    before = 1.0 * u
    u = 1.0 * after
    u[wall] = 0
    u[0, :] = np.sin(0.3 * step)
    energies.append(float(np.sum(u * u)))
    if step % 300 == 0:
        print("energy", round(energies[-1], 6))

print("last", round(energies[-1], 6))
