import numpy as np

rng = np.random.default_rng(2)
image = np.outer(np.sin(np.linspace(0, 6, 300)), np.cos(np.linspace(0, 4, 200))) + 0.1 * rng.random((300, 200))


def compress(image, rank):
    u, s, v = np.linalg.svd(image, full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ v[:rank]


for rank in (1, 2, 5, 20, 50):
    print(rank, np.linalg.norm(image - compress(image, rank)).round(4))
