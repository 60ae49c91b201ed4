"""Packing operands of matrix products: copies in which what a tile reads lies side by side.

In: the shape of tiles. Out: LLVM text of a function that copies a strip of an operand, and of one that packs
whole panels of right operands. Stage: rendering, once per process and dtype.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.job import RANGE_ARGUMENTS, UNHURRIED, Job, load_part
from jitcore.backends.cpu.routines.product.parts import PACK_AT, TileShape

#: Of `write_pack`'s function.
PACK_ARGUMENTS = "ptr %to, i64 %to_step, ptr %from, i64 %stride, i64 %step, i64 %count, i64 %length"


def write_pack(w: TextWriter, shape: TileShape, name: str) -> None:
    """The exported function: up to `lanes` neighbours of an operand become contiguous in every step.

    to[k * to_step + i] = from[i * stride + k * step] for i < count, k < length. What stands behind a step's
    last element is overwritten too, by up to a vector: steps are written in ascending order, and of blocks of
    neighbours the caller packs the last one first."""
    with w.function(f"void @{name}({PACK_ARGUMENTS})"):
        is_row = w.compare("eq", "%stride", shape.itemsize)
        is_column = w.compare("eq", "%step", shape.itemsize)
        mask = w.first_lanes("%count", shape.lanes)
        w.do(f"br i1 {is_row}, label %copy, label %other")
        w.start_block("copy")
        _write_copy(w, shape, mask)
        w.do("ret void")
        w.start_block("other")
        blocks = w.div("%length", shape.lanes)
        turned = w.choose(is_column, w.mul(blocks, shape.lanes), 0)
        with w.loop(0, turned, shape.lanes) as k:
            _write_turned_block(w, shape, k)
        _write_gather(w, shape, turned)


def _write_copy(w: TextWriter, shape: TileShape, mask: str) -> None:
    with w.loop(0, "%length") as k:
        vector = w.load_masked(w.at("%from", w.mul(k, "%step")), shape.vector, mask)
        w.store(vector, w.at("%to", w.mul(k, "%to_step")), shape.vector, shape.itemsize)


def _write_turned_block(w: TextWriter, shape: TileShape, k: str) -> None:
    """A square block of an operand whose steps are contiguous: rows are loaded, columns stored."""
    last = w.sub("%count", 1)
    row, rows = w.at("%from", w.mul(k, shape.itemsize)), []
    for lane in range(shape.lanes):
        rows.append(w.load(row, shape.vector, shape.itemsize))
        # rows that are not there repeat the last one
        row = w.at(row, w.choose(w.compare("slt", lane, last), "%stride", 0))
    target = w.at("%to", w.mul(k, "%to_step"))
    for column in _write_transpose(w, shape, rows):
        w.store(column, target, shape.vector, shape.itemsize)
        target = w.at(target, "%to_step")


def _write_transpose(w: TextWriter, shape: TileShape, rows: list[str]) -> list[str]:
    """Transposes a square in log2(lanes) rounds: each interleaves registers i and i + lanes/2."""
    lanes, half = shape.lanes, shape.lanes // 2
    for _ in range(lanes.bit_length() - 1):
        mixed = []
        for k in range(half):
            for first in (0, half):
                order = (first + j // 2 + (j % 2) * lanes for j in range(lanes))
                mixed.append(w.pick(shape.vector, rows[k], rows[k + half], order))
        rows = mixed
    return rows


def _write_gather(w: TextWriter, shape: TileShape, first: str) -> None:
    """Element by element from step `first` on, and nothing is written behind a step."""
    with w.loop(first, "%length") as k, w.loop(0, w.minimum("%count", shape.lanes)) as lane:
        place = w.add(w.mul(lane, "%stride"), w.mul(k, "%step"))
        value = w.load(w.at("%from", place), shape.element, shape.itemsize)
        target = w.add(w.mul(k, "%to_step"), w.mul(lane, shape.itemsize))
        w.store(value, w.at("%to", target), shape.element, shape.itemsize)


def write_pack_panels(w: TextWriter, shape: TileShape) -> None:
    """`pack_panels`: panels [start, stop) of a job's right operands, item after item; a few steps of all of
    them before the next ones where the operand's rows, which are long runs of memory, are steps."""
    width = shape.width * shape.itemsize
    with w.function(f"internal void @pack_panels({RANGE_ARGUMENTS}) {UNHURRIED}"):
        job, pack = Job(w, "%job"), load_part(w, shape, PACK_AT)
        panels, n, steps = job.get("panels"), job.get("n"), job.get("steps")
        b_step, b_column = job.get("b_step"), job.get("b_column")
        b, packed, b_item = job.get_pointer("b"), job.get_pointer("packed"), job.get("b_item")
        is_column = w.compare("eq", b_step, shape.itemsize)
        most = w.choose(is_column, steps, w.tuning.packed_side_by_side)
        with (w.loop(0, steps, most) as first, w.loop("%start", "%stop") as u,
              w.loop(0, shape.vectors) as part):
            item, panel = w.div(u, panels), w.rem(u, panels)
            length = w.minimum(most, w.sub(steps, first))
            column = w.add(w.mul(panel, shape.width), w.mul(part, shape.lanes))
            source = w.at(b, w.add(w.mul(item, b_item), w.mul(column, b_column)))
            source = w.at(source, w.mul(first, b_step))
            target = w.at(packed, w.add(w.mul(w.mul(u, steps), width), w.mul(part, shape.vector_bytes)))
            target = w.at(target, w.mul(first, width))
            with w.when(w.compare("slt", column, n)):
                w.call(pack, target, width, source, b_column, b_step, w.sub(n, column), length,
                       type=f"void ({PACK_ARGUMENTS})")
