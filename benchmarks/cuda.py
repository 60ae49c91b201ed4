"""Section of CUDA: the programs of the run-time section as kernels, on a machine without a GPU.

In: names of rows. Out: for each how its kernels are mapped; what they take of a GPU, for three
architectures, as NVIDIA's linker and disassembler say; the operations and the bytes that they need at least,
and the time that these take on an H200; and whether the device in software gives what the CPU gives, for
inputs of a size that it runs in seconds.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import find_difference, list_leaves
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_bytes, format_count, format_seconds
from benchmarks.timing import Effort
from benchmarks.workloads import ROWS

TITLE = "CUDA: compiled ahead of time, and run in software"
TARGETS = ("cuda:sm_80", "cuda:sm_90", "cuda:sm_100")
#: Of an H200: bytes that a copy reads and writes in a second (measured), operations in a second on numbers
#: of 4 and of 8 bytes (its data sheet), seconds from the launch of a kernel to the next (measured).
COPY_RATE, FLOP_RATE, LAUNCH = 4.2e12, {4: 67e12, 8: 34e12}, 3e-6
#: Accesses of global memory by their bytes.
_ACCESS = re.compile(r"\b(?:LDG|STG)\.E((?:\.\w+)*)")
_ROW_OF_NAME = {row.name: row for row in ROWS}


def list_names() -> list[str]:
    return list(_ROW_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Compiles and runs the rows with these names. `show` is told the name of each before it starts."""
    lines = [["row", "kernels", "registers", "spilled", "shared", "occupancy", "accesses", "flops", "bytes",
              "roofline", "result"]]
    failed, tally = False, collections.Counter()
    for name in names:
        show(name)
        try:
            cells, problem, kinds = run_fresh(measure, name, environment={"JITCORE_CACHE_DIR": ""})
        except RuntimeError as error:
            cells, problem, kinds = [""] * 9, str(error), []
        failed |= bool(problem)
        tally.update(kinds)
        lines.append([name, *cells, problem or "equal"])
    found = ", ".join(f"{kind} {count}" for kind, count in tally.most_common())
    return Section(TITLE, f"{align_cells(lines)}\n\n{_LEGEND}\nkernels: {found}", failed)


_LEGEND = (
    "Of a row's kernels: the most registers, all spilled bytes, the most shared bytes, the least occupancy, "
    "for sm_80, sm_90 and sm_100 where they differ. Accesses: instructions of sm_90 that read or write 16, "
    "8, 4 and fewer bytes of global memory. Roofline: of an H200."
)


def measure(name: str) -> tuple[list[str], str, list[str]]:
    """(cells, what is wrong, mappings) of one row."""
    import jitcore
    from jitcore.backends.cuda.runtime.linking import Resources

    row, none = _ROW_OF_NAME[name], Resources(0, 0, 0, 0, 0.0)
    lowered = jitcore.jit(row.program(jitcore)).lower(*row.make_inputs(row.size))
    compiled = {target: lowered.compile(target=target) for target in TARGETS}
    found = [list(one.runtime_executable().find_resources().values()) or [none] for one in compiled.values()]
    taken = [_join(str(max(one.registers for one in kernels)) for kernels in found),
             _join(str(sum(one.spilled_bytes for one in kernels)) for kernels in found),
             _join(str(max(one.shared_bytes for one in kernels)) for kernels in found),
             _join(f"{min(one.occupancy for one in kernels):.0%}" for kernels in found)]
    middle = compiled[TARGETS[1]]
    texts, memory = middle.runtime_executable().texts(), middle.memory_analysis()
    cost = middle.cost_analysis()
    kinds = [line.split(": ")[1].split(",")[0] for line in texts["mapping"]().splitlines()]
    moved = memory.argument_size_in_bytes + memory.output_size_in_bytes + 2 * memory.temp_size_in_bytes
    widest = max((leaf.dtype.itemsize for leaf in list_leaves(middle.out_info)), default=4)
    least = max(moved / COPY_RATE, cost["flops"] / FLOP_RATE[8 if widest == 8 else 4]) + LAUNCH * len(kinds)
    cells = [_count(kinds), *taken, count_accesses(texts["sass"]()), format_count(cost["flops"]),
             format_bytes(moved), format_seconds(least)]
    return cells, find_problem(row), kinds


def _join(texts: Iterable[str]) -> str:
    """One text for all targets that have the same."""
    listed = list(texts)
    return listed[0] if len({*listed}) == 1 else "/".join(listed)


def count_accesses(sass: str) -> str:
    """How many instructions read or write 16, 8, 4 and fewer bytes of global memory."""
    counts = collections.Counter(next((int(part) for part in kinds.split(".") if part in ("128", "64")),
                                      8 if re.search(r"\.[US](?:8|16)\b", kinds) else 32)
                                 for kinds in _ACCESS.findall(sass))
    return " ".join(str(counts[bits]) for bits in (128, 64, 32, 8)) if counts else ""


def _count(kinds: Sequence[str]) -> str:
    return ", ".join(kind if count == 1 else f"{count} {kind}"
                     for kind, count in collections.Counter(kinds).items()) or "host"


def find_problem(row: Any) -> str:
    """What the device in software gives that the CPU backend does not."""
    import jitcore

    inputs = row.make_inputs(row.tiny)

    def run(backend):
        return jitcore.tree.map(np.asarray, jitcore.jit(row.program(jitcore), backend=backend)(*inputs))

    found, expected = run("cuda:emulated"), run("cpu")
    for one, other in zip(list_leaves(found), list_leaves(expected)):
        if one.dtype != other.dtype:
            return f"{one.dtype} instead of {other.dtype}"
    return find_difference(row, found, expected)
