"""None on one side, in what is returned."""

from jitcore import jit


def find(x):
    found = None
    if x > 0:
        found = x
    return found, x


jit(find, rewrite=True)(1.0)
