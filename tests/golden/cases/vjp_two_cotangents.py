"""Two cotangents instead of one tuple of them."""

from jitcore import vjp


def powers(x):
    return x * x, x * x * x


values, f_vjp = vjp(powers, 3.0)
f_vjp(1.0, 2.0)
