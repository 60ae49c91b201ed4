"""A set that is changed on one side of a condition."""

from jitcore import jit


def visit(x):
    seen = {0}
    if x > 0:
        seen.add(1)
    return x + len(seen)


jit(visit, rewrite=True)(1.0)
