import numpy as np


def assign(points, centres):
    distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return distances.argmin(axis=1)


def kmeans(points, k, rng):
    centres = points[rng.choice(len(points), k, replace=False)]
    while True:
        labels = assign(points, centres)
        new = np.array([points[labels == j].mean(axis=0) if (labels == j).any() else centres[j] for j in range(k)])
        if np.allclose(new, centres):
            return centres, labels
        centres = new


rng = np.random.default_rng(4)
points = np.concatenate([rng.normal(c, 0.5, (500, 2)) for c in ((0, 0), (3, 3), (0, 4))])
for attempt in range(300):
    centres, labels = kmeans(points, 3, rng)
print(np.sort(centres.round(3), axis=0))
