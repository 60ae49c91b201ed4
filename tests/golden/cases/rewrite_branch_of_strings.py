"""A Python object that differs between the sides of a condition."""

from jitcore import jit


def name_sign(x):
    word = "up" if x > 0 else "down"
    return word


jit(name_sign, rewrite=True)(1.0)
