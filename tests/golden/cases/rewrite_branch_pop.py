"""A list inside of another that shrinks on one side of a condition."""

from jitcore import jit


def shorten(x):
    table = {"values": [1, 2]}
    if x > 0:
        table["values"].pop()
    return x + sum(table["values"])


jit(shorten, rewrite=True)(1.0)
