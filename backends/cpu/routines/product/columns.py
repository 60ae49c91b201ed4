"""A vector times a matrix whose rows lie along memory, in one sweep over the matrix.

In: the shape of vectors. Out: LLVM text of the function that `vector_routine.multiply_columns` names. Stage:
rendering, once per process and dtype.

Rows are cut into stretches and columns into blocks, whose numbers depend on the sizes alone. Threads share
these, so that two of them read halves of the same rows at a time: a core also fetches what lies behind a run,
and caches keep what several cores have read. A block's sums stay in the first-level cache while rows are
read in long runs, several side by side, so that each sum is loaded and stored once for all of them. Sums of
several stretches are added in order.
"""

from __future__ import annotations

import functools

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.job import (EPILOGUE_ARGUMENTS, EPILOGUE_TYPE, RANGE_ARGUMENTS,
                                                       UNHURRIED, Job, call_parallel, divide_up, name_symbol)
from jitcore.backends.cpu.routines.product.parts import TileShape
from jitcore.backends.cpu.routines.product.row_vectors import RowWriter


def write_columns(w: TextWriter, shape: TileShape) -> None:
    """The exported function of the module: c[i, j] = sum of a[i * a_item + k * a_step] * b[i * b_item + k *
    b_step + j], for i < batch, k < steps, j < n. length: steps of a stretch. width: columns of a block."""
    writer = _ColumnsWriter(w, shape)
    writer.write_sums()
    writer.write_total()
    names = ("batch", "n", "steps", "a_item", "a_step", "b_item", "b_step", "length", "width")
    arguments = ", ".join(f"i64 %{name}" for name in names)
    arguments = f"ptr %a, ptr %b, ptr %c, ptr %work, {EPILOGUE_ARGUMENTS}, {arguments}"
    with w.function(f"void @{name_symbol('columns', shape)}({arguments}) {UNHURRIED}"):
        job = Job.allocate(w)
        job.put_epilogue("%c")
        stretches, blocks = divide_up(w, "%steps", "%length"), divide_up(w, "%n", "%width")
        is_split = w.compare("sgt", stretches, 1)
        job.put_pointers(a="%a", b="%b", c=w.choose(is_split, "%work", "%c", "ptr"), packed="%work")
        scaled = {name: w.mul(f"%{name}", shape.itemsize) for name in names[3:7]}
        job.put(n="%n", steps="%steps", length="%length", width="%width", segment_count=stretches,
                groups=blocks, item_count="%batch", **scaled)
        units = w.mul("%batch", blocks)
        grain = divide_up(w, w.tuning.grain_work, w.mul("%length", "%width"))
        call_parallel(w, "sum_columns", job.pointer, w.mul(units, stretches), grain, True)
        with w.when(is_split):
            grain = divide_up(w, w.tuning.grain_work, w.mul(stretches, "%width"))
            call_parallel(w, "add_stretches", job.pointer, units, grain)


class _ColumnsWriter(RowWriter):
    """Writes the functions on ranges of blocks."""

    def write_sums(self) -> None:
        """`sum_columns`: stretches [start, stop); those of one block of columns follow one another."""
        w, shape = self.w, self.shape
        with w.function(f"internal void @sum_columns({RANGE_ARGUMENTS})"):
            job = Job(w, "%job")
            stretches, length = job.get("segment_count"), job.get("length")
            a, b, c, n = job.get_pointer("a"), job.get_pointer("b"), job.get_pointer("c"), job.get("n")
            self.a_step, self.b_step = job.get("a_step"), job.get("b_step")
            is_whole = w.compare("eq", stretches, 1)
            lines = w.mul(job.get("item_count"), stretches)
            with w.loop("%start", "%stop") as unit:
                block, line = w.div(unit, lines), w.rem(unit, lines)
                item, stretch = w.div(line, stretches), w.rem(line, stretches)
                first = w.mul(stretch, length)
                count = w.minimum(w.sub(job.get("steps"), first), length)
                column = w.mul(block, job.get("width"))
                self._begin_block(job, column)
                offset = w.mul(column, shape.itemsize)
                left = w.at(a, w.add(w.mul(item, job.get("a_item")), w.mul(first, self.a_step)))
                right = w.add(w.mul(item, job.get("b_item")), w.mul(first, self.b_step))
                right = w.at(b, w.add(right, offset))
                self.sums = w.at(c, w.add(w.mul(w.mul(line, n), shape.itemsize), offset))
                self._for_vectors(lambda place, mask: self._put("zeroinitializer", self.sums, place, mask))
                self._add_rows(left, right, count)
                with w.when(is_whole):
                    self._run_epilogue(job, item, column)

    def _begin_block(self, job: Job, column: str) -> None:
        """Finds how many columns there are from `column` on."""
        w, shape = self.w, self.shape
        self.columns = w.minimum(w.sub(job.get("n"), column), job.get("width"))
        self.whole = w.mul(w.div(self.columns, shape.lanes), shape.lanes)
        self.mask = w.first_lanes(w.sub(self.columns, self.whole), shape.lanes)
        self.has_rest = w.compare("slt", self.whole, self.columns)

    def _add_rows(self, left: str, right: str, count: str) -> None:
        w, (most, *fewer) = self.w, self.w.tuning.summed_rows
        whole = w.mul(w.div(count, most), most)
        with w.loop(0, whole, most) as step:
            self._add_group(left, right, step, most)
        for rows in fewer:
            with w.when(w.compare("ne", w.let(f"and i64 {count}, {rows}"), 0)):
                first = w.mul(w.div(count, 2 * rows), 2 * rows)
                self._add_group(left, right, first, rows)

    def _add_group(self, left: str, right: str, step: str, count: int) -> None:
        """Adds some rows from `step` on, times their elements of the vector, to all sums."""
        w, shape = self.w, self.shape
        element, row = w.at(left, w.mul(step, self.a_step)), w.at(right, w.mul(step, self.b_step))
        factors, rows = [], []
        for _ in range(count):
            number = w.load(element, shape.element, shape.itemsize)
            factors.append(w.splat(number, shape.element, shape.lanes))
            rows.append(w.hide(row))
            element, row = w.at(element, self.a_step), w.at(row, self.b_step)

        def add(offset: str, mask: str | None) -> None:
            halves = [self._get(self.sums, offset, mask), None]
            for number, (row, factor) in enumerate(zip(rows, factors)):
                value, half = self._get(row, offset, mask), number % 2
                if halves[half] is None:
                    halves[half] = w.let(f"fmul {shape.vector} {value}, {factor}")
                else:
                    halves[half] = self._multiply_add(value, factor, halves[half])
            total, other = halves
            if other is not None:
                total = w.let(f"fadd {shape.vector} {total}, {other}")
            self._put(total, self.sums, offset, mask)

        self._for_vectors(add)

    def write_total(self) -> None:
        """`add_stretches`: the sums of all stretches, of blocks [start, stop)."""
        w, shape = self.w, self.shape
        with w.function(f"internal void @add_stretches({RANGE_ARGUMENTS})"):
            total = w.let(f"alloca {shape.vector}, align 64")
            job = Job(w, "%job")
            blocks, stretches = job.get("groups"), job.get("segment_count")
            pitch = w.mul(job.get("n"), shape.itemsize)
            with w.loop("%start", "%stop") as unit:
                item, block = w.div(unit, blocks), w.rem(unit, blocks)
                column = w.mul(block, job.get("width"))
                self._begin_block(job, column)
                offset = w.mul(column, shape.itemsize)
                source = w.at(job.get_pointer("packed"), w.add(w.mul(w.mul(item, stretches), pitch), offset))
                target = w.at(job.get_pointer("result"), w.add(w.mul(item, pitch), offset))

                self._for_vectors(functools.partial(self._add_stretches, total, source, pitch, stretches,
                                                    target))
                self._run_epilogue(job, item, column)

    def _run_epilogue(self, job: Job, item: str, column: str) -> None:
        w, epilogue = self.w, job.get_pointer("epilogue")
        with w.when(w.let(f"icmp ne ptr {epilogue}, null")):
            table, dims = job.get_pointer("epilogue_table"), job.get_pointer("epilogue_dims")
            w.call(epilogue, table, dims, item, w.add(item, 1), column, w.add(column, self.columns),
                   type=EPILOGUE_TYPE)
