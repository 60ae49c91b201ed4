"""ndarrays of 64 bits beside arrays of 32, which are the default: nothing is refused, and values are the same."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import config, custom_jvp, grad, jit, jvp, lax, linearize, vjp
from jitcore.experimental.ode import odeint
from jitcore.flatten_util import ravel_pytree
from jitcore.scipy.sparse.linalg import cg

A = np.eye(3) / 2
row, ints, ones = A[0], np.arange(3), jnp.ones(3)


def double_by_rule(w, x):
    double = custom_jvp(lambda x: 2 * x)
    double.defjvp(lambda primals, tangents: (2 * primals[0], 4 * w(A) @ tangents[0]))
    return grad(lambda x: double(x).sum())(x)


#: Calls in which `w` is around what has 64 bits.
ROWS = {
    "scan, constant": lambda w: lax.scan(lambda c, _: (w(A) @ c, None), ones, None, length=3)[0],
    "scan, elements": lambda w: lax.scan(lambda c, x: (c + x, c), jnp.zeros(()), w(np.ones(3))),
    "scan, start": lambda w: lax.scan(lambda c, x: (jnp.float32(1) * x, c), w(np.zeros(())), ones),
    "scan, one after the other": lambda w: lax.scan(
        lambda c, _: ((c[0] + c[1], c[1] + c[2], c[2] @ w(A)), None), (ones, ones, ones), None, length=4)[0],
    "fori_loop": lambda w: lax.fori_loop(0, 3, lambda i, c: c * 2 + w(row), ones),
    "fori_loop, bounds": lambda w: lax.fori_loop(jnp.int32(0), w(np.int64(3)), lambda i, c: c + ones, ones),
    "while_loop": lambda w: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, w(A) @ c[1]), (0, ones)),
    "while_loop, integers": lambda w: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + w(ints)), (0, jnp.arange(3))),
    "cond": lambda w: lax.cond(jnp.array(True), lambda x: w(A) @ x, lambda x: x, ones),
    "switch": lambda w: lax.switch(1, [lambda x: w(np.ones(3)), lambda x: x, lambda x: x * 2], ones),
    "add": lambda w: lax.add(w(row), ones), "mul": lambda w: lax.mul(ones, w(row)),
    "pow": lambda w: lax.pow(ones, w(np.float64(2))), "and": lambda w: lax.bitwise_and(w(ints), jnp.arange(3)),
    "complex": lambda w: lax.add(w(1j * row), ones + 1j),
    "select": lambda w: lax.select(np.ones(3, bool), w(row), ones),
    "clamp": lambda w: lax.clamp(w(np.float64(0)), ones, 1.0),
    "concatenate": lambda w: lax.concatenate([w(row), ones], 0),
    "pad": lambda w: lax.pad(ones, w(np.float64(0)), [(1, 1, 0)]),
    "dynamic_update_slice": lambda w: lax.dynamic_update_slice(jnp.zeros(5), w(row), (1,)),
    "dot": lambda w: lax.dot(w(A), ones),
    "conv": lambda w: lax.conv(jnp.ones((1, 1, 5, 5)), w(np.ones((1, 1, 3, 3))), (1, 1), "SAME"),
    "triangular_solve": lambda w: lax.linalg.triangular_solve(w(A), jnp.ones((3, 1)), left_side=True),
    "vjp": lambda w: vjp(lambda x: w(A) @ x, ones)[1](ones)[0],
    "vjp, cotangent": lambda w: vjp(jnp.sin, ones)[1](w(row))[0],
    "jvp": lambda w: jvp(jnp.sin, (ones,), (w(row),)), "jvp, primal": lambda w: jvp(jnp.sin, (w(row),), (ones,)),
    "linearize": lambda w: linearize(jnp.sin, ones)[1](w(row)), "custom_jvp": lambda w: double_by_rule(w, ones),
    "unravel": lambda w: ravel_pytree({"a": ones})[1](w(row))["a"],
    "unravel, wide": lambda w: ravel_pytree({"a": w(row)})[1](ones)["a"],
    "cg": lambda w: cg(lambda x: 2 * x, w(row), x0=jnp.zeros(3))[0],
    "odeint": lambda w: odeint(lambda y, t: -w(A) @ y, ones, w(np.linspace(0, 1, 3))),
    "slope of scan": lambda w: grad(
        lambda x: lax.scan(lambda c, _: (w(A) @ jnp.sin(c), c), x, None, length=3)[0].sum())(ones),
}


def narrow(x):
    return x.astype({"f": np.float32, "i": np.int32, "c": np.complex64}[x.dtype.kind])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_widths_meet(name, compiled):
    run = ROWS[name]
    found = jitcore.tree.leaves(jit(lambda: run(lambda x: x))() if compiled else run(lambda x: x))
    expected = jitcore.tree.leaves(run(narrow))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.dtype.kind == other.dtype.kind
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call", [
    lambda: lax.add(np.ones(3, np.float16), ones), lambda: lax.add(np.arange(3), ones),
    lambda: lax.add(np.ones(3, np.uint64), jnp.arange(3)), lambda: lax.concatenate([np.arange(3), ones], 0),
    lambda: lax.scan(lambda c, _: (c.astype(jnp.float16), None), ones, None, length=2),
])
def test_others_do_not(call):
    with pytest.raises(TypeError, match="dtype"):
        call()


def test_nothing_is_widened_where_wide_dtypes_are_the_default():
    with config.override(enable_x64=True), pytest.raises(TypeError, match="same dtypes, got float64, float32"):
        lax.add(row, ones)
