"""Geometry (`jitcore.scipy.spatial`).

In: rotations in any of their forms. Out: rotations, and vectors that they were applied to.

Modules:
    transform  Rotations in three dimensions and between them, under SciPy's names
               (`jitcore.scipy.spatial.transform`).
"""

from jitcore.scipy.spatial import transform

__all__ = ["transform"]
