"""Convolutions as matrix products whose operands are not copied: windows are read where the images lie.

In: the shape of tiles. Out: LLVM text of the function that `convolution` calls. Stage: rendering, once per
process and dtype.

An item of the job is a line of results; a segment is a stretch of a window that lies in memory with constant
strides. Both are found by nested indices with a stride for each operand.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.product.convolution import ITEM_DIMS, SEGMENT_DIMS
from jitcore.backends.cpu.routines.product.job import (EPILOGUE_ARGUMENTS, UNHURRIED, Job, call_parallel,
                                                       divide_up, name_symbol)
from jitcore.backends.cpu.routines.product.matrices_routine import ITEM_BYTES, SEGMENT_BYTES
from jitcore.backends.cpu.routines.product.multiply import call_multiply
from jitcore.backends.cpu.routines.product.packing import write_pack_panels
from jitcore.backends.cpu.routines.product.parts import TileShape

_NUMBERS = ("m", "n", "steps", "length", "a_row", "a_step", "b_step", "b_column", "c_row", "packs_b",
            "groups", "b_item")


def write_windows(w: TextWriter, shape: TileShape) -> None:
    """The exported function of the module; sizes and strides are elements, see `convolution.Layout`.

    Of packed right operands, strides count items and steps instead."""
    write_pack_panels(w, shape)
    items = [_Dim(f"item{k}", ("a", "b", "c")) for k in range(ITEM_DIMS)]
    segments = [_Dim(f"segment{k}", ("a", "b")) for k in range(SEGMENT_DIMS)]
    names = [*_NUMBERS, *(name for dim in (*items, *segments) for name in dim.names)]
    arguments = ", ".join(f"i64 %{name}" for name in names)
    symbol = name_symbol("windows", shape)
    arguments = f"ptr %a, ptr %b, ptr %c, ptr %work, {EPILOGUE_ARGUMENTS}, {arguments}"
    with w.function(f"void @{symbol}({arguments}) {UNHURRIED}"):
        job = Job.allocate(w)
        job.put_epilogue("%c")
        job.put_pointers(a="%a", b="%b", c="%c", segments="%work")
        scale = {name: w.mul(f"%{name}", shape.itemsize) for name in _NUMBERS[4:9] + ("b_item",)}
        panels = divide_up(w, "%n", shape.width)
        width = shape.width * shape.itemsize
        job.put(m="%m", n="%n", steps="%steps", length="%length", k_block="%length", left_tiles=0, adds=0,
                finishes=1, panels=panels, b_panel=width, **scale)
        segment_count = _count(w, segments)
        item_table = w.at("%work", w.mul(segment_count, SEGMENT_BYTES))
        item_count = _count(w, items)
        packed = w.at(item_table, w.mul(item_count, ITEM_BYTES))
        job.put_pointers(items=item_table, packed=packed)
        job.put(segment_count=segment_count, item_count=item_count)
        packs = w.compare("ne", "%packs_b", 0)
        with w.when(packs):
            grain = divide_up(w, w.tuning.grain_work // 8, w.mul("%steps", shape.width))
            call_parallel(w, "pack_panels", job.pointer, w.mul("%groups", panels), grain)
            job.put_pointers(b=packed)
            job.put(b_step=width, b_panel=w.mul("%steps", width))
        step_scale = w.choose(packs, width, shape.itemsize)
        item_scale = w.choose(packs, w.mul(w.mul(panels, "%steps"), width), shape.itemsize)
        scales = {"a": shape.itemsize, "b": step_scale, "c": shape.itemsize}
        _fill_table(w, "%work", segments, scales, SEGMENT_BYTES)
        _fill_table(w, item_table, items, scales | {"b": item_scale}, ITEM_BYTES, "%length")
        call_multiply(w, shape, job)


class _Dim:
    """An index: names of the arguments that hold its extent and a stride for each buffer."""

    def __init__(self, name: str, buffers: tuple[str, ...]):
        self.extent, self.strides = f"{name}_extent", {buffer: f"{name}_{buffer}" for buffer in buffers}

    @property
    def names(self) -> list[str]:
        return [self.extent, *self.strides.values()]


def _count(w: TextWriter, dims: list[_Dim]) -> str:
    count = f"%{dims[0].extent}"
    for dim in dims[1:]:
        count = w.mul(count, f"%{dim.extent}")
    return count


def _fill_table(w: TextWriter, table: str, dims: list[_Dim], scales: dict[str, Operand], entry_bytes: int,
                last: str | None = None) -> None:
    """Entries of offsets, one for each buffer, then `last`, for all values of nested indices."""

    def fill(k: int, number: Operand, offsets: dict[str, Operand]) -> None:
        if k == len(dims):
            entry = w.at(table, w.mul(number, entry_bytes))
            values = [w.mul(offset, scales[buffer]) for buffer, offset in offsets.items()]
            for position, value in enumerate(values + ([last] if last else [])):
                w.store(value, w.at(entry, 8 * position))
            return
        with w.loop(0, f"%{dims[k].extent}") as index:
            inner = {buffer: w.add(offsets[buffer], w.mul(index, f"%{stride}"))
                     for buffer, stride in dims[k].strides.items()}
            fill(k + 1, w.add(w.mul(number, f"%{dims[k].extent}"), index), inner)

    fill(0, 0, dict.fromkeys(dims[0].strides, 0))
