"""What a row of the section of plain programs runs: a `PlainProgram`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PlainProgram:
    """One row.

    Attributes:
        name: of the row.
        function: what is decorated; what it calls is not.
        make_arguments: () -> fresh arguments of a call.
    """

    name: str
    function: Callable
    make_arguments: Callable[[], tuple[Any, ...]]

    @staticmethod
    def agrees(expected: Any, found: Any) -> bool:
        """Whether two results are equal, floats up to rounding."""
        if type(expected) is not type(found):
            return False
        if isinstance(expected, float):
            return math.isclose(expected, found, rel_tol=1e-9)
        if isinstance(expected, (list, tuple)):
            return len(expected) == len(found) and all(map(PlainProgram.agrees, expected, found))
        if isinstance(expected, dict):
            return list(expected) == list(found) and PlainProgram.agrees(
                list(expected.values()), list(found.values())
            )
        return expected == found
