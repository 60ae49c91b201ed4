"""What jitcore wants to reach: jitcore's time divided by a peer's.

In: measured rows. Out: lines with geometric means of the ratios, and the rows that are over their bar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.measured import Measured

#: A row against the best of the other libraries; where all of them call the same library.
BEST, SAME_LIBRARY = 1.0, 1.05
#: Geometric means over all rows of run time.
RUN_MEANS = {"JAX": 0.5, "Numba": 0.7}
#: First calls.
COMPILE, LONG_CHAIN, FROM_DISK, JIT_AGAIN = 0.8, 1.0, 0.1, 0.05
#: The compile time of 10,000 steps divided by that of ten.
STEPS_RATIO = 1.2
#: Seconds of a call with a new shape.
NEW_SHAPE_SECONDS = 3e-3
#: Warm calls.
FLAT_CALL, WIDE_CALL = 0.4, 0.7
#: Temporary memory of a call in units of its output.
EXTRA_OUTPUTS = 1.0
#: A rewritten function where nothing is traced, divided by Python's own time: by what its time goes to.
REWRITTEN_BRANCHES, REWRITTEN_NUMPY = 2.5, 1.05
#: Seconds for rewriting a function of 50 instructions; longer ones in proportion.
REWRITE_SECONDS = 1e-3
#: Seconds that a plain program may take under `autojit`, of those in Python: in a first call, in later ones.
PLAIN_FIRST = lambda seconds: 1.5 * seconds + 0.3  # noqa: E731
PLAIN_LATER = lambda seconds: 1.2 * seconds + 0.05  # noqa: E731
#: The same of a process that runs a whole script.
SCRIPT = lambda seconds: 1.05 * seconds + 0.05  # noqa: E731
#: A process that imports jitcore, divided by one that imports Numba.
IMPORT = 1.2
_BEST_PEER = "the best of them"


def describe_bars(rows: Sequence[Measured], means: Mapping[str, float] | None = None) -> list[str]:
    """Geometric means for each peer, with their bars, then the rows over their bar, worst first."""
    peers = dict.fromkeys(peer for row in rows for peer in row.seconds if peer != "jitcore")
    if len(peers) > 1:
        peers[_BEST_PEER] = None
    lines = [_describe_mean(rows, peer, (means or {}).get(peer)) for peer in peers]
    over = [row for row in rows if row.is_over()]
    over.sort(key=lambda row: -row.compare(row.find_best()) / row.bar)
    lines += [f"{len(over)} of {len(rows)} rows over their bar"]
    lines += [f"- {row.name}: {row.compare(row.find_best()):.3g}x {row.find_best()} (bar {row.bar:g}x)"
              for row in over]
    return lines


def find_mean(ratios: Sequence[float]) -> float:
    """Geometric mean of those that are numbers; NaN of none."""
    logarithms = [math.log(ratio) for ratio in ratios if not math.isnan(ratio)]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else math.nan


def _describe_mean(rows: Sequence[Measured], peer: str, bar: float | None) -> str:
    ratios = [row.compare(row.find_best() if peer == _BEST_PEER else peer) for row in rows]
    count = sum(not math.isnan(ratio) for ratio in ratios)
    goal = f" (bar {bar:g}x)" if bar is not None else ""
    return f"geometric mean: {find_mean(ratios):.3g}x {peer}{goal}, {count} rows"
