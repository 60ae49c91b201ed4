"""A dict that is updated differently on the sides of a condition."""

from jitcore import jit


def fill(x):
    table = {"a": 1}
    if x > 0:
        table.update(b=x)
    else:
        table.update(c=x)
    return table["a"]


jit(fill, rewrite=True)(1.0)
