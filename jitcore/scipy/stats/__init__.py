"""Distributions of `jitcore.scipy.stats`, one module each."""

from jitcore.scipy.stats import norm

__all__ = ["norm"]
