"""Random programs under `vmap`: against NumPy in float64 run element by element, and nests of transformations
and control flow against JAX."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import jitcore
import jitcore.numpy as jnp
from tests.fuzz.programs import make_inputs, make_program, run_program
from tests.jax_answers import jax

COMMON = dict(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
SIZE = 3


# -- random array programs ----------------------------------------------------------------------------------
def make_batch(program, seed: int):
    """Inputs of a batch and the axis of each; None for those that are the same for all elements."""
    rng = np.random.default_rng(seed)
    elements = [make_inputs(program, seed + 1000 * i) for i in range(SIZE)]
    axes, batch = [], []
    for position, shape in enumerate(program.shapes):
        axis = None if position and rng.random() < 0.4 else int(rng.integers(-len(shape) - 1, len(shape) + 1))
        column = [inputs[position] for inputs in elements]
        axes.append(axis)
        # What is not mapped arrives as it is, and the programs call methods of Array.
        batch.append(jnp.asarray(column[0]) if axis is None else np.stack(column, axis))
    return batch, axes


def check_program(seed: int) -> None:
    program = make_program(seed, max_steps=8)
    batch, axes = make_batch(program, seed)
    label = f"seed {seed}, axes {axes}\n{program}"
    mapped = jitcore.vmap(functools.partial(run_program, program, jnp), in_axes=(axes,))
    rows = [
        [np.asarray(x) if a is None else np.take(x, i, a) for x, a in zip(batch, axes)] for i in range(SIZE)
    ]
    exact = [run_program(program, np, [x.astype(np.float64) for x in row]) for row in rows]
    for function in (mapped, jitcore.jit(mapped)):
        for out, column in zip(function(batch), zip(*exact), strict=True):
            expected = np.stack(column)
            assert out.shape == expected.shape, label
            np.testing.assert_allclose(
                np.asarray(out, np.float64), expected, rtol=2e-4, atol=2e-4, err_msg=label
            )


@settings(max_examples=60, **COMMON)
@given(st.integers(0, 2**32 - 1))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow
@settings(max_examples=2000, **COMMON)
@given(st.integers(2**32, 2**40))
def test_many_random_programs(seed):
    check_program(seed)


# -- nests of transformations and control flow, against JAX -------------------------------------------------
class Library(NamedTuple):
    """What a nest is written with: ours or JAX's."""

    np: object
    lax: object
    vmap: object
    jit: object


OURS = Library(jnp, jitcore.lax, jitcore.vmap, jitcore.jit)
THEIRS = Library(jax.numpy, jax.lax, jax.vmap, jax.jit)


def _while(lib, f, x):
    """Repeats f until an element-dependent count runs out."""
    count = lib.np.abs(x).sum() * 3
    return lib.lax.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, f(c[1])), (0.0, x))[1]


def _scan(lib, f, x):
    last, stack = lib.lax.scan(lambda c, v: (f(c) * 0.5 + v, c.sum()), x, lib.np.arange(3.0) * 0.1)
    return last + stack.mean()


def _over_rows(lib, f, x, out_axis):
    """f of each of several scaled copies of x, joined again."""
    stacked = lib.np.stack([x, 0.5 * x, x - 0.1])
    return lib.vmap(f, in_axes=0, out_axes=out_axis)(stacked).mean(axis=out_axis)


WRAPPERS = {
    "jit": lambda lib, f, x: lib.jit(f)(x),
    "cond": lambda lib, f, x: lib.lax.cond(x.sum() > 0, f, lambda v: v * 0.5, x),
    "switch": lambda lib, f, x: lib.lax.switch(
        (x.sum() * 2).astype(np.int32), [f, lambda v: -v, lambda v: f(v) * 0.5], x),
    "while": _while,
    "scan": _scan,
    "fori": lambda lib, f, x: lib.lax.fori_loop(0, 3, lambda i, v: f(v) + 0.1 * i, x),
    "fori, own length": lambda lib, f, x: lib.lax.fori_loop(
        0, (lib.np.abs(x).max() * 4).astype(np.int32), lambda i, v: f(v), x),
    "rows": lambda lib, f, x: _over_rows(lib, f, x, 0),
    "rows, other axis": lambda lib, f, x: _over_rows(lib, f, x, 1),
    "map": lambda lib, f, x: lib.lax.map(f, lib.np.stack([x, -x])).sum(0),
    "update": lambda lib, f, x: x.at[lib.np.argmax(x)].set(0.3) + f(x),
    "slice": lambda lib, f, x: f(lib.np.roll(x, 1)) + lib.lax.dynamic_slice(
        x, ((x[0] * 3).astype(np.int32),), (1,)),
    "sort": lambda lib, f, x: f(lib.np.sort(x)[::-1]),
    "pick": lambda lib, f, x: f(x) + x[lib.np.argsort(x)[1]],
}
LEAVES = {
    "sin": lambda lib, x: lib.np.sin(x),
    "tanh of product": lambda lib, x: lib.np.tanh(x * lib.np.cumsum(x)),
    "centered": lambda lib, x: x - x.mean(),
    "matrix": lambda lib, x: lib.np.tanh(lib.np.outer(x, x) @ x * 0.3),
}


def make_nest(seed: int):
    """A function of (library, x) of depth up to 4 over one of the leaves, and its name."""
    rng = np.random.default_rng(seed)
    leaf = str(rng.choice(list(LEAVES)))
    names = [str(name) for name in rng.choice(list(WRAPPERS), int(rng.integers(1, 5)))]

    def build(lib):
        function = functools.partial(LEAVES[leaf], lib)
        for name in reversed(names):
            function = functools.partial(WRAPPERS[name], lib, function)
        return function

    return build, " of ".join([*names, leaf])


@pytest.mark.parametrize("seed", range(40))
def test_nests_against_jax(seed):
    build, name = make_nest(seed)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.9, 0.9, (4, 5)).astype(np.float32)
    in_axis, out_axis = (int(axis) for axis in rng.integers(0, 2, 2))
    x = np.ascontiguousarray(np.moveaxis(x, 0, in_axis))
    expected = np.asarray(jax.jit(jax.vmap(build(THEIRS), in_axis, out_axis))(x))
    mapped = jitcore.vmap(build(OURS), in_axis, out_axis)
    for function in (mapped, jitcore.jit(mapped)):
        out = np.asarray(function(x))
        assert out.shape == expected.shape and out.dtype == expected.dtype, name
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4, err_msg=f"{name}, seed {seed}")
