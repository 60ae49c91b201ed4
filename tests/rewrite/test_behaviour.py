"""Exceptions, unbound variables, containers, objects under traced conditions: as in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import grad, jit, make_jaxpr, vmap
from jitcore.errors import ConcretizationTypeError
from jitcore.rewriter.errors import ControlFlowError
from jitcore.rewriter.functions import rewrite_function
from tests.rewrite.behaviour_cases import CASES

CALLS = [pytest.param(function, inputs, id=f"{section}-{function.__name__}{inputs}")
         for section, function, cases in CASES for inputs in cases]


def find_outcome(function, inputs):
    """What a call gives: its result, or (class, text) of what it raises."""
    try:
        return function(*inputs)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(("function", "inputs"), CALLS)
def test_behaviour_is_that_of_python(function, inputs):
    expected = find_outcome(function, inputs)
    assert find_outcome(rewrite_function(function), inputs) == expected
    found = find_outcome(jit(function, rewrite=True), inputs)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        np.testing.assert_allclose(found, expected)


# -- exceptions ---------------------------------------------------------------------------------------------
def check(x):
    if x < 0:
        raise ValueError("negative")
    return x * x


def test_one_program_raises_for_some_values_only():
    checked = jit(check, rewrite=True)
    assert checked(2.0) == 4.0
    with pytest.raises(ValueError, match="negative") as caught:
        checked(-2.0)
    assert any("raised at" in note and "in check()" in note for note in caught.value.__notes__)
    assert checked(3.0) == 9.0
    assert checked.cache_info().misses == 1


def test_exceptions_and_transformations():
    checked = rewrite_function(check)
    values = np.array([1.0, 2.0, 3.0], np.float32)
    for wrap in (lambda f: f, jit):
        np.testing.assert_allclose(wrap(vmap(checked))(values), values**2)
        np.testing.assert_allclose(wrap(grad(checked))(3.0), 6.0)
        np.testing.assert_allclose(wrap(vmap(grad(checked)))(values), 2 * values)
        for function, argument in ((vmap(checked), values - 2), (grad(checked), -1.0)):
            with pytest.raises(ValueError, match="negative"):
                wrap(function)(argument)


def test_the_code_behind_a_check_is_in_no_branch():
    def compute(x):
        assert x > 0
        if x > 100:
            raise ValueError("large")
        return jnp.sin(x) * 2

    names = [eqn.primitive.name for eqn in make_jaxpr(rewrite_function(compute))(1.0).eqns]
    assert "cond" not in names and names.count("raise_if") == 2


def test_variables_that_are_bound_where_they_are_used_need_no_check():
    def compute(x):
        if x > 0:
            y = x
        if x > 0:
            x = x + y
        return x

    assert "raise_if" not in str(make_jaxpr(rewrite_function(compute))(1.0))


def test_an_exception_that_a_caller_may_catch_is_refused():
    def guess(x):
        try:
            return check(x)
        except ValueError:
            return 0 * x

    with pytest.raises(ControlFlowError, match="ValueError is raised .* a caller may catch it"):
        jit(guess, rewrite=True)(1.0)


def test_an_exception_of_something_untraceable_is_raised_while_tracing():
    def compute(x):
        if x > 0:
            try:
                x.item()
            except ConcretizationTypeError:
                raise ValueError("no item") from None
        return x

    with pytest.raises(ValueError, match="no item"):
        jit(compute, rewrite=True)(-1.0)
