"""Short rows of a matrix times a vector, in one sweep over the matrix.

In: the shape of vectors. Out: LLVM text of the function that `vector_routine.multiply_rows` names. Stage:
rendering, once per process and dtype.

As many rows as a register has lanes are multiplied side by side, each into a register of partial sums. Adding
halves of pairs of registers, then quarters, and so on, leaves the sums of all rows in one register. The last
group ends with the last row, and may sum rows of the group before once more.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.product.job import (RANGE_ARGUMENTS, UNHURRIED, Job, call_parallel,
                                                       divide_up, name_symbol)
from jitcore.backends.cpu.routines.product.parts import TileShape


def write_rows(w: TextWriter, shape: TileShape) -> None:
    """The exported function of the module: c[i] = sum of a[i * a_row + j] * b[j], for i < m, j < k; m is at
    least the number of lanes. a_row: elements."""
    _write_groups(w, shape)
    arguments = "ptr %a, ptr %b, ptr %c, i64 %m, i64 %k, i64 %a_row"
    with w.function(f"void @{name_symbol('rows', shape)}({arguments}) {UNHURRIED}"):
        job = Job.allocate(w)
        job.put_pointers(a="%a", b="%b", c="%c")
        job.put(m="%m", steps="%k", a_row=w.mul("%a_row", shape.itemsize))
        grain = divide_up(w, w.tuning.grain_work, w.mul("%k", shape.lanes))
        call_parallel(w, "row_groups", job.pointer, divide_up(w, "%m", shape.lanes), grain, True)


def _write_groups(w: TextWriter, shape: TileShape) -> None:
    """`row_groups`: groups [start, stop) of as many rows as there are lanes."""
    with w.function(f"internal void @row_groups({RANGE_ARGUMENTS})"):
        sums = [w.let(f"alloca {shape.vector}, align 64") for _ in range(shape.lanes)]
        job = Job(w, "%job")
        a, b, c = (job.get_pointer(name) for name in "abc")
        a_row, steps = job.get("a_row"), job.get("steps")
        whole = w.mul(w.div(steps, shape.lanes), shape.lanes)
        mask, has_rest = w.first_lanes(w.sub(steps, whole), shape.lanes), w.compare("slt", whole, steps)
        last = w.sub(job.get("m"), shape.lanes)
        with w.loop("%start", "%stop") as group:
            first = w.minimum(w.mul(group, shape.lanes), last)
            rows = [w.at(a, w.mul(first, a_row))]
            while len(rows) < shape.lanes:
                rows.append(w.at(rows[-1], a_row))
            for total in sums:
                w.store("zeroinitializer", total, shape.vector, 64)
            with w.loop(0, whole, shape.lanes) as step:
                _add_products(w, shape, sums, rows, b, step)
            with w.when(has_rest):
                _add_products(w, shape, sums, rows, b, whole, mask)
            totals = [w.load(total, shape.vector, 64) for total in sums]
            w.store(_add_lanes(w, shape, totals), w.at(c, w.mul(first, shape.itemsize)), shape.vector,
                    shape.itemsize)


def _add_products(w: TextWriter, shape: TileShape, sums: list[str], rows: list[str], b: str, step: Operand,
                  mask: str | None = None) -> None:
    """Adds the products of a vector of steps, or of its lanes in a mask."""
    offset = w.mul(step, shape.itemsize)

    def read(pointer):
        address = w.at(pointer, offset)
        if mask is None:
            return w.load(address, shape.vector, shape.itemsize)
        return w.load_masked(address, shape.vector, mask)

    right = read(b)
    for total, row in zip(sums, rows):
        old = w.load(total, shape.vector, 64)
        w.store(w.intrinsic("fmuladd", shape.vector, read(row), right, old), total, shape.vector, 64)


def _add_lanes(w: TextWriter, shape: TileShape, registers: list[str]) -> str:
    """The register whose lane i is the sum of the lanes of register i."""
    lanes, block = shape.lanes, shape.lanes
    while len(registers) > 1:
        count, half = len(registers) // 2, block // 2
        halves = [[lane // block * block + side * half + lane % half + lanes * (lane // half % 2)
                   for lane in range(lanes)] for side in range(2)]
        pairs = zip(registers[:count], registers[count:])
        registers = [_add_halves(w, shape, pair, halves) for pair in pairs]
        block = half
    return registers[0]


def _add_halves(w: TextWriter, shape: TileShape, pair: tuple[str, str], halves: list[list[int]]) -> str:
    parts = [w.pick(shape.vector, *pair, places) for places in halves]
    return w.let(f"fadd {shape.vector} {parts[0]}, {parts[1]}")
