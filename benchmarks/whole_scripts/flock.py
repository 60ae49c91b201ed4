"""Birds that turn to where their neighbours fly."""
import numpy as np


def main():
    speed, noise, size, radius, dt, n = 1.0, 0.5, 10, 1, 0.2, 150
    np.random.seed(17)
    x = np.random.rand(n, 1) * size
    y = np.random.rand(n, 1) * size
    theta = 2 * np.pi * np.random.rand(n, 1)
    vx, vy = speed * np.cos(theta), speed * np.sin(theta)

    for step in range(1500):
        x += vx * dt
        y += vy * dt
        x = x % size
        y = y % size

        mean_theta = theta
        for b in range(n):
            near = (x - x[b]) ** 2 + (y - y[b]) ** 2 < radius**2
            mean_theta[b] = np.arctan2(np.sum(np.sin(theta[near])), np.sum(np.cos(theta[near])))

        theta = mean_theta + noise * (np.random.rand(n, 1) - 0.5)
        vx, vy = speed * np.cos(theta), speed * np.sin(theta)
        if step == 20:
            print("order", round(float(np.hypot(vx.mean(), vy.mean())), 3))

    print("birds", len(x))


main()
