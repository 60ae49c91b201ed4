import random


def estimate(n):
    inside = 0
    for _ in range(n):
        x = random.random()
        y = random.random()
        if x * x + y * y <= 1.0:
            inside += 1
    return 4 * inside / n


random.seed(2024)
for n in [1_000, 100_000, 20_000_000]:
    print(n, estimate(n))
