"""Section A: the time of a warm call, results compared first.

In: workloads and peers. Out: measured rows and their table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.agreement import compute_reference, find_difference
from benchmarks.bars import BEST, RUN_MEANS, SAME_LIBRARY
from benchmarks.machine import format_rate, measure_bandwidth, measure_peak
from benchmarks.measured import Measured, Section, explain_error, measure_rows
from benchmarks.peers import Peer
from benchmarks.table import format_section
from benchmarks.timing import Call, Effort, time_in_turns
from benchmarks.workload import DTYPES, Inputs, Workload

TITLE = "Run time: warm calls"


def run_section(
    rows: Sequence[Workload], peers: Sequence[Peer], effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows. `show` is told the name of each before it starts."""
    for peer in peers:
        peer.start()
    measured = measure_rows(
        {row.name: partial(measure_workload, row, peers, effort) for row in rows}, effort.repeats, show
    )
    text = format_section(measured, RUN_MEANS, note="of the limit")
    return Section(TITLE, text, any("jitcore" not in row.seconds for row in measured))


def measure_workload(workload: Workload, peers: Sequence[Peer], effort: Effort) -> Measured:
    """Times of the peers that compute the right result, and what is wrong with the others."""
    measured = Measured(workload.name, bar=SAME_LIBRARY if workload.same_library else BEST)
    for peer in peers:  # where arrays lie can decide about a third of the time, and should not do so for good
        peer.forget()
    inputs = workload.make_inputs(workload.size)
    calls = check_peers(workload, inputs, peers, measured.problems)
    measured.seconds = time_in_turns(calls, effort)
    if "jitcore" in measured.seconds:
        measured.note = describe_share(workload, inputs, measured.seconds["jitcore"])
    return measured


def check_peers(
    workload: Workload, inputs: Inputs, peers: Sequence[Peer], problems: dict[str, str]
) -> dict[str, Call]:
    """The calls of the peers that have a part in the row and compute the right result; why others do not goes
    into `problems`."""
    reference = compute_reference(workload, inputs)
    calls = {}
    for peer in peers:
        try:
            call = peer.make_call(workload, inputs)
            if call is None:
                continue
            problem = find_difference(workload, run_once(call), reference)
        except Exception as error:
            problems[peer.name] = explain_error(error)
            continue
        if problem:
            problems[peer.name] = f"WRONG: {problem}"
        else:
            calls[peer.name] = call
    return calls


def run_once(call: Call) -> Any:
    with call.scope():
        return call.run()


def describe_share(workload: Workload, inputs: Inputs, seconds: float) -> str:
    """The share of the machine's bandwidth or of its multiply-adds that a call used; "" where no work is
    stated."""
    dtype = DTYPES.get(workload.dtype, "float32")
    if workload.bytes_moved is not None:
        moved = workload.bytes_moved(*inputs)
        limit = measure_bandwidth(min(moved, sum_bytes(inputs) * 2), dtype=dtype)
        return f"{moved / seconds / limit:.0%} of {format_rate(limit, 'B')}"
    if workload.flops is not None:
        limit = measure_peak(dtype)
        return f"{workload.flops(*inputs) / seconds / limit:.0%} of {format_rate(limit, 'FLOP')}"
    return ""


def sum_bytes(inputs: Inputs) -> int:
    """Bytes of the arrays among the arguments."""
    return sum(getattr(x, "nbytes", 0) for x in inputs)
