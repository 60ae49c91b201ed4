"""Integrals of samples (`jitcore.scipy.integrate`).

In: values at places. Out: integrals along an axis.
"""

from jitcore.numpy import trapezoid

__all__ = ["trapezoid"]
