"""Tuples of different lengths on the two sides of a condition."""

from jitcore import jit


def choose(x):
    if x > 0:
        return x, x
    return x, x, x


jit(choose, rewrite=True)(1.0)
