"""A backend that is not there."""

from jitcore import jit


@jit(backend="abacus")
def f(x):
    return x + 1


f(1.0)
