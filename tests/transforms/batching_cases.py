"""One or more applications of every primitive: a function of one element and the shapes of its operands.

`CASES` maps the name of a primitive to a list of `Case`s. Elementwise primitives and the families are found
in the registry; all others stand here by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jitcore import (ShapeDtypeStruct, checkpoint, custom_jvp, custom_vjp, dtypes, jit, lax, numpy as jnp,
                     random)
from jitcore.ad_checkpoint import checkpoint_name
from jitcore.core.primitive import registry
from jitcore.custom_batching import custom_vmap
from jitcore.debug import callback
from jitcore.experimental import checkify, sparse
from jitcore.lax import linalg
from jitcore.lax.compress import compress
from jitcore.lax.control_flow.callback import VMAP_METHODS, io_callback, pure_callback
from jitcore.lax.draw import draw
from jitcore.lax.elementwise import cast_to_integer
from jitcore.lax.exported import call_exported
from jitcore.lax.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers
from jitcore.lax.random.keys import random_bits, random_fold_in
from jitcore.process import streams


class Operand(NamedTuple):
    """Shape of one element and the values to draw."""

    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float32)
    low: float = -2
    high: float = 2

    def draw(self, rng, size: int, axis: int | None) -> np.ndarray:
        """Values for a batch of this size whose axis stands there; for None of one element."""
        shape = list(self.shape)
        if axis is not None:
            shape.insert(axis % (len(shape) + 1), size)
        kind = dtypes.kind_of(self.dtype)
        if kind in "biu":
            return rng.integers(int(self.low), int(self.high) + 1, shape).astype(self.dtype)
        real = rng.uniform(self.low, self.high, shape)
        return (real + 1j * rng.uniform(self.low, self.high, shape) if kind == "c" else real).astype(
            self.dtype
        )


class Case(NamedTuple):
    function: Callable
    operands: tuple[Operand, ...]
    tolerance: float = 1e-5


def f32(*shape, low=-2, high=2) -> Operand:
    return Operand(shape, np.dtype(np.float32), low, high)


def i32(*shape, low=-3, high=7) -> Operand:
    return Operand(shape, np.dtype(np.int32), low, high)


def u32(*shape) -> Operand:
    return Operand(shape, np.dtype(np.uint32), 0, 2**31)


def c64(*shape) -> Operand:
    return Operand(shape, np.dtype(np.complex64))


def boolean(*shape) -> Operand:
    return Operand(shape, np.dtype(np.bool_), 0, 1)


def case(function: Callable, *operands: Operand, tolerance: float = 1e-5) -> Case:
    return Case(function, operands, tolerance)


def _spd(x):
    return x @ x.T + 3 * jnp.eye(x.shape[0], dtype=x.dtype)


def _sample_dtype(accepts: str) -> np.dtype:
    kind = next(kind for kind in "ficub" if kind in accepts)
    return {"f": dtypes.float32, "i": dtypes.int32, "c": dtypes.complex64, "u": dtypes.uint32,
            "b": dtypes.bool_}[kind]


def _elementwise_cases() -> dict[str, list[Case]]:
    cases = {}
    for name, primitive in registry.items():
        traits = primitive.traits
        if traits.get("family") == "elementwise" and "arity" in traits and "accepts" in traits:
            dtype = _sample_dtype(traits["accepts"])
            low, high = traits.get("domain") or (0, 12)
            params = {"y": 3} if name == "integer_pow" else {}
            bind = lambda *xs, p=primitive, params=params: p.bind(*xs, **params)  # noqa: E731
            shapes = [[(2, 4)] * traits["arity"]]
            if traits["arity"] > 1:  # scalars on one side
                shapes += [[(), *[(4,)] * (traits["arity"] - 1)], [*[(4,)] * (traits["arity"] - 1), ()]]
            cases[name] = [
                case(bind, *[Operand(shape, dtype, low, high) for shape in group]) for group in shapes
            ]
    return cases


# -- reductions and running folds ---------------------------------------------------------------------------
def _family_cases() -> dict[str, list[Case]]:
    cases = {}
    for name, primitive in registry.items():
        family = primitive.traits.get("family")
        dtype = _sample_dtype(primitive.traits.get("accepts", "f"))
        operand = Operand((2, 3, 4), dtype, 0 if dtype.kind == "u" else -2, 5)
        if family == "reduction":
            cases[name] = [case(lambda x, p=primitive, axes=axes: p.bind(x, axes=axes), operand)
                           for axes in ((0,), (2,), (0, 2), ())]
        elif family == "cumulative":
            cases[name] = [case(lambda x, p=primitive, a=a, r=r: p.bind(x, axis=a, reverse=r), operand)
                           for a, r in ((0, False), (2, True))]
        elif family == "window reduction":
            cases[name] = [
                case(lambda x, p=primitive: p.bind(
                    x, window_dimensions=(2, 2), window_strides=(1, 2), padding=((1, 0), (0, 1)),
                    base_dilation=(1, 2), window_dilation=(2, 1)), f32(4, 5)),
            ]
        elif family == "scatter":
            cases[name] = _scatter_cases(primitive)
    return cases


def _scatter_cases(primitive) -> list[Case]:
    def at_rows(x, indices, updates, mode):
        dnums = ScatterDimensionNumbers((1,), (0,), (0,))
        return getattr(lax, primitive.name.replace("-", "_"))(x, indices, updates, dnums, mode=mode)

    def windows(x, indices, updates):
        dnums = ScatterDimensionNumbers((0, 2), (), (1, 0))
        return getattr(lax, primitive.name.replace("-", "_"))(x, indices, updates, dnums, mode="clip")

    def along(x, indices, updates):
        dnums = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        return getattr(lax, primitive.name.replace("-", "_"))(x, indices, updates, dnums)

    rows = (f32(5, 4), i32(3, 1, low=-1, high=5), f32(3, 4))
    return [
        case(lambda *xs: at_rows(*xs, "drop"), *rows),
        case(lambda *xs: at_rows(*xs, "clip"), *rows),
        case(windows, f32(4, 5), i32(3, 2, low=0, high=4), f32(2, 3, 2)),
        case(along, f32(3, 4), i32(3, 2, 1, low=0, high=4), f32(3, 2)),
    ]


# -- structured ---------------------------------------------------------------------------------------------
def _draw_poisson(mean, shape=()):
    with streams.find_memory(_RNG) as memory:
        return draw(memory.words, mean, function="random_poisson", source="PCG64", shape=shape)


_RNG = np.random.Generator(np.random.PCG64(4))


def _double(value):
    return np.asarray(value) * np.float32(2)


class _Doubled:
    """A loaded program."""

    def infer(self, avals):
        return list(avals)

    def run(self, values):
        return self.call_flat(*values)

    def call_flat(self, *values):
        return [value * 2 for value in values]


@custom_vmap
def _multiply_rows(a, x):
    return a * jnp.sin(x)


@_multiply_rows.def_vmap
def _multiply_rows_of_batch(size, in_batched, a, x):
    sines = jnp.sin(x)
    return a * (sines[:, None] if in_batched[1] else sines), True


def _like(x):
    return ShapeDtypeStruct(x.shape, x.dtype)


def _gather(numbers, slice_sizes, mode) -> Callable:
    numbers = GatherDimensionNumbers(*numbers)
    return lambda x, indices: lax.gather(x, indices, numbers, slice_sizes, mode=mode)


def _dot(contracting, batch) -> Callable:
    return lambda x, y: lax.dot_general(x, y, (contracting, batch))


def _conv(strides, padding, **options) -> Callable:
    return lambda x, k: lax.conv_general_dilated(x, k, strides, padding, **options)


def _solve(left_side: bool) -> Callable:
    return lambda a, b: linalg.triangular_solve(
        a + 4 * jnp.eye(3, dtype=a.dtype), b, left_side=left_side, lower=True
    )


def _repeat(x, n):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x + 1), (0, jnp.ones(2)))


def _loop_with_inner_loop(x):
    def step(carry):
        i, total = carry
        inner = lax.while_loop(lambda v: v < 3, lambda v: v + x, 0.0)
        return i + 1, total + inner

    return lax.while_loop(lambda carry: carry[0] < 3, step, (0, x * 0))


@custom_jvp
def _forward_cube(x):
    return x**3


_forward_cube.defjvp(lambda primals, tangents: (_forward_cube(*primals), 3 * primals[0] ** 2 * tangents[0]))


@custom_vjp
def _reverse_cube(x):
    return x**3


_reverse_cube.defvjp(lambda x: (_reverse_cube(x), x), lambda x, ct: (3 * x**2 * ct,))


def _compress(x, mask):
    """The elements behind those of the mask are set, as they may be anything."""
    places = lax.broadcasted_iota(np.int32, x.shape, 1)
    return jnp.where(places < mask.sum(-1, keepdims=True), compress(x, mask), 0)


def _fold_each(words, data):
    return random.key_data(random_fold_in(random.wrap_key_data(words), data))


def _draw_each(words):
    return random_bits(random.wrap_key_data(words), 16, (2,))


_STRUCTURED: dict[str, list[Case]] = {
    # shapes
    "broadcast_in_dim": [
        case(lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (1, 2)), f32(1, 3)),
        case(lambda x: lax.broadcast(x, (2,)), f32()),
    ],
    "reshape": [
        case(lambda x: lax.reshape(x, (6, 2)), f32(3, 4)),
        case(lambda x: lax.reshape(x, (6, 2), (1, 0)), f32(3, 4)),
        case(lambda x: lax.reshape(x, (1, 1)), f32()),
    ],
    "transpose": [case(lambda x: lax.transpose(x, (2, 0, 1)), f32(2, 3, 4))],
    "squeeze": [case(lambda x: lax.squeeze(x, (0, 2)), f32(1, 3, 1))],
    "rev": [case(lambda x: lax.rev(x, (0, 2)), f32(2, 3, 4))],
    "copy": [case(lax.copy, f32(2, 3)), case(lax.copy, f32())],
    "stop_gradient": [case(lax.stop_gradient, f32(2, 3))],
    "concatenate": [
        case(lambda *xs: lax.concatenate(xs, 1), f32(2, 3), f32(2, 1), f32(2, 2)),
        case(lambda *xs: lax.concatenate(xs, 0), f32(2), f32(3)),
    ],
    "split": [case(lambda x: lax.split(x, (1, 3), 1), f32(2, 4))],
    "tile": [case(lambda x: lax.tile(x, (2, 3)), f32(2, 4))],
    "slice": [
        case(lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), f32(4, 5)),
        case(lambda x: lax.slice(x, (1, 0), (3, 4)), f32(4, 5)),
    ],
    "dynamic_slice": [
        case(lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)), f32(4, 5), i32(), i32()),
        case(lambda x: lax.dynamic_slice(x, (), ()), f32()),
    ],
    "dynamic_update_slice": [
        case(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), f32(4, 5), f32(2, 3), i32(), i32()),
        case(lambda x, u: lax.dynamic_update_slice(x, u, ()), f32(), f32()),
    ],
    "pad": [
        case(lambda x, v: lax.pad(x, v, ((1, 2, 1), (-1, 0, 0))), f32(3, 4), f32()),
        case(lambda x, v: lax.pad(x, v, ()), f32(), f32()),
    ],
    "select_n": [
        case(lax.select_n, boolean(2, 3), f32(2, 3), f32(2, 3)),
        case(lax.select_n, boolean(), f32(2, 3), f32(2, 3)),
        case(lax.select_n, i32(4, low=0, high=2), f32(4), f32(4), f32(4)),
    ],
    "convert_element_type": [case(lambda x: lax.convert_element_type(x, np.int32), f32(2, 3))],
    "cast": [case(lambda x: cast_to_integer(x, np.int32), f32(2, 3))],
    "bitcast_convert_type": [case(lambda x: lax.bitcast_convert_type(x, np.int32), f32(2, 3))],
    "reduce_precision": [case(lambda x: lax.reduce_precision(x, 5, 10), f32(2, 3))],
    # folds, order
    "argmax": [case(lambda x: lax.argmax(x, 1, np.int32), f32(2, 3, 4))],
    "argmin": [case(lambda x: lax.argmin(x, 0, np.int32), f32(2, 3))],
    "reduce_window_places": [
        case(lambda x, extremum=extremum: registry["reduce_window_places"].bind(
            x, extremum=extremum, window_dimensions=(2, 3), window_strides=(1, 2), padding=((1, 0), (0, 1)),
            base_dilation=(1, 2), window_dilation=(2, 1)), f32(4, 5)) for extremum in ("max", "min")
    ],
    "sort": [
        case(lambda x: lax.sort(x, 0), f32(5, 2)),
        case(lambda *xs: lax.sort(xs, 0, num_keys=2), i32(6), i32(6), f32(6)),
    ],
    "top_k": [case(lambda x: lax.top_k(x, 3), f32(2, 6)), case(lambda x: lax.top_k(x, 2, axis=0), f32(4, 3))],
    # gather
    "gather": [
        case(_gather(((1,), (0,), (0,)), (1, 4), "fill"), f32(5, 4), i32(3, 1)),
        case(_gather(((1,), (0,), (0,)), (1, 4), "clip"), f32(5, 4), i32(3, 1)),
        case(_gather(((0, 2), (), (1, 0)), (2, 2), "clip"), f32(4, 5), i32(3, 2)),
        case(_gather(((), (1,), (1,), (0,), (0,)), (1, 1), "clip"), f32(3, 4), i32(3, 2, 1)),
    ],
    # products
    "dot_general": [
        case(lambda x, y: x @ y, f32(3, 4), f32(4, 2), tolerance=1e-4),
        case(lambda x, y: x @ y, f32(3, 4), f32(4), tolerance=1e-4),
        case(lambda x, y: x @ y, f32(4), f32(4, 3), tolerance=1e-4),
        case(_dot(((2,), (1,)), ((0,), (2,))), f32(2, 3, 4), f32(5, 4, 2), tolerance=1e-4),
        case(_dot(((1,), (1,)), ((0,), (0,))), f32(2, 4), f32(2, 4), tolerance=1e-4),
        case(_dot(((), ()), ((), ())), f32(2), i32(3)),
    ],
    "conv_general_dilated": [
        case(_conv((1, 2), ((1, 0), (0, 1)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)),
             f32(2, 3, 5, 6), f32(4, 3, 2, 2), tolerance=1e-4),
        case(_conv((1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC"), feature_group_count=2),
             f32(2, 5, 4), f32(3, 2, 6), tolerance=1e-4),
        case(_conv((1,), "VALID", batch_group_count=2), f32(4, 3, 5), f32(6, 3, 2), tolerance=1e-4),
    ],
    "fft": [
        case(lambda x: lax.fft(x, "FFT", (4,)), c64(3, 4)),
        case(lambda x: lax.fft(x, "RFFT", (3, 4)), f32(3, 4)),
    ],
    # matrices
    "cholesky": [case(lambda x: linalg.cholesky(_spd(x)), f32(3, 3), tolerance=1e-4)],
    "lu": [case(linalg.lu, f32(3, 4), tolerance=1e-4)],
    "lu_pivots_to_permutation": [
        case(lambda pivots: linalg.lu_pivots_to_permutation(pivots, 4), i32(3, low=3, high=3)),
    ],
    "qr": [
        case(lambda x: linalg.qr(x, full_matrices=True), f32(4, 3), tolerance=1e-4),
        case(lambda x: linalg.qr(x, full_matrices=False, pivoting=True), f32(4, 3), tolerance=1e-4),
    ],
    "eigh": [case(linalg.eigh, f32(3, 3), tolerance=1e-4)],
    "eig": [case(linalg.eig, f32(3, 3), tolerance=1e-4)],
    "schur": [case(linalg.schur, f32(3, 3), tolerance=1e-4)],
    "svd": [case(linalg.svd, f32(4, 3), tolerance=1e-4)],
    "triangular_solve": [
        case(_solve(left_side=True), f32(3, 3), f32(3, 2), tolerance=1e-4),
        case(_solve(left_side=False), f32(3, 3), f32(2, 3), tolerance=1e-4),
    ],
    "compress": [case(_compress, f32(3, 5), boolean(3, 5))],
    # randomness
    "threefry2x32": [case(lax.threefry2x32, u32(), u32(), u32(5), u32(5))],
    "random_seed": [case(lambda seed: random.key_data(random.key(seed)), i32())],
    "random_split": [case(lambda key: random.split(key, (2, 3)), u32(2))],
    "random_fold_in": [case(random.fold_in, u32(2), u32()), case(_fold_each, u32(3, 2), u32(3))],
    "random_bits": [case(lambda key: random.bits(key, (3,)), u32(2)), case(_draw_each, u32(3, 2))],
    "random_clone": [case(random.clone, u32(3, 2))],
    "random_wrap": [case(lambda words: random.key_data(random.wrap_key_data(words)[0]), u32(3, 2))],
    "random_unwrap": [case(lambda words: random.key_data(random.wrap_key_data(words).T), u32(3, 2, 2))],
    # control flow, calls
    "jit": [case(jit(lambda x, y: (x * 2, y + 1)), f32(3), f32())],
    "cond": [
        case(lambda p, x, y: lax.cond(p, lambda a, b: (a + 1, b), lambda a, b: (a, b * 2), x, y),
             boolean(), f32(3), f32()),
        case(lambda i, x: lax.switch(i, [lambda v: v, lambda v: v * 2, lambda v: -v], x), i32(), f32(2, 3)),
    ],
    "while": [
        case(_repeat, f32(2), i32()),
        case(lambda x: lax.while_loop(lambda v: v.sum() < 50, lambda v: v * 1.5, x), f32(3, low=1, high=9)),
        case(_loop_with_inner_loop, f32(low=0.5, high=2)),
        case(lambda n, x: lax.fori_loop(0, n, lambda i, v: v + i * x, x), i32(), f32()),
    ],
    "scan": [
        case(lambda init, xs, c: lax.scan(lambda a, x: (a * c + x, (a, x.sum())), init, xs),
             f32(2), f32(4, 2), f32()),
        case(lambda init, xs: lax.scan(lambda a, x: (a + 1, x * 2), init, xs, reverse=True), i32(), f32(3)),
    ],
    # derivatives
    "custom_jvp_call": [case(_forward_cube, f32(2, 3))],
    "custom_vjp_call": [case(_reverse_cube, f32(2, 3))],
    "remat2": [case(checkpoint(lambda x, y: jnp.sin(x) * y), f32(3), f32())],
    "name": [case(lambda x: checkpoint_name(x * 2, "double"), f32(3))],
    "optimization_barrier": [case(lambda x, y: lax.optimization_barrier((x, y * 2)), f32(2, 3), f32())],
    # callbacks
    "pure_callback": [
        case(lambda x, method=method: pure_callback(_double, _like(x), x, vmap_method=method), f32(3))
        for method in VMAP_METHODS[1:]
    ],
    "io_callback": [case(lambda x: io_callback(_double, _like(x), x), f32(3))],
    "debug_callback": [case(lambda x: callback(lambda _: None, x) or x * 1, f32(3))],
    "call_exported": [case(lambda x: call_exported(_Doubled(), x), f32(3))],
    "draw": [case(lambda x: _draw_poisson(x)[1], Operand((), np.dtype(np.float64), 1, 20)),
             case(lambda x: _draw_poisson(x, (2,))[1], Operand((2,), np.dtype(np.float64), 1, 20))],
    "custom_vmap_call": [case(_multiply_rows, f32(2, 3), f32(3))],
    "check": [case(lambda x: checkify.check(x.sum() < 1e6, "large") or x * 2, f32(3))],
    "todense": [case(sparse.todense, f32(2, 3))],
    "raise_if": [case(lambda x: lax.raise_if(x.sum() > 1e6, ValueError("large")) or x * 2, f32(3))],
}

# What no batched operand can reach.
WITHOUT_OPERANDS = {"iota", "dimension_size"}
# Made by rules and passes alone: parts of `custom_vjp`, of the reverse mode of `while`, of loops that fill
# arrays, pairs of products.
WITHIN_RULES = {"custom_lin", "while_vjp", "while_vjp_jvp", "empty", "two_sided_dot"}
# Whose batch draws by the first key, as XLA's does: tests/test_bit_generator.py.
DRAWN_AT_ONCE = {"rng_bit_generator"}
# Tested in tests/sharding, on several devices.
ON_MESHES = {"sharding_constraint", "inspect_sharding", "shard_map", "pvary"}
# Tested with their axis, in test_collectives.py and tests/sharding.
COLLECTIVES = {name for name, primitive in registry.items() if primitive.traits.get("collective")}

CASES: dict[str, list[Case]] = _elementwise_cases() | _family_cases() | _STRUCTURED
