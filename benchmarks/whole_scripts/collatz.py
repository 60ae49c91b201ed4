longest, best = 0, 0
for start in range(1, 60_000):
    n, length = start, 1
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        length += 1
    if length > longest:
        longest, best = length, start
print(best, longest)
