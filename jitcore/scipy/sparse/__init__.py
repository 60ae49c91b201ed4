"""Systems of which only products with vectors are known (`jitcore.scipy.sparse`).

In: a function or matrix, and right-hand sides. Out: solutions.

Modules:
    linalg  Linear systems solved by products with vectors: conjugate gradients, BiCGSTAB, GMRES.
"""

from jitcore.scipy.sparse import linalg

__all__ = ["linalg"]
