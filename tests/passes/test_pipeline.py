"""The whole pipeline and each of its passes on random programs: results, types and effects stay."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from jitcore import lax
from jitcore.config import config
from jitcore.core.check import JaxprTypeError, check_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ShapedArray, count_primitives
from jitcore.core.trace import to_numpy
from jitcore.passes import PIPELINE, Pass, run_pipeline
from tests.passes.programs import (AVALS, CODES, F32, INPUTS, RandomProgram, assert_bitwise_equal, check_pass,
                                   count_calls, make_args, names, trace)

RANDOM = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("step", PIPELINE, ids=lambda step: step.name)
@RANDOM
@given(codes=CODES, inputs=INPUTS)
def test_each_pass_preserves_random_programs(step, codes, inputs):
    program = RandomProgram(codes)
    check_pass(step.run, trace(program, *AVALS), *make_args(inputs))
    half = len(program.log) // 2
    assert np.array_equal(program.log[:half], program.log[half:], equal_nan=True)


@RANDOM
@given(codes=CODES, inputs=INPUTS)
def test_pipeline_preserves_random_programs(codes, inputs):
    program = RandomProgram(codes)
    closed = trace(program, *AVALS)
    with config.override(check_jaxprs=True):
        optimized = check_pass(run_pipeline, closed, *make_args(inputs))
    half = len(program.log) // 2
    assert np.array_equal(program.log[:half], program.log[half:], equal_nan=True)
    assert "jit" not in names(optimized)


@RANDOM
@given(codes=CODES, inputs=INPUTS)
def test_random_programs_trace_to_what_they_compute_eagerly(codes, inputs):
    program, args = RandomProgram(codes), make_args(inputs)
    eager = [to_numpy(out) for out in program(*args)]
    log, program.log[:] = list(program.log), []
    assert_bitwise_equal(run_jaxpr_numpy(trace(program, *AVALS), args), eager)
    assert np.array_equal(program.log, log, equal_nan=True)


def test_pipeline_is_stable():
    """A second run finds nothing more in a typical program."""

    def selu(x):
        y = lax.mul(lax.add(x, -0.0), 1.0)
        return [lax.select(lax.gt(y, 0.0), x, lax.mul(F32.dtype.type(1.67), lax.sub(lax.exp(y), 1.0)))]

    once = run_pipeline(trace(selu, F32))
    assert str(run_pipeline(once)) == str(once)
    assert names(once) == ["gt", "exp", "sub", "mul", "select_n"]


@pytest.mark.parametrize("step", [step for step in PIPELINE if step.needs], ids=lambda step: step.name)
def test_programs_without_what_a_pass_needs_stay(step):
    closed = trace(lambda x: [lax.sin(lax.mul(x, 2.0))], F32)
    assert not step.applies_to(count_primitives(closed.jaxpr))
    assert step.run(closed) is closed


def test_a_program_runs_only_what_may_change_it(monkeypatch):
    ran = []

    def note(step):
        return step._replace(run=lambda closed: ran.append(step.name) or step.run(closed))

    run_pipeline(trace(lambda x: [lax.select(lax.gt(x, 0.0), x, lax.exp(x))], F32), list(map(note, PIPELINE)))
    assert ran == ["fold", "simplify", "cse", "dce"]
    del ran[:]

    def sum_up(x):
        return [lax.fori_loop(0, 9, lambda i, total: total + lax.reduce_sum(x, (0,)), x[0])]

    run_pipeline(trace(sum_up, ShapedArray((8,), F32.dtype)), list(map(note, PIPELINE)))
    assert "intervals" in ran and "variances" in ran and "pads" not in ran


def test_a_pass_that_breaks_a_program_is_named(monkeypatch):
    def break_program(closed):
        eqn = closed.eqns[0]
        return type(closed)(closed.jaxpr.replace(eqns=[eqn, eqn]), closed.consts)

    monkeypatch.setattr("jitcore.passes.PIPELINE", (Pass("vandal", break_program, "a test"),))
    closed = trace(lambda x: [lax.sin(x)], F32)
    with config.override(check_jaxprs=True), pytest.raises(JaxprTypeError, match="vandal"):
        run_pipeline(closed)


def build_chain(length):
    """Distinct equations, equal ones, dead ones and neutral ones, `length` of each."""

    def chain(x):
        for i in range(length):
            x = lax.add(lax.mul(x, 1.0), lax.mul(lax.sin(x), np.float32(i)))
            lax.cos(x)
        return [x]

    return trace(chain, F32)


@pytest.mark.parametrize("step", PIPELINE, ids=lambda step: step.name)
def test_work_is_linear(step):
    """Eight times the equations take about eight times the calls, and not sixty-four times."""
    small, large = (count_calls(step.run, build_chain(length)) for length in (60, 480))
    assert large < 12 * small + 1000


def test_ten_thousand_equations():
    closed = build_chain(2000)
    assert len(closed.eqns) == 10_000
    optimized = run_pipeline(closed)
    check_jaxpr(optimized)
    counts = {name: len(list(group)) for name, group in itertools.groupby(sorted(names(optimized)))}
    assert counts == {"add": 2000, "mul": 1999, "sin": 2000}
