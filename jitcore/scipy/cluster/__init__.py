"""Clusters (`jitcore.scipy.cluster`).

In: observations. Out: to which cluster each belongs.

Modules:
    vq  Vector quantisation with SciPy's names and arguments (`jitcore.scipy.cluster.vq`).
"""

from jitcore.scipy.cluster import vq

__all__ = ["vq"]
