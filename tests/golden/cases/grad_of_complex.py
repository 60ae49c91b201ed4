"""The gradient of a complex function that is not said to be holomorphic."""

from jitcore import grad


def square(z):
    return z * z


grad(square)(1 + 2j)
