"""An iterator that is advanced under a condition."""

from jitcore import jit


def take(x):
    numbers = iter([1, 2, 3])
    if x > 0:
        x = x + next(numbers)
    return x + next(numbers)


jit(take, rewrite=True)(1.0)
