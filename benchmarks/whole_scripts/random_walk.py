"""A drunkard's walk, many times."""
import random

random.seed(3)


def walk(steps):
    x = y = 0
    for _ in range(steps):
        dx, dy = random.choice([(1, 0), (-1, 0), (0, 1), (0, -1)])
        x, y = x + dx, y + dy
    return x * x + y * y


distances = [walk(200) for _ in range(20000)]
print("mean squared distance:", sum(distances) / len(distances))
