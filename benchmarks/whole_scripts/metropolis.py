import math
import random

random.seed(11)


def log_density(x):
    return -0.5 * x * x - 0.1 * x**4


def sample(n, width):
    x, accepted, values = 0.0, 0, []
    for _ in range(n):
        y = x + random.uniform(-width, width)
        if math.log(random.random()) < log_density(y) - log_density(x):
            x, accepted = y, accepted + 1
        values.append(x)
    return values, accepted / n


for width in (0.5, 1.0, 2.0):
    values, rate = sample(1_000_000, width)
    print(width, round(rate, 3), round(sum(v * v for v in values) / len(values), 3))
