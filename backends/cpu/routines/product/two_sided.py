"""Products of one matrix with vectors on its two sides, in one sweep over the matrix.

In: the shape of vectors. Out: LLVM text of the functions that `two_sided_routine` calls. Stage: rendering,
once per process and function.

Rows are cut into stretches, whose number depends on the sizes alone; threads share these. A stretch has its
own sums of columns, which are added in order at the end. Within it some rows at a time are multiplied with
the vector on the right, and are added, times their elements of the vector on the left, to sums of columns.
Where the left vector is the product with the right one, the elements of a group of rows are known once these
rows have been read: they are read again from the cache, while memory sends the next group.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.job import (RANGE_ARGUMENTS, UNHURRIED, Job, call_parallel,
                                                       divide_up, name_symbol)
from jitcore.backends.cpu.routines.product.parts import TileShape
from jitcore.backends.cpu.routines.product.row_vectors import RowWriter


def write_pair(w: TextWriter, shape: TileShape) -> None:
    """a @ x and y @ a."""
    _SweepWriter(w, shape, is_chain=False).write("pair")


def write_chain(w: TextWriter, shape: TileShape) -> None:
    """a @ x and (a @ x) @ a."""
    _SweepWriter(w, shape, is_chain=True).write("chain")


class _SweepWriter(RowWriter):
    """Writes one kind of sweep. is_chain: sums along rows are the left vector."""

    def __init__(self, w: TextWriter, shape: TileShape, is_chain: bool):
        super().__init__(w, shape)
        self.is_chain = is_chain

    def write(self, kind: str) -> None:
        """The exported function: a (m x n, contiguous), x, y, the products a @ x and y @ a, room for sums
        of all stretches; sizes, and the rows of a stretch. A chain has no use for y."""
        w, shape = self.w, self.shape
        self._write_stretches()
        self._write_total()
        arguments = "ptr %a, ptr %x, ptr %y, ptr %u, ptr %v, ptr %work, i64 %m, i64 %n, i64 %length"
        with w.function(f"void @{name_symbol(kind, shape)}({arguments}) {UNHURRIED}"):
            job = Job.allocate(w)
            left = "%u" if self.is_chain else "%y"
            job.put_pointers(a="%a", b="%x", c="%v", items=left, segments="%u", packed="%work")
            stretches = divide_up(w, "%m", "%length")
            job.put(m="%m", n="%n", length="%length", item_count=stretches)
            call_parallel(w, "sum_stretches", job.pointer, stretches,
                          divide_up(w, w.tuning.grain_work, w.mul("%n", "%length")), True)
            lines = divide_up(w, "%n", shape.lanes)
            grain = divide_up(w, w.tuning.grain_work, w.mul(stretches, shape.lanes))
            call_parallel(w, "add_stretches", job.pointer, lines, grain)

    # -- stretches of rows ----------------------------------------------------------------------------------
    def _write_stretches(self) -> None:
        """`sum_stretches`: stretches [start, stop)."""
        w, shape = self.w, self.shape
        with w.function(f"internal void @sum_stretches({RANGE_ARGUMENTS})"):
            self.dots = [w.let(f"alloca {shape.vector}, align 64") for _ in range(w.tuning.pair_rows)]
            job = Job(w, "%job")
            self.a, self.x, self.y, self.u, work = (
                job.get_pointer(name) for name in ("a", "b", "items", "segments", "packed"))
            n, length, m = job.get("n"), job.get("length"), job.get("m")
            self.row_bytes = w.mul(n, shape.itemsize)
            self.whole = w.mul(w.div(n, shape.lanes), shape.lanes)
            self.mask = w.first_lanes(w.sub(n, self.whole), shape.lanes)
            self.has_rest = w.compare("slt", self.whole, n)
            with w.loop("%start", "%stop") as stretch:
                first = w.mul(stretch, length)
                end = w.minimum(w.add(first, length), m)
                self.sums = w.at(work, w.mul(stretch, self.row_bytes))
                self._for_vectors(lambda offset, mask: self._put("zeroinitializer", self.sums, offset, mask))
                whole = w.add(first, w.mul(w.div(w.sub(end, first), w.tuning.pair_rows), w.tuning.pair_rows))
                with w.loop(first, whole, w.tuning.pair_rows) as row:
                    self._sweep_rows(row, w.tuning.pair_rows)
                with w.loop(whole, end) as row:
                    self._sweep_rows(row, 1)

    def _sweep_rows(self, row: str, count: int) -> None:
        """Multiplies some rows from `row` on, and adds them to the sums of columns."""
        w = self.w
        rows = [w.at(self.a, w.mul(w.add(row, number), self.row_bytes)) for number in range(count)]
        for dot in self.dots[:count]:
            w.store("zeroinitializer", dot, self.shape.vector, 64)
        if self.is_chain:
            self._for_vectors(lambda *place: self._add_vector(rows, *place, None))
            self._store_dots(row, count)
        factors = [self._spread(w.at(self.y, w.mul(w.add(row, number), self.shape.itemsize)))
                   for number in range(count)]
        self._for_vectors(lambda *place: self._add_vector(rows, *place, factors))
        if not self.is_chain:
            self._store_dots(row, count)

    def _add_vector(self, rows: list[str], offset: str, mask: str | None, factors: list[str] | None) -> None:
        """Adds a vector of columns of some rows: times the right operand's to the sums of the rows, and times
        `factors` to the sums of columns. A chain does the first without factors, and the second with them."""
        w, vector = self.w, self.shape.vector
        adds_dots = not (self.is_chain and factors)
        right = self._get(self.x, offset, mask) if adds_dots else None
        total = self._get(self.sums, offset, mask) if factors else None
        for number, row in enumerate(rows):
            if self.is_chain and factors:
                following = w.at(w.at(row, w.mul(self.row_bytes, len(rows))), offset)
                w.prefetch(following, level=2)
            element = self._get(row, offset, mask)
            if right is not None:
                dot = w.load(self.dots[number], vector, 64)
                w.store(self._multiply_add(element, right, dot), self.dots[number], vector, 64)
            if total is not None:
                total = self._multiply_add(element, factors[number], total)
        if total is not None:
            self._put(total, self.sums, offset, mask)

    def _store_dots(self, row: str, count: int) -> None:
        w, shape = self.w, self.shape
        name = f"@llvm.vector.reduce.fadd.{shape.suffix}"
        w.declare(f"declare {shape.element} {name}({shape.element}, {shape.vector})")
        for number, dot in enumerate(self.dots[:count]):
            lanes = w.load(dot, shape.vector, 64)
            operands = f"{shape.element} -0.0, {shape.vector} {lanes}"
            total = w.let(f"call reassoc {shape.element} {name}({operands})")
            place = w.at(self.u, w.mul(w.add(row, number), shape.itemsize))
            w.store(total, place, shape.element, shape.itemsize)

    # -- sums of all stretches ------------------------------------------------------------------------------
    def _write_total(self) -> None:
        """`add_stretches`: vectors [start, stop) of columns; the last may be filled in part."""
        w, shape = self.w, self.shape
        with w.function(f"internal void @add_stretches({RANGE_ARGUMENTS})"):
            job = Job(w, "%job")
            result, work, n = job.get_pointer("c"), job.get_pointer("packed"), job.get("n")
            row_bytes = w.mul(n, shape.itemsize)
            total = w.let(f"alloca {shape.vector}, align 64")
            with w.loop("%start", "%stop") as vector:
                column = w.mul(vector, shape.lanes)
                mask = w.first_lanes(w.sub(n, column), shape.lanes)
                offset = w.mul(column, shape.itemsize)
                self._add_stretches(total, work, row_bytes, job.get("item_count"), result, offset, mask)

    def _spread(self, address: str) -> str:
        """An element in all lanes."""
        w, shape = self.w, self.shape
        element = w.load(address, shape.element, shape.itemsize)
        return w.splat(element, shape.element, shape.lanes)
