"""Rules of differentiation of every primitive of the registry, in float64: tangents against central
differences, cotangents against tangents, second derivatives, compiled against eager."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import jit
from jitcore.core.primitive import registry
from jitcore.dtypes import float0
from jitcore.transforms.autodiff import jvp, vjp
from jitcore.tree_util import tree_flatten
from tests.transforms.derivative_cases import CASES, ELSEWHERE, NOT_DIFFERENTIABLE

PARAMS = [pytest.param(name, case, id=f"{name}-{i}")
          for name, cases in sorted(CASES.items()) for i, case in enumerate(cases)]
STEP = 1e-5
# The second derivative by a is not known.
WITHOUT_SECOND = {"igamma", "igammac"}


def draw(case, seed: int) -> list:
    rng = np.random.default_rng(seed)
    return [operand.draw(rng, 1, None) for operand in case.operands]


def is_inexact(x) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def draw_like(x, rng):
    """A random direction in the space of derivatives of x."""
    x = np.asarray(x)
    if not is_inexact(x):
        return np.zeros(x.shape, float0)
    value = rng.standard_normal(x.shape)
    return (value + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else value).astype(x.dtype)


def flat(function):
    """The inexact results of a function, as a list of arrays."""
    return lambda *values: [x for x in tree_flatten(function(*values))[0] if is_inexact_aval(x)]


def is_inexact_aval(x) -> bool:
    return jitcore.core.jaxpr.aval_of(x).dtype.kind in "fc"


def move(values, directions, step: float) -> list:
    return [x + step * d if is_inexact(x) else x for x, d in zip(values, directions)]


def difference(function, values, directions) -> list[np.ndarray]:
    """The derivative along a direction by central differences."""
    after, before = (function(*move(values, directions, step)) for step in (STEP, -STEP))
    return [(np.asarray(a) - np.asarray(b)) / (2 * STEP) for a, b in zip(after, before)]


def pair(cotangents, tangents) -> float:
    """The real pairing of derivatives; neither side is conjugated."""
    return sum(float(np.sum(np.asarray(c) * np.asarray(t)).real)
               for c, t in zip(cotangents, tangents) if np.asarray(c).dtype.kind in "fc")


def assert_close(actual, expected, tolerance):
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected):
        got = np.asarray(got)
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_every_primitive_has_cases_or_no_derivative():
    assert set(CASES).isdisjoint(NOT_DIFFERENTIABLE)
    assert set(registry) == set(CASES) | set(NOT_DIFFERENTIABLE) | ELSEWHERE


@pytest.mark.parametrize("name", sorted((set(CASES) | ELSEWHERE) - {"empty"}))
def test_rule_exists(name):
    assert registry[name].jvp is not None


@pytest.mark.parametrize("name, case", PARAMS)
def test_tangent_equals_central_differences(name, case):
    for seed in (1, 2):
        values = draw(case, seed)
        rng = np.random.default_rng(seed)
        directions = [draw_like(x, rng) for x in values]
        function = flat(case.function)
        outs, tangents = jvp(function, values, directions)
        assert [x.dtype for x in map(np.asarray, outs)] == [x.dtype for x in map(np.asarray, tangents)]
        assert_close(tangents, difference(function, values, directions), 2e-6)


@pytest.mark.parametrize("name, case", PARAMS)
def test_tangents_of_some_operands(name, case):
    """Operands without tangent take the way of symbolic zeros."""
    values = draw(case, 3)
    places = [i for i, x in enumerate(values) if is_inexact(x)]
    rng = np.random.default_rng(3)
    directions = [draw_like(x, rng) for x in values]
    function = flat(case.function)
    total = jvp(function, values, directions)[1]
    parts = []
    for i in places:
        chosen = lambda x, i=i: function(*values[:i], x, *values[i + 1 :])  # noqa: E731
        parts.append(jvp(chosen, [values[i]], [directions[i]])[1])
    sums = [sum(map(np.asarray, column)) for column in zip(*parts)]
    assert_close(total, sums, 1e-9)


@pytest.mark.parametrize("name, case", PARAMS)
def test_cotangent_is_adjoint_to_tangent(name, case):
    values = draw(case, 4)
    rng = np.random.default_rng(4)
    directions = [draw_like(x, rng) for x in values]
    function = flat(case.function)
    tangents = jvp(function, values, directions)[1]
    outs, pull_back = vjp(function, *values)
    cotangents = [draw_like(x, rng) for x in outs]
    found = pull_back(cotangents)
    for ct, x in zip(found, values):
        ct, x = np.asarray(ct), np.asarray(x)
        assert ct.shape == x.shape and ct.dtype == (x.dtype if is_inexact(x) else float0)
    np.testing.assert_allclose(pair(found, directions), pair(cotangents, tangents), rtol=1e-9, atol=1e-9)


def is_linear(function, x, direction) -> bool:
    after, at, of = (function(value) for value in (x + direction, x, direction))
    return all(np.allclose(np.asarray(a) - np.asarray(b), np.asarray(c), rtol=1e-9, atol=1e-9)
               for a, b, c in zip(after, at, of))


@pytest.mark.parametrize("name, case", [p for p in PARAMS if registry[p.values[0]].transpose is not None])
def test_transposition_of_linear_operands_equals_the_cotangent(name, case):
    """By one operand at a time, wherever the function is linear in it."""
    values = draw(case, 7)
    rng = np.random.default_rng(7)
    function = flat(case.function)
    for place, x in enumerate(values):
        chosen = lambda v, i=place: function(*values[:i], v, *values[i + 1 :])  # noqa: E731
        if not is_inexact(x) or not is_linear(chosen, x, draw_like(x, rng)):
            continue
        outs, pull_back = vjp(chosen, x)
        cotangents = [draw_like(out, rng) for out in outs]
        transposed = jitcore.linear_transpose(chosen, x)(cotangents)
        assert_close(transposed, [np.asarray(ct) for ct in pull_back(cotangents)], 1e-9)


@pytest.mark.parametrize("name, case", [p for p in PARAMS if p.values[0] not in WITHOUT_SECOND])
def test_second_derivative_equals_differences_of_the_first(name, case):
    values = draw(case, 5)
    rng = np.random.default_rng(5)
    directions = [draw_like(x, rng) for x in values]
    function = flat(case.function)
    cotangents = [draw_like(x, rng) for x in function(*values)]

    def first(*xs):
        found = vjp(function, *xs)[1](cotangents)
        return [ct for ct in found if is_inexact_aval(ct)]

    tangents = jvp(first, values, directions)[1]
    assert_close(tangents, difference(first, values, directions), 2e-5)


@pytest.mark.parametrize("name, case", PARAMS)
def test_compiled_derivative_equals_eager(name, case):
    values = draw(case, 6)
    rng = np.random.default_rng(6)
    function = flat(case.function)
    cotangents = [draw_like(x, rng) for x in function(*values)]

    def first(cts, *xs):
        return [ct for ct in vjp(function, *xs)[1](cts) if is_inexact_aval(ct)]

    expected = [np.asarray(x) for x in first(cotangents, *values)]
    assert_close(jit(first)(cotangents, *values), expected, 1e-9)
