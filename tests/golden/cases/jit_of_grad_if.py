"""A Python `if` on a value that is differentiated inside of a jitted function."""

from jitcore import grad, jit


@jit
@grad
def slope(x):
    if x > 0:
        return x * x
    return -x


slope(3.0)
