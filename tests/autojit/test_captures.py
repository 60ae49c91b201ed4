"""Global, closure and module variables: later calls see their values of then."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same

FACTOR = 2.0
TABLE = np.arange(3.0)
SETTINGS = {"shift": 1, "weights": np.ones(3)}
COUNT = 0


def helper(x):
    return x * FACTOR + TABLE


def use_globals(x):
    return helper(x) + SETTINGS["shift"]


def write_globals(x):
    global COUNT
    COUNT += 1
    TABLE[0] = x[1]
    SETTINGS["weights"] *= 2
    return COUNT


@pytest.fixture
def variables(monkeypatch):
    for name, value in {"FACTOR": 2.0, "TABLE": np.arange(3.0), "COUNT": 0,
                        "SETTINGS": {"shift": 1, "weights": np.ones(3)}}.items():
        monkeypatch.setitem(globals(), name, value)
    return monkeypatch


def test_global_variables_are_read_anew(variables):
    x = np.ones(3)
    compiled = jitcore.autojit(use_globals, strict=True)
    for _ in range(2):
        assert_same(use_globals(x), compiled(x))
    TABLE[1] = 50
    assert_same(use_globals(x), compiled(x))
    assert compiled.cache_info().traces == 1
    for name, value in [
        ("FACTOR", 3.0),
        ("TABLE", np.full(3, 9.0)),
        ("FACTOR", 2),
        ("SETTINGS", {"shift": 2.5}),
    ]:
        variables.setitem(globals(), name, value)
        assert_same(use_globals(x), compiled(x))
    variables.setitem(globals(), "helper", lambda x: x)
    assert_same(use_globals(x), compiled(x))


def test_global_variables_are_set(variables):
    x = np.array([1.0, 4.0])
    compiled = jitcore.autojit(write_globals, strict=True)
    table, weights = TABLE, SETTINGS["weights"]
    assert [compiled(x) for _ in range(4)] == [1, 2, 3, 4]
    assert COUNT == 4 and TABLE is table and TABLE[0] == 4
    assert SETTINGS["weights"] is weights and weights[0] == 16


def test_closure_variables():
    count, values = 0, np.zeros(3)

    def f(x):
        nonlocal count, values
        count += 1
        values = values + x
        return values.sum()

    compiled = jitcore.autojit(f, strict=True)
    assert [compiled(np.ones(3)) for _ in range(5)] == [3, 6, 9, 12, 15]
    assert count == 5 and values[0] == 5
    values = np.zeros(4)
    assert compiled(2 * np.ones(4)) == 8


def test_variables_of_modules(monkeypatch):
    module = types.ModuleType("user_constants")
    module.rate, module.table = 0.5, np.ones(2)
    monkeypatch.setitem(sys.modules, "user_constants", module)
    module.__file__ = "/nowhere/user_constants.py"

    def f(x):
        return x * module.rate + module.table

    compiled = jitcore.autojit(f, strict=True)
    assert_same(f(np.ones(2)), compiled(np.ones(2)))
    module.rate = 2.0
    module.table[0] = 7
    assert_same(f(np.ones(2)), compiled(np.ones(2)))


def test_defaults_of_helpers():
    weights = np.ones(3)

    def inner(x, w=weights, *, scale=2.0):
        return x * w * scale

    def f(x):
        return inner(x)

    compiled = jitcore.autojit(f, strict=True)
    assert_same(f(np.ones(3)), compiled(np.ones(3)))
    weights[:] = 5
    assert_same(f(np.ones(3)), compiled(np.ones(3)))
    inner.__kwdefaults__["scale"] = 3.0
    assert_same(f(np.ones(3)), compiled(np.ones(3)))


def test_inner_functions_and_recursion():
    def f(x, depth):
        def add(y):
            return y + x

        return add(x) if depth == 0 else f(add(x), depth - 1)

    compiled = jitcore.autojit(f, strict=True)
    assert_same(f(np.ones(2), 3), compiled(np.ones(2), 3))


def test_undefined_variable():
    def f(x):
        return x + undefined_name  # noqa: F821

    with pytest.raises(NameError, match="undefined_name"):
        jitcore.autojit(f)(1.0)


class Scheme:
    """Its variables belong to the class."""

    order = 2
    weights = np.array([1.0, 2.0, 1.0])

    def apply(self, x):
        return (self.weights * 2 * x).sum() * self.order


def test_variables_of_classes(monkeypatch):
    monkeypatch.setattr(Scheme, "weights", Scheme.weights.copy())
    compiled = jitcore.autojit(Scheme.apply, strict=True)
    scheme, x = Scheme(), np.arange(3.0)
    assert compiled(scheme, x) == scheme.apply(x)
    Scheme.weights[1] = 50
    assert compiled(scheme, x) == scheme.apply(x)
    assert compiled.cache_info().traces == 1
    monkeypatch.setattr(Scheme, "order", 3)
    assert compiled(scheme, x) == scheme.apply(x)
    assert vars(scheme) == {}


def test_arrays_that_come_up_as_attributes(monkeypatch):
    def f(x):
        return x + f.table

    f.table = np.ones(3)
    compiled = jitcore.autojit(f, strict=True)
    assert_same(f(np.zeros(3)), compiled(np.zeros(3)))


def test_grids():
    def f(x):
        i, j = np.mgrid[0:3, 0:4]
        k = np.r_[0:3]
        return x[i, j] * i + k[:, None], np.ogrid[0:2]

    compiled = jitcore.autojit(f, strict=True)
    x = np.arange(12.0).reshape(3, 4)
    assert_same(f(x), compiled(x))
    assert_same(f(x), compiled(x))


def test_array_of_unknown_extent():
    def f(x):
        return x[x > 1], x[x > 5].sum()

    compiled = jitcore.autojit(f, strict=True)
    for x in (np.arange(6.0), np.zeros(6), np.arange(6.0)[::-1]):
        assert_same(f(x), compiled(x))
    assert compiled.cache_info().traces == 2  # the last one is not contiguous
