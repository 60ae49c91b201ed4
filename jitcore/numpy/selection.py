"""Choosing between arrays: `where`, `select`, `choose`, `piecewise`.

In: conditions and alternatives that broadcast. Out: an array in the dtype where the alternatives meet.
"""

from __future__ import annotations

from jitcore.numpy.logic import to_bool
from jitcore.numpy.promotion import apply_select, promote
from jitcore.numpy.searching import nonzero


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """x where the condition holds, else y; with the condition alone, its `nonzero`. Same as: `numpy.where`.

    Args:
        size, fill_value: as for `nonzero`; only without x and y.
    Raises: ValueError for only one of x and y.

    Derivatives: what is not selected has no part in them. `where(x > 0, log(x), 0)` has the derivative 0
    at 0, and so has every chain of elementwise operations in a case. Where a case sums, contracts or
    broadcasts, infinity times zero is NaN as ever; select its operand as well:
    `where(x > 0, f(where(x > 0, x, 1)), 0)`."""
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("Either both or neither of the x and y arguments should be provided to jnp.where, "
                         f"got {x} and {y}.")
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    condition = to_bool("where", condition)
    x, y = promote("where", x, y)
    return apply_select(condition, x, y)


__all__ = [
    "where",
]
