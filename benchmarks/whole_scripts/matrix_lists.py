import random

random.seed(9)


def random_matrix(n):
    return [[random.random() for _ in range(n)] for _ in range(n)]


def multiply(a, b):
    n = len(a)
    result = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += a[i][k] * b[k][j]
            result[i][j] = total
    return result


a, b = random_matrix(250), random_matrix(250)
c = multiply(a, b)
print(sum(map(sum, c)))
