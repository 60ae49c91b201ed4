import numpy as np


def acceleration(pos, mass, G, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv_r3 = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
    return np.hstack((G * (dx * inv_r3) @ mass, G * (dy * inv_r3) @ mass, G * (dz * inv_r3) @ mass))


def main():
    N, dt = 60, 0.01
    np.random.seed(17)
    mass = 20.0 * np.ones((N, 1)) / N
    pos, vel = np.random.randn(N, 3), np.random.randn(N, 3)
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = acceleration(pos, mass, 1.0, 0.1)
    for i in range(12000):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = acceleration(pos, mass, 1.0, 0.1)
        vel += acc * dt / 2.0
    print("kinetic energy", round(0.5 * np.sum(mass * vel**2), 4))


main()
