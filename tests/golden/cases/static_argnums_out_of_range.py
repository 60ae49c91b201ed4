"""A static position that the function does not have."""

from jitcore import jit


def double(x):
    return 2 * x


jit(double, static_argnums=1)
