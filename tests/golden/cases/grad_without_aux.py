"""`has_aux` for a function that returns one value."""

from jitcore import value_and_grad


def loss(x):
    return x * x


value_and_grad(loss, has_aux=True)(3.0)
