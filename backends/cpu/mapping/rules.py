"""The rules of this processor: how loops run, in the order in which it is decided.

In: a kernel of a finished loop program, and facts about the machine. Out: its `ways`.
"""

from __future__ import annotations

from jitcore.backends.cpu.mapping import memory_order, vectors
from jitcore.loopir.expr import Axis
from jitcore.loopir.program import Kernel, Reduce, Scan
from jitcore.loopir.ways import Rule


def _turn_lanes(name: str, kernel: Kernel, rows: Axis) -> None:
    kernel.ways[name] = kernel.vector = rows


def _mark_long(name: str, sweep: Reduce | Scan, way: bool) -> None:
    sweep.is_long = way


RULES = (
    Rule("nontemporal", memory_order.find_nontemporal, "first: no other rule takes such a loop apart"),
    Rule("transpose", memory_order.find_transposed, "before all that ask what is in lanes", _turn_lanes),
    Rule("interchange", memory_order.find_interchanged, "of kernels that rows in lanes do not serve"),
    Rule("halves", memory_order.find_halved, "of rows in order"),
    Rule("prefetch", memory_order.find_ahead, "of what those three leave, and of scans that interchange"),
    Rule("alternate", memory_order.find_alternating, "after those that go through columns in another way"),
    Rule("long", vectors.find_long, "after transpose, as each lane adds up a part", _mark_long),
    Rule("list", vectors.find_listed, "loops of single updates have ways of their own"),
    Rule("unroll", vectors.find_unrolled, "the same without lanes"),
    Rule("jam", vectors.find_jammed, "before vectors: rows side by side have one register each"),
    Rule("vectors", vectors.find_vectors, "after all that hides latency, or needs registers, by itself"),
    Rule("totals", vectors.find_totals, "the same for the first phase of scans in blocks"),
    Rule("search", vectors.find_searched, "not where rows go side by side"),
    Rule("rest", vectors.find_rest, "of what vectors leave"),
    Rule("peel", vectors.find_peeled, "of loops in lanes"),
    Rule("strip", vectors.find_strips, "of loops in lanes, by how many registers these have"),
)
