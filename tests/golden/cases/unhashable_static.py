"""A list as a static argument."""

from jitcore import jit


def scale(x, sizes):
    return x * sizes[0]


jit(scale, static_argnames="sizes")(1.0, [2, 3])
