import numpy as np


class Node:
    def __init__(self, x, y, depth):
        self.value = int(round(y.mean()))
        self.feature = None
        if depth and 0 < y.mean() < 1:
            self.split(x, y, depth)

    def split(self, x, y, depth):
        best = 1e9
        for feature in range(x.shape[1]):
            for limit in np.unique(x[:, feature])[::20]:
                left = x[:, feature] <= limit
                if 0 < left.sum() < len(y):
                    score = left.mean() * y[left].var() + (~left).mean() * y[~left].var()
                    if score < best:
                        best, self.feature, self.limit = score, feature, limit
        if self.feature is not None:
            left = x[:, self.feature] <= self.limit
            self.left, self.right = Node(x[left], y[left], depth - 1), Node(x[~left], y[~left], depth - 1)

    def predict(self, row):
        if self.feature is None:
            return self.value
        return (self.left if row[self.feature] <= self.limit else self.right).predict(row)


rng = np.random.default_rng(0)
x = rng.random((600, 5))
y = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.3)).astype(float)
tree = Node(x, y, 6)
print(np.mean([tree.predict(row) == label for row, label in zip(x, y)]))
