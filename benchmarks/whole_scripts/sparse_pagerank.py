import numpy as np
import scipy.sparse as sp

rng = np.random.default_rng(7)
n = 2000
links = sp.random(n, n, density=0.003, random_state=7, format="csr")
links.data[:] = 1.0


def pagerank(links, damping=0.85, tolerance=1e-10):
    out = np.asarray(links.sum(axis=1)).ravel()
    out[out == 0] = 1
    transition = links.multiply(1 / out[:, None]).T.tocsr()
    rank = np.ones(n) / n
    while True:
        new = damping * transition @ rank + (1 - damping) / n
        if np.abs(new - rank).sum() < tolerance:
            return new
        rank = new


rank = pagerank(links)
print(rank.argmax(), round(rank.max() * n, 6))
