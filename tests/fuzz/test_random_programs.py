"""Whole random programs: what jit on the CPU backend gives, and each stage of the compiler on the way to it, against
eager execution, the recorded program and NumPy in float64."""

import functools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import jitcore
import jitcore.numpy as jnp
from tests.fuzz.programs import make_inputs, make_program, run_program
from tests.oracles import find_faults

COMMON = dict(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def compare(actual, expected, tolerance, label):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        a, e = np.asarray(a), np.asarray(e)
        assert a.shape == e.shape, label
        np.testing.assert_allclose(a.astype(np.float64), e.astype(np.float64), rtol=tolerance, atol=tolerance,
                                   err_msg=label)


def check_program(seed: int) -> None:
    program = make_program(seed)
    inputs = make_inputs(program, seed)
    function = functools.partial(run_program, program, jnp)
    compiled = jitcore.jit(function)(inputs)
    label = f"seed {seed}\n{program}"
    eager = function([jnp.asarray(x) for x in inputs])
    assert [a.dtype for a in compiled] == [np.asarray(e).dtype for e in eager], label
    assert [a.weak_type for a in compiled] == [getattr(e, "weak_type", False) for e in eager], label
    compare(compiled, eager, 2e-5, label)
    faults = find_faults(function, [inputs], tolerance=3, size=1)
    assert not faults, f"{label}\n{faults}"
    exact = run_program(program, np, [x.astype(np.float64) for x in inputs])
    compare(compiled, exact, 2e-4, label)


@settings(max_examples=80, **COMMON)
@given(st.integers(0, 2**32 - 1))
def test_random_programs(seed):
    check_program(seed)


@pytest.mark.slow
@settings(max_examples=5000, **COMMON)
@given(st.integers(2**32, 2**40))
def test_many_random_programs(seed):
    check_program(seed)
