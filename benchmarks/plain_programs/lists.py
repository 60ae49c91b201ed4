"""Lists of many Python values, and lists of lists."""

from __future__ import annotations

import random

from benchmarks.plain_program import PlainProgram


def sieve(limit):
    is_prime = [True] * (limit + 1)
    is_prime[0] = is_prime[1] = False
    for n in range(2, int(limit**0.5) + 1):
        if is_prime[n]:
            for multiple in range(n * n, limit + 1, n):
                is_prime[multiple] = False
    return [n for n, prime in enumerate(is_prime) if prime]


def bubble_sort(values):
    for end in range(len(values) - 1, 0, -1):
        for i in range(end):
            if values[i] > values[i + 1]:
                values[i], values[i + 1] = values[i + 1], values[i]
    return values


def step_life(board):
    rows, columns = len(board), len(board[0])
    new = [[0] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            around = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        around += board[(i + di) % rows][(j + dj) % columns]
            new[i][j] = 1 if around == 3 or board[i][j] and around == 2 else 0
    return new


def run_life(board, steps):
    for _ in range(steps):
        board = step_life(board)
    return board


def multiply(a, b):
    columns = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def find_distance(one, other):
    """Levenshtein's distance."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def fill_knapsack(weights, values, capacity):
    best = [[0] * (capacity + 1) for _ in range(len(weights) + 1)]
    for i in range(1, len(weights) + 1):
        for room in range(capacity + 1):
            best[i][room] = best[i - 1][room]
            if weights[i - 1] <= room:
                best[i][room] = max(best[i][room], best[i - 1][room - weights[i - 1]] + values[i - 1])
    return best[-1][-1]


def sum_list(values):
    total = 0.0
    for value in values:
        total += value * value
    return total


def find_running_means(values, width):
    means = []
    for i in range(len(values) - width + 1):
        means.append(sum(values[i : i + width]) / width)
    return means


def eliminate(matrix, right):
    """Gauss's elimination on lists of lists."""
    n = len(matrix)
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            for j in range(k, n + 1):
                rows[i][j] -= factor * rows[k][j]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x


def transpose(rows):
    return [[row[j] for row in rows] for j in range(len(rows[0]))]


def rotate_queue(count, step):
    """Josephus' problem."""
    people, at = list(range(count)), 0
    while len(people) > 1:
        at = (at + step - 1) % len(people)
        people.pop(at)
    return people[0]


def _make_numbers(count):
    generator = random.Random(count)
    return [generator.random() for _ in range(count)]


def _make_board(side):
    generator = random.Random(side)
    return [[int(generator.random() < 0.3) for _ in range(side)] for _ in range(side)]


def _make_rows(n):
    generator = random.Random(n)
    return [[generator.random() for _ in range(n)] for _ in range(n)]


def _make_text(count, seed):
    generator = random.Random(seed)
    return "".join(generator.choice("acgt") for _ in range(count))


ROWS = (
    PlainProgram("sieve of 300000", sieve, lambda: (300_000,)),
    PlainProgram("bubble sort of 400", bubble_sort, lambda: (_make_numbers(400),)),
    PlainProgram("life on lists", run_life, lambda: (_make_board(60), 10)),
    PlainProgram("matrix product of lists", multiply, lambda: (_make_rows(60), _make_rows(60))),
    PlainProgram("edit distance", find_distance, lambda: (_make_text(400, 1), _make_text(400, 2))),
    PlainProgram("knapsack", fill_knapsack, lambda: ([3 + k % 17 for k in range(60)], [k % 23 for k in range(60)], 1000)),
    PlainProgram("sum of a list of 1e6", sum_list, lambda: (_make_numbers(1_000_000),)),
    PlainProgram("sum of a list of 1000", sum_list, lambda: (_make_numbers(1000),)),
    PlainProgram("running means of a list", find_running_means, lambda: (_make_numbers(20_000), 20)),
    PlainProgram("elimination on lists", eliminate, lambda: (_make_rows(60), _make_numbers(60))),
    PlainProgram("a list of lists turned", transpose, lambda: (_make_rows(300),)),
    PlainProgram("Josephus", rotate_queue, lambda: (20_000, 7)),
)
