"""The gradient by an argument that is passed by keyword."""

from jitcore import grad


def area(width, height):
    return width * height


grad(area, argnums=1)(2.0, height=3.0)
