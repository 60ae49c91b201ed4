"""`range` of an argument that is not static."""

from jitcore import jit


@jit
def power(x, n):
    result = 1.0
    for _ in range(n):
        result = result * x
    return result


power(2.0, 3)
