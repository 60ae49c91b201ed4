import numpy as np

rng = np.random.default_rng(0)
data = np.empty((0, 3))


def add(data, row):
    return np.vstack([data, row])


for k in range(1500):
    data = add(data, rng.random(3))
    if k % 500 == 0:
        print(k, data.mean(axis=0).round(3))
print(data.shape)
