"""A function of the `math` module on a traced value."""

import math

from jitcore import jit


@jit
def f(x):
    return math.sin(x) ** 2


f(3.0)
