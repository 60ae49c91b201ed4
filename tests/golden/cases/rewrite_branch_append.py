"""A list that grows on one side of a condition."""

from jitcore import jit


def collect(x):
    found = []
    if x > 0:
        found.append(x)
    return sum(found)


jit(collect, rewrite=True)(1.0)
