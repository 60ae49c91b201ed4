"""What a section knows of a row once it is measured, and the sections themselves.

In: seconds and problems of peers. Out: ratios, and whether the row reaches its bar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


@dataclass
class Measured:
    """A row.

    Attributes:
        name: of the row.
        seconds: by peer, of those that gave the right result.
        problems: by peer, of the others: why there is no time.
        bar: what jitcore's time divided by the best peer's may be at most.
        note: a last cell, such as the share of the machine's limit.
    """

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    bar: float = 1.0
    note: str = ""

    def compare(self, peer: str) -> float:
        """jitcore's time divided by the peer's; NaN if one of them has none."""
        if peer not in self.seconds or "jitcore" not in self.seconds:
            return math.nan
        return self.seconds["jitcore"] / self.seconds[peer]

    def find_best(self) -> str:
        """The fastest of the other peers; "" if there is none."""
        others = {peer: seconds for peer, seconds in self.seconds.items() if peer != "jitcore"}
        return min(others, key=others.__getitem__, default="")

    def is_close(self) -> bool:
        """Whether the noise of a machine may decide on which side of its bar the row is: a busy minute makes
        times much longer."""
        return self.compare(self.find_best()) >= 0.9 * self.bar

    def keep_least(self, other: Measured) -> None:
        """Takes over the times of another measurement of this row that are shorter, and its problems."""
        if other.seconds.get("jitcore", math.inf) < self.seconds.get("jitcore", math.inf):
            self.note = other.note
        for peer, seconds in other.seconds.items():
            self.seconds[peer] = min(seconds, self.seconds.get(peer, seconds))
        self.problems |= other.problems

    def is_over(self) -> bool:
        """Whether jitcore takes longer than the bar allows."""
        return self.compare(self.find_best()) > self.bar


class Section(NamedTuple):
    """A part of the results: its title, its text, whether jitcore gave a wrong result or failed in it, and
    what draws its picture into a file and returns a sentence about it."""

    title: str
    text: str
    failed: bool = False
    draw: Callable[[Path], str] | None = None


def measure_rows(
    rows: Mapping[str, Callable[[], Measured]], repeats: int, show: Callable[[str], None]
) -> list[Measured]:
    """Measures rows by name. `show` is told the name of each before it starts.

    Rows that are close to their bar, or over it, are measured again, later and on other memory, and every
    peer keeps its least time: noise that lasts for seconds, or pages that lie badly, would decide about them
    otherwise."""
    measured: dict[str, Measured] = {}
    for _ in range(1 + repeats):
        for name, measure in rows.items():
            if name not in measured:
                show(name)
                measured[name] = measure()
            elif measured[name].is_close():
                show(name)
                measured[name].keep_least(measure())
    return list(measured.values())


def explain_error(error: Exception) -> str:
    """Why a peer has no time: what it lacks (a function of its modules), or how it fails."""
    first = (str(error).strip() or repr(error)).splitlines()[0]
    if isinstance(error, NotImplementedError) or isinstance(getattr(error, "obj", None), ModuleType):
        return f"not available: {first}"
    return f"failed: {type(error).__name__}: {first}"
