import numpy as np

rng = np.random.default_rng(0)
N = 200_000
for trial in range(20):
    points = rng.random((N, 2))
    inside = (points ** 2).sum(axis=1) < 1
    if trial % 5 == 0:
        print(trial, 4 * inside.mean())
