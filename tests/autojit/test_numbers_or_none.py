"""Variables that are a number on one way and None on another one: what has been found so far, what was not hit."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import jitcore
from jitcore.errors import AutojitWarning
from tests.autojit.checking import check

X = np.array([0.5, -1.0, 2.0, 0.25, 3.0, -0.5, 1.0, 2.5, 1.5, -2.0])
EMPTY = np.zeros(0)


def find_least(x):
    best = at = None
    for i, v in enumerate(x):
        if best is None or v < best:
            best, at = v, i
    return best, at


def find_first(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return None


def find_last(x, limit):
    found = None
    for i in range(len(x)):
        if x[i] > limit:
            found = i
    if found is None:
        return -1
    return found


def hit(x, radius):
    d = radius * radius - x * x
    if d < 0:
        return None
    t = math.sqrt(d)
    return t if t > 1e-6 else None


def trace(n, radii):
    total = 0.0
    for k in range(n):
        nearest = which = None
        for j in range(len(radii)):
            t = hit(k * 0.25 - 2, radii[j])
            if t is not None and (nearest is None or t < nearest):
                nearest, which = t, j
        if nearest is None:
            continue
        total += nearest * (which + 1)
    return total


def sum_steps(x):
    before, total = None, 0.0
    for v in x:
        if before is not None:
            total += abs(v - before)
        before = v
    return total, before


def count_rises(x):
    last, count = None, 0
    for v in x:
        if not last or v > last:
            count += 1
        last = v
    return count


def compare_with_none(x):
    before, count = None, 0
    for v in x:
        count += (v == before) + 10 * (before == None) + 100 * (before != v)  # noqa: E711
        before = round(v)
    return count


def forget(x):
    t = None
    for v in x:
        if v > 0.5:
            t = v
        elif v < 0:
            t = None
    return t


def show(x):
    best = None
    for v in x:
        if v > 1:
            best = v
    return f"{best}", best is None, [best], {"best": (best, 1)}


def compute(x):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return (np.sqrt(best), math.floor(best), float(best), min(best, 0.5), max(0.1, best), int(best * 10), -best,
            best**2, best // 0.1, 1 + best, np.maximum(best, x), x * best)


def take(x):
    k = None
    for i in range(len(x)):
        if x[i] > 2:
            k = i
    return x[k], x[:k].sum(), x[k:].sum()


def cut(x, kind):
    """Floats are no bounds of slices, None is one."""
    k = None
    for i in range(len(x)):
        if x[i] > 2:
            k = kind(i)
    return x[:k].sum()


def mix(x, n):
    value = None
    for i in range(n):
        if i % 3 == 0:
            value = None
        elif i % 3 == 1:
            value = i
        else:
            value = x[i]
    return value


CASES = [(find_least, X), (find_least, EMPTY), (find_least, [3, 1, 2]), (find_first, X, 2.2), (find_first, X, 9.0), (find_last, X, 0.0),
         (find_last, X, 9.0), (trace, 20, np.array([1.0, 0.5, 2.0])), (sum_steps, X), (sum_steps, EMPTY), (count_rises, X),
         (compare_with_none, X), (forget, X), (forget, X[:3]), (show, X), (show, X - 9), (compute, X), (take, X), (cut, X, int), (cut, X, np.int64), (cut, X - 9, int),
         (mix, X, 7), (mix, X, 8),
         (mix, X, 9)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}{len(case[1]) if hasattr(case[1], '__len__') else ''}")
def test_is_as_python(case):
    function, *arguments = case
    check(function, *arguments)


@pytest.mark.parametrize("use, name", [(lambda v: v + 1, "TypeError"), (lambda v: v < 1, "TypeError"), (lambda v: v.real, "AttributeError"),
                                       (lambda v: X[v : v + 1].sum(), "TypeError"), (lambda v: math.sqrt(v), "TypeError"),
                                       (lambda v: np.sqrt(v), "TypeError")])
def test_none_where_a_number_is_needed_is_pythons_error(use, name):
    def find(x, limit):
        found = None
        for i in range(len(x)):
            if x[i] > limit:
                found = i
        return use(found)

    compiled = jitcore.autojit(find, strict=True)
    assert repr(compiled(X, 2.9)) == repr(find(X, 2.9))
    with pytest.raises(Exception) as wanted:
        find(X, 9.0)
    with pytest.raises(Exception) as found:
        compiled(X, 9.0)
    assert type(found.value).__name__ == name == type(wanted.value).__name__
    assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("shift", [0, 9])
def test_floats_and_none_as_bounds_of_slices(shift):
    """Which is left to Python: there the floats are an error, and None is not."""
    def run(function):
        try:
            return function(X - shift, float)
        except TypeError as error:
            return str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutojitWarning)
        assert run(jitcore.autojit(cut)) == run(cut)


@pytest.mark.parametrize("function, count", [(find_least, 4), (sum_steps, 3), (forget, 2)])
def test_what_is_asked_before_cannot_fail(function, count):
    """Where None was ruled out no output says whether the program failed."""
    compiled = jitcore.autojit(function, strict=True)
    compiled(X)
    outputs = compiled.inspect("optimized jaxpr").rpartition("in (")[2]
    assert len(outputs.split(",")) == count
