"""A cotangent in other containers than the result."""

from jitcore import vjp


def powers(x):
    return {"square": x * x, "cube": x * x * x}


values, f_vjp = vjp(powers, 3.0)
f_vjp({"square": 1.0})
