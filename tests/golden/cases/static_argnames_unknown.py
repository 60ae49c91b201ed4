"""A static name that the function does not have."""

from jitcore import jit


def scale(x, factor):
    return x * factor


jit(scale, static_argnames="facto")
