"""How exact a function is asked to be: `AccuracyMode`, `Tolerance`.

In: `accuracy=` of an elementary function. Out: nothing, or an error. The functions that take the argument are
within 2 units in the last place of the exact value, whatever is asked.
"""

from __future__ import annotations

import enum
from typing import Any


class AccuracyMode(enum.Enum):
    """How exact an elementary function is asked to be. Source: jax.lax.AccuracyMode."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How far an elementary function may be from the exact value: absolutely, relatively, or in units in the
    last place.

    Raises: ValueError for negative ones, and for none. Source: jax.lax.Tolerance."""

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if min(atol, rtol, ulps) < 0:
            raise ValueError("Tolerances must be non-negative.")
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def check_accuracy(accuracy: Any) -> None:
    """Raises: NotImplementedError for what is neither of the two."""
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise NotImplementedError(f"Accuracy {accuracy} not supported")
