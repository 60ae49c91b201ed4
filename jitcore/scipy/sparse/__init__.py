"""Systems of which only products with vectors are known (`jitcore.scipy.sparse`)."""

from jitcore.scipy.sparse import linalg

__all__ = ["linalg"]
