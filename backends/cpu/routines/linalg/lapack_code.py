"""Native code around LAPACK: one function for each decomposition and dtype, for batches of matrices.

In: a symbol `jitcore_lapack<bits>_<operation>_<letter>[_<options>]`: bits of LAPACK's integers, its letter
of a dtype, single letters of options. Out: a module that defines `void symbol(pointers..., i64 numbers...)`;
the tables `_POINTERS` and `_NUMBERS` name them in order. Matrices are C-contiguous, LAPACK's lie column by
column, so most are copied transposed, into work memory and out of it.

The batch is cut into `pieces` that threads may share; each has its own part of every work buffer.
A matrix for which LAPACK reports a failure gets NaN in all outputs.
"""

from __future__ import annotations

import contextlib
import math

from llvmlite import ir

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Linalg
from jitcore.backends.cpu.routines.code_writer import CodeWriter
from jitcore.backends.cpu.routines.linalg.block_cholesky import write_block_cholesky
from jitcore.backends.cpu.routines.linalg.block_lu import write_block_lu
from jitcore.backends.cpu.routines.linalg.block_solve import write_block_solve
from jitcore.backends.cpu.routines.linalg.lapack_symbols import PREFIX
from jitcore.backends.cpu.routines.linalg.small_matrices import write_small_lu, write_small_solve
from jitcore.backends.cpu.routines.linalg.transpose import define_transpose
from jitcore.backends.cpu.runtime.threads import SYMBOL as PARALLEL_SYMBOL
from jitcore.backends.llvm.registers import I8, I32, I64, POINTER, SIZES, TABLE

#: Bytes of an element, and of its real part, by LAPACK's letter.
_SIZES = {"s": (4, 4), "d": (8, 8), "c": (8, 4), "z": (16, 8)}
_REAL_TYPES = {4: ir.FloatType(), 8: ir.DoubleType()}

_BODY_TYPE = ir.FunctionType(ir.VoidType(), [TABLE, SIZES, I64, I64])
_PARALLEL_TYPE = ir.FunctionType(ir.VoidType(), [_BODY_TYPE.as_pointer(), TABLE, SIZES, I64, I64])

#: Pointers and numbers that each function takes. Before the numbers come `batch` and `pieces`, after them the
#: elements of a piece's part of each work buffer: `work` (matrix elements), `integers` (64 bits), `reals`.
_POINTERS = {  # "reals": for complex dtypes
    "cholesky": ("x", "out"),
    "blockcholesky": ("x", "out", "work"),
    "lu": ("x", "out", "pivots", "permutation", "work", "integers"),
    "smalllu": ("x", "out", "pivots", "permutation"),
    "blocklu": ("x", "out", "pivots", "permutation", "work"),
    "permutation": ("pivots", "permutation"),
    "qr": ("x", "q", "r", "work"),
    "pivotedqr": ("x", "q", "r", "order", "work", "integers", "reals"),
    "eigh": ("x", "vectors", "values", "work", "integers", "reals"),
    "eigenvalues": ("x", "values", "work", "integers", "reals"),
    "svd": ("x", "values", "left", "right", "work", "integers", "reals"),
    "singularvalues": ("x", "values", "work", "integers", "reals"),
    "trsm": ("a", "b", "out"),
    "trsv": ("a", "b", "out"),
    "smalltrsm": ("a", "b", "out"),
    "blocktrsm": ("a", "b", "out", "work"),
}
_NUMBERS = {
    "cholesky": ("n",), "blockcholesky": ("n",), "eigh": ("n",), "eigenvalues": ("n",),
    "permutation": ("count", "size"), "trsm": ("rows", "columns", "n"), "trsv": ("rows", "columns", "n"),
    "smalltrsm": ("rows", "columns", "n"), "blocktrsm": ("rows", "columns", "n")}


def render(symbol: str, tuning: Linalg) -> ir.Module:
    """The module that defines `symbol`."""
    bits, operation, letter, *options = symbol.removeprefix("jitcore_lapack").split("_")
    module = ir.Module(symbol)
    pointers = [name for name in _POINTERS[operation] if name != "reals" or letter in "cz"]
    numbers = ["batch", "pieces", *_NUMBERS.get(operation, ("rows", "columns"))]
    numbers += [name for name in pointers if name in ("work", "integers", "reals")]
    body = ir.Function(module, _BODY_TYPE, "run_pieces")
    body.linkage = "internal"
    _MatrixWriter(body, int(bits), letter, pointers, numbers, tuning).write(_OPERATIONS[operation], options)
    _define_entry(module, symbol, body, len(pointers), numbers, tuning.small_matrix)
    return module


def _define_entry(module: ir.Module, symbol: str, body: ir.Function, pointers: int, names: list[str],
                  small: int) -> None:
    """The exported function: it hands its arguments to the threads as two tables."""
    numbers = len(names)
    kind = ir.FunctionType(ir.VoidType(), [POINTER] * pointers + [I64] * numbers)
    function = ir.Function(module, kind, symbol)
    w = CodeWriter(function)
    table, sizes = w.slot(POINTER, pointers), w.slot(I64, numbers)
    for k, argument in enumerate(function.args):
        room, position = (table, k) if k < pointers else (sizes, k - pointers)
        w.b.store(argument, w.b.gep(room, [I64(position)]))
    parallel_for = ir.Function(module, _PARALLEL_TYPE, PARALLEL_SYMBOL)
    pieces = function.args[pointers + 1]
    grain = I64(1) if "work" in names else _find_grain(w, small, function.args[pointers + len(names) - 1])
    w.b.call(parallel_for, [body, table, sizes, pieces, grain])
    w.b.ret_void()


def _find_grain(w: CodeWriter, small: int, n: ir.Value) -> ir.Value:
    """Matrices [n, n] that a thread should get at least, where each is a piece."""
    b, size = w.b, w.b.mul(n, n)
    is_small = b.icmp_signed("<=", size, I64(small))
    return b.select(is_small, b.sdiv(I64(small), size), I64(1 << 62))


class _MatrixWriter(CodeWriter):
    """Writes what is done to one matrix. Inside of `write`: `numbers` and `at` of the matrix in progress."""

    def __init__(self, function: ir.Function, bits: int, letter: str, pointers, numbers, tuning: Linalg):
        super().__init__(function)
        self.module, self.letter, self.tuning = function.module, letter, tuning
        self.integer = ir.IntType(bits)
        self.itemsize, self.real_size = _SIZES[letter]
        self.is_complex = self.itemsize != self.real_size
        self.element = ir.IntType(8 * self.itemsize)
        self.real = _REAL_TYPES[self.real_size]
        table, sizes, self._first, self._past = function.args
        b = self.b
        self.pointers = {name: b.load(b.gep(table, [I64(k)])) for k, name in enumerate(pointers)}
        self.numbers = {name: b.load(b.gep(sizes, [I64(k)])) for k, name in enumerate(numbers)}
        self.info = self.slot(self.integer)
        self._transpose: ir.Function | None = None

    def write(self, operation, options: list[str]) -> None:
        b, batch, pieces = self.b, self.numbers["batch"], self.numbers["pieces"]
        with self.loop(self._first, self._past) as self.piece:
            start = b.sdiv(b.mul(batch, self.piece), pieces)
            stop = b.sdiv(b.mul(batch, b.add(self.piece, I64(1))), pieces)
            with self.loop(start, stop) as self.matrix:
                operation(self, *options)
        b.ret_void()

    # -- addresses ----------------------------------------------------------------------------------------
    def at(self, name: str, count: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        """Where a buffer holds this matrix, if it has `count` elements for each."""
        kind = kind or self.element
        base = self.b.bitcast(self.pointers[name], kind.as_pointer())
        return self.b.gep(base, [self.b.mul(self.matrix, count)])

    def room(self, name: str, kind: ir.Type | None = None) -> ir.Value:
        """Where this piece's part of a work buffer begins."""
        kind = kind or self.element
        base = self.b.bitcast(self.pointers[name], kind.as_pointer())
        return self.b.gep(base, [self.b.mul(self.piece, self.numbers[name])])

    def integers(self) -> ir.Value:
        """The piece's room for integers of LAPACK, each in 64 bits of memory or less."""
        return self.b.bitcast(self.room("integers", I64), self.integer.as_pointer())

    # -- statements ---------------------------------------------------------------------------------------
    def call(self, name: str, *arguments) -> None:
        """Calls a Fortran routine of the writer's dtype: text and i64 go by reference, pointers as they are.

        The status goes to `info` where it is the last argument."""
        passed = [self._by_reference(argument) for argument in arguments]
        symbol = f"{PREFIX}{self.letter}{name}"
        function = self.module.globals.get(symbol)
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [POINTER] * len(passed))
            function = ir.Function(self.module, kind, symbol)
        self.b.call(function, passed)

    def _by_reference(self, argument) -> ir.Value:
        b = self.b
        if isinstance(argument, str):
            slot = self.slot(I8)
            b.store(I8(ord(argument)), slot)
            return slot
        if argument.type == I64:
            slot = self.slot(self.integer)
            b.store(b.trunc(argument, self.integer) if self.integer != I64 else argument, slot)
            return b.bitcast(slot, POINTER)
        return b.bitcast(argument, POINTER)

    def transpose(self, dst, dst_pitch, src, src_pitch, rows, columns) -> None:
        """dst[j * dst_pitch + i] = src[i * src_pitch + j]."""
        if self._transpose is None:
            self._transpose = define_transpose(self.module, self.itemsize, host.native_vector_bytes())
        self.b.call(self._transpose, [dst, dst_pitch, src, src_pitch, rows, columns])

    def copy(self, dst: ir.Value, src: ir.Value, count: ir.Value) -> None:
        intrinsic = self.module.declare_intrinsic("llvm.memcpy", [POINTER, POINTER, I64])
        b = self.b
        size = b.mul(count, I64(self.itemsize))
        b.call(intrinsic, [b.bitcast(dst, POINTER), b.bitcast(src, POINTER), size, ir.IntType(1)(0)])

    def clear(self, dst: ir.Value, count: ir.Value) -> None:
        """Stores zeros into elements from dst on; none for a count below 1."""
        intrinsic = self.module.declare_intrinsic("llvm.memset", [POINTER, I64])
        b = self.b
        size = b.mul(b.select(b.icmp_signed(">", count, I64(0)), count, I64(0)), I64(self.itemsize))
        b.call(intrinsic, [b.bitcast(dst, POINTER), I8(0), size, ir.IntType(1)(0)])

    def poison(self, dst: ir.Value, count: ir.Value, is_real: bool = False) -> None:
        """Stores NaN into elements from dst on."""
        parts = 2 if self.is_complex and not is_real else 1
        dst = self.b.bitcast(dst, self.real.as_pointer())
        with self.loop(I64(0), self.b.mul(count, I64(parts))) as k:
            self.b.store(ir.Constant(self.real, math.nan), self.b.gep(dst, [k]))

    def if_failed(self) -> contextlib.AbstractContextManager:
        return self.b.if_then(self.b.icmp_signed("!=", self.b.load(self.info), self.integer(0)), likely=False)

    def count_up(self, dst: ir.Value, count: ir.Value) -> None:
        """Stores 0, 1, 2... as int32."""
        with self.loop(I64(0), count) as k:
            self.b.store(self.b.trunc(k, I32), self.b.gep(dst, [k]))

    def copy_places(self, found: ir.Value, out: ir.Value, count: ir.Value) -> None:
        """Stores places that Fortran counts from 1 as int32."""
        b = self.b
        with self.loop(I64(0), count) as k:
            place = b.load(b.gep(found, [k]))
            place = b.trunc(place, I32) if self.integer != I32 else place
            b.store(b.sub(place, I32(1)), b.gep(out, [k]))

    def square(self, x: ir.Value) -> ir.Value:
        return self.b.mul(x, x)

    def parts(self, start: ir.Value, *counts: ir.Value) -> list[ir.Value]:
        """Cuts work memory: where each part begins, and what is left behind the last."""
        found = [start]
        for count in counts:
            found.append(self.b.gep(found[-1], [count]))
        return found


def _write_cholesky(w: _MatrixWriter) -> None:
    # The lower triangle by rows is the upper one by columns: nothing is transposed.
    b, n = w.b, w.numbers["n"]
    size = w.square(n)
    out, x = w.at("out", size), w.at("x", size)
    with w.loop(I64(0), n) as i:
        start, count = b.mul(i, n), b.add(i, I64(1))
        w.copy(b.gep(out, [start]), b.gep(x, [start]), count)
        w.clear(b.gep(out, [b.add(start, count)]), b.sub(n, count))
    w.call("potrf", "U", n, out, n, w.info)
    with w.if_failed():
        with w.loop(I64(0), n) as i:  # the upper triangle stays zero
            w.poison(b.gep(out, [b.mul(i, n)]), b.add(i, I64(1)))


def _write_lu(w: _MatrixWriter) -> None:
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    size, count = b.mul(rows, columns), w.smaller(rows, columns)
    matrix, exchanges = w.room("work"), w.integers()
    w.transpose(matrix, rows, w.at("x", size), columns, rows, columns)
    w.call("getrf", rows, columns, matrix, rows, exchanges, w.info)
    w.transpose(w.at("out", size), columns, matrix, rows, columns, rows)
    pivots = w.at("pivots", count, I32)
    w.copy_places(exchanges, pivots, count)
    _write_permutation_of(w, pivots, count, w.at("permutation", rows, I32), rows)


def _write_permutation(w: _MatrixWriter) -> None:
    count, size = w.numbers["count"], w.numbers["size"]
    pivots, permutation = w.at("pivots", count, I32), w.at("permutation", size, I32)
    _write_permutation_of(w, pivots, count, permutation, size)


def _write_permutation_of(w: _MatrixWriter, pivots, count, permutation, size) -> None:
    """Row k changes places with row pivots[k], in order."""
    b = w.b
    w.count_up(permutation, size)
    with w.loop(I64(0), count) as k:
        other = b.sext(b.load(b.gep(pivots, [k])), I64)
        w.exchange(b.gep(permutation, [k]), b.gep(permutation, [other]))


def _write_qr(w: _MatrixWriter, width: str) -> None:
    rows, columns = w.numbers["rows"], w.numbers["columns"]
    _write_orthogonal(w, width, lambda a, tau, work, length: w.call(
        "geqrf", rows, columns, a, rows, tau, work, length, w.info))


def _write_pivoted_qr(w: _MatrixWriter, width: str) -> None:
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    order = w.integers()

    def factorize(a, tau, work, length):
        with w.loop(I64(0), columns) as k:  # 0: the column may move
            b.store(w.integer(0), b.gep(order, [k]))
        reals = [w.room("reals", w.real)] if w.is_complex else []
        w.call("geqp3", rows, columns, a, rows, order, tau, work, length, *reals, w.info)

    _write_orthogonal(w, width, factorize)
    w.copy_places(order, w.at("order", columns, I32), columns)


def _write_orthogonal(w: _MatrixWriter, width: str, factorize) -> None:
    """Q and R by Householder reflections. width: "f" for a square Q, "e" for min(rows, columns) columns."""
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    count = w.smaller(rows, columns)
    inner = rows if width == "f" else count
    widest = b.select(b.icmp_signed("<", inner, columns), columns, inner)
    size = b.mul(rows, widest)
    matrix, tau, work = w.parts(w.room("work"), size, count)
    length = b.sub(w.numbers["work"], b.add(size, count))
    w.transpose(matrix, rows, w.at("x", b.mul(rows, columns)), columns, rows, columns)
    factorize(matrix, tau, work, length)
    r = w.at("r", b.mul(inner, columns))
    w.transpose(r, columns, matrix, rows, columns, inner)
    with w.loop(I64(1), inner) as i:
        w.clear(b.gep(r, [b.mul(i, columns)]), w.smaller(i, columns))
    generate = "ungqr" if w.is_complex else "orgqr"
    w.call(generate, rows, inner, count, matrix, rows, tau, work, length, w.info)
    w.transpose(w.at("q", b.mul(rows, inner)), inner, matrix, rows, inner, rows)


def _write_eigh(w: _MatrixWriter, triangle: str) -> None:
    n, size = w.numbers["n"], w.square(w.numbers["n"])
    matrix = _write_eigenvalues(w, triangle, job="V")
    with w.if_failed():
        w.poison(matrix, size)
    w.transpose(w.at("vectors", size), n, matrix, n, n, n)


def _write_eigenvalues(w: _MatrixWriter, triangle: str, job: str = "N") -> ir.Value:
    """triangle: "l" or "u". Returns: where the vectors are, column by column, for job "V"."""
    b, n = w.b, w.numbers["n"]
    size = w.square(n)
    matrix, work = w.parts(w.room("work"), size)
    values = w.at("values", n, w.real)
    w.transpose(matrix, n, w.at("x", size), n, n, n)
    reals = [w.room("reals", w.real), w.numbers["reals"]] if w.is_complex else []
    w.call("heevd" if w.is_complex else "syevd", job, triangle.upper(), n, matrix, n, values, work,
           b.sub(w.numbers["work"], size), *reals, w.integers(), w.numbers["integers"], w.info)
    with w.if_failed():
        w.poison(values, n, is_real=True)
    return matrix


def _write_svd(w: _MatrixWriter, width: str) -> None:
    """width: "a" for square factors, "s" for those of the singular values."""
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    count = w.smaller(rows, columns)
    left_columns, right_rows = (rows, columns) if width == "a" else (count, count)
    sizes = b.mul(rows, columns), b.mul(rows, left_columns), b.mul(right_rows, columns)
    matrix, left, right, work = w.parts(w.room("work"), *sizes)
    values, length = w.at("values", count, w.real), w.numbers["work"]
    for size in sizes:
        length = b.sub(length, size)
    w.transpose(matrix, rows, w.at("x", sizes[0]), columns, rows, columns)
    reals = [w.room("reals", w.real)] if w.is_complex else []
    w.call("gesdd", width.upper(), rows, columns, matrix, rows, values, left, rows, right, right_rows, work,
           length, *reals, w.integers(), w.info)
    with w.if_failed():
        w.poison(values, count, is_real=True)
        w.poison(left, sizes[1])
        w.poison(right, sizes[2])
    w.transpose(w.at("left", sizes[1]), left_columns, left, rows, left_columns, rows)
    w.transpose(w.at("right", sizes[2]), columns, right, right_rows, columns, right_rows)


def _write_singular_values(w: _MatrixWriter) -> None:
    # The transposed matrix has the same ones; of the two, LAPACK is faster with the tall one.
    b, rows, columns = w.b, w.numbers["rows"], w.numbers["columns"]
    size, count = b.mul(rows, columns), w.smaller(rows, columns)
    matrix, work = w.parts(w.room("work"), size)
    values, x = w.at("values", count, w.real), w.at("x", size)
    is_tall = b.icmp_signed(">", rows, columns)
    with b.if_else(is_tall) as (tall, wide):
        with tall:
            w.transpose(matrix, rows, x, columns, rows, columns)
        with wide:
            w.copy(matrix, x, size)
    length = b.select(is_tall, rows, columns)
    reals = [w.room("reals", w.real)] if w.is_complex else []
    w.call("gesdd", "N", length, count, matrix, length, values, matrix, length, matrix, length, work,
           b.sub(w.numbers["work"], size), *reals, w.integers(), w.info)
    with w.if_failed():
        w.poison(values, count, is_real=True)


def _write_triangular_solve(w: _MatrixWriter, side: str, triangle: str, form: str, diagonal: str) -> None:
    # Read by columns, all matrices are transposed: op(A) X = B becomes X^T op(A)^T = B^T.
    rows, columns, n = w.numbers["rows"], w.numbers["columns"], w.numbers["n"]
    size = w.b.mul(rows, columns)
    out = w.at("out", size)
    w.copy(out, w.at("b", size), size)
    one = w.slot(w.real, 2)
    for k, value in enumerate((1.0, 0.0)):
        w.b.store(ir.Constant(w.real, value), w.b.gep(one, [I64(k)]))
    turned = "L" if side == "r" else "R", "U" if triangle == "l" else "L", form.upper(), diagonal.upper()
    w.call("trsm", *turned, columns, rows, one, w.at("a", w.square(n)), n, out, columns)


def _write_vector_solve(w: _MatrixWriter, side: str, triangle: str, form: str, diagonal: str) -> None:
    # A single right-hand side. Read by columns the matrix is transposed, and so is the wish for x op(A) = b.
    n = w.numbers["n"]
    out = w.at("out", n)
    w.copy(out, w.at("b", n), n)
    if side == "l":
        form = {"n": "t", "t": "n"}[form]
    turned = "U" if triangle == "l" else "L", form.upper(), diagonal.upper()
    w.call("trsv", *turned, n, w.at("a", w.square(n)), n, out, I64(1))


_OPERATIONS = {
    "cholesky": _write_cholesky, "blockcholesky": write_block_cholesky, "lu": _write_lu,
    "permutation": _write_permutation, "qr": _write_qr, "pivotedqr": _write_pivoted_qr, "eigh": _write_eigh,
    "eigenvalues": _write_eigenvalues, "svd": _write_svd, "singularvalues": _write_singular_values,
    "trsm": _write_triangular_solve, "trsv": _write_vector_solve, "smalllu": write_small_lu,
    "blocklu": write_block_lu, "smalltrsm": write_small_solve, "blocktrsm": write_block_solve}
