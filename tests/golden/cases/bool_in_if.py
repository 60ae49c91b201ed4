"""An `if` on a traced value."""

from jitcore import jit


@jit
def f(x):
    if x > 0:
        return x
    return 2 * x


f(10)
