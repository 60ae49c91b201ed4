"""`int` used to convert a traced value."""

from jitcore import jit


@jit
def truncate(x):
    return int(x)


truncate(3.5)
