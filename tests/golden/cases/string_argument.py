"""A string passed as an argument that is not static."""

from jitcore import jit


def reduce(x, mode):
    return x.sum() if mode == "sum" else x.mean()


jit(reduce)(1.0, "sum")
