"""Indexing: reading and updating against NumPy, eager and traced; what traced indices out of range do; errors."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore
import jitcore.numpy as jnp
from jitcore import errors, grad, jit, vmap
from jitcore.array import ConcreteArray
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import eval_jaxpr
from jitcore.core.trace import trace_to_jaxpr
from tests.jax_answers import ask

CHECKS_EMPTY = pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0",
                                  reason="NumPy takes indices out of range then where the result is empty")
UPDATES = {
    "set": lambda x, i, v: x.__setitem__(i, v), "add": lambda x, i, v: np.add.at(x, i, v),
    "subtract": lambda x, i, v: np.subtract.at(x, i, v), "multiply": lambda x, i, v: np.multiply.at(x, i, v),
    "min": lambda x, i, v: np.minimum.at(x, i, v), "max": lambda x, i, v: np.maximum.at(x, i, v),
}


def run_traced(function, *values):
    """(results, jaxpr) of the function with every value traced."""
    inputs = [ConcreteArray(np.array(value)) for value in values]
    jaxpr, consts = trace_to_jaxpr(lambda *xs: [function(*xs)], [x.aval for x in inputs])
    check_jaxpr(jaxpr)
    return eval_jaxpr(jaxpr, consts, inputs)[0], jaxpr


@st.composite
def slices(draw, extent):
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def index_arrays(draw, extent, shape):
    return np.array(draw(st.lists(st.integers(-extent, extent - 1), min_size=int(np.prod(shape)),
                                  max_size=int(np.prod(shape)))), np.int32).reshape(shape)


@st.composite
def arrays_and_indices(draw):
    """An array of up to four axes and an index of it: integers, slices, new axes, Ellipsis, arrays, masks."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    joint = draw(st.sampled_from([(2,), (3,), (2, 3), (1,), (0,)]))
    items, axis = [], 0
    used = draw(st.integers(0, len(shape)))
    while axis < used:
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "new", "mask"]))
        if kind == "new":
            items.append(None)
            continue
        extent = shape[axis]
        if kind == "int":
            items.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "slice":
            items.append(draw(slices(extent)))
        elif kind == "array":
            own = draw(st.sampled_from([joint, joint[-1:], (1,), ()]))
            items.append(
                draw(index_arrays(extent, own)) if own else np.int32(draw(st.integers(-extent, extent - 1)))
            )
        else:
            items.append(np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent))))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return x, tuple(items)


def read_with_numpy(x, index):
    try:
        return x[index]
    except IndexError:
        return None


@CHECKS_EMPTY
@settings(max_examples=300, deadline=None)
@given(arrays_and_indices())
def test_reading_matches_numpy(case):
    x, index = case
    expected = read_with_numpy(x, index)
    if expected is None:
        with pytest.raises(IndexError):
            jnp.asarray(x)[index]
        return
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x)[index]), expected)
    got, _ = run_traced(lambda y: y[index], x)
    np.testing.assert_array_equal(np.asarray(got), expected)


@settings(max_examples=200, deadline=None)
@given(arrays_and_indices())
def test_reading_with_traced_indices_matches_numpy(case):
    x, index = case
    expected = read_with_numpy(x, index)
    dynamic = [i for i, item in enumerate(index) if not isinstance(item, (slice, type(None), type(Ellipsis)))
               and getattr(item, "dtype", None) != np.bool_]
    if expected is None or not dynamic:
        return

    def read(y, *indices):
        items = list(index)
        for i, one in zip(dynamic, indices):
            items[i] = one
        return y[tuple(items)]

    got, _ = run_traced(read, x, *[np.asarray(index[i], np.int32) for i in dynamic])
    np.testing.assert_array_equal(np.asarray(got), expected)


@CHECKS_EMPTY
@settings(max_examples=200, deadline=None)
@given(arrays_and_indices(), st.sampled_from(sorted(UPDATES)), st.booleans())
def test_updating_matches_numpy(case, name, scalar):
    x, index = case
    part = read_with_numpy(x, index)
    if part is None or (name == "set" and has_repeats(x, index)):
        return
    values = (
        np.float32(2.0) if scalar else (np.arange(part.size, dtype=np.float32).reshape(part.shape) % 5 - 2)
    )
    expected = x.copy()
    UPDATES[name](expected, index, values)
    got = getattr(jnp.asarray(x).at[index], name)(values)
    np.testing.assert_array_equal(np.asarray(got), expected)
    traced, _ = run_traced(lambda y, v: getattr(y.at[index], name)(v), x, values)
    np.testing.assert_array_equal(np.asarray(traced), expected)


def has_repeats(x, index) -> bool:
    """Whether the index names an element twice: which value stays is then not defined."""
    named = np.arange(x.size).reshape(x.shape)[index]
    return np.unique(named).size != np.size(named)


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("index, equations", [
    ((0,), ["slice", "squeeze"]), ((slice(1, 3),), ["slice"]), ((slice(None, None, -1),), ["rev"]),
    ((slice(None), slice(None, None, 2)), ["slice"]), ((None,), ["broadcast_in_dim"]), ((Ellipsis,), []),
    ((slice(None), 1), ["slice", "squeeze"]),
])
def test_static_index_is_lean(index, equations):
    _, jaxpr = run_traced(lambda y: y[index], X)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == equations


def test_traced_scalar_index_is_one_dynamic_slice():
    got, jaxpr = run_traced(lambda y, i: y[i], X, np.int32(-1))
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names.count("dynamic_slice") == 1 and "gather" not in names
    np.testing.assert_array_equal(np.asarray(got), X[-1])


def test_static_update_is_one_dynamic_update_slice():
    _, jaxpr = run_traced(lambda y: y.at[1:-1, 1:-1].set(0.0), X)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["broadcast_in_dim", "dynamic_update_slice"]


@pytest.mark.parametrize("i", [7, -9, 2, -1])
def test_traced_indices_out_of_range_follow_jax(i):
    def read_and_update(numpy):
        x, index = numpy.asarray(X), numpy.asarray(np.int32([i, 0]))
        return [x[index], x[index[0]], x[:, index], x.at[index].set(9.0), x.at[index[0]].add(1.0),
                x.at[index].get(mode="fill", fill_value=5.0), x.at[index].set(3.0, mode="clip"),
                numpy.take(x, index, 0), x.at[index, 1].multiply(2.0)]

    for got, expected in zip(read_and_update(jnp), ask(lambda jax: read_and_update(jax.numpy)), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


@pytest.mark.parametrize("mode", ["fill", "drop", "clip"])
@pytest.mark.parametrize("index", [9, -9, (1, 9), (slice(0, 2), -9), [0, 9], ([0, 9], 1), 2, [1, -1]])
def test_known_indices_out_of_range_follow_a_mode_that_is_given(index, mode):
    known = tuple(np.asarray(i) if isinstance(i, list) else i for i in index) if (
        isinstance(index, tuple)) else np.asarray(index) if isinstance(index, list) else index

    def read_and_update(numpy):
        place = numpy.asarray(X).at[known]
        read = [] if mode == "drop" else [place.get(mode=mode)]
        return [place.set(3.0, mode=mode), place.add(3.0, mode=mode), *read]

    for got, expected in zip(read_and_update(jnp), ask(lambda jax: read_and_update(jax.numpy)), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


@pytest.mark.parametrize("method, value", [("divide", 2.0), ("power", 2.0), ("apply", None), ("mul", 3.0)])
def test_other_updates_match_jax(method, value):
    def update(numpy):
        return getattr(numpy.asarray(X).at[1, :3], method)(numpy.sin if method == "apply" else value)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got, expected = update(jnp), ask(lambda jax: update(jax.numpy))
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-6)


def test_integers_divided_are_floats():
    x = jnp.arange(4).at[np.array([2, 2])].divide(2)
    assert x.dtype == np.float32 and list(x) == [0, 1, 0.5, 3]


# What `x.at[index].apply(f)` is given, and may repeat: the index is a traced value where it is an array.
APPLIED = [
    ((6,), [1, 1, 4, 1], {}), ((6,), [4, 4, 9], {}), ((6,), [4, 4, 9], {"mode": "clip"}), ((6,), [-2, 4, -3], {}),
    ((6,), [-2, 4, -3], {"wrap_negative_indices": False}), ((6,), [3, 1], {"unique_indices": True}), ((6,), 2, {}),
    ((6,), slice(1, 4), {}), ((6,), slice(None, None, 2), {}), ((6,), None, {}), ((6,), slice(2, 2), {}),
    ((3, 4), [1, 1, 0], {}), ((3, 4), (slice(None), [1, 1, 0]), {}), ((3, 4), ([1, 1, 0], [1, 1, 0]), {}),
    ((3, 4), ([[1], [1]], [1, 1, 0]), {}), ((), (), {}),
]


@pytest.mark.parametrize("shape, index, options", APPLIED)
@pytest.mark.parametrize("function", [lambda v: 2 * v + 1, lambda v: v.sum() * 3])
def test_apply_once_for_each_index(shape, index, options, function):
    def apply(numpy):
        parts = [np.array(i) if isinstance(i, list) else i for i in (index if type(index) is tuple else (index,))]
        x = numpy.arange(math.prod(shape)).reshape(shape)
        return x, parts, lambda x, parts: x.at[tuple(parts)].apply(function, **options)

    wanted = ask(lambda jax: (lambda x, parts, run: run(x, parts))(*apply(jax.numpy)))
    x, parts, run = apply(jnp)
    known = [part for part in parts if isinstance(part, np.ndarray)]
    traced = jit(lambda x, arrays: run(x, [arrays.pop(0) if isinstance(p, np.ndarray) else p for p in parts]))
    for got in (*([] if 9 in np.ravel(known[0] if known else 0) else [run(x, parts)]), traced(x, known)):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


def test_apply_has_derivatives():
    def total(x, i):
        return jnp.sum(x.at[i].apply(jnp.sin))

    x, i = jnp.arange(3.0), np.array([1, 1, 2])
    np.testing.assert_allclose(grad(total)(x, i), [1, np.cos(np.sin(1)) * np.cos(1), np.cos(2)], rtol=1e-6)
    rows = vmap(lambda x, i: x.at[i].apply(lambda v: v + 1), (None, 0))(x, np.array([[0, 0], [1, 2]]))
    np.testing.assert_array_equal(np.asarray(rows), [[2, 1, 2], [0, 2, 3]])


@pytest.mark.parametrize("dtype, value", [("int32", 1.5), ("float32", 2), ("float64", 0.1), ("int8", 3)])
def test_update_keeps_dtype(dtype, value):
    x = np.ones(3, dtype)
    got = jnp.asarray(x).at[1].set(value)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(got), np.array([1, np.asarray(value).astype(dtype), 1], dtype))


def test_traced_mask_updates():
    got, _ = run_traced(lambda y: y.at[y > 5].set(0.0), X)
    np.testing.assert_array_equal(np.asarray(got), np.where(X > 5, 0, X))
    got, _ = run_traced(lambda y: y.at[y[:, 0] > 3].add(1.0), X)
    np.testing.assert_array_equal(np.asarray(got), X + (X[:, :1] > 3))


@pytest.mark.parametrize("index, error", [
    (5, IndexError), (-4, IndexError), ((0, 0, 0), IndexError), (1.0, TypeError), ("a", TypeError),
    ((Ellipsis, Ellipsis), IndexError), ([0, 1], TypeError), (np.array([0, 7]), IndexError),
    (np.array([True, False]), IndexError), (slice(None, None, 0), ValueError), (slice(1.5), TypeError),
])
def test_wrong_index_raises(index, error):
    for action in (lambda y: y[index], lambda y: y.at[index].set(0.0)):
        with pytest.raises(error):
            action(jnp.asarray(X))
        with pytest.raises(error):
            run_traced(action, X)


def test_errors_of_traced_indices():
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        run_traced(lambda y: y[y > 0], X)
    with pytest.raises(IndexError, match="Slice entries must be static integers"):
        run_traced(lambda y, i: y[:i], X, np.int32(2))
    with pytest.raises(errors.TracerMutationError):
        run_traced(lambda y: y.__setitem__(0, 1.0), X)
    with pytest.raises(errors.TracerMutationError):
        jnp.asarray(X)[0] = 1.0
    with pytest.raises(ValueError, match="Incompatible shapes"):
        jnp.asarray(X).at[0].set(np.ones(3))


def test_reading_keeps_the_weak_type():
    """Eager results keep the weak type, as JAX's do."""
    theirs = ask(lambda jax: (jax.numpy.asarray(2.0) * 1)[None])
    assert (jnp.asarray(2.0) * 1)[None].weak_type == theirs.weak_type


def test_an_empty_selection_looks_at_no_other_index():
    x = np.arange(2.0, dtype=np.float32).reshape(2, 1, 1, 1)
    index = (..., np.array([1]), 0, np.array([False]))
    assert jnp.asarray(x)[index].shape == x[index].shape == (2, 0)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(x).at[index].add(1.0)), x)
    with pytest.raises(IndexError, match="out of bounds"):
        jnp.asarray(x)[..., np.array([1]), 0, 0]


def test_an_axis_of_open_extent_is_reversed():
    function = jitcore.jit(lambda x: (x[::-1], jnp.flip(x), jnp.rot90(x)), abstracted_axes=("n", None))
    for count in (3, 1, 0):
        x = np.arange(count * 2.0).reshape(count, 2)
        for found, expected in zip(function(x), (x[::-1], np.flip(x), np.rot90(x))):
            np.testing.assert_array_equal(found, expected)
