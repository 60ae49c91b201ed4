"""The gradient by an argument that is no array."""

from jitcore import grad


def measure(text):
    return float(len(text))


grad(measure)("abc")
