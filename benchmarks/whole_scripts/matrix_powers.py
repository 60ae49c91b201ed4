import numpy as np


def power(m, k):
    result = np.eye(len(m))
    while k:
        if k & 1:
            result = result @ m
        m = m @ m
        k >>= 1
    return result


rng = np.random.default_rng(1)
for size in range(2, 60):
    m = rng.random((size, size))
    m /= m.sum(axis=1, keepdims=True)
    stationary = power(m, 64)[0]
    if size % 10 == 0:
        print(size, stationary.max().round(5))
