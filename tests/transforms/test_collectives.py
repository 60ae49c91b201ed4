"""Collectives over the named axes of `vmap`, against JAX."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jitcore import jit, lax, make_jaxpr, numpy as jnp, vmap
from jitcore.core.primitive import registry
from jitcore.test_util import check_grads
from jitcore.tree_util import tree_leaves
from tests.jax_answers import ask

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
INTEGERS = np.arange(12, dtype=np.int32).reshape(3, 4)

#: Functions of (lax, x) for an axis "i".
BODIES = {
    "psum": lambda lax, x: lax.psum(x, "i"),
    "psum, pytree": lambda lax, x: lax.psum({"a": x, "b": (x[0], x * 2)}, "i"),
    "psum of bools": lambda lax, x: lax.psum(x > 0, "i"),
    "psum of what is the same": lambda lax, x: x + lax.psum(x * 0 + 3, "i"),
    "psum and own axis": lambda lax, x: lax.psum(x, ("i", 0)),
    "pmax": lambda lax, x: lax.pmax(x, "i"),
    "pmin": lambda lax, x: lax.pmin(x, axis_name="i"),
    "pmean": lambda lax, x: lax.pmean(x, "i"),
    "centered": lambda lax, x: x - lax.pmean(x, "i"),
    "all_gather": lambda lax, x: lax.all_gather(x, "i"),
    "all_gather, last": lambda lax, x: lax.all_gather(x, "i", axis=1),
    "all_gather, tiled": lambda lax, x: lax.all_gather(x, "i", tiled=True),
    "all_gather, own element": lambda lax, x: lax.all_gather(x, "i")[lax.axis_index("i")] - x,
    "axis_index": lambda lax, x: x * lax.axis_index("i"),
    "axis_size": lambda lax, x: x * lax.axis_size("i"),
    "in scan": lambda lax, x: lax.scan(lambda c, v: (c + lax.psum(v, "i"), c * v), x[0] * 0, x),
    "in cond": lambda lax, x: lax.cond(lax.psum(1, "i") > 2, lambda v: lax.pmax(v, "i"), lambda v: v, x),
    "in while": lambda lax, x: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + lax.pmax(c[1], "i")), (0, x))[1],
}


def check(ours, theirs):
    for actual, expected in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("values", [X, INTEGERS], ids=["float", "int"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_as_in_jax(body, values):
    theirs = ask(lambda jax: jax.vmap(lambda x: body(jax.lax, x), axis_name="i")(values))
    for wrap_outside, wrap_inside in itertools.product((lambda f: f, jit), repeat=2):
        check(wrap_outside(vmap(wrap_inside(lambda x: body(lax, x)), axis_name="i"))(values), theirs)


@pytest.mark.parametrize("names", ["i", "j", ("i", "j"), ("j", "i")], ids=str)
@pytest.mark.parametrize("function", ["psum", "pmax", "pmean", "axis_index", "axis_size"])
def test_two_named_axes(function, names):
    def body(lax, x, y):
        if function.startswith("axis"):
            return x * y + getattr(lax, function)(names)
        return getattr(lax, function)(x * y + x, names)

    def run(vmap, lax):
        inner = vmap(lambda x, y: body(lax, x, y), (None, 0), axis_name="j")
        return vmap(inner, (0, None), axis_name="i")(X, X[0, 0] * X[:2])

    check(run(vmap, lax), ask(lambda jax: run(jax.vmap, jax.lax)))


def test_inner_axis_of_the_same_name_comes_first():
    out = vmap(vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")(X)
    np.testing.assert_allclose(out, np.broadcast_to(X.sum(1, keepdims=True), X.shape), rtol=1e-5)


def test_sum_of_a_number_is_a_number():
    sizes = []
    vmap(
        lambda x: sizes.append((lax.psum(1, "i"), lax.psum(2.0, "i"), lax.axis_size("i"))) or x, axis_name="i"
    )(X)
    assert sizes == [(3, 6.0, 3)] and type(sizes[0][0]) is int


def test_results_that_are_the_same_need_no_axis():
    out = vmap(lambda x: (lax.psum(x, "i"), lax.all_gather(x, "i")), out_axes=None, axis_name="i")(X)
    np.testing.assert_allclose(out[0], X.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(out[1], X)


def test_jitted_function_follows_its_axis():
    f = jit(lambda x: lax.psum(x, "i") / lax.axis_size("i"))
    for rows in (X, X[:2], X[:1]):
        np.testing.assert_allclose(vmap(f, axis_name="i")(rows)[0], rows.mean(0), rtol=1e-6)
    index = jit(lambda: lax.axis_index("i"))
    assert vmap(lambda x: index(), axis_name="i")(X).tolist() == [0, 1, 2]


def test_no_collective_is_left_in_a_program():
    closed = make_jaxpr(vmap(lambda x: x - lax.pmean(x, "i") * lax.axis_index("i"), axis_name="i"))(X)
    assert not [eqn for eqn in closed.eqns if eqn.primitive.traits.get("collective")]


@pytest.mark.parametrize(
    "function", ["psum", "pmax", "pmin", "pmean", "all_gather", "axis_index", "axis_size"]
)
def test_unbound_name(function):
    args = ("q",) if function.startswith("axis") else (X, "q")
    for run in (
        lambda: getattr(lax, function)(*args),
        lambda: vmap(lambda x: getattr(lax, function)(*args))(X),
    ):
        with pytest.raises(NameError, match="unbound axis name: q"):
            run()


def test_every_collective_is_undefined_outside():
    for name, primitive in registry.items():
        if primitive.traits.get("collective"):
            with pytest.raises(NameError, match="unbound axis name: gone"):
                primitive.impl(X, axes=("gone",))


def test_groups_are_refused():
    with pytest.raises(NotImplementedError, match="axis_index_groups not supported in vmap collectives"):
        vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]), axis_name="i")(X)


SEVERAL = [
    *[lambda x, names, axis=axis, tiled=tiled: lax.all_gather(x, names, axis=axis, tiled=tiled)
      for axis in (0, 1) for tiled in (False, True)],
    lambda x, names: lax.psum_scatter(x, names, scatter_dimension=0),
    lambda x, names: lax.psum_scatter(x, names, scatter_dimension=1, tiled=True),
    *[lambda x, names, split=split, concat=concat: lax.all_to_all(x, names, split, concat, tiled=True)
      for split in (0, 1) for concat in (0, 1, 2)],
    *[lambda x, names, concat=concat: lax.all_to_all(x, names, 0, concat) for concat in (0, 1, 2)],
    lambda x, names: lax.ppermute(x, names, [(0, 4), (4, 2), (1, 0)]),
]


@pytest.mark.parametrize("function", SEVERAL)
@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_several_axes_are_as_one(function, names):
    """Elements are counted along both axes as along one, the last name fastest."""
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 12, 2))
    along_two = vmap(vmap(lambda x: function(x, names), axis_name="j"), axis_name="i")
    flat = (x if names == ("i", "j") else x.swapaxes(0, 1)).reshape(6, *x.shape[2:])
    expected = np.asarray(vmap(lambda x: function(x, "k"), axis_name="k")(flat))
    if names == ("i", "j"):
        expected = expected.reshape(2, 3, *expected.shape[1:])
    else:
        expected = expected.reshape(3, 2, *expected.shape[1:]).swapaxes(0, 1)
    np.testing.assert_allclose(along_two(x), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(along_two)(x), expected, rtol=1e-12)
    check_grads(along_two, (x,), order=1, rtol=1e-4)


def test_batched_statistics():
    """Normalisation over a batch, written for one element."""

    def normalize(x):
        mean = lax.pmean(x, "batch")
        return (x - mean) / jnp.sqrt(lax.pmean((x - mean) ** 2, "batch") + 1e-6)

    out = np.asarray(jit(vmap(normalize, axis_name="batch"))(X))
    np.testing.assert_allclose(out.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(out.std(0), 1, atol=1e-4)
