"""Contraction: `dot_general` and its special cases.

In: two arrays and the axes to contract and to run along. Out: batch axes, then free axes of the left operand,
then those of the right one. Products of floats go to BLAS as (batched) matrices; float16 and bfloat16
accumulate in float32.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.lax.define import define, product, to_operands
from jitcore.lax.elementwise import convert_element_type
from jitcore.lax.shape import invert_permutation, transpose
from jitcore.transforms.batch_rules import shift
from jitcore.transforms.batching import batch_values, move_axis
from jitcore.transforms.derivative_rules import jvp_multilinear
from jitcore.transforms.tangents import add_derivatives, instantiate
from jitcore.transforms.transpose import is_linear


def _check_side(side: str, aval: ShapedArray, contracting, batch) -> None:
    dims = (*contracting, *batch)
    if any(not 0 <= dim < aval.ndim for dim in dims):
        raise TypeError(
            f"dot_general requires {side} dimension numbers to be nonnegative and less than the number "
            f"of axes of the {side} value, got {side}_batch of {batch} and {side}_contracting of "
            f"{contracting} for {side} of rank {aval.ndim}")
    for what, group in (("batch", batch), ("contracting", contracting)):
        if len(set(group)) != len(group):
            raise TypeError(
                f"dot_general requires {side} {what} dimensions to be distinct, got {side}_{what} {group}.")
    if set(contracting) & set(batch):
        raise TypeError(
            f"dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, "
            f"got {side}_batch {batch} and {side}_contracting {contracting}.")


def _extents(aval, dims) -> tuple:
    return tuple(aval.shape[dim] for dim in dims)


def free_dims(ndim: int, contracting, batch) -> list[int]:
    """The axes of an operand that are neither contracted nor batch axes, in order."""
    return [dim for dim in range(ndim) if dim not in contracting and dim not in batch]


def runs_together(shape: Sequence, dims: Sequence[int]) -> bool:
    """Whether axes follow one another in a contiguous array, so that they are one axis to walk along."""
    wide = [dim for dim, extent in enumerate(shape) if not extent == 1]
    places = [wide.index(dim) for dim in dims if dim in wide]
    return all(after == before + 1 for before, after in zip(places, places[1:]))


def order_contraction(lhs_shape, rhs_shape, lhs_contracting, rhs_contracting) -> tuple[tuple, tuple]:
    """The pairs of contracted axes in an order in which both sides run together, where there is one."""
    pairs = sorted(zip(lhs_contracting, rhs_contracting))
    if not runs_together(rhs_shape, [right for _, right in pairs]):
        pairs.sort(key=lambda pair: pair[1])
    return tuple(left for left, _ in pairs), tuple(right for _, right in pairs)


class Precision(enum.Enum):
    """What a product may give up for speed, on devices that offer several precisions."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


#: Other names of precisions, as JAX has them.
_PRECISIONS = {"default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
               "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
               "highest": Precision.HIGHEST, "float32": Precision.HIGHEST}


def canonicalize_precision(precision: Any) -> Precision | None:
    """What a product is told: the higher one of a pair; for None the one that is set for all.

    Raises: ValueError for what is no precision."""
    if precision is None:
        precision = config.default_matmul_precision or None
    given = precision if isinstance(precision, (tuple, list)) else (precision,)
    found = [_PRECISIONS.get(one, one) if isinstance(one, str) else one for one in given]
    if not all(one is None or isinstance(one, Precision) for one in found):
        names = ", ".join(map(repr, _PRECISIONS))
        raise ValueError(f"precision must be None, a lax.Precision, one of {names}, or a pair of these, "
                         f"got {precision!r}.")
    return max((one for one in found if one is not None), key=lambda one: one.value, default=None)


def _dot_general_aval(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers, precision=None,
                      preferred_element_type=None) -> ShapedArray:
    dtypes.reject_narrow("dot_general", lhs.dtype, rhs.dtype)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_side("lhs", lhs, lhs_contract, lhs_batch)
    _check_side("rhs", rhs, rhs_contract, rhs_batch)
    if not _extents(lhs, lhs_batch) == _extents(rhs, rhs_batch):
        raise TypeError(
            "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same shape, "
            f"got {_extents(lhs, lhs_batch)} and {_extents(rhs, rhs_batch)}.")
    if not _extents(lhs, lhs_contract) == _extents(rhs, rhs_contract):
        raise TypeError("dot_general requires contracting dimensions to have the same shape, "
                        f"got {_extents(lhs, lhs_contract)} and {_extents(rhs, rhs_contract)}.")
    shape = (*_extents(lhs, lhs_batch), *_extents(lhs, free_dims(lhs.ndim, lhs_contract, lhs_batch)),
             *_extents(rhs, free_dims(rhs.ndim, rhs_contract, rhs_batch)))
    dtype, weak = dtypes.result_type(lhs, rhs, return_weak_type_flag=True)
    if preferred_element_type is not None:
        dtype, weak = preferred_element_type, False
    return ShapedArray(shape, dtype, weak)


def accumulation_dtype(lhs_dtype, rhs_dtype, out_dtype) -> np.dtype:
    """The dtype in which products are summed: at least the operands' and the result's, float32 for halves."""
    dtype = dtypes.result_type(lhs_dtype, rhs_dtype, out_dtype)
    return dtypes.float32 if dtypes.is_half(dtype) else dtype


def matrix_product(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """`lhs @ rhs` for stacks of matrices of one dtype, through BLAS where there is a routine."""
    if lhs.dtype == np.bool_:
        return np.matmul(lhs.astype(np.float32), rhs.astype(np.float32)) > 0
    return np.matmul(lhs, rhs)


def _as_matrices(x, batch, rows, columns) -> np.ndarray:
    shape = [*_extents(x, batch), product(_extents(x, rows)), product(_extents(x, columns))]
    return x.transpose([*batch, *rows, *columns]).reshape(shape)


def _dot_general(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    out_dtype = preferred_element_type or dtypes.result_type(lhs, rhs)
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    lhs_free = free_dims(lhs.ndim, lhs_contract, lhs_batch)
    rhs_free = free_dims(rhs.ndim, rhs_contract, rhs_batch)
    shape = (*_extents(lhs, lhs_batch), *_extents(lhs, lhs_free), *_extents(rhs, rhs_free))
    left = _as_matrices(lhs.astype(work, copy=False), lhs_batch, lhs_free, lhs_contract)
    right = _as_matrices(rhs.astype(work, copy=False), rhs_batch, rhs_contract, rhs_free)
    return matrix_product(left, right).reshape(shape).astype(out_dtype, copy=False)


# Multiply-adds of complex numbers that take as long as a call of a routine.
_CALL_WORK = 4096
# Rows of so few elements are written out: reading and writing is most of the work, and loops fuse.
_FEW = 8


def _is_few(extents: Sequence) -> bool:
    count = product(extents)
    return isinstance(count, int) and 0 < count <= _FEW


def prefers_loops(lhs_shape, rhs_shape, dimension_numbers) -> bool:
    """Whether loops suit a product of complex numbers: a small one, sums of few terms, a matrix times a
    vector, and few rows times a matrix whose rows lie along memory."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    rows = [lhs_shape[dim] for dim in free_dims(len(lhs_shape), lhs_contract, lhs_batch)]
    columns = free_dims(len(rhs_shape), rhs_contract, rhs_batch)
    steps = [rhs_shape[dim] for dim in rhs_contract]
    work = product((*rows, *steps, *(rhs_shape[dim] for dim in columns)))
    if not isinstance(work, int):
        return False
    lies_along = not columns or all(dim < columns[0] for dim in rhs_contract)
    is_vector = product(rhs_shape[dim] for dim in columns) == 1
    return work < _CALL_WORK or _is_few(steps) or is_vector or lies_along and _is_few(rows)


def _prefers_library(lhs, rhs, *, dimension_numbers, **_) -> bool:
    """Whether BLAS beats loops: for complex numbers, where a backend has no routine of its own."""
    return dtypes.is_complex(lhs.dtype) and not prefers_loops(lhs.shape, rhs.shape, dimension_numbers)


def _lower_dot_general(builder, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    """The plain sum of products, for small operands, integers, and loops.

    An operand that meets a few rows of a few elements is computed where it is read: these rows go side by
    side, so that each element is computed once."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    out_dtype = np.dtype(preferred_element_type or dtypes.result_type(lhs.dtype, rhs.dtype))
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    lhs_free = free_dims(len(lhs.shape), lhs_contract, lhs_batch)
    rhs_free = free_dims(len(rhs.shape), rhs_contract, rhs_batch)
    groups = [_extents(lhs, lhs_batch), _extents(lhs, lhs_free), _extents(rhs, rhs_free),
              _extents(lhs, lhs_contract)]
    shape = sum(groups, ())
    first_rhs = len(lhs_batch) + len(lhs_free)
    first_sum = first_rhs + len(rhs_free)

    is_short = _is_few(groups[3])
    is_thin = [is_short and _is_few(free) for free in groups[1:3]]
    # those that the passes of a backend leave are worth more as they are than as copies in float32
    in_halves = lhs.dtype == rhs.dtype and dtypes.is_half(lhs.dtype)

    def spread(value, batch, free, contract, first_free, is_once):
        dims = {dim: position for position, dim in enumerate(batch)}
        dims |= {dim: first_free + position for position, dim in enumerate(free)}
        dims |= {dim: first_sum + position for position, dim in enumerate(contract)}
        read = value if in_halves else builder.convert(value, work)
        read = read if is_once else builder.store(read)
        read = builder.view(read, shape,
                            lambda index: tuple(index[dims[dim]] for dim in range(len(value.shape))))
        return builder.convert(read, work)

    left_once, right_once = (is_thin[k] and not is_thin[1 - k] for k in (1, 0))
    left = spread(lhs, lhs_batch, lhs_free, lhs_contract, len(lhs_batch), left_once)
    right = spread(rhs, rhs_batch, rhs_free, rhs_contract, first_rhs, right_once)
    products = builder.map("mul", left, right)
    total = builder.reduce("add", products, range(first_sum, len(shape)))
    has_producer = left_once and left.work > 0 or right_once and right.work > 0
    return builder.convert(builder.store(total) if has_producer or work != out_dtype else total, out_dtype)


def _hlo_dot_general(b, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
    """Operands of half precision are multiplied as they are, and summed in float32."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    out_dtype = np.dtype(preferred_element_type or dtypes.result_type(lhs.dtype, rhs.dtype))
    work = accumulation_dtype(lhs.dtype, rhs.dtype, out_dtype)
    if work == dtypes.bool_:
        parts = [b.convert(x, dtypes.int32) for x in (lhs, rhs)]
        counts = _hlo_dot_general(b, *parts, dimension_numbers=dimension_numbers)
        return b.convert(counts, dtypes.bool_)
    if not (lhs.dtype == rhs.dtype and dtypes.is_half(lhs.dtype) and b.target == "tpu"):
        lhs, rhs = b.convert(lhs, work), b.convert(rhs, work)
    numbers = b.join_fields("dot", lhs_batching_dimensions=lhs_batch, rhs_batching_dimensions=rhs_batch,
                            lhs_contracting_dimensions=lhs_contract,
                            rhs_contracting_dimensions=rhs_contract)
    shape = (*_extents(lhs, lhs_batch), *_extents(lhs, free_dims(lhs.ndim, lhs_contract, lhs_batch)),
             *_extents(rhs, free_dims(rhs.ndim, rhs_contract, rhs_batch)))
    product = b.op("dot_general", lhs, rhs, shape=shape, dtype=work, dot_dimension_numbers=numbers,
                   precision_config=b.join_precisions(precision))
    return b.convert(product, out_dtype)


def _batch_dot_general(primitive, axis, values, batched, *, dimension_numbers, **params):
    (lhs, rhs), (lhs_batched, rhs_batched) = values, batched
    pairs = [(shift(left) if lhs_batched else left, shift(right) if rhs_batched else right)
             for left, right in dimension_numbers]
    contract, batch = pairs
    if lhs_batched and rhs_batched:
        batch = ((0, *batch[0]), (0, *batch[1]))
        return primitive.bind(lhs, rhs, dimension_numbers=(contract, batch), **params)
    # The batch axis is a free one: the first of its operand, behind the axes that run along.
    place = len(batch[0])
    if rhs_batched:
        if aval_of(rhs).ndim == 1 + len(contract[1]) + len(batch[1]):  # as rows of the left operand
            lhs, rhs, contract, batch = rhs, lhs, contract[::-1], batch[::-1]
        else:
            place += len(free_dims(aval_of(lhs).ndim, contract[0], batch[0]))
    out = primitive.bind(lhs, rhs, dimension_numbers=(tuple(contract), tuple(batch)), **params)
    return move_axis(out, place, 0)


def _transpose_dot_general(primitive, ct, operands, *, dimension_numbers, **params):
    lhs, rhs = operands
    contract, batch = dimension_numbers
    if is_linear(lhs):
        return [_contract_cotangent(ct, lhs.aval, rhs, contract, batch, True, params), None]
    swapped = contract[::-1], batch[::-1]
    return [None, _contract_cotangent(ct, rhs.aval, lhs, *swapped, False, params)]


def _contract_cotangent(ct, aval: ShapedArray, other, contract, batch, is_left: bool, params: dict):
    """The cotangent of an operand of this type: ct times the other operand, summed over its free axes.

    contract, batch: axes of the operand, and of the other one. is_left: which of the two it was."""
    kept = free_dims(aval.ndim, contract[0], batch[0])
    other_kept = free_dims(aval_of(other).ndim, contract[1], batch[1])
    along, first = tuple(range(len(batch[0]))), len(batch[0])
    if is_left:
        summed = tuple(range(first + len(kept), first + len(kept) + len(other_kept)))
    else:
        summed = tuple(range(first, first + len(other_kept)))
    # Contracted axes come in the order in which the other operand has them.
    contracted = [dim for _, dim in sorted(zip(contract[1], contract[0]))]
    before, after = (*batch[0], *kept, *contracted), (*batch[0], *contracted, *kept)
    if list(before) != sorted(before) and list(after) == sorted(after):  # saves the transposition
        numbers = ((tuple(other_kept), summed), (batch[1], along))
        order, out = after, dot_general.primitive.bind(other, ct, dimension_numbers=numbers, **params)
    else:
        numbers = ((summed, tuple(other_kept)), (along, batch[1]))
        order, out = before, dot_general.primitive.bind(ct, other, dimension_numbers=numbers, **params)
    return convert_element_type(transpose(out, invert_permutation(order)), aval.dtype)


@define("dot_general", impl=_dot_general, aval=_dot_general_aval, jvp=jvp_multilinear(),
        transpose=_transpose_dot_general, batch=_batch_dot_general, lower=_lower_dot_general,
        hlo=_hlo_dot_general, prefers_library=_prefers_library)
def dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None) -> Array:
    """Sums products over pairs of axes, for each element of paired batch axes.

    Args:
        dimension_numbers: ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), sequences of axes.
        precision: a `Precision`, or a name of one such as "tensorfloat32", for devices with several: TPUs,
            and cuBLAS, which rounds to TF32 what names less than "highest". Processors have one.
        preferred_element_type: dtype to accumulate in and to return; by default the operands' common one.
            Narrow operands need it.
    Returns: axes (batch, free of lhs, free of rhs).
    Raises: TypeError when the axes do not pair up.
    Source: StableHLO specification, dot_general."""
    dims = tuple(tuple(tuple(map(operator.index, side)) for side in pair) for pair in dimension_numbers)
    preferred = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    if preferred is not None and not dtypes.is_narrow(preferred):
        lhs, rhs = (convert_element_type(x, preferred) if dtypes.is_narrow(aval_of(x).dtype) else x
                    for x in (lhs, rhs))
    return dot_general.primitive.bind(lhs, rhs, dimension_numbers=dims,
                                      precision=canonicalize_precision(precision),
                                      preferred_element_type=preferred)


# Bytes of a matrix from which on one sweep beats two, and of a row: some rows, and sums for its columns, stay
# in a second-level cache.
_SWEPT_BYTES, _SWEPT_ROW_BYTES = 1 << 15, (128, 256 << 10)
# Threads share stretches of rows: so many rows make enough of them, and for smaller matrices few do.
_SWEPT_ROWS, _SHARED_BYTES = 512, 4 << 20


def is_worth_sweep(shape: Sequence, dtype) -> bool:
    """Whether a matrix, rows along memory, is so large that products of it are made in one sweep."""
    if len(shape) != 2 or not all(isinstance(extent, int) for extent in shape):
        return False
    row_bytes, (least, most) = shape[1] * dtype.itemsize, _SWEPT_ROW_BYTES
    size = shape[0] * row_bytes
    has_stretches = shape[0] >= _SWEPT_ROWS or size <= _SHARED_BYTES
    return least <= row_bytes <= most and size >= _SWEPT_BYTES and has_stretches


def _two_sided_dot(matrix, right, left=None):
    product = matrix @ right
    return [product, (product if left is None else left) @ matrix]


def _two_sided_dot_aval(matrix: ShapedArray, right: ShapedArray, left: ShapedArray | None = None) -> list:
    fits = right.shape == matrix.shape[1:] and (left is None or left.shape == matrix.shape[:1])
    if matrix.ndim != 2 or not fits:
        raise TypeError("two_sided_dot requires a matrix, a vector for its columns and one for its rows.")
    return [ShapedArray((extent,), matrix.dtype) for extent in matrix.shape]


def _lower_two_sided_dot(builder, matrix, right, left=None):
    product = _lower_dot_general(builder, matrix, right, dimension_numbers=(((1,), (0,)), ((), ())))
    left = builder.store(product) if left is None else left
    return [product, _lower_dot_general(builder, left, matrix, dimension_numbers=(((0,), (0,)), ((), ())))]


def _hlo_two_sided_dot(b, matrix, right, left=None):
    product = _hlo_dot_general(b, matrix, right, dimension_numbers=(((1,), (0,)), ((), ())))
    left = product if left is None else left
    return [product, _hlo_dot_general(b, left, matrix, dimension_numbers=(((0,), (0,)), ((), ())))]


def _jvp_two_sided_dot(primitive, primals, tangents):
    matrix, right, *left = primals
    d_matrix, d_right, *d_left = map(instantiate, tangents)
    product, total = primitive.bind(*primals)
    d_product = add_derivatives(dot(d_matrix, right), dot(matrix, d_right))
    left, d_left = (left[0], d_left[0]) if left else (product, d_product)
    return [product, total], [d_product, add_derivatives(dot(d_left, matrix), dot(left, d_matrix))]


def _batch_two_sided_dot(primitive, axis, values, batched):
    matrix, right, *left = batch_values(axis, values, batched)
    along = (0,), (0,)
    product = dot_general(matrix, right, (((2,), (1,)), along))
    return [product, dot_general(left[0] if left else product, matrix, (((1,), (1,)), along))]


@define("two_sided_dot", impl=_two_sided_dot, aval=_two_sided_dot_aval, jvp=_jvp_two_sided_dot,
        batch=_batch_two_sided_dot, lower=_lower_two_sided_dot, hlo=_hlo_two_sided_dot,
        multiple_results=True)
def two_sided_dot(matrix, right, left=None) -> list[Array]:
    """`[matrix @ right, left @ matrix]`, the matrix being read once; `left` may be `matrix @ right`: None.

    Made of products by the pass `sweeps`, after differentiation. Raises: TypeError for other shapes."""
    return two_sided_dot.primitive.bind(matrix, right, *([] if left is None else [left]))


def dot(lhs, rhs, *, dimension_numbers=None, precision=None, preferred_element_type=None) -> Array:
    """Product of vectors and matrices; with dimension_numbers, `dot_general`.

    Raises: ValueError for other ranks, or when the inner extents differ."""
    if dimension_numbers is None:
        left, right = aval_of(lhs).shape, aval_of(rhs).shape
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                "jitcore.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; "
                f"got lhs_shape={left} rhs_shape={right}")
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs, rhs, precision=None) -> Array:
    """Products of stacks of matrices: axes (batch..., m, k) and (batch..., k, n) give (batch..., m, n)."""
    lhs, rhs = to_operands("batch_matmul", (lhs, rhs))
    ndim = aval_of(lhs).ndim
    if ndim < 2 or aval_of(rhs).ndim != ndim:
        raise TypeError(f"Arguments to batch_matmul must be at least 2D and of one rank, "
                        f"got {ndim}, {aval_of(rhs).ndim}")
    batch = tuple(range(ndim - 2))
    return dot_general(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)
