"""A number that becomes a str in a loop."""

from jitcore import jit


def count(n):
    last = 0
    while n > 0:
        last = "some"
        n = n - 1
    return last


jit(count, rewrite=True)(3)
