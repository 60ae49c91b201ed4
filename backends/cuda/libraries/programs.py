"""Programs by NVIDIA's libraries: what stands around a routine so that it computes a primitive.

In: a jaxpr of one GPU, just before lowering. Out: the same with `Routine`s instead of equations that
libraries, or routines of this backend, compute. What they leave to do (transposition, triangles, NaN for what
failed, scaling) is written with `jitcore.numpy` and becomes kernels, so nothing is read on the host. A rule
is a function of operands and the equation's parameters; whether it pays is asked of the operands' types
before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.backends.cuda.libraries import routines
from jitcore.backends.cuda.libraries.bindings import Libraries, Routine
from jitcore.backends.gpu.tuning import Tuning
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, ShapedArray, Var, sub_jaxprs
from jitcore.lax.dot import Precision, free_dims
from jitcore.lax.fft import FftType
from jitcore.passes import PIPELINE, run_pipeline
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.transforms.vmap import vmap

#: Elements of a matrix up to which the libraries' 32-bit counts of what they work in hold.
MOST = 1 << 28
#: cuFFT's axes.
MOST_AXES = 3
_CLEANUP = tuple(step for step in PIPELINE if step.name in ("inline", "fold", "simplify", "cse", "dce"))


class Row(NamedTuple):
    """Which library, None for a routine of this backend, and how: see the module's first lines."""

    library: str | None
    rule: Callable[..., Sequence]
    pays: Callable[..., bool]


def use_routines(closed: ClosedJaxpr, rows: Mapping[str, Row], libraries: Libraries | None,
                 tuning: Tuning) -> ClosedJaxpr:
    """The program with the routines that there are. rows: by the primitive's name."""
    products = {} if libraries is None else _find_products(closed)

    def rewrite(walk: Walk, eqn: Equation) -> list[Atom] | None:
        row = rows.get(eqn.primitive.name)
        if row is None or any(0 in atom.aval.shape for atom in eqn.invars):
            return None
        operands, params = eqn.invars, eqn.params
        if eqn.primitive is lax.dot_general.primitive:
            if eqn.outvars[0] not in products:
                return None
            operands, params = _undo_conversions(walk, eqn, products[eqn.outvars[0]])
        if not row.pays(tuning, *[atom.aval for atom in operands], **params):
            return None
        if row.library is not None and (libraries is None or libraries.find(row.library) is None):
            return None
        return walk.spell(lambda *operands: list(row.rule(*operands, **params)), operands)

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


# -- matrices -----------------------------------------------------------------------------------------------
def _run(routine: Routine, operands: Sequence[Any], outs: Sequence[tuple], **params: Any) -> list:
    """outs: shape and dtype of each result, behind the batch of the operands."""
    batch = operands[0].shape[:-2]
    outs = tuple(((*batch, *shape), dtype) for shape, dtype in outs)
    return routine.bind(*operands, outs=outs, dtype=operands[0].dtype, count=math.prod(batch), **params)


#: What says of each matrix whether a factorisation failed.
_INFO = (), dtypes.int32


def _pays(tuning: Tuning, x: ShapedArray, *others: ShapedArray, **params: Any) -> bool:
    size = math.prod(x.shape[-2:])
    return size <= MOST and (math.prod(x.shape[:-2]) == 1 or size >= tuning.least_in_batch)


def _turn(x):
    return jnp.swapaxes(x, -1, -2)


def _as_hermitian(x):
    """With real numbers on the diagonal, as LAPACK takes them."""
    if not dtypes.is_complex(x.dtype):
        return x
    places = lax.iota(dtypes.int32, x.shape[-1])
    return jnp.where(places[:, None] == places, x.real, x)


def _spoil(has_failed, x, rank: int = 2):
    """NaN for what failed, of a batch of arrays of so many axes."""
    return jnp.where(has_failed[(..., *[None] * rank)], jnp.nan, x)


def _cholesky(a):
    n = a.shape[-1]
    factor, info = _run(routines.POTRF, [_as_hermitian(a)], [((n, n), a.dtype), _INFO], n=n)
    factor = jnp.tril(factor)
    return [jnp.tril(_spoil((info != 0) | (factor != factor).any((-1, -2)), factor))]


def _lu(a):
    m, n = a.shape[-2:]
    k = min(m, n)

    def permute(pivots):
        def swap(j, order):
            other = pivots[j]
            return order.at[j].set(order[other]).at[other].set(order[j])

        return lax.fori_loop(0, k, swap, lax.iota(dtypes.int32, m))

    outs = [((n, m), a.dtype), ((k,), dtypes.int32), _INFO]
    factors, pivots, _ = _run(routines.GETRF, [_turn(a)], outs, m=m, n=n)
    pivots = jnp.clip(pivots - 1, 0, m - 1)  # where there is NaN, they are anything
    for _ in a.shape[:-2]:
        permute = vmap(permute)
    return [_turn(factors), pivots, permute(pivots)]


def _qr(a, *, pivoting: bool, full_matrices: bool):
    m, n = a.shape[-2:]
    k = min(m, n)
    columns = m if full_matrices else k
    outs = [((n, m), a.dtype), ((k,), a.dtype), _INFO]
    factors, taus, _ = _run(routines.GEQRF, [_turn(a)], outs, m=m, n=n)
    r = jnp.triu(_turn(factors)[..., :columns, :])
    reflectors = factors[..., :k, :]
    if columns > k:
        reflectors = jnp.pad(reflectors, [*[(0, 0)] * (a.ndim - 2), (0, columns - k), (0, 0)])
    q, _ = _run(routines.ORGQR, [reflectors, taus], [((columns, m), a.dtype), _INFO], m=m, n=columns, k=k)
    return [_turn(q), r]


def _eigh(a, *, lower: bool, sort_eigenvalues: bool, subset_by_index):
    n = a.shape[-1]
    start, stop = subset_by_index or (0, n)
    seen = _as_hermitian((jnp.tril if lower else jnp.triu)(a))
    has_failed = ~jnp.isfinite(seen).all((-1, -2))
    seen = jnp.where(has_failed[..., None, None], 0, seen)
    outs = [((n, n), a.dtype), ((n,), dtypes.real_dtype(a.dtype)), _INFO]
    uplo = routines.UPPER if lower else routines.LOWER
    vectors, values, info = _run(routines.SYEVD, [seen], outs, n=n, uplo=uplo)
    has_failed = has_failed | (info != 0)
    # what the library sees is the transpose, whose eigenvectors are the conjugates
    vectors, values = _spoil(has_failed, _turn(vectors).conj()), _spoil(has_failed, values, 1)
    return [vectors[..., start:stop], values[..., start:stop]]


def _svd(a, *, full_matrices: bool, compute_uv: bool):
    is_tall = a.shape[-2] >= a.shape[-1]
    m, n = sorted(a.shape[-2:], reverse=True)
    columns = 0 if not compute_uv else m if full_matrices else n
    has_failed = ~jnp.isfinite(a).all((-1, -2))
    a = jnp.where(has_failed[..., None, None], 0, a)
    vectors = [((columns, m), a.dtype), ((n, n), a.dtype)] if compute_uv else []
    outs = [((n,), dtypes.real_dtype(a.dtype)), *vectors, _INFO]
    # the library sees a tall matrix as it is, and of a wide one the transpose
    values, *vectors, info = _run(routines.GESVD, [_turn(a) if is_tall else a], outs, m=m, n=n,
                                  columns=columns)
    vectors = [_turn(v) for v in vectors] if is_tall else vectors[::-1]
    has_failed = has_failed | (info != 0)
    return [_spoil(has_failed, values, 1), *[_spoil(has_failed, v) for v in vectors]]


def _triangular_solve(a, b, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool,
                      unit_diagonal: bool):
    conjugates = conjugate_a and dtypes.is_complex(a.dtype)
    operation = routines.NO_TRANSPOSE
    if transpose_a:
        operation = routines.CONJUGATE_TRANSPOSE if conjugates else routines.TRANSPOSE
    rows, columns = b.shape[-2:]
    return _run(routines.TRSM, [a.conj() if conjugates and not transpose_a else a, b],
                [((rows, columns), b.dtype)], rows=rows, columns=columns, is_left=left_side,
                uplo=routines.UPPER if lower else routines.LOWER, operation=operation,
                is_unit=unit_diagonal)


# -- products -----------------------------------------------------------------------------------------------
def _pays_for_product(tuning: Tuning, lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers,
                      precision=None, preferred_element_type=None) -> bool:
    (summed, _), (batch, _) = dimension_numbers
    dtype, out_dtype = lhs.dtype, preferred_element_type or dtypes.result_type(lhs.dtype, rhs.dtype)
    k, count = (math.prod(lhs.shape[dim] for dim in dims) for dims in (summed, batch))
    sizes = *(math.prod(aval.shape) // (k * count) for aval in (lhs, rhs)), k
    is_known = lhs.dtype == rhs.dtype and dtype.name in routines.TYPES
    is_known &= out_dtype == dtype or dtypes.is_half(dtype) and out_dtype == dtypes.float32
    is_large = min(sizes) >= tuning.least_library_product or dtypes.is_complex(dtype)
    return is_known and is_large and max(sizes) < MOST


def _dot_general(left, right, *, dimension_numbers, precision=None, preferred_element_type=None):
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    dtype, out_dtype = left.dtype, preferred_element_type or dtypes.result_type(left.dtype, right.dtype)
    rows, columns = free_dims(left.ndim, left_sum, left_batch), free_dims(right.ndim, right_sum, right_batch)
    batch, down, k = ([left.shape[dim] for dim in dims] for dims in (left_batch, rows, left_sum))
    across = [right.shape[dim] for dim in columns]
    left, left_turned = _lay_out(left, left_batch, rows, left_sum)
    right, right_turned = _lay_out(right, right_batch, right_sum, columns)
    count, m, n, k = map(math.prod, (batch, down, across, k))
    return routines.GEMM.bind(left, right, outs=(((*batch, *down, *across), out_dtype),), dtype=dtype,
                              out_dtype=out_dtype, count=count, m=m, n=n, k=k,
                              turned=(left_turned, right_turned),
                              is_rounded=precision not in (None, Precision.HIGHEST))


def _lay_out(x, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> tuple[Any, bool]:
    """An operand as a stack of matrices in memory, and whether these are transposed."""
    order = [*batch, *rows, *columns]
    if [*batch, *columns, *rows] == sorted(order):
        return x, order != sorted(order)
    return (x if order == sorted(order) else lax.transpose(x, order)), False


# -- transforms ---------------------------------------------------------------------------------------------
def _fft(a, *, fft_type: FftType, fft_lengths: tuple[int, ...]):
    rank, last = len(fft_lengths), fft_lengths[-1]
    is_double = a.dtype.itemsize == (8 if fft_type is FftType.RFFT else 16)
    real, whole = "dz" if is_double else "rc"
    scale = 1 if fft_type in (FftType.FFT, FftType.RFFT) else 1 / math.prod(fft_lengths)

    def transform(x, function: str, lengths, shape, dtype, direction: int):
        count = math.prod(x.shape[: x.ndim - len(lengths)])
        return routines.FFT.bind(x, outs=((shape, dtype),), dtype=a.dtype, function=function,
                                 lengths=lengths, count=count, direction=direction)[0]

    def to_real(x):
        """As the host, axis by axis: of the ends of a half spectrum the real part counts."""
        if rank > 1:
            x = jnp.moveaxis(x, -1, -rank)
            x = transform(x, f"{whole}2{whole}", fft_lengths[:-1], x.shape, a.dtype, routines.INVERSE)
            x = jnp.moveaxis(x, -rank, -1)
        places = lax.iota(dtypes.int32, last // 2 + 1)
        x = jnp.where((places == 0) | (2 * places == last), x.real, x)
        shape = (*a.shape[: a.ndim - rank], *fft_lengths)
        return transform(x, f"{whole}2{real}", (last,), shape, dtypes.real_dtype(a.dtype), routines.INVERSE)

    if fft_type is FftType.IRFFT:
        return [to_real(a) * scale]
    if fft_type is FftType.RFFT:
        shape, dtype = (*a.shape[:-1], last // 2 + 1), dtypes.complex_dtype(a.dtype)
        return [transform(a, f"{real}2{whole}", fft_lengths, shape, dtype, routines.FORWARD)]
    direction = routines.FORWARD if fft_type is FftType.FFT else routines.INVERSE
    return [transform(a, f"{whole}2{whole}", fft_lengths, a.shape, a.dtype, direction) * scale]


TABLE = {
    "cholesky": Row("cusolver", _cholesky, _pays),
    "lu": Row("cusolver", _lu, _pays),
    "qr": Row("cusolver", _qr, lambda tuning, x, *, pivoting, **params: not pivoting and _pays(tuning, x)),
    "eigh": Row("cusolver", _eigh, _pays),
    "svd": Row("cusolver", _svd, _pays),
    "triangular_solve": Row("cublas", _triangular_solve, _pays),
    "dot_general": Row("cublas", _dot_general, _pays_for_product),
    "fft": Row("cufft", _fft, lambda tuning, x, *, fft_lengths, **params: len(fft_lengths) <= MOST_AXES
               and min(fft_lengths) > 1),
}
