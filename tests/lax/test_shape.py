"""Shape primitives against JAX: values, dtypes, weak types, skipped equations and errors."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import jit, lax
from jitcore.array import ConcreteArray
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import trace_to_jaxpr
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(0)
DTYPES = ["bool", "uint16", "bfloat16", "float32", "complex64", "int64"]

CASES = {
    "broadcast_in_dim": lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)),
    "broadcast_in_dim to the same": lambda lax, x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
    "broadcast": lambda lax, x: lax.broadcast(x, (2, 1)),
    "broadcast of extent 1": lambda lax, x: lax.broadcast_in_dim(lax.reshape(x, (1, 12)), (5, 12), (0, 1)),
    "reshape": lambda lax, x: lax.reshape(x, (2, 6)),
    "reshape with dimensions": lambda lax, x: lax.reshape(x, (6, 2), (1, 0)),
    "transpose": lambda lax, x: lax.transpose(x, (1, 0)),
    "expand_dims": lambda lax, x: lax.expand_dims(x, (0, -1)),
    "squeeze": lambda lax, x: lax.squeeze(lax.expand_dims(x, (0, 2)), (-2,)),
    "concatenate": lambda lax, x: lax.concatenate([x, x, x], 1),
    "concatenate with an empty part": lambda lax, x: lax.concatenate([x, *lax.split(x, (0, 3))], 0),
    "rev": lambda lax, x: lax.rev(x, (1,)),
    "rev nothing": lambda lax, x: lax.rev(x, ()),
    "split": lambda lax, x: lax.split(x, (1, 0, 3), 1),
    "tile": lambda lax, x: lax.tile(x, (2, 3)),
    "full": lambda lax, x: lax.full((2, 3), 2),
    "full of a dtype": lambda lax, x: lax.full((2, 3), 2.7, np.int32),
    "full scalar": lambda lax, x: lax.full((), 2.5, np.float32),
    "full_like": lambda lax, x: lax.full_like(x, 1),
    "full_like of a shape": lambda lax, x: lax.full_like(x, 1, np.float32, (2,)),
    "iota": lambda lax, x: lax.iota(np.float32, 5),
    "broadcasted_iota": lambda lax, x: lax.broadcasted_iota(np.uint8, (2, 3, 2), 1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_against_jax(case, dtype):
    if case == "full" and "64" in dtype:
        pytest.skip("the width of Python scalars depends on JAX's x64 mode")
    call = CASES[case]
    check_against_jax(lambda x: call(lax, x), lambda x: call(jax_lax, x), random_array(RNG, (3, 4), dtype))


@pytest.mark.parametrize("case", [case for case in CASES if "full" not in case])
def test_weak_types(case):
    def run(lax):
        return lambda: CASES[case](lax, lax.full((3, 4), 2.0))

    check_against_jax(run(lax), run(jax_lax))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(-3, 4), st.integers(-3, 4), st.integers(0, 3)), max_size=3
    )
)
def test_pad(axes):
    extents = tuple(extent for extent, _, _, _ in axes)
    config = [
        (low, max(high, -low - (extent + max(extent - 1, 0) * interior)), interior)
        for extent, low, high, interior in axes
    ]
    check_against_jax(
        lambda x: lax.pad(x, np.float32(9), config),
        lambda x: jax_lax.pad(x, np.float32(9), config),
        random_array(RNG, extents),
    )


def test_pad_adapts_a_python_scalar():
    out = lax.pad(np.ones(2, np.int8), 3, [(1, 0, 0)])
    assert out.dtype == np.int8 and out.tolist() == [3, 1, 1]


NO_OPS = {
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
    "broadcast": lambda x: lax.broadcast(x, ()),
    "reshape": lambda x: lax.reshape(x, (3, 4)),
    "reshape in order": lambda x: lax.reshape(x, (3, 4), (0, 1)),
    "transpose": lambda x: lax.transpose(x, (0, 1)),
    "squeeze": lambda x: lax.squeeze(x, ()),
    "concatenate": lambda x: lax.concatenate([x], 0),
}


@pytest.mark.parametrize("case", NO_OPS)
def test_no_equation_where_nothing_changes(case):
    jaxpr, _ = trace_to_jaxpr(lambda x: [NO_OPS[case](x)], [ShapedArray((3, 4), np.float32)])
    assert jaxpr.eqns == [] and jaxpr.outvars == jaxpr.invars


def test_full_is_one_equation():
    jaxpr, _ = trace_to_jaxpr(lambda: [lax.full((3,), 2, np.float32)], [])
    assert str(jaxpr.eqns[0].invars[0].value) == "2.0" and len(jaxpr.eqns) == 1


VIEWS = {
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (3, 4), (0, 1)),
    "reshape": lambda x: lax.reshape(x, (12,)),
    "transpose": lambda x: lax.transpose(x, (1, 0)),
    "squeeze": lambda x: lax.squeeze(x, ()),
    "rev": lambda x: lax.rev(x, ()),
    "split": lambda x: lax.split(x, (3,))[0],
    "copy": lax.copy,
    "tile": lambda x: lax.tile(x, (1, 1)),
}


@pytest.mark.parametrize("case", VIEWS)
def test_results_do_not_alias_the_operand(case):
    x = np.ones((3, 4), np.float32)
    out = VIEWS[case](x)
    assert isinstance(out, ConcreteArray) and not np.shares_memory(out.data, x)


X = np.ones((3, 4), np.float32)
ERRORS = [
    (lambda lax: lax.broadcast_in_dim(X, (3, 5), (0, 1)), TypeError),
    (lambda lax: lax.broadcast_in_dim(X, (3,), (0, 1)), TypeError),
    (lambda lax: lax.broadcast_in_dim(X, (3, 4, 5), (0,)), TypeError),
    (lambda lax: lax.broadcast_in_dim(X, (3, 4, 5), (0, 3)), TypeError),
    (lambda lax: lax.broadcast_in_dim(X, (3, 4, -5), (0, 1)), TypeError),
    (lambda lax: lax.reshape(X, (-1, 3)), TypeError),
    (lambda lax: lax.reshape(X, (12,), (0, 0)), TypeError),
    (lambda lax: lax.transpose(X, (0, 0)), TypeError),
    (lambda lax: lax.transpose(X, (0,)), TypeError),
    (lambda lax: lax.squeeze(X, (0,)), ValueError),
    (lambda lax: lax.squeeze(X, (5,)), ValueError),
    (lambda lax: lax.expand_dims(X, (5,)), ValueError),
    (lambda lax: lax.expand_dims(X, (0, 0)), ValueError),
    (lambda lax: lax.concatenate([], 0), ValueError),
    (lambda lax: lax.concatenate([X, X.astype(np.int32)], 0), TypeError),
    (lambda lax: lax.concatenate([X, X[0]], 0), TypeError),
    (lambda lax: lax.concatenate([X, X[:, :2]], 0), TypeError),
    (lambda lax: lax.concatenate([X, X], 2), TypeError),
    (lambda lax: lax.pad(X, np.float32(0), [(0, 0, 0)]), ValueError),
    (lambda lax: lax.pad(X, np.float32(0), [(0, 0, -1)] * 2), ValueError),
    (lambda lax: lax.pad(X, np.float32(0), [(-2, -2, 0)] * 2), ValueError),
    (lambda lax: lax.rev(X, (2,)), TypeError),
    (lambda lax: lax.rev(X, (0, 0)), TypeError),
    (lambda lax: lax.iota(np.int32, -1), TypeError),
    (lambda lax: lax.broadcasted_iota(np.int32, (3,), 1), ValueError),
    (lambda lax: lax.full((2,), X), TypeError),
    (lambda lax: lax.split(X, (1, 1)), ValueError),
    (lambda lax: lax.tile(X, (2,)), TypeError),
]


@pytest.mark.parametrize("call, kind", ERRORS)
def test_errors_are_those_of_jax(call, kind):
    with pytest.raises(kind) as ours:
        call(lax)
    with pytest.raises(kind) as theirs:
        call(jax_lax)
    assert str(ours.value).split("\n")[0] == str(theirs.value).split("\n")[0]


def test_wrong_size_of_reshape():
    with pytest.raises(
        TypeError, match=r"reshape total size must be unchanged, got new_sizes \(5,\) for shape \(3, 4\)"
    ):
        lax.reshape(X, (5,))


def test_traced_extent():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        trace_to_jaxpr(lambda n: [lax.full((n,), 1.0)], [ShapedArray((), np.int32)])


def test_stack_collapse_and_their_like():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        np.testing.assert_array_equal(jit(lambda x: lax.stack([x, 2 * x], axis))(x), np.stack([x, 2 * x], axis))
        for ours, theirs in zip(jit(lambda x: lax.unstack(x, axis))(x), np.moveaxis(x, axis, 0), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for start, stop in ((0, 2), (1, None), (-2, None), (0, None), (1, 2)):
        assert lax.collapse(x, start, stop).shape == jax.lax.collapse(x, start, stop).shape
    assert lax.broadcast_to_rank(x, 5).shape == (1, 1, 2, 3, 4) and lax.broadcast_to_rank(x, 2).shape == (2, 3, 4)
    for wrong in (lambda: lax.collapse(x, 2, 1), lambda: lax.stack([]), lambda: lax.stack([x, x[0]])):
        with pytest.raises(ValueError):
            wrong()
