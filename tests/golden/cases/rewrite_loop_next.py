"""An iterator that is advanced in a loop of traced length."""

from jitcore import jit


def add(n):
    numbers, total = iter([1, 2, 3]), 0
    while n > 0:
        total = total + next(numbers)
        n = n - 1
    return total


jit(add, rewrite=True)(3)
