"""Large programs with writes in place: compiled as what is written without writes is, no longer and no slower."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import jitcore
from benchmarks.autojitting import make_program
from benchmarks.workloads.models import MODELS
from jitcore import autojit, jit
from jitcore.rewriter.control_flow import driver
from tests.autojit.checking import check
from tests.autojit.test_many_values import descend


def count(compiled) -> tuple[int, int]:
    """(operations, kernels)."""
    return compiled.inspect("jaxpr").count(" = "), compiled.inspect("loop program").count("kernel")


@pytest.mark.parametrize("name", MODELS)
def test_writes_in_place_cost_nothing(name):
    function, build, make_inputs, _, side = MODELS[name]
    arguments = make_inputs(side)
    plain = [np.array(value) for value in arguments]
    expected = function(*plain)
    in_place, functional = autojit(strict=True)(function), jit(build(jitcore))
    given = [np.array(value) for value in arguments]
    for found in (in_place(*given), functional(*arguments)):
        for one, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-6, atol=1e-9 * np.abs(right).max())
    for one, right in zip(given, plain):
        np.testing.assert_array_equal(one, right)
    operations, kernels = count(in_place)
    other_operations, other_kernels = count(functional)
    assert operations > 300
    assert operations <= 1.2 * other_operations and kernels <= 1.2 * other_kernels


def tapers(x, n):
    out = np.zeros_like(x)
    for side in range(2):
        for up in range(3):
            start = 1 if up == 1 else 0
            out[1:-1] += x[side : -2 + side] * (up + 1)
            out[start:] += x[start:] / (1 + up + side)
    for _ in range(n):
        out[1:] *= x[:-1]
    return out


def finds(x):
    for k in range(3):
        if x[k] > 0.5:
            break
        x[k] = -1.0
    return x, k


def test_loops_of_few_iterations_are_none_in_the_program():
    compiled = check(tapers, np.linspace(0.1, 1, 9), 5)
    assert count_loops(compiled) == 1
    for values in ([0.1, 0.7, 0.2], [0.1, 0.2, 0.3]):
        check(finds, np.array(values))


def test_loops_of_long_bodies_stay_loops(monkeypatch):
    monkeypatch.setattr(driver, "MAX_INSTRUCTIONS", 20)
    compiled = check(lambda x, n: tapers(x, n), np.linspace(0.1, 1, 9), 5)
    assert count_loops(compiled) == 3


def relax(x):
    for _ in range(3):
        x = 0.5 * x + np.sin(x)
    for stage in range(3):
        x[stage:] = x[stage:] / (1 + stage)
    for stage in range(3):
        x = x / (1 + stage)
    for place in range(4):
        x[place] += 1
    return x


def test_loops_without_slices_that_differ_stay_loops():
    assert count_loops(check(relax, np.linspace(0.1, 1, 9))) == 3


def count_loops(compiled) -> int:
    jaxpr = compiled.inspect("jaxpr")
    return jaxpr.count("while[") + jaxpr.count("scan[")


def count_python_calls(program, *arguments) -> int:
    """Calls of Python functions while a program is compiled."""
    counts = [0]

    def note(frame, event, argument):
        counts[0] += event == "call"

    compiled = autojit(strict=True)(program)
    sys.setprofile(note)
    try:
        compiled(*arguments)
    finally:
        sys.setprofile(None)
    return counts[0]


@pytest.mark.parametrize("kind", ["statements", "arrays"])
def test_compiling_takes_linear_time(kind):
    """But for what LLVM does, of which functions stay short."""
    counts = []
    for number in (8, 24, 48, 96):  # the first one loads modules
        if kind == "statements":
            counts.append(count_python_calls(make_program(number), *np.random.default_rng(0).random((2, 100))))
        else:
            state = [{f"p{k}": np.full(3 + k % 5, 0.1) for k in range(number)} for _ in range(2)]
            counts.append(count_python_calls(descend, *state))
    _, once, twice, four_times = counts
    assert twice < 2.2 * once and four_times < 2.2 * twice, counts
