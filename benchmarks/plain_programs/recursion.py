"""Functions that call themselves."""

from __future__ import annotations

import random

from benchmarks.plain_program import PlainProgram


def merge(left, right):
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def merge_sort(values):
    if len(values) < 2:
        return values
    middle = len(values) // 2
    return merge(merge_sort(values[:middle]), merge_sort(values[middle:]))


def quick_sort(values):
    if len(values) < 2:
        return values
    pivot = values[len(values) // 2]
    less = [value for value in values if value < pivot]
    equal = [value for value in values if value == pivot]
    more = [value for value in values if value > pivot]
    return quick_sort(less) + equal + quick_sort(more)


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def solve_hanoi(n, source, target, spare, moves):
    if n:
        solve_hanoi(n - 1, source, spare, target, moves)
        moves.append((n, source, target))
        solve_hanoi(n - 1, spare, target, source, moves)
    return moves


def count_queens(n, row=0, columns=(), sums=(), differences=()):
    if row == n:
        return 1
    found = 0
    for column in range(n):
        if column not in columns and row + column not in sums and row - column not in differences:
            found += count_queens(n, row + 1, (*columns, column), (*sums, row + column),
                                  (*differences, row - column))
    return found


def list_permutations(values):
    if len(values) <= 1:
        return [values]
    found = []
    for k in range(len(values)):
        for rest in list_permutations(values[:k] + values[k + 1 :]):
            found.append([values[k], *rest])
    return found


def flatten(tree):
    flat = []
    for part in tree:
        if isinstance(part, list):
            flat.extend(flatten(part))
        else:
            flat.append(part)
    return flat


def make_tree(depth):
    return [depth] if depth == 0 else [make_tree(depth - 1), depth, make_tree(depth - 1)]


def count_partitions(n, largest, known):
    if n == 0:
        return 1
    if n < 0 or largest == 0:
        return 0
    if (n, largest) not in known:
        known[n, largest] = count_partitions(n - largest, largest, known) + count_partitions(n, largest - 1, known)
    return known[n, largest]


def integrate_adaptively(f, a, b, tolerance):
    middle = (a + b) / 2
    whole = (b - a) / 6 * (f(a) + 4 * f(middle) + f(b))
    left = (middle - a) / 6 * (f(a) + 4 * f((a + middle) / 2) + f(middle))
    right = (b - middle) / 6 * (f(middle) + 4 * f((middle + b) / 2) + f(b))
    if abs(left + right - whole) < 15 * tolerance:
        return left + right
    return integrate_adaptively(f, a, middle, tolerance / 2) + integrate_adaptively(f, middle, b, tolerance / 2)


def bump(x):
    return 1 / (1 + 400 * x * x)


def _list_numbers(count):
    generator = random.Random(count)
    return [generator.randrange(10 * count) for _ in range(count)]


ROWS = (
    PlainProgram("merge sort of 200", merge_sort, lambda: (_list_numbers(200),)),
    PlainProgram("merge sort of 20000", merge_sort, lambda: (_list_numbers(20_000),)),
    PlainProgram("quick sort of 20000", quick_sort, lambda: (_list_numbers(20_000),)),
    PlainProgram("fibonacci of 24", fibonacci, lambda: (24,)),
    PlainProgram("ackermann", ackermann, lambda: (2, 60)),
    PlainProgram("towers of Hanoi", solve_hanoi, lambda: (13, "a", "b", "c", [])),
    PlainProgram("seven queens", count_queens, lambda: (7,)),
    PlainProgram("permutations", list_permutations, lambda: (list(range(7)),)),
    PlainProgram("nested lists made flat", flatten, lambda: (make_tree(13),)),
    PlainProgram("partitions", count_partitions, lambda: (120, 120, {})),
    PlainProgram("adaptive quadrature", integrate_adaptively, lambda: (bump, -1.0, 1.0, 1e-9)),
)
