"""Matrix products on whole operands: blocks of them are packed, and jobs made of the blocks.

In: the shape of tiles. Out: LLVM text of the function that `matrices_routine` calls. Stage: rendering, once
per process and dtype.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.job import (EPILOGUE_ARGUMENTS, EPILOGUE_TYPE, UNHURRIED, Job,
                                                       call_parallel, divide_up, name_symbol)
from jitcore.backends.cpu.routines.product.matrices_routine import ITEM_BYTES
from jitcore.backends.cpu.routines.product.multiply import call_multiply
from jitcore.backends.cpu.routines.product.packing import write_pack_panels
from jitcore.backends.cpu.routines.product.parts import TileShape


def write_matrices(w: TextWriter, shape: TileShape) -> None:
    """The exported function of the module, with what only it calls."""
    write_pack_panels(w, shape)
    _MatricesWriter(w, shape).write_product()


class _MatricesWriter:
    """Writes the function that multiplies stacks of matrices."""

    def __init__(self, w: TextWriter, shape: TileShape):
        self.w, self.shape = w, shape

    def write_product(self) -> None:
        """The exported matrix product; sizes and strides are elements.

        c[i] (m x n, contiguous) = a[i] (m x k) @ b[i] (k x n) for i < batch.
        See `matrices_routine.Plan` for the rest."""
        names = ("batch", "m", "n", "k", "a_item", "a_row", "a_step", "b_item", "b_step", "b_column",
                 "left_tiles", "packs_b", "batch_block", "n_block", "k_block", "inner_block",
                 "splits")
        arguments = ", ".join(f"i64 %{name}" for name in names)
        w, shape = self.w, self.shape
        symbol = name_symbol("matrices", shape)
        arguments = f"ptr %a, ptr %b, ptr %c, ptr %work, {EPILOGUE_ARGUMENTS}, {arguments}"
        with w.function(f"void @{symbol}({arguments}) {UNHURRIED}"):
            job = Job.allocate(w)
            job.put_epilogue("%c")
            scale = {name: w.mul(f"%{name}", shape.itemsize) for name in names[4:10]}
            items = w.at("%work", 64)
            w.store(0, "%work")
            w.store(0, w.at("%work", 8))
            item_count = w.mul("%batch_block", "%splits")
            packed = w.at(items, w.mul(divide_up(w, w.mul(item_count, ITEM_BYTES), 64), 64))
            is_split = w.compare("sgt", "%splits", 1)
            partials = w.mul(w.mul(w.mul("%batch", "%splits"), w.mul("%m", "%n")), shape.itemsize)
            partials = w.mul(divide_up(w, w.choose(is_split, partials, 0), 64), 64)
            target = w.choose(is_split, packed, "%c", "ptr")
            packed = w.at(packed, partials)
            job.put_pointers(a="%a", c=target, items=items, segments="%work", packed=packed)
            c_row = w.mul("%n", shape.itemsize)
            job.put(segment_count=1, m="%m", left_tiles="%left_tiles", k_block="%inner_block", c_row=c_row,
                    **{name: scale[name] for name in ("a_row", "a_step", "b_item", "b_column")})
            with (w.loop(0, "%batch", "%batch_block") as first, w.loop(0, "%n", "%n_block") as column,
                  w.loop(0, "%k", "%k_block") as k):
                self._multiply_chunk(job, scale, first, column, k)
            with w.when(is_split):
                self._sum_partials(target)
                with w.when(w.let("icmp ne ptr %epilogue, null")):
                    w.call("%epilogue", "%epilogue_table", "%epilogue_dims", 0, w.mul("%batch", "%m"), 0,
                           "%n", type=EPILOGUE_TYPE)

    def _multiply_chunk(self, job: Job, scale: dict[str, str], first: str, column: str, k: str) -> None:
        """Some matrices of the batch, some columns, some steps."""
        w, shape = self.w, self.shape
        batch = w.minimum(w.sub("%batch", first), "%batch_block")
        columns = w.minimum(w.sub("%n", column), "%n_block")
        steps = w.minimum(w.sub("%k", k), "%k_block")
        panels = divide_up(w, columns, shape.width)
        offset = w.add(w.mul(k, scale["b_step"]), w.mul(column, scale["b_column"]))
        b = w.at("%b", w.add(w.mul(first, scale["b_item"]), offset))
        job.put_pointers(b=b)
        adds = w.let(f"zext i1 {w.compare('ne', k, 0)} to i64")
        is_last = w.compare("sge", w.add(k, "%k_block"), "%k")
        is_whole = w.compare("eq", "%splits", 1)
        finishes = w.let(f"zext i1 {w.let(f'and i1 {is_last}, {is_whole}')} to i64")
        job.put(n=columns, steps=steps, finishes=finishes, panels=panels, b_step=scale["b_step"], adds=adds,
                b_panel=shape.width * shape.itemsize, item_count=w.mul(batch, "%splits"))
        packs = w.compare("ne", "%packs_b", 0)
        width = shape.width * shape.itemsize
        with w.when(packs):
            grain = divide_up(w, w.tuning.grain_work // 8, w.mul(steps, shape.width))
            call_parallel(w, "pack_panels", job.pointer, w.mul(batch, panels), grain)
            job.put_pointers(b=job.get_pointer("packed"))
            job.put(b_step=width, b_panel=w.mul(steps, width))
        b_item = w.choose(packs, w.mul(w.mul(panels, steps), width), scale["b_item"])
        b_step = w.choose(packs, width, scale["b_step"])
        c_item = w.mul(w.mul("%m", "%n"), shape.itemsize)
        items = job.get_pointer("items")
        length = divide_up(w, steps, "%splits")
        job.put(length=length)
        with w.loop(0, batch) as item, w.loop(0, "%splits") as part:
            number, start = w.add(w.mul(item, "%splits"), part), w.mul(part, length)
            entry = w.at(items, w.mul(number, ITEM_BYTES))
            a_offset = w.add(w.mul(w.add(first, item), scale["a_item"]),
                             w.mul(w.add(k, start), scale["a_step"]))
            w.store(a_offset, entry)
            w.store(w.add(w.mul(item, b_item), w.mul(start, b_step)), w.at(entry, 8))
            result = w.add(w.mul(w.mul(first, "%splits"), c_item), w.mul(number, c_item))
            w.store(w.add(result, w.mul(column, shape.itemsize)), w.at(entry, 16))
            w.store(w.minimum(w.sub(steps, start), length), w.at(entry, 24))
        call_multiply(w, shape, job)

    def _sum_partials(self, partials: str) -> None:
        """c = the sum of the stretches' results, in their order."""
        w, shape = self.w, self.shape
        count = w.mul("%m", "%n")
        whole = w.mul(w.div(count, shape.lanes), shape.lanes)
        item_bytes = w.mul(count, shape.itemsize)
        ranges = (0, whole, shape.lanes, shape.vector), (whole, count, 1, shape.element)
        for start, stop, step, kind in ranges:
            with w.loop(0, "%batch") as item, w.loop(start, stop, step) as place:
                offset = w.mul(place, shape.itemsize)
                source = w.at(partials, w.add(w.mul(w.mul(item, "%splits"), item_bytes), offset))
                target = w.at("%c", w.add(w.mul(item, item_bytes), offset))
                w.store(w.load(source, kind, shape.itemsize), target, kind, shape.itemsize)
                with w.loop(1, "%splits") as part:
                    term = w.load(w.at(source, w.mul(part, item_bytes)), kind, shape.itemsize)
                    total = w.let(f"fadd {kind} {w.load(target, kind, shape.itemsize)}, {term}")
                    w.store(total, target, kind, shape.itemsize)
