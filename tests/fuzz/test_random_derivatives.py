"""Random nests of transformations and control flow against JAX, and derivatives of random array programs
against central differences of NumPy."""

from __future__ import annotations

import functools
import importlib.util

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from tests.codegens import codegen, pytest_generate_tests  # noqa: F401
from tests.fuzz.nests import Library, Nest, build_nest, make_nest, make_point
from tests.fuzz.programs import make_inputs, make_program, run_program
from tests.fuzz.render_nests import COUNTS, read_stored, run_jax

OURS = Library(jitcore, jnp, jitcore.lax, jitcore.checkpoint, wide_while=True)
STORED = read_stored()
needs_jax = pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")


# -- nests --------------------------------------------------------------------------------------------------
def run_ours(nest: Nest, dtype=np.float64, transform=lambda f: f) -> np.ndarray:
    point = jnp.asarray(make_point(nest, dtype))
    out = np.asarray(transform(build_nest(nest, OURS))(point))
    assert out.dtype == dtype, nest
    return out.astype(np.float64)


def check_close(found, expected, tolerance: float, nest: Nest) -> None:
    assert found.shape == expected.shape, nest
    error = np.max(np.abs(found - expected)) / (1 + np.max(np.abs(expected)))
    assert error < tolerance, f"{nest}\nfound {found}, expected {expected}"


def list_seeds(start: int, step: int) -> list[tuple[int, bool]]:
    """(seed, whether of all tables)."""
    return [(seed, bool(more)) for more, count in enumerate(COUNTS) for seed in range(start, count, step)]


@pytest.mark.parametrize(("seed", "more"), list_seeds(0, 3))
def test_nest(seed, more):
    nest = make_nest(seed, more)
    check_close(run_ours(nest), STORED[more][seed], 1e-10, nest)


@pytest.mark.parametrize(("seed", "more"), list_seeds(0, 20))
def test_nest_compiled_as_a_whole(seed, more):
    nest = make_nest(seed, more)
    check_close(run_ours(nest, transform=jitcore.jit), STORED[more][seed], 1e-10, nest)


def test_constants_of_a_transformed_function_inside_of_a_program():
    nest = make_nest(1044, more=True)  # a derivative of a jitted function with a rule of its own
    check_close(run_ours(nest, transform=jitcore.jit), run_ours(nest), 1e-12, nest)


@pytest.mark.parametrize(("seed", "more"), list_seeds(0, 3))
def test_nest_in_single_precision(seed, more):
    nest = make_nest(seed, more)
    function = build_nest(nest, OURS)
    # A derivative may change much where its argument is rounded: that is no error of the derivative.
    point = make_point(nest, np.float32).astype(np.float64)
    exact = np.asarray(function(jnp.asarray(point)))
    moved = np.asarray(function(jnp.asarray(point * (1 + 2.0**-23))))
    rounding = np.max(np.abs(moved - exact)) / (1 + np.max(np.abs(exact)))
    check_close(run_ours(nest, np.float32), exact, 1e-5 + 16 * rounding, nest)


@needs_jax
@pytest.mark.parametrize(("seed", "more"), [(3, False), (4, True)])
def test_stored_results_are_those_of_jax(seed, more):
    check_close(run_jax(seed, more), STORED[more][seed], 1e-12, make_nest(seed, more))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "more"), sorted({*list_seeds(0, 1)} - {*list_seeds(0, 3)}))
def test_more_nests(seed, more):
    test_nest(seed, more)
    test_nest_in_single_precision(seed, more)


@needs_jax
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 3000))
def test_many_nests(seed):
    nest = make_nest(seed, more=True)
    expected = run_jax(seed, more=True)
    check_close(run_ours(nest), expected, 1e-10, nest)
    check_close(run_ours(nest, transform=jitcore.jit), expected, 1e-10, nest)


# -- array programs -----------------------------------------------------------------------------------------
def make_loss(program, weights, namespace):
    """A scalar function of the inputs of a program: a weighted sum of all that it computes."""

    def loss(inputs):
        outs = run_program(program, namespace, inputs)
        return sum(namespace.sum(out * w) for out, w in zip(outs, weights))

    return loss


def find_slope(loss, inputs, direction, step: float) -> float:
    above, below = (loss([x + sign * step * d for x, d in zip(inputs, direction)]) for sign in (1, -1))
    return float(above - below) / (2 * step)


def check_program(seed: int) -> bool:
    """Whether the program has a derivative at its inputs: where both sides differ, nothing is compared."""
    program, rng = make_program(seed, max_steps=8), np.random.default_rng(seed)
    inputs = [x.astype(np.float64) for x in make_inputs(program, seed)]
    outs = run_program(program, np, inputs)
    weights = [rng.standard_normal(np.shape(out)) for out in outs]
    direction = [rng.standard_normal(x.shape) for x in inputs]
    exact = make_loss(program, weights, np)
    slopes = [find_slope(exact, inputs, direction, step) for step in (1e-5, 4e-6)]
    scale = 1 + abs(slopes[0]) + np.sqrt(sum(w.size for w in weights))
    if abs(slopes[0] - slopes[1]) > 1e-7 * scale:
        return False
    label = f"seed {seed}\n{program}"
    loss, arrays = make_loss(program, weights, jnp), [jnp.asarray(x) for x in inputs]
    _, tangent = jitcore.jvp(loss, (arrays,), (direction,))
    gradient = jitcore.grad(loss)(arrays)
    assert [g.shape for g in gradient] == [x.shape for x in inputs], label
    along = sum(float(np.vdot(g, d)) for g, d in zip(gradient, direction))
    assert abs(float(tangent) - along) <= 1e-10 * scale, label
    assert abs(along - slopes[0]) <= 1e-6 * scale, label
    return True


def check_programs(seeds, least: float) -> None:
    """least: share of the programs that must be compared."""
    compared = sum(map(check_program, seeds))
    assert compared >= least * len(seeds)


@pytest.mark.parametrize("start", range(0, 150, 10))
def test_random_programs(start):
    check_programs(range(start, start + 10), 0.4)


@pytest.mark.slow
def test_many_random_programs():
    check_programs(range(10_000, 13_000), 0.6)


def test_gradients_of_programs_compiled():
    for seed in range(200, 206):
        program = make_program(seed, max_steps=6)
        inputs = [jnp.asarray(x) for x in make_inputs(program, seed)]
        weights = [np.ones(np.shape(out), np.float32) for out in run_program(program, jnp, inputs)]
        gradient = jitcore.grad(functools.partial(make_loss(program, weights, jnp)))
        for eager, compiled in zip(gradient(inputs), jitcore.jit(gradient)(inputs)):
            np.testing.assert_allclose(compiled, eager, rtol=2e-4, atol=2e-4, err_msg=f"seed {seed}")
