"""Expressions: numbers that code is told at run time."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import dtypes, jit, lax
from jitcore.loopir.expr import Graph

PROGRAMS = {
    "index": lambda x, i: x[i] * 3,
    "take": lambda x, i: jnp.take(x, i) * 3,
    "clip": lambda x, i: jnp.take(x, i, mode="clip") * 3,
    "set": lambda x, i: x.at[i].set(3.0),
    "add": lambda x, i: x.at[i].add(3.0),
    "scalar": lambda x, i: x[i[0]] * 3,
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i[0],), (9,)) * 3,
    "argmax": lambda x, i: x[jnp.argmax(x)] * 3,
    "mean": lambda x, i: x.mean() * 3,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes_in_index_arithmetic_compile_once(name):
    f = jit(PROGRAMS[name])
    for n in (100, 201, 333):
        x = np.arange(n, dtype=np.float64)
        i = np.array([-1, -n, n - 1, 0, n // 2, -2, 1, 2, 3, 4, 5], np.int32)
        expected = PROGRAMS[name](jnp.asarray(x), jnp.asarray(i))
        np.testing.assert_allclose(np.asarray(f(x, i)), np.asarray(expected), rtol=1e-14)
    assert f.cache_info().compiles <= 1


@pytest.mark.parametrize("op, value, dtype, told", [
    ("add", 9, "int32", True), ("add", 8, "int32", False), ("add", -9, "int64", True), ("lt", 100, "int16", True),
    ("rem", 100, "int32", False), ("mul", 100, "int32", False), ("add", 100, "uint32", False),
    ("add", 100.0, "float32", False), ("div", 100.0, "float32", True), ("div", 64.0, "float32", False),
    ("div", 100.5, "float64", False), ("div", np.inf, "float64", False), ("div", np.nan, "float32", False),
])
def test_which_constants_code_is_told(op, value, dtype, told):
    graph = Graph()
    x = graph.const(1, dtype)
    result = dtypes.bool_ if op == "lt" else dtype
    node = graph.op(op, x, graph.const(value, dtype), dtype=result)
    assert (node.args[1].op == "index") == told
    assert node is graph.op(op, x, graph.const(value, dtype), dtype=result)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_told_numbers_are_exact(dtype):
    x = np.arange(20).astype(dtype)
    np.testing.assert_array_equal(np.asarray(jit(lambda x: (x + 100 - 3).astype(dtype) / 10)(x)),
                                  np.asarray((jnp.asarray(x) + 100 - 3).astype(dtype) / 10))
