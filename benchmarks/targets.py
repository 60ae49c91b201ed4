"""What jitcore wants to reach: jitcore's time divided by a peer's, row by row.

In: measured rows. Out: lines that say which targets were met.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.measure import Measured


class Target(NamedTuple):
    """jitcore's time of this row is at most `at_most` times the peer's."""

    row: str
    peer: str
    at_most: float


TARGETS = (
    Target("selu 1e6 f32", "JAX", 0.65),
    Target("selu 1e6 f32", "NumPy", 0.1),
    Target("selu on 10 floats, from Array", "JAX", 0.7),
    Target("selu on 10 floats, from ndarray", "JAX", 0.7),
    Target("compile x+1", "JAX", 1.0),
    Target("compile selu", "JAX", 1.0),
    Target("compile softmax", "JAX", 1.0),
    Target("jit in a loop, partial", "JAX", 1 / 20),
    Target("jit in a loop, lambda", "JAX", 1 / 20),
    Target("jit in a loop, cached", "JAX", 1.0),
)


def describe_targets(rows: Sequence[Measured]) -> list[str]:
    """One line for each target whose row and peer were measured."""
    by_name = {row.name: row for row in rows}
    lines = []
    for target in TARGETS:
        ratio = by_name[target.row].compare(target.peer) if target.row in by_name else math.nan
        if not math.isnan(ratio):
            verdict = "met" if ratio <= target.at_most else "missed"
            goal = f"at most {target.at_most:g}x"
            lines.append(f"{verdict:6}  {target.row}: {ratio:.3g}x {target.peer} ({goal})")
    return lines
