import numpy as np


def rastrigin(x):
    return 10 * x.shape[-1] + np.sum(x**2 - 10 * np.cos(2 * np.pi * x), axis=-1)


class Swarm:
    def __init__(self, n, d, rng):
        self.rng = rng
        self.x = rng.uniform(-5, 5, (n, d))
        self.v = np.zeros((n, d))
        self.best, self.values = self.x.copy(), rastrigin(self.x)

    def step(self):
        leader = self.best[self.values.argmin()]
        r1, r2 = self.rng.random(self.x.shape), self.rng.random(self.x.shape)
        self.v = 0.7 * self.v + 1.5 * r1 * (self.best - self.x) + 1.5 * r2 * (leader - self.x)
        self.x = self.x + self.v
        values = rastrigin(self.x)
        better = values < self.values
        self.best[better], self.values[better] = self.x[better], values[better]


swarm = Swarm(50, 4, np.random.default_rng(10))
for iteration in range(20000):
    swarm.step()
print(swarm.values.min().round(6))
