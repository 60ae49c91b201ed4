"""Functions that are made of other functions of lax: arithmetic of wide integers, shapes as values, choices
by platform, products of groups of rows, and names of ways to multiply matrices.

In: operands as other functions take them. Out: arrays. Derivatives and batches are those of the parts.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jitcore import dtypes
from jitcore.array import Array
from jitcore.core.jaxpr import ShapeDtypeStruct, aval_of
from jitcore.core.trace import to_array
from jitcore.lax.bits import and_, shift_right_arithmetic, shift_right_logical
from jitcore.lax.control_flow.callback import io_callback
from jitcore.lax.control_flow.scan import scan
from jitcore.lax.control_flow.while_loop import fori_loop
from jitcore.lax.define import canonicalize_axis, canonicalize_shape, to_operands
from jitcore.lax.dot import Precision, dot_general
from jitcore.lax.elementary import exp, log
from jitcore.lax.elementwise import add, convert_element_type, div, ge, lt, mul, neg, rem, select_n, sub
from jitcore.lax.indexing.dimension_numbers import (GatherDimensionNumbers, GatherScatterMode,
                                                    ScatterDimensionNumbers)
from jitcore.lax.indexing.gather_scatter import gather, read_back, scatter, writes_once
from jitcore.lax.indexing.slices import dynamic_slice_in_dim
from jitcore.lax.joining import concatenate
from jitcore.lax.reduce import reduce_sum
from jitcore.lax.shape import (broadcast_in_dim, dimension_size, expand_dims, full_like, iota, reshape,
                               transpose)
from jitcore.lax.sort import top_k
from jitcore.lax.special import igamma_grad_a, lgamma
from jitcore.process.lazy import LazyModule
from jitcore.transforms.vmap import vmap

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "PrecisionLike",
           "RaggedDotDimensionNumbers", "approx_max_k", "approx_min_k", "broadcast_like", "composite",
           "dtype",
           "index_take", "mulhi", "platform_dependent", "ragged_dot", "ragged_dot_general",
           "random_gamma_grad",
           "rng_uniform", "scaled_dot", "scatter_apply", "shape_as_value"]


device = LazyModule("jitcore.device")  # which backends there are


# -- ways to multiply
# -----------------------------------------------------------------------------------------
class DotAlgorithm(NamedTuple):
    """How a product is to be computed: dtypes of its operands and sums, and from how many parts.

    Products here take operands as they are and sum halves in float32, so that each algorithm of JAX's is met
    or exceeded; a backend with several precisions reads `Precision`. Source: StableHLO specification,
    dot_general."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


DotAlgorithmPreset = enum.Enum("DotAlgorithmPreset", """DEFAULT ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM
    ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32
    BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32
    F64_F64_F64""")
DotAlgorithmPreset.__doc__ = "Algorithms by the dtypes of operands and sums; see `DotAlgorithm`."

#: ((contracted axes of both sides), (batch axes of both sides)).
DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]],
                                       tuple[Sequence[int], Sequence[int]]]
#: What `precision` of products takes.
PrecisionLike: TypeAlias = (str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
                            | DotAlgorithmPreset | None)


class RaggedDotDimensionNumbers(NamedTuple):
    """Axes of `ragged_dot_general`: those of `dot_general`, the axis of lhs that is cut into groups (one
    number), and the axis of rhs with one entry for each group (one number, or none)."""

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


# -- integers and shapes
# --------------------------------------------------------------------------------------
def mulhi(x, y) -> Array:
    """The upper half of the product of integers of N bits, which has 2 N bits.

    Args:
        x, y: integers of one dtype and shape (scalars broadcast).

    Returns: of the same dtype. Raises: TypeError for other dtypes. Example: of two uint8 200 it is 156, as
    200 * 200 is 156 * 256 + 64. Source: jax.lax.mulhi; Warren: Hacker's Delight, section 8-2."""
    x, y = to_operands("mulhi", (x, y))
    kind = aval_of(x).dtype
    if not dtypes.is_integer(kind):
        raise TypeError(f"mulhi does not accept dtype {kind.name}. Accepted dtypes are integers.")
    width = 8 * kind.itemsize
    if width < 64:
        wide = np.dtype(f"{kind.kind}8")
        product = mul(convert_element_type(x, wide), convert_element_type(y, wide))
        return convert_element_type(shift_right_arithmetic(product, wide.type(width)), kind)
    low = kind.type(2**32 - 1)

    def half(v):
        return (shift_right_arithmetic if kind.kind == "i" else shift_right_logical)(v, kind.type(32))

    (x_low, x_high), (y_low, y_high) = ((and_(v, low), half(v)) for v in (x, y))
    # halves times halves; only the lower product may need the sign's place
    first = shift_right_logical(mul(x_low, y_low), kind.type(32))
    second = add(mul(x_high, y_low), first)
    third = add(mul(x_low, y_high), and_(second, low))
    return add(add(mul(x_high, y_high), half(second)), half(third))


def shape_as_value(shape: Sequence) -> Array:
    """A shape, of ints and symbolic dimensions, as an integer vector.

    Returns: int32[len(shape)]. Example: `shape_as_value((2, 3))` is `[2, 3]`. Source:
    jax.lax.shape_as_value."""
    shape = canonicalize_shape(shape)
    if all(isinstance(extent, int) for extent in shape):
        return to_array(np.asarray(shape, np.int32))
    return concatenate([reshape(convert_element_type(dimension_size(extent), np.int32),
                                (1,)) for extent in shape], 0)


def dtype(x: Any) -> np.dtype:
    """The dtype of an array, number, or dtype-like.

    Returns: np.dtype. Raises: TypeError for None. Example: `dtype(1.0)` is float32. Source: jax.lax.dtype."""
    if x is None:
        raise TypeError("Invalid argument to dtype: None")
    return dtypes.type_of(x)[0]


def broadcast_like(arr, like_arr) -> Array:
    """An array in the shape of another one, by NumPy's rules.

    Args:
        arr: array of a rank up to that of like_arr.

    Returns: array of the shape of like_arr. Raises: TypeError where it does not broadcast.
    Example: `broadcast_like(jnp.arange(3), jnp.zeros((2, 3)))` is `[[0, 1, 2], [0, 1, 2]]`.
    Source: jax.lax.broadcast_like."""
    shape, own = aval_of(like_arr).shape, aval_of(arr).shape
    if len(own) > len(shape):
        raise TypeError(f"broadcast_like got an array of shape {own}, which does not broadcast to {shape}")
    return broadcast_in_dim(arr, shape, range(len(shape) - len(own), len(shape)))


# -- parts of arrays
# ------------------------------------------------------------------------------------------
def index_take(src, idxs: Sequence, axes: Sequence[int]) -> Array:
    """Elements, or slices, of an array at places given by one index vector for each of some axes.

    Args:
        src: array. idxs: integer vectors [k]; they count modulo the extents. axes: of src.

    Returns: [k, *rest], rest the extents of the other axes. Example: of `jnp.arange(6).reshape(2, 3)` at
    `([0, 1], [2, 0])` of the axes (0, 1) it is `[2, 3]`. Source: jax.lax.index_take."""
    shape, axes = aval_of(src).shape, tuple(axes)
    columns = []
    for indices, axis in zip(idxs, axes):
        extent = full_like(indices, shape[axis])
        found = rem(indices, extent)
        found = select_n(lt(found, full_like(found, 0)), found, add(found, extent))
        columns.append(expand_dims(found, (1,)))
    sizes = [1 if i in axes else extent for i, extent in enumerate(shape)]
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(src, concatenate(columns, 1), numbers, sizes)


def scatter_apply(operand, scatter_indices, func: Callable, dimension_numbers: ScatterDimensionNumbers, *,
                  update_shape: Sequence[int] = (), indices_are_sorted: bool = False,
                  unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """An array in which slices are replaced by a function of them, once for each time that an index names
    them.

    Args:
        operand, scatter_indices, dimension_numbers, mode: as `scatter` takes them. func: of one element.
        update_shape: that which updates would have. indices_are_sorted, unique_indices: promises.

    Returns: of the shape of operand. Example: `x.at[i].apply(func)` is made by it where indices may repeat.
    Raises: NotImplementedError for batches of indices that may repeat. Source: jax.lax.scatter_apply."""
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    mode = GatherScatterMode.from_any(mode)

    def apply(x, indices, shape):
        slices = read_back(x, indices, shape, dimension_numbers=dimension_numbers, mode=mode, **promises)
        return scatter(x, indices, map_elements(func, slices), dimension_numbers, mode=mode, **promises)

    operand, indices = to_array(operand), to_array(scatter_indices)
    if writes_once(indices, dimension_numbers=dimension_numbers, unique_indices=unique_indices, mode=mode):
        return apply(operand, indices, tuple(update_shape))
    if dimension_numbers.scatter_indices_batching_dims:
        raise NotImplementedError("scatter_apply of batches of indices that may repeat")
    *batch, depth = aval_of(indices).shape
    windows = set(dimension_numbers.update_window_dims)
    sizes = [extent if i in windows else 1 for i, extent in enumerate(update_shape)]
    rows = reshape(indices, (int(np.prod(batch)), depth))

    def step(i, x):
        row = reshape(dynamic_slice_in_dim(rows, i, 1, 0), (*[1] * len(batch), depth))
        return apply(x, row, tuple(sizes))

    return fori_loop(0, rows.shape[0], step, operand)


def map_elements(func: Callable, x) -> Array:
    """An array of the shape and dtype of x: func, which is given scalars, of each element."""
    aval = aval_of(x)
    flat = reshape(x, (int(np.prod(aval.shape)),))
    return reshape(convert_element_type(vmap(func)(flat), aval.dtype), aval.shape)


def _approximate(name: str, sign: Callable, operand, k: int, reduction_dimension: int) -> tuple[Array, Array]:
    aval = aval_of(operand)
    if not dtypes.is_floating(aval.dtype):
        raise ValueError(f"{name} needs floats, got {aval.dtype.name}")
    values, indices = top_k(sign(operand), k, axis=canonicalize_axis(reduction_dimension, aval.ndim))
    return sign(values), indices


def approx_max_k(operand, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array,
                                                                                                   Array]:
    """The k largest elements along an axis, descending, and their indices: exactly, as `top_k`.

    Args:
        operand: floats. reduction_dimension: the axis. recall_target, reduction_input_size_override,
            aggregate_to_topk: how XLA may approximate, without effect here.

    Returns: (values, indices int32), with k in place of the axis. Raises: ValueError for other dtypes.
    Example: `approx_max_k(jnp.array([1.0, 3.0, 2.0]), 2)` is `([3, 2], [1, 2])`. Source:
    jax.lax.approx_max_k."""
    return _approximate("approx_max_k", lambda x: x, operand, k, reduction_dimension)


def approx_min_k(operand, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
                 reduction_input_size_override: int = -1, aggregate_to_topk: bool = True) -> tuple[Array,
                                                                                                   Array]:
    """The k smallest elements along an axis, ascending, and their indices; otherwise as `approx_max_k`.

    Example: `approx_min_k(jnp.array([1.0, 3.0, 2.0]), 2)` is `([1, 2], [0, 2])`. Source:
    jax.lax.approx_min_k."""
    return _approximate("approx_min_k", neg, operand, k, reduction_dimension)


# -- programs
# -------------------------------------------------------------------------------------------------
def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """The result of the function for the platform of the default backend: "cpu", "cuda", "tpu".

    Args:
        args: pytrees, arguments of each function. default: the function for platforms that are not named.

    Returns: `per_platform[platform](*args)`; the others are not traced. Raises: TypeError for what is no
    function; NotImplementedError for a platform without one. Example:
    `platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)`.
    Source: jax.lax.platform_dependent."""
    for name, function in {"default": default, **per_platform}.items():
        if not callable(function) and (name != "default" or function is not None):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    platform = device.default_backend()
    function = per_platform.get(platform, default)
    if function is None:
        raise NotImplementedError(f"lax.platform_dependent has no branch for the platform {platform!r}")
    return function(*args)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function that computes what `decomposition` does; XLA may know a faster form by its name, backends
    here compute what it consists of.

    Args:
        decomposition: of arrays, and static keyword arguments. name, version: of the form.

    Returns: a function of the same arguments. Example: `composite(jnp.sin, "my.sin")(0.0)` is 0.
    Source: jax.lax.composite."""
    @functools.wraps(decomposition)
    def run(*args, **kwargs):
        return decomposition(*args, **kwargs)

    return run


# -- random
# ---------------------------------------------------------------------------------------------------
def random_gamma_grad(a, x, *, dtype=None) -> Array:
    """Derivative by a of a sample x of the gamma distribution of shape a, which moves with a at fixed
    probability.

    Args:
        a, x: positive floats of one dtype and shape. dtype: accepted for JAX's signature; sums are in
            float64.

    Returns: of the same dtype. Error: 1e-6 relative in float32. Example: `random_gamma_grad(1.0, 1.0)` is
    0.7965996.
    Source: Figurnov, Mohamed, Mnih: Implicit reparameterization gradients (2018)."""
    a, x = to_operands("random_gamma_grad", (a, x))
    kind = np.result_type(aval_of(a).dtype)
    a, x = (convert_element_type(v, np.float64) for v in (a, x))
    density = exp(sub(sub(mul(sub(a, full_like(a, 1)), log(x)), x), lgamma(a)))
    return convert_element_type(neg(div(igamma_grad_a(a, x), density)), kind)


def rng_uniform(a, b, shape: Sequence[int]) -> Array:
    """Numbers in [a, b), equally likely, from a generator of this process: no two calls give the same.

    Args:
        a, b: scalars of one dtype, float or integer. shape: of the result.

    Returns: of the dtype of a. For numbers that can be had again, take `jitcore.random`.
    Example: `rng_uniform(0.0, 1.0, (3,))`. Source: jax.lax.rng_uniform."""
    a, b = to_operands("rng_uniform", (a, b))
    kind, shape = aval_of(a).dtype, canonicalize_shape(shape)

    def draw(low, high):
        low, high = np.asarray(low), np.asarray(high)
        if kind.kind in "iu":
            return _open_generator().integers(low, high, shape, kind)
        numbers = _open_generator().random(shape, np.float32 if kind.itemsize == 2 else kind)
        return np.asarray(low + (high - low) * numbers, kind)

    return io_callback(draw, ShapeDtypeStruct(shape, kind), a, b)


@functools.cache
def _open_generator() -> np.random.Generator:
    return np.random.default_rng()


# -- products of groups
# ---------------------------------------------------------------------------------------
_PLAIN_RAGGED = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(lhs, rhs, group_sizes, precision: PrecisionLike = None, preferred_element_type=None,
               group_offset=None) -> Array:
    """Each row of lhs times the matrix of its group.

    Args:
        lhs: [m, k], rows of group 0 first, then of group 1 and so on. rhs: [g, k, n]. group_sizes: integers
            [g].
        precision, preferred_element_type: as for `dot_general`. group_offset: not there.

    Returns: [m, n]; 0 for rows that are in no group. Raises: NotImplementedError for group_offset.
    Cost: that of g products [m, k] @ [k, n]. Example: of `[[1.0], [2.0]]`, `[[[10.0]], [[100.0]]]` and
    `[1, 1]` it is `[[10], [200]]`. Source: jax.lax.ragged_dot."""
    return ragged_dot_general(lhs, rhs, group_sizes, _PLAIN_RAGGED, precision, preferred_element_type,
                              group_offset)


def ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None, preferred_element_type=None,
                       group_offset=None) -> Array:
    """`dot_general` for each group of positions along one axis of lhs.

    Args:
        lhs, rhs: arrays. group_sizes: integers [g], how many positions each group has along the ragged axis.
        ragged_dot_dimension_numbers: where that axis is a free axis of lhs, rhs has one entry for each group,
            and each position meets that of its group; where it is contracted, the result has one product for
            each group, along a new first axis; where it is a batch axis, all positions of some group are
            computed.
        precision, preferred_element_type: as for `dot_general`. group_offset: not there.

    Returns: as of `dot_general`; 0 where no group is. Raises: NotImplementedError for group_offset and
    several ragged axes; ValueError for numbers that do not fit. Cost: that of g products. Source:
    jax.lax.ragged_dot_general.
    Example: see `ragged_dot`."""
    if group_offset is not None:
        raise NotImplementedError("ragged_dot with group_offset")
    ((contract, rhs_contract), (batch, rhs_batch)), ragged, grouped = ragged_dot_dimension_numbers
    if not dtypes.is_integer(aval_of(group_sizes).dtype):
        raise TypeError("ragged_dot_general requires that group_sizes.dtype is subtype of np.integer.")
    if len(ragged) != 1 or aval_of(group_sizes).ndim != 1:
        raise NotImplementedError("ragged_dot_general needs one ragged axis, and a vector of group sizes")
    lhs, rhs, sizes = to_array(lhs), to_array(rhs), convert_element_type(group_sizes, np.int32)
    axis, count = ragged[0], aval_of(sizes).shape[0]
    position = iota(np.int32, lhs.shape[axis])
    is_free = axis not in contract and axis not in batch
    if is_free != (len(grouped) == 1):
        raise ValueError("rhs has a group axis exactly where the ragged axis is a free axis of lhs")
    product = functools.partial(dot_general, precision=precision,
                                preferred_element_type=preferred_element_type)

    def keep(start, size):
        """lhs with zeros outside of a group."""
        inside = and_(ge(position, broadcast_in_dim(start, position.shape, ())),
                      lt(position, broadcast_in_dim(add(start, size), position.shape, ())))
        return select_n(broadcast_in_dim(inside, lhs.shape, (axis,)), full_like(lhs, 0), lhs)

    if not is_free and axis in batch:
        whole = keep(np.int32(0), reduce_sum(sizes, (0,)))
        return product(whole, rhs, ((contract, rhs_contract), (batch, rhs_batch)))
    if not is_free:
        def multiply(start, size):
            return add(start, size), product(keep(start, size), rhs, ((contract, rhs_contract),
                                                                      (batch, rhs_batch)))

        return scan(multiply, np.int32(0), sizes)[1]
    (group,) = grouped
    moved = transpose(rhs, (group, *[i for i in range(rhs.ndim) if i != group]))
    rhs_contract, rhs_batch = ([i - (i > group) for i in axes] for axes in (rhs_contract, rhs_batch))
    numbers = (contract, rhs_contract), (batch, rhs_batch)
    if not count:
        return full_like(product(lhs, full_like(lhs, 0, shape=moved.shape[1:]), numbers), 0)

    def add_group(state, entry):
        start, total = state
        size, matrix = entry
        return (add(start, size), add(total, product(keep(start, size), matrix, numbers))), ()

    first = product(keep(np.int32(0), np.int32(0)), _take_first(moved), numbers)
    return scan(add_group, (np.int32(0), full_like(first, 0)), (sizes, moved))[0][1]


def _take_first(x):
    return reshape(dynamic_slice_in_dim(x, 0, 1, 0), x.shape[1:])


def scaled_dot(lhs, rhs, *, lhs_scale=None, rhs_scale=None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type=None) -> Array:
    """The product of arrays in blocks that share a factor: each is multiplied by its factors first.

    Args:
        lhs: [..., m, k], rhs: [..., n, k] or as dimension_numbers say; of any float dtype, narrow ones too.
        lhs_scale, rhs_scale: of the rank of their operand, whose extents they divide: one factor for each
            block.
        dimension_numbers: as of `dot_general`. preferred_element_type: dtype of the result, bfloat16 by
            default.

    Returns: as of `dot_general`. Raises: ValueError for factors that do not fit. Sums are in float32.
    Example: of `[[1.0, 2.0]]` and `[[3.0, 4.0]]` with lhs_scale `[[2.0]]` and contracted last axes it is
    `[[22]]`.
    Source: jax.lax.scaled_dot; OCP Microscaling Formats Specification 1.0."""
    wanted = dtypes.bfloat16 if preferred_element_type is None else preferred_element_type
    kind = dtypes.canonicalize(wanted)
    work = np.dtype(np.float64) if kind == np.float64 else np.dtype(np.float32)
    lhs, rhs = (_scale(side, x, scale, work) for side, x, scale in (("lhs", lhs, lhs_scale), ("rhs", rhs,
                                                                                              rhs_scale)))
    if dimension_numbers is None:
        batch = tuple(range(aval_of(lhs).ndim - 2))
        dimension_numbers = ((aval_of(lhs).ndim - 1,), (aval_of(rhs).ndim - 2,)), (batch, batch)
    return convert_element_type(dot_general(lhs, rhs, dimension_numbers), kind)


def _scale(side: str, x, scale, work: np.dtype):
    x = convert_element_type(x, work)
    if scale is None:
        return x
    shape, blocks = aval_of(x).shape, aval_of(scale).shape
    if len(shape) != len(blocks) or any(b == 0 or n % b for n, b in zip(shape, blocks)):
        raise ValueError(f"scaled_dot got factors of shape {blocks} for {side} of shape {shape}")
    split = tuple(v for n, b in zip(shape, blocks) for v in (b, n // b))
    spread = broadcast_in_dim(convert_element_type(scale, work), split, range(0, 2 * len(shape), 2))
    return mul(x, reshape(spread, shape))
