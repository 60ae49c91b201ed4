"""Weakly typed float64, which comes of a Python float and NumPy's int64: every rule takes it with Python's constants."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import dtypes, grad, jit, lax, numpy as jnp
from jitcore.array import ConcreteArray
from jitcore.transforms.autodiff import vjp
from tests.transforms.derivative_cases import CASES
from tests.transforms.test_derivative_rules import assert_close, draw, draw_like, flat, is_inexact

COUNTS = np.arange(1, 4)  # int64


def weaken(x):
    x = np.asarray(x)
    return ConcreteArray(x, True) if is_inexact(x) else x


def pull_back(function, values) -> list:
    outs, pull = vjp(flat(function), *values)
    rng = np.random.default_rng(1)
    return [ct for ct in pull([ConcreteArray(draw_like(out, rng), out.weak_type) for out in outs]) if is_inexact(ct)]


@pytest.mark.parametrize("name", sorted(CASES))
def test_rules_take_weak_operands(name):
    for case in CASES[name]:
        values = draw(case, 3)
        expected = pull_back(case.function, list(map(jnp.asarray, values)))
        with np.errstate(all="ignore"):
            found = pull_back(case.function, list(map(weaken, values)))
        if all(map(is_inexact, values)):  # beside integers, a weak float keeps its own dtype
            assert [x.dtype for x in found] == [x.dtype for x in expected]
        assert_close(found, list(map(np.asarray, expected)), 1e-6)


FUNCTIONS = {
    "tanh": lambda x: jnp.tanh(x * COUNTS),
    "sqrt": lambda x: jnp.sqrt(x * COUNTS) ** 2,
    "clamp": lambda x: lax.clamp(0.0, x * COUNTS, 3.0),
    "maximum": lambda x: lax.max(x * COUNTS, 0.5),
    "int32": lambda x: x * COUNTS * np.arange(3, dtype=np.int32),
    "cond": lambda x: lax.cond(x > 1, lambda v: v * 2.0, lambda v: 0.0, (x * COUNTS).sum()),
    "switch": lambda x: lax.switch(1, [lambda v: 0.0, lambda v: v], (x * COUNTS).sum()),
    "cond of a strong type": lambda x: lax.cond(x > 1, lambda: x * np.float64(3), lambda: 0.0),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.5, x * COUNTS),
    "loop that ends in a constant": lambda x: x * lax.fori_loop(0, 3, lambda i, c: 0.5, x * COUNTS[0]),
    "scan": lambda x: lax.scan(lambda c, a: (0.5, c * a), (x * COUNTS).sum(), COUNTS)[1],
    "reduce": lambda x: lax.reduce(x * COUNTS, 0.0, lax.add, (0,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_python_floats_times_int64(name):
    function = FUNCTIONS[name]
    total = lambda x: jnp.sum(function(x))  # noqa: E731
    expected, slope = (np.asarray(f(np.float64(2))) for f in (function, grad(total)))
    for transform in (lambda f: f, jit):
        assert transform(function)(2.0).dtype == np.float64
        np.testing.assert_allclose(transform(function)(2.0), expected, rtol=1e-12)
        np.testing.assert_allclose(transform(grad(total))(2.0), slope, rtol=1e-6)


def test_promotion_is_associative():
    """Which of two integers a Python float meets first does not matter."""
    wide, narrow = np.int64(3), np.int32(2)
    for values in ([1.5, wide, narrow], [1.5, narrow, wide], [wide, narrow, 1.5]):
        left = jit(lambda a, b, c: (a * b) * c)(*values)
        right = jit(lambda a, b, c: a * (b * c))(*values)
        assert left.dtype == right.dtype == dtypes.float64 and left.weak_type and right.weak_type


def test_operands_are_counted():
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        lax.sin(1.0, 2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        jitcore.jit(lax.add)(1.0)
