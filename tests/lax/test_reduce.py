"""Reductions against JAX: every axis combination and dtype, empty axes, NaN, argmax, generic reduce."""

import numpy as np
import pytest

from jitcore import grad, jit, lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(1)
NUMBERS = ["int8", "uint8", "float16", "bfloat16", "float32", "complex64", "int64"]
AXES = [(), (1,), (0, 2), (0, 1, 2)]


def cases():
    for name in ("reduce_sum", "reduce_prod"):
        yield from ((name, dtype) for dtype in NUMBERS)
    for name in ("reduce_max", "reduce_min"):
        yield from ((name, dtype) for dtype in ("bool", *NUMBERS) if dtype != "complex64")
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield from ((name, dtype) for dtype in ("bool", "int8", "uint32", "int64"))


@pytest.mark.parametrize("name, dtype", list(cases()))
def test_against_jax(name, dtype):
    x = random_array(RNG, (3, 4, 5), dtype)
    for axes in AXES:
        tolerance = {"float16": 1e-2, "bfloat16": 5e-2}.get(dtype)
        check_against_jax(lambda x: getattr(lax, name)(x, axes), lambda x: getattr(jax_lax, name)(x, axes), x,
                          tolerance=tolerance)


@pytest.mark.parametrize("name, dtype", list(cases()))
def test_compiled(name, dtype):
    """Long axes, in vectors and with rests."""
    x = random_array(RNG, (30, 331), dtype)
    if name == "reduce_prod" and x.dtype.kind not in "biu":
        x = (x / 100 + 1).astype(dtype)
    for axes in ((0,), (1,), (0, 1)):
        found = np.asarray(jit(lambda x: getattr(lax, name)(x, axes))(x))  # noqa: B023
        expected = np.asarray(getattr(lax, name)(x, axes))
        assert found.dtype == expected.dtype == x.dtype
        wide = np.complex128 if dtype == "complex64" else np.float64
        tolerance = {"float16": 1e-2, "bfloat16": 5e-2}.get(dtype, 2e-5)
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), tolerance, 40 * tolerance)


@pytest.mark.parametrize("name, dtype", list(cases()))
def test_empty_axis_gives_the_identity(name, dtype):
    x = np.zeros((2, 0), dtype)
    check_against_jax(lambda x: getattr(lax, name)(x, (1,)), lambda x: getattr(jax_lax, name)(x, (1,)), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_accumulate_in_float32(dtype):
    assert float(lax.reduce_sum(np.ones(4096, dtype), (0,))) == 4096


def test_integers_wrap():
    assert int(lax.reduce_sum(np.full(2, 100, np.int8), (0,))) == -56


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_sum"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_wins(name, dtype):
    x = np.array([1, np.nan, 3], dtype)
    assert np.isnan(float(getattr(lax, name)(x, (0,))))


def test_weak_type_stays():
    def run(lax):
        return lambda: lax.reduce_sum(lax.full((3, 4), 2.0), (0,))

    check_against_jax(run(lax), run(jax_lax))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("with_nan", [False, True])
def test_arg_extremum(name, dtype, with_nan):
    x = random_array(RNG, (4, 5), dtype)
    if with_nan and np.dtype(dtype).kind not in "biu":
        x[2, 1] = x[3, 1] = x[0, 3] = np.nan
    for axis in (0, 1):
        for index_dtype in (np.int32, np.uint8):
            check_against_jax(lambda x: getattr(lax, name)(x, axis, index_dtype),
                              lambda x: getattr(jax_lax, name)(x, axis, index_dtype), x)


COMPUTATIONS = [
    ("add", 0.0, lax.add, jax_lax.add),
    ("add from 2", 2.0, lax.add, jax_lax.add),
    ("lambda", 0.0, lambda x, y: lax.add(y, x), jax_lax.add),
    ("mul", 1.0, lax.mul, jax_lax.mul),
    ("max", -np.inf, lax.max, jax_lax.max),
    ("max from 0", 0.0, lax.max, jax_lax.max),
    ("min", np.inf, lax.min, jax_lax.min),
]


@pytest.mark.parametrize(
    "initial, ours, theirs", [case[1:] for case in COMPUTATIONS], ids=[c[0] for c in COMPUTATIONS]
)
def test_generic_reduce(initial, ours, theirs):
    x = random_array(RNG, (3, 4))
    initial = np.float32(initial)
    check_against_jax(
        lambda x: lax.reduce(x, initial, ours, (1,)), lambda x: jax_lax.reduce(x, initial, theirs, (1,)), x
    )


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 2), (0, 1, 2), ()])
def test_generic_reduce_of_another_function(axes):
    x, zero = random_array(RNG, (2, 3, 4)), np.float32(0)
    hypot = lambda m: lambda a, b: m.sqrt(m.add(m.mul(a, a), m.mul(b, b)))  # noqa: E731
    check_against_jax(lambda x: lax.reduce(x, zero, hypot(lax), axes),
                      lambda x: jax_lax.reduce(x, zero, hypot(jax_lax), axes), x)


def test_generic_reduce_of_pairs():
    x, places = random_array(RNG, (3, 5)), np.broadcast_to(np.arange(5, dtype=np.int32), (3, 5))
    larger = lambda m: lambda a, b: tuple(m.select(m.gt(b[0], a[0]), q, p) for p, q in zip(a, b))  # noqa: E731
    initial = np.float32(-np.inf), np.int32(-1)
    best, place = jit(lambda x: lax.reduce((x, places), initial, larger(lax), (1,)))(x)
    assert np.array_equal(best, x.max(1)) and np.array_equal(place, x.argmax(1))
    slopes = grad(lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 0, (0,)))(np.array([2.0, 3, 4], np.float32))
    assert slopes.tolist() == [12, 8, 6]
    empty = lax.reduce(np.zeros((0, 3), np.float32), np.float32(7), lambda a, b: a * b + a, (0,))
    assert empty.tolist() == [7, 7, 7]
    with pytest.raises(TypeError, match="several shapes"):
        lax.reduce((x, x[0]), (zero := np.float32(0), zero), lambda a, b: a, (0,))
    with pytest.raises(TypeError, match="other structure"):
        lax.reduce((x, x), zero, lambda a, b: a, (0,))


@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 23), (5, 2), (4, 3)])
def test_reduce_precision(bits):
    x = np.concatenate([RNG.standard_normal(200) * np.exp(RNG.uniform(-30, 30, 200)),
                        [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.0, 65520.0, -3.3e-5, 6.1e-5]])
    x = x.astype(np.float32)
    check_against_jax(
        lambda x: lax.reduce_precision(x, *bits), lambda x: jax_lax.reduce_precision(x, *bits), x, tolerance=0
    )


X = np.ones((3, 4), np.float32)
ERRORS = [
    (lambda lax: lax.reduce_sum(X, (2,)), ValueError),
    (lambda lax: lax.reduce_sum(X, (-1,)), ValueError),
    (lambda lax: lax.reduce_sum(X, (0, 0)), ValueError),
    (lambda lax: lax.reduce_sum(X > 0, (0,)), TypeError),
    (lambda lax: lax.reduce_and(X, (0,)), TypeError),
    (lambda lax: lax.argmax(X, 2, np.int32), ValueError),
    (lambda lax: lax.argmax(X, -1, np.int32), ValueError),
    (lambda lax: lax.argmax(X, 0, np.float32), TypeError),
    (lambda lax: lax.argmax(X[:0], 0, np.int32), ValueError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]
