"""The gradient by an integer."""

from jitcore import grad

grad(lambda x: x * x)(3)
