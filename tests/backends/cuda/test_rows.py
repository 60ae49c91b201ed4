"""Rows that threads keep in registers, on the CUDA device in software: values as the CPU's, what is read."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import dtypes, jit, lax
from jitcore.tree_util import tree_leaves

DEVICE = "cuda:emulated"
RNG = np.random.default_rng(3)
SIZES = (1, 3, 31, 33, 64, 100, 127, 1000, 1001, 1002, 4096, 4100, 16384, 20000)
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-13, "complex64": 3e-6}


def softmax(x, axis=-1):
    e = jnp.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x):
    y = x - x.max(axis=-1, keepdims=True)
    return y - jnp.log(jnp.exp(y).sum(axis=-1, keepdims=True))


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def normalise(x):
    return x / jnp.sqrt((jnp.abs(x) ** 2).sum(-1, keepdims=True))


def two_outputs(x):
    y = x - x.mean(-1, keepdims=True)
    return y, y / (1 + jnp.abs(y).max(-1, keepdims=True))


def extremes(x):
    """The place of an extreme is found by another sweep, beside those of the row."""
    return x.argmax(-1), x - x.max(-1, keepdims=True)


def neighbours(x):
    """Elements that other threads have."""
    y = x - x.mean(-1, keepdims=True)
    return y + jnp.roll(y, 1, -1)


def gathered(x):
    return softmax(jnp.sin(x[0])[(jnp.abs(x) * 99).astype(int) % x.shape[-1]])


def compared(x):
    y = x > x.mean(-1, keepdims=True)
    return y.sum(-1), jnp.where(y, x, 0) / (1 + y.sum(-1, keepdims=True)), y.all(-1)


FUNCTIONS = {
    "softmax": softmax,
    "of columns": lambda x: softmax(x, 0),
    "of parts": lambda x: softmax(x[:, : x.shape[1] // 2 + 1]),
    "of three axes": lambda x: softmax(jnp.stack([x, 2 * x], 1)),
    "of a constant": lambda x: x / (x * 0 + 1).sum(-1, keepdims=True),
    "log_softmax": log_softmax, "layer norm": layer_norm, "normalise": normalise, "two outputs": two_outputs,
    "extremes": extremes, "neighbours": neighbours, "gathered": gathered, "compared": compared,
    "variance": lambda x: x.var(-1),
    "centred": lambda x: x - x.mean(-1, keepdims=True),
    "scaled": lambda x: softmax(x * x[0] + jnp.arange(x.shape[1], dtype=x.dtype) / 100),
    "by columns": lambda x: x.T - x.mean(0)[:, None],
}


def draw(rows, size, dtype="float32"):
    values = RNG.standard_normal((rows, size))
    return (values + 1j * RNG.standard_normal((rows, size)) if dtype == "complex64" else values).astype(dtype)


def check(function, x, **options):
    """On the device as on the processor, in precise floats."""
    found, expected = (tree_leaves(jit(function, backend=backend, **given)(x))
                       for backend, given in ((DEVICE, options), ("cpu", {})))
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = TOLERANCES.get(str(one.dtype), 0)
        one, other = (np.asarray(value, np.float64 if tolerance > 1e-3 else None) for value in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["softmax", "layer norm", "two outputs"])
def test_sizes(name, size):
    check(FUNCTIONS[name], draw(2 if size > 1000 else 7, size))


@pytest.mark.parametrize("size", [33, 100])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, size):
    check(FUNCTIONS[name], draw(5, size))


DTYPES = ("float16", dtypes.bfloat16, "float64", "complex64", "int8", "int32")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [35, 136, 1000])
def test_dtypes(dtype, size):
    x = RNG.integers(-9, 9, (3, size)).astype(dtype) if np.dtype(dtype).kind == "i" else draw(3, size, dtype)
    functions = (softmax, two_outputs, compared) if x.dtype.kind != "c" else (normalise, FUNCTIONS["centred"])
    for function in functions:
        check(function, x)


@pytest.mark.parametrize("size", [40, 1000])
def test_not_a_number(size):
    x = draw(4, size)
    x[0, 7], x[1, size - 1], x[2] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        check(softmax, x)


@pytest.mark.parametrize("shape", [(1000,), (4001,), (2, 3, 40), (0, 40), (40, 0)])
def test_shapes(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    check(lambda x: x.var(), x) if x.size else None
    check(normalise, x)
    check(lambda x: normalise(x).sum(-1) + layer_norm(x + 1).max(-1) if x.size else normalise(x), x)


@pytest.mark.parametrize("size", [33, 64, 1000])
def test_memory_that_is_written(size):
    values = draw(60, size)
    x = jitcore.device_put(values, jitcore.devices(DEVICE)[0])
    y = jit(FUNCTIONS["centred"], donate_argnums=0)(x)
    np.testing.assert_allclose(np.asarray(y), values - values.mean(-1, keepdims=True), rtol=3e-6, atol=3e-6)
    check(lambda x: lax.fori_loop(0, 3, lambda _, y: softmax(y) + y, x), values)
    check(lambda x: x.at[:, 1:].set(softmax(x[:, :-1])), values)
    check(lambda x: x.at[1:].add(softmax(x[1:])), values)


def test_one_instruction_finds_an_extreme():
    for machine, count in ("sm_75", 0), ("sm_90", 15 + 2):  # of the lanes, and of the team
        assert compile_for(softmax, (10**5, 64), machine)["ptx"]().count("max.NaN.f32") == count


def compile_for(function, shape, machine="sm_90", dtype=np.float32):
    compiled = jit(function).lower(jitcore.ShapeDtypeStruct(shape, dtype)).compile(target=f"cuda:{machine}")
    return compiled.runtime_executable().texts()


#: (function, elements of a row, threads of a team, reads of a thread in all).
ROWS = [
    (softmax, 64, 4, 4), (softmax, 1000, 64, 4), (softmax, 4096, 128, 8), (softmax, 16384, 512, 8),
    (softmax, 1001, 64, 16), (layer_norm, 4096, 128, 8), (log_softmax, 1000, 64, 4),
    (FUNCTIONS["variance"], 1000, 64, 4), (two_outputs, 1000, 64, 4), (normalise, 20000, 1024, 5),
]


@pytest.mark.parametrize("function, size, team, reads", ROWS)
def test_elements_are_read_once(function, size, team, reads):
    texts = compile_for(function, (10**8 // size, size))
    (line,), ptx = texts["mapping"]().splitlines(), texts["ptx"]()
    assert f"{team} threads an item" in line and "stay in registers" in line
    assert ptx.count("ld.global") == reads
    assert "ld.local" not in ptx


def test_exponentials_are_computed_once():
    once, twice = (compile_for(function, (10**5, 64))["ptx"]().count("fma.rn.f32")
                   for function in (lambda x: jnp.exp(x) / x.sum(-1, keepdims=True), softmax))
    assert once == twice > 0


@pytest.mark.parametrize("function, size", [(softmax, 200_000), (lambda x: x.sum(-1), 1000)])
def test_rows_that_are_not_kept(function, size):
    assert "registers" not in compile_for(function, (500, size))["mapping"]()
