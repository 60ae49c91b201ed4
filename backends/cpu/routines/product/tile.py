"""The innermost code of matrix products: tiles of the result in registers.

In: the shape of tiles for one dtype and one width of vectors. Out: LLVM text of functions that
`multiply` calls, a module for each. Stage: rendering, once per process and function.

A tile is `rows` x (`vectors` * `lanes`) sums. In each step it multiplies one column of the left operand,
element by element broadcast, with one row of the right one, lanes side by side. Steps are grouped in
segments, within which both operands advance by constant strides: a matrix product has one segment, a
convolution one for each stretch of its window. The right operand's row must be contiguous; everything else is
strides.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.matrices_routine import SEGMENT_BYTES
from jitcore.backends.cpu.routines.product.parts import TileShape, cut_rows, list_heights, list_rows

#: Bytes of an entry of the table `rests`: a count of tiles, then first row and function of each.
REST_BYTES = 56

# Bytes that come at a time.
_LINE_BYTES = 64

TILE_ARGUMENTS = ("ptr %a, i64 %a_row, i64 %a_step, ptr %b, i64 %b_step, ptr %c, i64 %c_row, "
                  "ptr %segments, i64 %segment_count, i64 %length, i64 %rows, i64 %columns, "
                  "i64 %adds")


# -- tiles --------------------------------------------------------------------------------------------------
def write_tile(w: TextWriter, shape: TileShape, name: str, height: int, width: str) -> None:
    """The function of a height: of "full" width, of `columns` lanes that are loaded and stored, "edge", or of
    no more of these than one vector has, "half".

    Functions are few, because each costs milliseconds to compile: those below the largest height do for fewer
    rows too, and where masks cost next to nothing, they have no full ones."""
    panel_bytes = shape.width * shape.itemsize
    shape = shape._replace(vectors=1) if width == "half" else shape
    _Tile(w, shape, height, panel_bytes, is_edge=width != "full").write(name)


def write_rests(w: TextWriter, shape: TileShape) -> None:
    """Table `rests`: how fewer rows than the largest height are cut into tiles."""
    heights, written, numbers = list_heights(shape.rows), list_rows(shape.rows), []
    for rows in range(shape.rows):
        cut = cut_rows(rows, heights[1:])
        entry = [len(cut)]
        for number, tile_rows in enumerate(cut):
            entry += [sum(cut[:number]), written.index(tile_rows)]
        numbers += entry + [0] * (REST_BYTES // 8 - len(entry))
    w.declare(f"@rests = internal constant [{len(numbers)} x i64] [{', '.join(f'i64 {n}' for n in numbers)}]")


class _Tile:
    """Writes one tile function. That of the largest height takes all of its rows; of the others, rows behind
    `rows` are the last of these once more. panel_bytes: of a step of packed operands."""

    def __init__(self, w: TextWriter, shape: TileShape, rows: int, panel_bytes: int, is_edge: bool):
        self.w, self.shape, self.rows, self.panel_bytes, self.is_edge = w, shape, rows, panel_bytes, is_edge
        self.is_full = rows == shape.rows
        self.shared = w.tuning.rows_per_pointer
        self.pointers = -(-rows // self.shared) if self.is_full else 1
        self.sums = [(row, part) for row in range(rows) for part in range(shape.vectors)]

    def write(self, name: str) -> None:
        w = self.w
        w.declare(f"declare {self.shape.vector} @llvm.fmuladd.{self.shape.suffix}"
                  f"({', '.join([self.shape.vector] * 3)})")
        with w.function(f"void @{name}({TILE_ARGUMENTS})"):
            self.apart = [w.mul("%a_row", rows) for rows in range(self.shared + 1)]
            self.offsets = [] if self.is_full else self._list_offsets("%a_row")
            self._find_results()
            w.do(f"%is_packed = icmp eq i64 %b_step, {self.panel_bytes}")
            w.do(f"%ahead = select i1 %is_packed, i64 {w.tuning.packed_ahead}, i64 {w.tuning.ahead}")
            if self.is_edge:
                lanes = self.shape.lanes
                self.masks = [w.first_lanes(w.sub("%columns", part * lanes), lanes)
                              for part in range(self.shape.vectors)]
            w.do("br label %segment")
            self._write_segments()
            self._write_results()

    def _phis(self, kind: str, prefix: str, initial, before: str, after: str, source: str) -> None:
        for name in initial:
            self.w.do(f"%{prefix}{name} = phi {kind} [ {initial[name]}, %{before} ], "
                      f"[ %{source}{name}, %{after} ]")

    def _write_segments(self) -> None:
        w, vector = self.w, self.shape.vector
        names = [f"{row}.{part}" for row, part in self.sums]
        w.start_block("segment")
        w.do("%s = phi i64 [ 0, %enter ], [ %s.next, %segment_end ]")
        self._phis(vector, "o", dict.fromkeys(names, "zeroinitializer"), "enter", "segment_end", "n")
        w.do(f"%entry.at = mul i64 %s, {SEGMENT_BYTES}")
        w.do("%entry = getelementptr i8, ptr %segments, i64 %entry.at")
        w.do("%a.offset = load i64, ptr %entry, align 8")
        w.do("%b.entry = getelementptr i8, ptr %entry, i64 8")
        w.do("%b.offset = load i64, ptr %b.entry, align 8")
        pointers = [w.at("%a", "%a.offset")]
        for _ in range(1, self.pointers):
            pointers.append(w.at(pointers[-1], self.apart[-1]))
        w.do("%b.first = getelementptr i8, ptr %b, i64 %b.offset")
        w.do("br label %step")
        self._write_step(names, pointers)
        w.start_block("segment_end")
        w.do("%s.next = add i64 %s, 1")
        w.do("%more = icmp slt i64 %s.next, %segment_count")
        w.do("br i1 %more, label %segment, label %finish")

    def _write_step(self, names: list[str], pointers: list[str]) -> None:
        w, shape = self.w, self.shape
        w.start_block("step")
        w.do("%k = phi i64 [ 0, %segment ], [ %k.next, %step ]")
        self._phis("ptr", "p", dict(enumerate(pointers)), "segment", "step", "r")
        w.do("%row = phi ptr [ %b.first, %segment ], [ %row.next, %step ]")
        self._phis(shape.vector, "i", {name: f"%o{name}" for name in names}, "segment", "step", "n")
        self._prefetch_row()
        self.starts = [w.hide(f"%p{k}") for k in range(self.pointers)]
        right = [self._load_part("%row", part) for part in range(self.shape.vectors)]
        for row in range(self.rows):
            left = self._broadcast(row)
            for part in range(self.shape.vectors):
                name = f"{row}.{part}"
                w.do(f"%n{name} = call {shape.vector} @llvm.fmuladd.{shape.suffix}({shape.vector} {left}, "
                     f"{shape.vector} {right[part]}, {shape.vector} %i{name})")
        for k in range(self.pointers):
            w.do(f"%r{k} = getelementptr i8, ptr %p{k}, i64 %a_step")
        w.do("%row.next = getelementptr i8, ptr %row, i64 %b_step")
        w.do("%k.next = add i64 %k, 1")
        w.do("%again = icmp slt i64 %k.next, %length")
        w.do("br i1 %again, label %step, label %segment_end")

    def _prefetch_row(self) -> None:
        """Asks for later steps of a packed operand, or for what the next tiles will read of this row where
        it lies: processors foresee the steps down its columns badly."""
        later = self.w.at("%row", "%ahead")
        for offset in range(0, self.shape.width * self.shape.itemsize, _LINE_BYTES):
            self.w.prefetch(self.w.at(later, offset))

    def _load_part(self, line: str, part: int) -> str:
        """A vector of a row of the right operand, or of the result."""
        address = self.w.at(line, part * self.shape.vector_bytes)
        if self.is_edge:
            return self.w.load_masked(address, self.shape.vector, self.masks[part])
        return self.w.load(address, self.shape.vector, self.shape.itemsize)

    def _list_offsets(self, pitch: str) -> list[str]:
        """How far from the first row each row begins."""
        w, offsets = self.w, ["0"]
        for row in range(1, self.rows):
            exists = w.compare("slt", row, "%rows")
            offsets.append(w.choose(exists, w.add(offsets[-1], pitch), offsets[-1]))
        return offsets

    def _broadcast(self, row: int) -> str:
        """One element of the left operand in all lanes."""
        w, shape = self.w, self.shape
        pointer, far = divmod(row, self.shared)
        if self.is_full:
            address = w.at(self.starts[pointer], self.apart[far])
        else:
            address = w.at(self.starts[0], self.offsets[row])
        return w.splat(w.load(address, shape.element, shape.itemsize), shape.element, shape.lanes)

    def _find_results(self) -> None:
        """Where the rows of the result are. Their lines are asked for, and come while sums are taken."""
        w, shape = self.w, self.shape
        offsets = [] if self.is_full else self._list_offsets("%c_row")
        self.lines = ["%c"]
        for row in range(1, self.rows):
            self.lines.append(w.at(self.lines[-1], "%c_row") if self.is_full else w.at("%c", offsets[row]))
        for row, part in self.sums:
            w.prefetch(w.at(self.lines[row], part * shape.vector_bytes), is_write=True)

    def _write_results(self) -> None:
        """Stores the sums, or adds them to what is there."""
        w, shape = self.w, self.shape
        w.start_block("finish")
        w.do("%is_new = icmp eq i64 %adds, 0")
        w.do("br i1 %is_new, label %store, label %add")
        w.start_block("add")
        totals = {}
        for row, part in self.sums:
            term = self._load_part(self.lines[row], part)
            totals[row, part] = w.let(f"fadd {shape.vector} {term}, %n{row}.{part}")
        w.do("br label %store")
        w.start_block("store")
        for row, part in self.sums:
            w.do(f"%s{row}.{part} = phi {shape.vector} [ %n{row}.{part}, %finish ], "
                 f"[ {totals[row, part]}, %add ]")
        for row, part in self.sums:
            address = w.at(self.lines[row], part * shape.vector_bytes)
            if self.is_edge:
                w.store_masked(f"%s{row}.{part}", address, shape.vector, self.masks[part])
            else:
                w.store(f"%s{row}.{part}", address, shape.vector, shape.itemsize)

