"""A function that returns None on one side."""

from jitcore import jit


def half(x):
    if x > 0:
        return x / 2


jit(half, rewrite=True)(1.0)
