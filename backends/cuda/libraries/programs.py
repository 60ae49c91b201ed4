"""Programs by NVIDIA's libraries: what stands around a routine so that it computes a primitive.

In: a jaxpr of one GPU, just before lowering. Out: the same with `Routine`s instead of equations that
libraries compute. What they leave to do (transposition, triangles, NaN for what failed, scaling) is written
with `jitcore.numpy` and becomes kernels, so nothing is read on the host. A rule is a function of operands'
types and the equation's parameters; it gives a function of operands, or None for what stays as it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.backends.cuda.libraries import routines
from jitcore.backends.cuda.libraries.bindings import Libraries, Routine
from jitcore.core.aval import ShapedArray
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Var, sub_jaxprs
from jitcore.lax.dot import free_dims
from jitcore.lax.fft import FftType
from jitcore.passes import PIPELINE, run_pipeline
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.transforms.vmap import vmap

#: Extents of real matrices from which on a product is the library's: tiles in registers and shared memory
#: then do not hide that they have no tensor cores and no asynchronous copies.
LEAST_PRODUCT = 512
#: Elements of a matrix from which on a batch is the library's, one matrix after the other: LAPACK needs less
#: time for a smaller one than the launches of one call take.
LEAST_IN_BATCH = 128 * 128
#: Elements of a matrix up to which the libraries' 32-bit counts of what they work in hold.
MOST = 1 << 28
#: cuFFT's axes.
MOST_AXES = 3
_CLEANUP = tuple(step for step in PIPELINE if step.name in ("inline", "fold", "simplify", "cse", "dce"))


class Row(NamedTuple):
    """Which library, and how: see the module's first lines."""

    library: str
    rule: Callable[..., Callable | None]


def use_libraries(closed: ClosedJaxpr, libraries: Libraries | None) -> ClosedJaxpr:
    """The program with the routines of the libraries that there are."""
    if libraries is None:
        return closed
    products = _find_products(closed)

    def rewrite(walk: Walk, eqn: Equation) -> list[Atom] | None:
        row = TABLE.get(eqn.primitive.name)
        if row is None or any(0 in atom.aval.shape for atom in eqn.invars):
            return None
        operands, params = eqn.invars, eqn.params
        if eqn.primitive is lax.dot_general.primitive:
            if eqn.outvars[0] not in products:
                return None
            operands, params = _undo_conversions(walk, eqn, products[eqn.outvars[0]])
        run = row.rule(*[atom.aval for atom in operands], **params)
        if run is None or libraries.find(row.library) is None:
            return None
        return walk.spell(lambda *operands: list(run(*operands)), operands)

    rewritten = rewrite_equations(closed, rewrite)
    return closed if rewritten is closed else run_pipeline(rewritten, _CLEANUP)


def _find_products(closed: ClosedJaxpr) -> dict[Var, np.dtype]:
    """Results of products that no loop would go on with while it makes them, and in which dtype they are
    wanted: passes convert halves before and after a product."""
    found: dict[Var, np.dtype] = {}
    readers = defaultdict(list)
    for eqn in closed.eqns:
        for atom in eqn.invars:
            readers[atom].append(eqn)
        for inner in sub_jaxprs(eqn.params):
            found |= _find_products(inner)

    def is_read_whole(var: Var) -> bool:
        return all(reader.primitive.name in TABLE or sub_jaxprs(reader.params)
                   or reader.primitive.name == "convert_element_type" and is_read_whole(reader.outvars[0])
                   for reader in readers[var])

    for eqn in closed.eqns:
        if eqn.primitive is lax.dot_general.primitive:
            (var,), avals = eqn.outvars, [atom.aval for atom in eqn.invars]
            last, reader = var, readers[var][0] if len(readers[var]) == 1 else None
            if reader is not None and reader.primitive.name == "convert_element_type":
                last = var if var in closed.jaxpr.outvars else reader.outvars[0]
            if is_read_whole(last) or eqn.primitive.traits["prefers_library"](*avals, **eqn.params):
                found[var] = last.aval.dtype
    return found


def _undo_conversions(walk: Walk, eqn: Equation, wanted: np.dtype) -> tuple[list[Atom], dict]:
    """A product of halves as such, and its parameters."""
    made = [walk.find_definition(atom, "convert_element_type") for atom in eqn.invars]
    given = [definition.invars[0] if definition else atom for definition, atom in zip(made, eqn.invars)]
    kinds, out_dtype = {atom.aval.dtype for atom in given}, eqn.outvars[0].aval.dtype
    if len(kinds) > 1 or not dtypes.is_half(given[0].aval.dtype) or out_dtype != dtypes.float32:
        return eqn.invars, eqn.params
    out_dtype = wanted if wanted in kinds else out_dtype
    return given, eqn.params | {"preferred_element_type": out_dtype}


# -- what the rules share -----------------------------------------------------------------------------------
def _run(routine: Routine, operands: Sequence[Any], outs: Sequence[tuple], **params: Any) -> list:
    return routine.bind(*operands, outs=tuple(outs), **params)


def _count(x: ShapedArray) -> int:
    return math.prod(x.shape[:-2])


def _pays(x: ShapedArray) -> bool:
    size = math.prod(x.shape[-2:])
    return size <= MOST and (_count(x) == 1 or size >= LEAST_IN_BATCH)


def _turn(x):
    return jnp.swapaxes(x, -1, -2)


def _as_hermitian(x):
    """With real numbers on the diagonal, as LAPACK takes them."""
    if not dtypes.is_complex(x.dtype):
        return x
    places = lax.iota(dtypes.int32, x.shape[-1])
    return jnp.where(places[:, None] == places, x.real, x)


def _of_matrices(flags):
    """Flags of a batch, to go with its matrices."""
    return flags[..., None, None]


def _info(x: ShapedArray) -> tuple:
    return x.shape[:-2], dtypes.int32


# -- rules --------------------------------------------------------------------------------------------------
def _cholesky(x: ShapedArray):
    n = x.shape[-1]

    def run(a):
        outs = [(x.shape, x.dtype), _info(x)]
        factor, info = _run(routines.POTRF, [_as_hermitian(a)], outs, dtype=x.dtype, count=_count(x), n=n)
        factor = jnp.tril(factor)
        has_failed = (info != 0) | (factor != factor).any((-1, -2))
        return [jnp.tril(jnp.where(_of_matrices(has_failed), jnp.nan, factor))]

    return run if _pays(x) else None


def _lu(x: ShapedArray):
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]

    def permute(pivots):
        def swap(j, order):
            other = pivots[j]
            return order.at[j].set(order[other]).at[other].set(order[j])

        return lax.fori_loop(0, k, swap, lax.iota(dtypes.int32, m))

    def run(a):
        outs = [((*batch, n, m), x.dtype), ((*batch, k), dtypes.int32), _info(x)]
        factors, pivots, _ = _run(routines.GETRF, [_turn(a)], outs, dtype=x.dtype, count=_count(x), m=m, n=n)
        pivots = jnp.clip(pivots - 1, 0, m - 1)  # where there is NaN, they are anything
        find = permute
        for _ in batch:
            find = vmap(find)
        return [_turn(factors), pivots, find(pivots)]

    return run if _pays(x) else None


def _qr(x: ShapedArray, *, pivoting: bool, full_matrices: bool):
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    columns = m if full_matrices else k

    def run(a):
        outs = [((*batch, n, m), x.dtype), ((*batch, k), x.dtype), _info(x)]
        facts = {"dtype": x.dtype, "count": _count(x), "m": m}
        factors, taus, _ = _run(routines.GEQRF, [_turn(a)], outs, n=n, **facts)
        r = jnp.triu(_turn(factors)[..., :columns, :])
        reflectors = factors[..., :k, :]
        if columns > k:
            reflectors = jnp.pad(reflectors, [*[(0, 0)] * len(batch), (0, columns - k), (0, 0)])
        outs = [((*batch, columns, m), x.dtype), _info(x)]
        q, _ = _run(routines.ORGQR, [reflectors, taus], outs, n=columns, k=k, **facts)
        return [_turn(q), r]

    return run if _pays(x) and not pivoting else None


def _eigh(x: ShapedArray, *, lower: bool, sort_eigenvalues: bool, subset_by_index):
    n, batch = x.shape[-1], x.shape[:-2]
    start, stop = subset_by_index or (0, n)

    def run(a):
        seen = _as_hermitian((jnp.tril if lower else jnp.triu)(a))
        has_failed = ~jnp.isfinite(seen).all((-1, -2))
        seen = jnp.where(_of_matrices(has_failed), 0, seen)
        outs = [(x.shape, x.dtype), ((*batch, n), dtypes.real_dtype(x.dtype)), _info(x)]
        vectors, values, info = _run(routines.SYEVD, [seen], outs, dtype=x.dtype, count=_count(x), n=n,
                                     uplo=routines.UPPER if lower else routines.LOWER)
        has_failed = has_failed | (info != 0)
        # what the library sees is the transpose, whose eigenvectors are the conjugates
        vectors = jnp.where(_of_matrices(has_failed), jnp.nan, _turn(vectors).conj())
        values = jnp.where(has_failed[..., None], jnp.nan, values)
        return [vectors[..., start:stop], values[..., start:stop]]

    return run if _pays(x) else None


def _svd(x: ShapedArray, *, full_matrices: bool, compute_uv: bool):
    is_tall, batch = x.shape[-2] >= x.shape[-1], x.shape[:-2]
    m, n = sorted(x.shape[-2:], reverse=True)
    columns = 0 if not compute_uv else m if full_matrices else n

    def run(a):
        has_failed = ~jnp.isfinite(a).all((-1, -2))
        a = jnp.where(_of_matrices(has_failed), 0, a)
        vectors = [((*batch, columns, m), x.dtype), ((*batch, n, n), x.dtype)] if compute_uv else []
        outs = [((*batch, n), dtypes.real_dtype(x.dtype)), *vectors, _info(x)]
        # the library sees a tall matrix as it is, and of a wide one the transpose
        values, *vectors, info = _run(routines.GESVD, [_turn(a) if is_tall else a], outs, dtype=x.dtype,
                                      count=_count(x), m=m, n=n, columns=columns)
        vectors = [_turn(v) for v in vectors] if is_tall else vectors[::-1]
        has_failed = has_failed | (info != 0)
        values = jnp.where(has_failed[..., None], jnp.nan, values)
        return [values, *[jnp.where(_of_matrices(has_failed), jnp.nan, v) for v in vectors]]

    return run if _pays(x) else None


def _triangular_solve(a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool, transpose_a: bool,
                      conjugate_a: bool, unit_diagonal: bool):
    conjugates = conjugate_a and dtypes.is_complex(a.dtype)
    operation = routines.NO_TRANSPOSE
    if transpose_a:
        operation = routines.CONJUGATE_TRANSPOSE if conjugates else routines.TRANSPOSE

    def run(matrix, right):
        matrix = matrix.conj() if conjugates and not transpose_a else matrix
        facts = {"dtype": b.dtype, "count": _count(b), "rows": b.shape[-2], "columns": b.shape[-1]}
        return _run(routines.TRSM, [matrix, right], [(b.shape, b.dtype)], is_left=left_side,
                    uplo=routines.UPPER if lower else routines.LOWER, operation=operation,
                    is_unit=unit_diagonal, **facts)

    return run if _pays(a) else None


def _dot_general(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers, precision=None,
                 preferred_element_type=None):
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    dtype, out_dtype = lhs.dtype, preferred_element_type or dtypes.result_type(lhs.dtype, rhs.dtype)
    rows, columns = free_dims(lhs.ndim, left_sum, left_batch), free_dims(rhs.ndim, right_sum, right_batch)
    batch = [lhs.shape[dim] for dim in left_batch]
    outer = [lhs.shape[dim] for dim in rows], [rhs.shape[dim] for dim in columns]
    m, n = map(math.prod, outer)
    k = math.prod(lhs.shape[dim] for dim in left_sum)
    is_known = lhs.dtype == rhs.dtype and dtype.name in routines.TYPES
    is_known &= out_dtype == dtype or dtypes.is_half(dtype) and out_dtype == dtypes.float32
    is_large = min(m, n, k) >= LEAST_PRODUCT or dtypes.is_complex(dtype)

    def run(left, right):
        left, left_turned = _lay_out(left, left_batch, rows, left_sum)
        right, right_turned = _lay_out(right, right_batch, right_sum, columns)
        shape = (*batch, *outer[0], *outer[1])
        return _run(routines.GEMM, [left, right], [(shape, out_dtype)], dtype=dtype, out_dtype=out_dtype,
                    count=math.prod(batch), m=m, n=n, k=k, turned=(left_turned, right_turned))

    return run if is_known and is_large and max(m, n, k) < MOST else None


def _lay_out(x, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> tuple[Any, bool]:
    """An operand as a stack of matrices in memory, and whether these are transposed."""
    order = [*batch, *rows, *columns]
    if [*batch, *columns, *rows] == sorted(order):
        return x, order != sorted(order)
    return (x if order == sorted(order) else lax.transpose(x, order)), False


def _fft(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]):
    rank, last = len(fft_lengths), fft_lengths[-1]
    is_double = x.dtype.itemsize == (8 if fft_type is FftType.RFFT else 16)
    batch, (real, whole) = x.shape[: x.ndim - rank], "dz" if is_double else "rc"
    scale = 1 if fft_type in (FftType.FFT, FftType.RFFT) else 1 / math.prod(fft_lengths)

    def transform(a, function: str, lengths, shape, dtype, direction: int):
        count = math.prod(a.shape[: a.ndim - len(lengths)])
        return _run(routines.FFT, [a], [(shape, dtype)], dtype=x.dtype, function=function, lengths=lengths,
                    count=count, direction=direction)[0]

    def to_real(a):
        """As the host, axis by axis: of the ends of a half spectrum the real part counts."""
        if rank > 1:
            a = jnp.moveaxis(a, -1, -rank)
            a = transform(a, f"{whole}2{whole}", fft_lengths[:-1], a.shape, x.dtype, routines.INVERSE)
            a = jnp.moveaxis(a, -rank, -1)
        places = lax.iota(dtypes.int32, last // 2 + 1)
        a = jnp.where((places == 0) | (2 * places == last), a.real, a)
        dtype = dtypes.real_dtype(x.dtype)
        return transform(a, f"{whole}2{real}", (last,), (*batch, *fft_lengths), dtype, routines.INVERSE)

    def run(a):
        if fft_type is FftType.IRFFT:
            return [to_real(a) * scale]
        if fft_type is FftType.RFFT:
            shape, dtype = (*a.shape[:-1], last // 2 + 1), dtypes.complex_dtype(x.dtype)
            return [transform(a, f"{real}2{whole}", fft_lengths, shape, dtype, routines.FORWARD)]
        direction = routines.FORWARD if fft_type is FftType.FFT else routines.INVERSE
        return [transform(a, f"{whole}2{whole}", fft_lengths, a.shape, x.dtype, direction) * scale]

    return run if rank <= MOST_AXES and min(fft_lengths) > 1 else None


TABLE = {
    "cholesky": Row("cusolver", _cholesky),
    "lu": Row("cusolver", _lu),
    "qr": Row("cusolver", _qr),
    "eigh": Row("cusolver", _eigh),
    "svd": Row("cusolver", _svd),
    "triangular_solve": Row("cublas", _triangular_solve),
    "dot_general": Row("cublas", _dot_general),
    "fft": Row("cufft", _fft),
}
