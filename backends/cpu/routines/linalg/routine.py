"""Routines for the primitives of `jitcore.lax.linalg`: LAPACK's functions, called from native code.

In: an equation. Out: the routine that runs LAPACK on each matrix, or None for what stays with the primitive's
implementation (general eigenvalues, empty matrices, subsets of eigenvalues). The code is in `lapack_code`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine.tuning import Linalg
from jitcore.backends.cpu.routines.linalg.lapack_symbols import integer_bits
from jitcore.core.jaxpr import DropVar, Equation
from jitcore.schedule.nest import RunTimeSize

_LETTERS = {dtypes.float32: "s", dtypes.float64: "d", dtypes.complex64: "c", dtypes.complex128: "z"}


# Padding of rows of matrices of real numbers that one thread factorizes.
PADDING, PADDED_UNIT = 48, 16
# Columns that LAPACK's blocked algorithms treat at once, at most.
_BLOCK = 64


class WorkSizes(NamedTuple):
    """Elements of work memory for one matrix: of its dtype, 64-bit integers, reals (beside complex ones)."""

    work: int
    integers: int = 0
    reals: int = 0


class LapackRoutine:
    """One operation on each matrix of a batch.

    Args:
        name: operation, LAPACK's letter and options, as in the symbol of its code.
        eqn: the equation; its first operand holds the matrices.
        extents: gives the extents that the code is told from the shapes of the equation's operands.
        room: work memory of one matrix; None for an operation that needs none.
        skipped: numbers of the outputs that the code does not make."""

    def __init__(self, name: str, eqn: Equation, tuning: Linalg, extents: Callable,
                 room: WorkSizes | None = None, skipped: tuple[int, ...] = ()):
        self.name, self.extents, self.room, self.skipped = name, extents, room, skipped
        self.matrices, self.tuning = eqn.invars[0].aval, tuning

    def __str__(self) -> str:
        return f"lapack{integer_bits()}_{self.name}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        if self.room is None:
            return []
        dtype = self.matrices.dtype
        pieces = _count_pieces(self.matrices.shape, self.tuning, self.name.startswith("block"))
        kinds = [dtype, dtypes.int64]
        if dtypes.is_complex(dtype):
            kinds.append(dtypes.real_dtype(dtype))
        return [((RunTimeSize(pieces), RunTimeSize(count)), kind)
                for count, kind in zip(self.room, kinds) if count]

    def emit(self, renderer, call) -> None:
        outputs = [buffer for k, buffer in enumerate(call.outputs) if k not in self.skipped]
        batch, extents = self.extents(*(buffer.shape for buffer in (*call.inputs, *call.outputs)))
        pieces = call.scratch[0].shape[:1] if call.scratch else batch
        counts = [batch, pieces, *((extent,) for extent in extents)]
        counts += [work.shape[1:] for work in call.scratch]
        pointers = map(renderer.address_of, [*call.inputs, *outputs, *call.scratch])
        renderer.run(f"jitcore_{self}", *pointers, *map(renderer.count, counts))


def _count_pieces(shape: Sequence, tuning: Linalg, on_one_thread: bool = False) -> int:
    """on_one_thread: whether one matrix is work for one thread, however large."""
    *batch, rows, columns = map(int, shape)
    size, count = rows * columns, math.prod(batch)
    if size > tuning.small_matrix and not on_one_thread:
        return 1
    return max(1, min(count * size // tuning.small_matrix, count, tuning.max_pieces))


def find_routine(eqn: Equation, tuning: Linalg) -> LapackRoutine | None:
    """The routine of one primitive of `lax.linalg`."""
    if any(extent == 0 for atom in eqn.invars for extent in atom.aval.shape):
        return None
    return _FINDERS[eqn.primitive.name](eqn, eqn.invars[0].aval, tuning)


def _matrix_extents(x: tuple, *others: tuple) -> tuple:
    return x[:-2], x[-2:]


def _square_extents(x: tuple, *others: tuple) -> tuple:
    return x[:-2], x[-1:]


def pad_rows(n: int) -> int:
    """Elements from row to row of a padded matrix: an odd number of cache lines, so that columns spread over
    the cache."""
    return (-(-(n + PADDING) // PADDED_UNIT) | 1) * PADDED_UNIT


def _find_cholesky(eqn: Equation, x, tuning: Linalg) -> LapackRoutine:
    n = int(x.shape[-1])
    if x.dtype.kind == "f" and n in tuning.block_sides:
        room = WorkSizes((n + PADDED_UNIT) * pad_rows(n) + PADDED_UNIT)
        return LapackRoutine(f"blockcholesky_{_LETTERS[x.dtype]}", eqn, tuning, _square_extents, room)
    return LapackRoutine(f"cholesky_{_LETTERS[x.dtype]}", eqn, tuning, _square_extents)


def _find_lu(eqn: Equation, x, tuning: Linalg) -> LapackRoutine:
    rows, columns = map(int, x.shape[-2:])
    if x.dtype.kind == "f" and rows * columns * min(rows, columns) <= tuning.tiny_factorisation:
        return LapackRoutine(f"smalllu_{_LETTERS[x.dtype]}", eqn, tuning, _matrix_extents)
    if x.dtype.kind == "f" and rows in tuning.block_sides and columns in tuning.block_sides:
        panel = 2 * tuning.panel * pad_rows(rows)
        room = WorkSizes((rows + PADDED_UNIT) * pad_rows(columns) + panel + PADDED_UNIT)
        return LapackRoutine(f"blocklu_{_LETTERS[x.dtype]}", eqn, tuning, _matrix_extents, room)
    return LapackRoutine(f"lu_{_LETTERS[x.dtype]}", eqn, tuning, _matrix_extents,
                         WorkSizes(rows * columns, min(rows, columns)))


def _find_permutation(eqn: Equation, pivots, tuning: Linalg) -> LapackRoutine | None:
    if pivots.dtype != dtypes.int32:
        return None
    return LapackRoutine("permutation_s", eqn, tuning, lambda x, out: (x[:-1], (*x[-1:], *out[-1:])))


def _find_qr(eqn: Equation, x, tuning: Linalg) -> LapackRoutine:
    rows, columns = map(int, x.shape[-2:])
    pivoting, full = eqn.params["pivoting"], eqn.params["full_matrices"]
    count = min(rows, columns)
    widest = max(columns, rows if full else count)
    work = rows * widest + count + _BLOCK * (widest + 1) + 2 * columns
    sizes = WorkSizes(work)
    if pivoting:
        sizes = WorkSizes(work, columns, 2 * columns)
    options = f"{_LETTERS[x.dtype]}_{'f' if full else 'e'}"
    name = f"{'pivotedqr' if pivoting else 'qr'}_{options}"
    return LapackRoutine(name, eqn, tuning, _matrix_extents, sizes)


def _find_eigh(eqn: Equation, x, tuning: Linalg) -> LapackRoutine | None:
    n = int(x.shape[-1])
    if eqn.params["subset_by_index"] not in (None, (0, n)):
        return None
    name = f"{_LETTERS[x.dtype]}_{'l' if eqn.params['lower'] else 'u'}"
    if isinstance(eqn.outvars[0], DropVar):  # LAPACK is much faster without vectors
        sizes = WorkSizes(n * n + (_BLOCK + 2) * n + 1, 1, n)
        return LapackRoutine(f"eigenvalues_{name}", eqn, tuning, _square_extents, sizes, skipped=(0,))
    needed = 2 * n + n * n if dtypes.is_complex(x.dtype) else 1 + 6 * n + 2 * n * n
    sizes = WorkSizes(n * n + needed + _BLOCK * n, 3 + 5 * n, 1 + 5 * n + 2 * n * n)
    return LapackRoutine(f"eigh_{name}", eqn, tuning, _square_extents, sizes)


def _find_svd(eqn: Equation, x, tuning: Linalg) -> LapackRoutine:
    rows, columns = map(int, x.shape[-2:])
    few, many = sorted((rows, columns))
    letter = _LETTERS[x.dtype]
    if not eqn.params["compute_uv"]:
        work = rows * columns + 4 * few + 7 * many + _BLOCK * (rows + columns)
        sizes = WorkSizes(work + few * few, 8 * few, 7 * few)
        return LapackRoutine(f"singularvalues_{letter}", eqn, tuning, _matrix_extents, sizes)
    full = eqn.params["full_matrices"]
    left, right = (rows, columns) if full else (few, few)
    own = rows * columns + rows * left + right * columns
    # LAPACK's bound is 4 few^2 + 7 few + many; the rest lets it work in blocks.
    work = own + 5 * few * few + 7 * few + 2 * many + _BLOCK * (rows + columns)
    reals = few * max(5 * few + 7, 2 * many + 2 * few + 1)
    return LapackRoutine(f"svd_{letter}_{'a' if full else 's'}", eqn, tuning, _matrix_extents,
                         WorkSizes(work, 8 * few, reals))


def _find_triangular_solve(eqn: Equation, a, tuning: Linalg) -> LapackRoutine | None:
    params = eqn.params
    is_conjugate = params["conjugate_a"] and dtypes.is_complex(a.dtype)
    if is_conjugate and not params["transpose_a"]:
        return None  # BLAS has no such form
    form = "c" if is_conjugate else "t" if params["transpose_a"] else "n"
    options = ("l" if params["left_side"] else "r", "l" if params["lower"] else "u", form,
               "u" if params["unit_diagonal"] else "n")
    rows, columns = map(int, eqn.invars[1].aval.shape[-2:])
    operation = "trsm"
    if a.dtype.kind == "f" and rows * columns * int(a.shape[-1]) <= tuning.tiny_solution:
        operation = "smalltrsm"
    elif (columns if params["left_side"] else rows) == 1 and (form != "c" or not params["left_side"]):
        operation = "trsv"
    sides, room = columns if params["left_side"] else rows, None
    is_wide = sides * a.dtype.itemsize >= tuning.wide_bytes
    if operation == "trsm" and is_wide and a.dtype.kind == "f" and int(a.shape[-1]) in tuning.block_sides:
        operation, n = "blocktrsm", int(a.shape[-1])
        room = WorkSizes((n + PADDED_UNIT) * pad_rows(sides) + (n + 1) * PADDED_UNIT)
    name = "_".join((operation, _LETTERS[a.dtype], *options))
    return LapackRoutine(name, eqn, tuning, lambda a, b, out: (a[:-2], (*b[-2:], a[-1])), room)


_FINDERS = {
    "cholesky": _find_cholesky, "lu": _find_lu, "lu_pivots_to_permutation": _find_permutation, "qr": _find_qr,
    "eigh": _find_eigh, "svd": _find_svd, "triangular_solve": _find_triangular_solve}
