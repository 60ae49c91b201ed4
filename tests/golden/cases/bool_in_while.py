"""A `while` on a traced value."""

from jitcore import jit


@jit
def count_up(x, n):
    i = 0
    while i < n:
        i += 1
    return x + i


count_up(10, 20)
