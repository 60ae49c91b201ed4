"""Gather and scatter against JAX with random dimension numbers, every mode and dtype."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import jit, lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

MODES = ["clip", "fill", "promise_in_bounds"]
DTYPES = ["bool", "int8", "uint16", "int32", "bfloat16", "float32", "complex64"]


class Problem:
    """Random dimension numbers, extents of operand and slices, and indices, some of them outside."""

    def __init__(self, seed: int, may_leave: bool = True):
        rng = self.rng = np.random.default_rng(seed)
        ndim = int(rng.integers(1, 5))
        self.shape = tuple(int(extent) for extent in rng.integers(1, 6, ndim))
        kinds = rng.choice(["window", "collapsed", "batching"], ndim, p=[0.5, 0.35, 0.15])
        self.batching = tuple(dim for dim in range(ndim) if kinds[dim] == "batching")
        self.collapsed = tuple(dim for dim in range(ndim) if kinds[dim] == "collapsed")
        free = [dim for dim in range(ndim) if dim not in self.batching]
        # XLA scatters wrongly where index vectors are empty: each has an entry if an axis is free
        count = int(rng.integers(1, len(free) + 1)) if free else 0
        self.index_map = tuple(int(dim) for dim in rng.permutation(free)[:count])
        self.sizes = tuple(1 if kinds[dim] != "window" else int(rng.integers(0, extent + 1))
                           for dim, extent in enumerate(self.shape))
        batch = [int(extent) for extent in rng.integers(0, 4, rng.integers(0, 3))]
        for dim in self.batching:
            batch.insert(int(rng.integers(0, len(batch) + 1)), -dim - 1)
        self.indices_batching = tuple(batch.index(-dim - 1) for dim in self.batching)
        batch = [extent if extent >= 0 else self.shape[-extent - 1] for extent in batch]
        self.indices = (
            np.stack(
                [
                    rng.integers(
                        -2 if may_leave else 0,
                        self.shape[d] + 2 if may_leave else self.shape[d] - self.sizes[d] + 1,
                        batch,
                    )
                    for d in self.index_map
                ],
                -1,
            ).astype(np.int32)
            if self.index_map
            else np.zeros((*batch, 0), np.int32)
        )
        window = [size for dim, size in enumerate(self.sizes) if kinds[dim] == "window"]
        total = len(batch) + len(window)
        self.offsets = tuple(sorted(int(dim) for dim in rng.permutation(total)[: len(window)]))
        extents, rest = iter(window), iter(batch)
        self.out_shape = tuple(next(extents if dim in self.offsets else rest) for dim in range(total))

    def numbers(self, kind):
        return kind(self.offsets, self.collapsed, self.index_map, self.batching, self.indices_batching)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(MODES))
def test_gather(seed, mode):
    problem = Problem(seed)
    operand = random_array(problem.rng, problem.shape, problem.rng.choice(DTYPES))
    check_against_jax(
        lambda x, i: lax.gather(x, i, problem.numbers(lax.GatherDimensionNumbers), problem.sizes, mode=mode),
        lambda x, i: jax_lax.gather(
            x, i, problem.numbers(jax_lax.GatherDimensionNumbers), problem.sizes, mode=mode
        ),
        operand,
        problem.indices,
    )


@settings(max_examples=45, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["clip", "drop"]),
    st.sampled_from(["scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]),
)
def test_scatter_with_repeated_positions(seed, mode, name):
    problem = Problem(seed)
    dtype = problem.rng.choice(["int32", "uint8", "float32", "float16"])
    operand = random_array(problem.rng, problem.shape, dtype)
    updates = random_array(problem.rng, problem.out_shape, dtype)
    if operand.dtype.kind == "f":  # sums of a few eighths are exact in every order
        operand, updates = np.rint(operand * 8) / 8, np.rint(updates)
    check_against_jax(
        lambda x, i, u: getattr(lax, name)(x, i, u, problem.numbers(lax.ScatterDimensionNumbers), mode=mode),
        lambda x, i, u: getattr(jax_lax, name)(
            x, i, u, problem.numbers(jax_lax.ScatterDimensionNumbers), mode=mode
        ),
        operand,
        problem.indices,
        updates,
        tolerance=1e-2 if dtype == "float16" else 1e-5,
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["clip", "drop", "promise_in_bounds"]))
def test_scatter_of_equal_updates(seed, mode):
    problem = Problem(seed)
    operand = random_array(problem.rng, problem.shape, problem.rng.choice(DTYPES))
    updates = np.ones(
        problem.out_shape, operand.dtype
    )  # overlapping slices agree, so that their order is free
    check_against_jax(
        lambda x, i, u: lax.scatter(x, i, u, problem.numbers(lax.ScatterDimensionNumbers), mode=mode),
        lambda x, i, u: jax_lax.scatter(x, i, u, problem.numbers(jax_lax.ScatterDimensionNumbers), mode=mode),
        operand,
        problem.indices,
        updates,
    )


ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ROWS_TO = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def test_the_last_of_overlapping_updates_stays():
    x, rows = np.zeros((3, 2), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
    out = lax.scatter(x, np.array([[1], [0], [1]], np.int32), rows, ROWS_TO)
    assert out.tolist() == [[2, 3], [4, 5], [0, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill_values(dtype):
    x, i = random_array(np.random.default_rng(3), (3, 2), dtype), np.array([[0], [5], [-1]], np.int32)
    numbers = jax_lax.GatherDimensionNumbers((1,), (0,), (0,))
    check_against_jax(lambda x, i: lax.gather(x, i, ROWS, (1, 2), mode="fill"),
                      lambda x, i: jax_lax.gather(x, i, numbers, (1, 2), mode="fill"), x, i)
    check_against_jax(
        lambda x, i: lax.gather(x, i, ROWS, (1, 2), mode="fill", fill_value=1),
        lambda x, i: jax_lax.gather(x, i, numbers, (1, 2), mode="fill", fill_value=1),
        x,
        i,
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_index_dtypes(dtype):
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    i = np.array([[2], [0]]).astype(dtype)
    assert lax.gather(x, i, ROWS, (1, 2)).tolist() == [[4, 5], [0, 1]]
    if dtype == "uint64":
        i = np.array([[np.iinfo(np.uint64).max]], np.uint64)
        assert lax.gather(x, i, ROWS, (1, 2), mode="clip").tolist() == [[4, 5]]


def test_modes():
    assert lax.GatherScatterMode.from_any(None) is lax.GatherScatterMode.FILL_OR_DROP
    assert str(lax.GatherScatterMode.from_any("clip")) == "GatherScatterMode.CLIP"
    with pytest.raises(ValueError, match='Unknown gather mode "x"'):
        lax.GatherScatterMode.from_any("x")


X = np.ones((3, 4), np.float32)
START = np.array([2, 0], np.int32)


def gather(lax, numbers, sizes, indices=START):
    return lax.gather(X, indices, lax.GatherDimensionNumbers(*numbers), sizes)


def scatter(lax, updates, indices=START):
    return lax.scatter(X, indices, updates, lax.ScatterDimensionNumbers((0, 1), (), (0, 1)))


def test_dtypes_must_agree():
    with pytest.raises(
        TypeError, match="lax.scatter requires arguments to have the same dtypes, got float32, int32"
    ):
        scatter(lax, np.ones((2, 2), np.int32))


ERRORS = [
    (lambda lax: gather(lax, ((0, 1), (), (0, 1)), (2,)), TypeError),
    (lambda lax: gather(lax, ((0, 1), (), (0, 1)), (2, 2), START.astype(np.float32)), ValueError),
    (lambda lax: gather(lax, ((0, 1), (), (0, 1)), (2, 2), START[:1]), TypeError),
    (lambda lax: gather(lax, ((0, 1), (), (0, 1)), (5, 2)), TypeError),
    (lambda lax: gather(lax, ((1, 0), (), (0, 1)), (2, 2)), TypeError),
    (lambda lax: gather(lax, ((0,), (0,), (0, 1)), (2, 2)), TypeError),
    (lambda lax: gather(lax, ((0,), (0,), (0, 0)), (1, 2)), TypeError),
    (lambda lax: scatter(lax, np.ones((2,), np.float32)), TypeError),
    (lambda lax: scatter(lax, np.ones((5, 2), np.float32)), TypeError),
    (lambda lax: scatter(lax, np.ones((2, 2), np.float32), START.astype(np.float32)), ValueError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name, combine", [("add", np.add), ("multiply", np.multiply), ("max", np.maximum),
                                           ("min", np.minimum)])
@pytest.mark.parametrize("extent", [1, 7, 300])
def test_updates_of_halves(dtype, name, combine, extent):
    """Each is rounded, as NumPy does it one after the other."""
    generator = np.random.default_rng(extent)
    places, values = generator.integers(0, extent, 500), (1 + generator.standard_normal(500) / 16).astype(dtype)
    found = np.asarray(jit(lambda i, x: getattr(jnp.full(extent, 0.5, dtype).at[i], name)(x))(places, values))
    expected = np.full(extent, 0.5, dtype)
    combine.at(expected, places, values)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))
