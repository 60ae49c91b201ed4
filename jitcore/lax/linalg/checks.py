"""What operands of linear algebra have to be.

In: the type of an operand. Out: nothing, or the error that says what is wrong with it.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray


def check_matrix(name: str, x: ShapedArray, square: bool = False) -> None:
    """Raises: TypeError for a dtype that is not float or complex of 32 or 64 bit, or fewer than two axes;
    ValueError for matrices that have to be square."""
    if x.dtype not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise TypeError(
            f"{name} does not accept dtype {x.dtype.name} at position 0. Accepted dtypes at position 0 "
            "are 32 and 64 bit subtypes of floating, complexfloating.")
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}")
    if square and not x.shape[-1] == x.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got shape {x.shape}.")
