import numpy as np

np.random.seed(0)


def sweep(spins, beta):
    n = spins.shape[0]
    for _ in range(n * n):
        i, j = np.random.randint(n), np.random.randint(n)
        around = spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        change = 2 * spins[i, j] * around
        if change <= 0 or np.random.rand() < np.exp(-beta * change):
            spins[i, j] *= -1


spins = np.random.choice([-1, 1], (20, 20))
for temperature in (1.5, 2.3, 3.5):
    for _ in range(300):
        sweep(spins, 1 / temperature)
    print(temperature, abs(spins.mean()).round(4))
