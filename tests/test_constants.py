"""What a function reads from a NumPy array has the values of the trace; no result lies in the caller's memory."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, jit, lax, linearize, vjp, vmap
from jitcore.tree_util import tree_leaves

ONES = np.ones(3, np.float32)

# Functions of a constant and an argument.
READERS = {
    "operand": lambda c, v: v + c,
    "operand of a primitive of one": lambda c, v: v + jnp.sin(c),
    "matrix product": lambda c, v: c @ v,
    "result": lambda c, v: c,
    "ravel": lambda c, v: jnp.ravel(c),
    "index": lambda c, v: jnp.asarray(c)[0] + v,
    "traced index": lambda c, v: lax.dynamic_index_in_dim(c, 0) + v,
    "function of NumPy": lambda c, v: np.add(c, v) + np.dot(c, v),
    "vmap": lambda c, v: vmap(lambda u: u * c.sum() + jnp.dot(c, c))(v),
    "cond": lambda c, v: lax.cond(v.sum() > 0, lambda: c, lambda: -c),
    "while": lambda c, v: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + c), (0, v))[1],
    "scan": lambda c, v: lax.scan(lambda a, b: (a + c, b + c), v, np.zeros((2, 3), np.float32))[1],
    "elements of a scan": lambda c, v: lax.scan(lambda a, b: (a + b, a), v.sum(), c)[1],
    "gradient": lambda c, v: grad(lambda u: (u * u * c).sum())(v),
    "checkpoint": lambda c, v: grad(jitcore.checkpoint(lambda u: (jnp.sin(u) * c).sum()))(v),
    "inner jit": lambda c, v: jit(lambda u: u + c)(v),
}
# Functions of a constant and an argument that give a function without arguments.
KEPT = {
    "compiled ahead": lambda c, x: functools.partial(jit(lambda v: v + c).lower(x).compile(), ONES),
    "pullback": lambda c, x: functools.partial(vjp(lambda v: jnp.sin(v) * c, x)[1], ONES),
    "pullback of jit": lambda c, x: functools.partial(vjp(jit(lambda v: v * v * c), x)[1], ONES),
    "linearization": lambda c, x: functools.partial(linearize(lambda v: v * v * c, x)[1], ONES),
}


@pytest.mark.parametrize("name", [*READERS, *KEPT])
def test_constants_have_the_values_of_the_trace(name):
    constant, argument = np.ones(3, np.float32), np.full(3, 2, np.float32)
    if name in READERS:
        function = jit(functools.partial(READERS[name], constant))
        call = functools.partial(function, argument.copy())
    else:
        call = KEPT[name](constant, argument)
    before = [np.array(x) for x in tree_leaves(call())]
    constant[:] = argument[:] = 7
    for was, now in zip(before, tree_leaves(call())):
        np.testing.assert_array_equal(now, was)


def test_constant_that_is_written_to_while_it_is_traced():
    buffer = np.zeros(1, np.float32)

    def function(x):
        for i in range(3):
            buffer[0] = i
            x = x + buffer + jnp.ravel(buffer)
        return x

    assert jit(function)(np.zeros(1, np.float32)) == 6


def test_constant_is_copied_once():
    matrix, calls = np.eye(3, dtype=np.float32), []

    def function(x):
        for _ in range(3):
            x = lax.fori_loop(0, 2, lambda i, v: matrix @ v, x @ matrix) + matrix[0] * jnp.sum(matrix)
            calls.append(x)
        return x

    constants = [const for const in jitcore.make_jaxpr(function)(ONES).consts if const.shape == (3, 3)]
    assert len(calls) == 3 and len(constants) == 1 and not np.shares_memory(constants[0], matrix)


# Functions that may give back what they get, eagerly.
SAME = {
    "ravel": jnp.ravel, "reshape": lambda x: jnp.reshape(x, x.shape), "transpose": jnp.transpose,
    "broadcast": lambda x: jnp.broadcast_to(x, x.shape), "squeeze": jnp.squeeze, "asarray": jnp.asarray,
    "real": jnp.real, "positive": jnp.positive, "clip": jnp.clip, "sum of no axis": lambda x: jnp.sum(x, ()),
    "index": lambda x: jnp.asarray(x)[...], "block": jnp.block, "roll": lambda x: jnp.roll(x, 0),
    "diff": lambda x: jnp.diff(x, 0), "convert": lambda x: lax.convert_element_type(x, x.dtype),
    "cond": lambda x: lax.cond(True, lambda v: v, lambda v: -v, x),
    "while": lambda x: lax.while_loop(lambda v: False, lambda v: v, x),
    "scan": lambda x: lax.scan(lambda c, _: (c, c), x, None, length=1),
    "polyder": lambda x: jnp.polyder(x, 0), "einsum": lambda x: jnp.einsum("i->i", x),
    "jit": jit(lambda x: x), "vmap": vmap(lambda x: x), "matrix power": lambda x: jnp.diag(x)[:1, :1],
}


@pytest.mark.parametrize("name", SAME)
def test_results_have_memory_of_their_own(name):
    for dtype in (np.float32, np.float64, np.int32):
        data = np.ones(3, dtype)
        found = tree_leaves(SAME[name](data))
        assert not any(np.shares_memory(x, data) for x in map(np.asarray, found))
