"""An exception under a condition, caught by the caller."""

from jitcore import jit


def check(x):
    if x < 0:
        raise ValueError("negative")
    return x


def guess(x):
    try:
        return check(x)
    except ValueError:
        return 0 * x


jit(guess, rewrite=True)(1.0)
