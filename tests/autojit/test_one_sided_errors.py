"""Errors on one side of a traced condition: the program serves the calls that do not come there."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import autojit

LARGE = 100.0


def index(x, n):
    total = 0.0
    if x[0] > LARGE:
        total = x[10]
    return total


def store(x, n):
    made = np.zeros(3)
    if x[0] > LARGE:
        made[1] = x
    return made


def shapes(x, n):
    if x[0] > LARGE:
        return x + np.ones(3)
    return x


def in_a_loop(x, n):
    for i in range(4):
        if x[i] > LARGE:
            return x[:, i]
    return x * 2


def in_a_while(x, n):
    i, total = 0, 0.0
    while i < 4 and x[i] < LARGE:
        if x[i] > LARGE / 2:
            total += n[i]
        i += 1
    return total, i


def attribute(x, n):
    return x.foo if x[0] > LARGE else x * 2


def length(x, n):
    return len(5) if x[0] > LARGE else x * 2


def matrix(x, n):
    return np.linalg.inv(x) if x[0] > LARGE else x * 2


def key(x, n):
    return {"a": 1}["b"] if x[0] > LARGE else x * 2


def name(x, n):
    return nowhere if x[0] > LARGE else x * 2  # noqa: F821


def after_writes(x, n):
    x[1] = 7
    if x[0] > LARGE:
        x[2] = 8
        x[9] = 9
    x[3] = 10
    return x


def caught(x, n):
    try:
        if x[0] > LARGE:
            x[1] = 5
            return x[10]
    except IndexError as error:
        return str(error), x
    return x


def number(x, n):
    return n[0] if x[0] > LARGE else n + 1


def float_as_index(x, n):
    i = 2 if x[0] < LARGE else 1.0
    x[i] += 5
    return x[i], i


def float_as_count(x, n):
    total = 0.0
    for i in range(3 if x[0] < LARGE else 3.0):
        total += x[i]
    return total


def both_sides(x, n):
    return x[10] if x[0] > LARGE else x.foo


COMPILED = [index, store, shapes, in_a_loop, in_a_while, attribute, length, matrix, key, name, after_writes, number,
            float_as_index, float_as_count]


def run(function, x):
    try:
        found = function(x, 1.5)
    except Exception as error:
        return type(error), str(error), x.tolist()
    return [np.asarray(one).tolist() for one in (found if isinstance(found, tuple) else (found,))], x.tolist()


@pytest.mark.parametrize("function", [*COMPILED, caught, both_sides])
@pytest.mark.parametrize("values", [np.arange(4.0), np.arange(4.0)[::-1] * 100, np.array([60.0, 70, 200, 1])])
@pytest.mark.filterwarnings("ignore::jitcore.autojitted.AutojitWarning")
def test_errors_are_those_of_python(function, values):
    compiled = autojit(function)
    for x in (values, np.arange(4.0), values * 10, values):
        assert run(compiled, x.copy()) == run(function, x.copy())


@pytest.mark.parametrize("function", COMPILED)
def test_the_other_side_is_compiled(function):
    compiled = autojit(function, strict=True)
    assert run(compiled, np.arange(4.0)) == run(function, np.arange(4.0))
    assert run(compiled, np.arange(4.0) + 200) == run(function, np.arange(4.0) + 200)
