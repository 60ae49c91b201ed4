"""Heat in a plate: explicit steps, loops over the time only."""
import numpy as np


def step(u, alpha, dt, dx):
    new = u.copy()
    new[1:-1, 1:-1] += alpha * dt / dx**2 * (
        u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    )
    return new


def main():
    n = 100
    u = np.zeros((n, n))
    u[0, :] = 100.0
    for t in range(25000):
        u = step(u, 0.1, 0.1, 0.5)
        if t % 5000 == 0:
            print(f"t = {t}: mean {u.mean():.4f}")
    print("centre", round(u[n // 2, n // 2], 6))


if __name__ == "__main__":
    main()
