"""A key that is set on one side of a condition."""

from jitcore import jit


def fill(x):
    table = {"a": 1}
    if x > 0:
        table["b"] = x
    return table["a"]


jit(fill, rewrite=True)(1.0)
