"""LU factors of matrices that fit a core's caches, with pivots from each column, on one thread.

In: a `lapack_code` writer at one matrix of real numbers. Out: code that replaces LAPACK's `getrf`, whose
pivots and multipliers it chooses in the same way: the first largest magnitude of a column, and products with
its inverse, unless that would overflow.

Panels of columns are factorized one after the other, in a copy that lies column by column: there lanes are
rows, and the search for a pivot reads neighbours. What a panel leaves of the columns behind it is subtracted
from the rows of the matrix, where lanes are columns; the panel's copy is the left operand as tiles want it.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.routines.linalg.block_solve import define_solve
from jitcore.backends.cpu.routines.linalg.block_tile import (CONTRACT, BlockShape, BlockWriter, align,
                                                             clear_vectors, define_update, fill, find_pitch)
from jitcore.backends.cpu.routines.linalg.routine import PADDED_UNIT
from jitcore.backends.llvm.registers import I1, I32, I64, splat


def write_block_lu(w) -> None:
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    count = w.smaller(rows, columns)
    matrix = _Matrix(w, rows, columns)
    pivots, permutation = w.at("pivots", count, I32), w.at("permutation", rows, I32)
    w.count_up(permutation, rows)
    matrix.read(w.at("x", b.mul(rows, columns), w.real))
    panel = _Panel(w, matrix)
    with w.loop(I64(0), count, w.tuning.panel) as first:
        width = w.smaller(b.sub(count, first), I64(w.tuning.panel))
        past = b.add(first, width)
        panel.read(first, width)
        panel.factorize(pivots)
        matrix.exchange_rows(pivots, permutation, first, past)
        panel.write()
        with b.if_then(b.icmp_signed("<", past, columns)):
            panel.subtract_from(past)
    matrix.write(w.at("out", b.mul(rows, columns), w.real))


class _Matrix:
    """The work copy: rows with padding, behind which the panel's memory begins."""

    def __init__(self, w, rows: ir.Value, columns: ir.Value):
        self.w, self.rows, self.columns, self.shape = w, rows, columns, BlockShape(w)
        self.pitch = find_pitch(w, columns)
        self.start = align(w, w.room("work", w.real))
        self.past = w.b.gep(self.start, [w.b.mul(w.b.add(rows, I64(PADDED_UNIT)), self.pitch)])

    def place(self, row: ir.Value, column: ir.Value = I64(0)) -> ir.Value:
        b = self.w.b
        return b.gep(self.start, [b.add(b.mul(row, self.pitch), column)])

    def read(self, x: ir.Value) -> None:
        w, b = self.w, self.w.b
        with w.loop(I64(0), self.rows) as i:
            w.copy(self.place(i), b.gep(x, [b.mul(i, self.columns)]), self.columns)
            clear_vectors(w, self.shape, self.place(i, self.columns))
        w.clear(self.place(self.rows), b.mul(I64(PADDED_UNIT), self.pitch))

    def write(self, out: ir.Value) -> None:
        w, b = self.w, self.w.b
        with w.loop(I64(0), self.rows) as i:
            w.copy(b.gep(out, [b.mul(i, self.columns)]), self.place(i), self.columns)

    def exchange_rows(self, pivots: ir.Value, permutation: ir.Value, first: ir.Value, past: ir.Value) -> None:
        w, b = self.w, self.w.b
        with w.loop(first, past) as k:
            pivot = b.sext(b.load(b.gep(pivots, [k])), I64)
            with b.if_then(b.icmp_signed("!=", pivot, k)):
                w.exchange(b.gep(permutation, [k]), b.gep(permutation, [pivot]))
                kind = ir.VectorType(w.real, PADDED_UNIT).as_pointer()
                with w.loop(I64(0), self.pitch, PADDED_UNIT) as j:
                    w.exchange(*(b.bitcast(self.place(row, j), kind) for row in (k, pivot)))


class _Panel:
    """Columns [first, first + width) of the rows from `first` on, column by column."""

    def __init__(self, w, matrix: _Matrix):
        self.w, self.matrix, self.shape = w, matrix, matrix.shape
        self.start, self.pitch = matrix.past, find_pitch(w, matrix.rows)
        self.turned = w.b.gep(self.start, [w.b.mul(I64(w.tuning.panel), self.pitch)])  # a strip's rows
        self.strip = ir.VectorType(w.real, w.tuning.strip)
        self.update = define_update(w, self.shape)
        self.solve = define_solve(w, self.shape, is_forward=True)
        self.make_column = _define_make_column(w, self.shape)
        self.ones = w.slot(w.real, self.shape.rows)
        fill(w, self.ones, I64(self.shape.rows), 1.0)

    def place(self, column: ir.Value, row: ir.Value = I64(0)) -> ir.Value:
        b = self.w.b
        return b.gep(self.start, [b.add(b.mul(column, self.pitch), row)])

    def read(self, first: ir.Value, width: ir.Value) -> None:
        w, b = self.w, self.w.b
        self.first, self.width = first, width
        self.height = b.sub(self.matrix.rows, first)
        with w.loop(I64(0), width) as column:
            clear_vectors(w, self.shape, self.place(column, self.height))
        self._transpose(self.start, self.pitch, self.matrix.place(first, first), self.matrix.pitch,
                        self.height, width)

    def write(self) -> None:
        target = self.matrix.place(self.first, self.first)
        self._transpose(target, self.matrix.pitch, self.start, self.pitch, self.width, self.height)

    def _transpose(self, target, target_pitch, source, source_pitch, rows, columns) -> None:
        w, kind = self.w, ir.IntType(8 * self.w.real_size).as_pointer()
        target, source = w.b.bitcast(target, kind), w.b.bitcast(source, kind)
        w.transpose(target, target_pitch, source, source_pitch, rows, columns)

    # -- factors of the panel -----------------------------------------------------------------------------
    def factorize(self, pivots: ir.Value) -> None:
        w, b = self.w, self.w.b
        with w.loop(I64(0), self.width, w.tuning.strip) as strip:
            past = b.add(strip, I64(w.tuning.strip))
            stop = w.smaller(past, self.width)
            with w.loop(strip, stop) as j:
                pivot = b.call(self.make_column, [self.start, self.pitch, self.height, self.width, j, stop])
                place = b.gep(pivots, [b.add(self.first, j)])
                b.store(b.trunc(b.add(self.first, pivot), I32), place)
            with b.if_then(b.icmp_signed("<", past, self.width)):
                self._finish_strip(strip, past)

    def _finish_strip(self, strip: ir.Value, past: ir.Value) -> None:
        """Takes the strip's part from the panel's columns behind it."""
        w, b, many, panel = self.w, self.w.b, self.w.tuning.strip, I64(self.w.tuning.panel)
        lanes = ir.Constant(ir.VectorType(I32, many), list(range(many)))
        below = [b.icmp_signed(">", lanes, ir.Constant(lanes.type, [t] * many)) for t in range(many)]
        lower = [self._load_strip(b.add(strip, I64(t)), strip) for t in range(many)]
        with w.loop(past, self.width) as column:
            x = self._load_strip(column, strip)
            for t in range(many):
                every = ir.Constant(ir.VectorType(I32, many), [t] * many)
                factor = b.shuffle_vector(x, ir.Constant(self.strip, ir.Undefined), every)
                less = b.fsub(x, b.fmul(lower[t], factor, flags=CONTRACT), flags=CONTRACT)
                x = b.select(below[t], less, x)
            b.store(x, self._strip_at(column, strip), align=w.real_size)
        count = b.sub(self.width, past)
        self._transpose(self.turned, panel, self.place(past, strip), self.pitch, count, I64(many))
        b.call(self.update, [self.place(past, past), self.pitch, self.turned, panel,
                             self.place(strip, past), self.pitch, count, b.sub(self.height, past),
                             I64(many)])

    def _strip_at(self, column: ir.Value, row: ir.Value) -> ir.Value:
        return self.w.b.bitcast(self.place(column, row), self.strip.as_pointer())

    def _load_strip(self, column: ir.Value, row: ir.Value) -> ir.Value:
        return self.w.b.load(self._strip_at(column, row), align=self.w.real_size)

    # -- the columns behind it ----------------------------------------------------------------------------
    def subtract_from(self, past: ir.Value) -> None:
        """Makes the panel's rows of the upper factor from column `past` on, and takes their products with
        the lower factor from the rows below."""
        w, b, matrix = self.w, self.w.b, self.matrix
        columns = b.sub(matrix.columns, past)
        top = matrix.place(self.first, past)
        with w.loop(I64(0), self.width, self.shape.rows) as row:
            target = matrix.place(b.add(self.first, row), past)
            b.call(self.solve, [target, matrix.pitch, self.place(I64(0), row), self.pitch, top, row,
                                self.place(row, row), self.pitch, self.ones, columns])
        below = matrix.place(past, past)
        b.call(self.update, [below, matrix.pitch, self.place(I64(0), self.width), self.pitch, top,
                             matrix.pitch, b.sub(matrix.rows, past), columns, self.width])


def _define_make_column(w, shape: BlockShape) -> ir.Function:
    """`i64 make_column(panel, pitch, height, width, j, stop)`: finds the pivot of column j and brings its row
    to place j, divides what is below, and takes its products from columns (j, stop).

    Gives the pivot's row."""
    pointer = w.real.as_pointer()
    kind = ir.FunctionType(I64, [pointer, I64, I64, I64, I64, I64])
    function = ir.Function(w.module, kind, "make_column")
    inner = BlockWriter(w, function)
    _ColumnWriter(inner, shape).write(*function.args)
    return function


class _ColumnWriter:
    """The code of `make_column`. Wide vectors are two registers."""

    def __init__(self, w: BlockWriter, shape: BlockShape):
        self.w, self.lanes = w, shape.width
        self.kind = ir.VectorType(w.real, shape.width)
        self.places = ir.Constant(ir.VectorType(I64, shape.width), list(range(shape.width)))
        name = f"llvm.fabs.v{shape.width}f{8 * w.real_size}"
        self._absolute = ir.Function(w.module, ir.FunctionType(self.kind, [self.kind]), name)

    def write(self, panel, pitch, height, width, j, stop) -> None:
        w, b = self.w, self.w.b
        self.height = height
        self.column = b.gep(panel, [b.mul(j, pitch)])
        pivot = self._find_pivot(j)
        with b.if_then(b.icmp_signed("!=", pivot, j)), w.loop(I64(0), width) as c:
            other = b.mul(c, pitch)
            w.exchange(*(b.gep(panel, [b.add(other, row)]) for row in (j, pivot)))
        self._divide(j)
        with w.loop(b.add(j, I64(1)), stop) as c:
            other = b.gep(panel, [b.mul(c, pitch)])
            factor = splat(b, b.load(b.gep(other, [j])), self.lanes)

            def subtract(place, x, other=other, factor=factor):
                product = b.fmul(x, factor, flags=CONTRACT)
                return b.fsub(self._load(other, place), product, flags=CONTRACT)

            self._change_below(j, other, subtract)
        b.ret(pivot)

    def _vector(self, column: ir.Value, place: ir.Value) -> ir.Value:
        return self.w.b.bitcast(self.w.b.gep(column, [place]), self.kind.as_pointer())

    def _load(self, column: ir.Value, place: ir.Value) -> ir.Value:
        return self.w.b.load(self._vector(column, place), align=64)

    def _from(self, row: ir.Value) -> ir.Value:
        """Where the vector begins that holds a row."""
        return self.w.b.and_(row, I64(-self.lanes))

    def _is_from(self, place: ir.Value, row: ir.Value) -> ir.Value:
        """Which lanes of a vector are rows from `row` on."""
        b = self.w.b
        return b.icmp_signed(">=", self.places, splat(b, b.sub(row, place), self.lanes))

    def _magnitudes(self, place: ir.Value, j: ir.Value) -> ir.Value:
        """Of the column's elements from row j on; before it, -1."""
        b = self.w.b
        found = b.call(self._absolute, [self._load(self.column, place)])
        return b.select(self._is_from(place, j), found, ir.Constant(self.kind, [-1.0] * self.lanes))

    def _find_pivot(self, j: ir.Value) -> ir.Value:
        """The first row from j on with the largest magnitude; j where nothing but NaN is found."""
        w, b = self.w, self.w.b
        best = w.slot(self.kind)
        b.store(ir.Constant(self.kind, [-0.5] * self.lanes), best)  # nothing is equal to it
        with w.loop(self._from(j), self.height, self.lanes) as place:
            found, old = self._magnitudes(place, j), b.load(best)
            b.store(b.select(b.fcmp_ordered(">", found, old), found, old), best)
        largest = splat(b, self._reduce(b.load(best)), self.lanes)
        head, body, done = (w.function.append_basic_block(name) for name in ("search", "look", "found"))
        before, start = b.block, self._from(j)
        b.branch(head)
        b.position_at_end(head)
        place = b.phi(I64)
        place.add_incoming(start, before)
        equal = b.fcmp_ordered("==", self._magnitudes(place, j), largest)
        bits = ir.IntType(self.lanes)
        equal = b.bitcast(equal, bits)
        following = b.add(place, I64(self.lanes))
        b.cbranch(b.icmp_unsigned("!=", equal, bits(0)), done, body)
        b.position_at_end(body)
        place.add_incoming(following, body)
        b.cbranch(b.icmp_signed("<", following, self.height), head, done)
        b.position_at_end(done)
        first = b.phi(I64)
        first.add_incoming(place, head)
        first.add_incoming(self.height, body)
        lane = b.phi(bits)
        lane.add_incoming(equal, head)
        lane.add_incoming(bits(1), body)
        row = b.add(first, b.zext(b.cttz(lane, I1(1)), I64))
        return b.select(b.icmp_signed("<", row, self.height), row, j)

    def _reduce(self, vector: ir.Value) -> ir.Value:
        """The largest lane."""
        b, lanes = self.w.b, self.lanes
        while lanes > 1:
            lanes //= 2
            undefined = ir.Constant(vector.type, ir.Undefined)
            masks = [ir.Constant(ir.VectorType(I32, lanes), list(range(start, start + lanes)))
                     for start in (0, lanes)]
            halves = [b.shuffle_vector(vector, undefined, mask) for mask in masks]
            vector = b.select(b.fcmp_ordered(">", *halves), *halves)
        return b.extract_element(vector, I32(0))

    def _divide(self, j: ir.Value) -> None:
        """Divides what is below the pivot by it, unless it is zero."""
        w, b = self.w, self.w.b
        pivot = b.load(b.gep(self.column, [j]))
        smallest = ir.Constant(w.real, {4: 2.0**-126, 8: 2.0**-1022}[w.real_size])
        magnitude = b.call(w.module.declare_intrinsic("llvm.fabs", [w.real]), [pivot])
        one = ir.Constant(w.real, 1.0)
        with b.if_else(b.fcmp_ordered(">=", magnitude, smallest)) as (is_large, is_small):
            with is_large:
                inverse = splat(b, b.fdiv(one, pivot), self.lanes)
                self._change_below(j, self.column, lambda place, x: b.fmul(x, inverse))
            with is_small, b.if_then(b.fcmp_unordered("!=", pivot, ir.Constant(w.real, 0.0))):
                divisor = splat(b, pivot, self.lanes)
                self._change_below(j, self.column, lambda place, x: b.fdiv(x, divisor))

    def _change_below(self, j: ir.Value, target: ir.Value, change) -> None:
        """target[i] = change(column[i]) for rows i > j."""
        w, b = self.w, self.w.b
        below = b.add(j, I64(1))
        with w.loop(self._from(below), self.height, self.lanes) as place:
            value = change(place, self._load(self.column, place))
            value = b.select(self._is_from(place, below), value, self._load(target, place))
            b.store(value, self._vector(target, place), align=64)
