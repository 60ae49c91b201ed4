"""A traced function that returns a string."""

from jitcore import jit


@jit
def f(x):
    return {"value": x, "unit": "metres"}


f(1.0)
