"""`range`, `enumerate` and `zip` of traced values, used otherwise than by a loop, and the types of traced values
are what Python has there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from jitcore import autojit, jit
from jitcore.errors import AutojitWarning, ControlFlowError, NotTraceable

X = np.arange(6.0)


def lengths(x, n):
    r = range(n)
    try:
        length = len(r)
    except TypeError:
        length = -1
    total = sum([x[i] for i in r])
    for i in r:
        total += x[i]
    return length, total


USES = {
    "length": lengths,
    "text": lambda x, n: (str(range(n)), f"{range(n)}", x[0]),
    "comparison": lambda x, n: (range(n) == range(3), range(n) != range(3), x[0]),
    "truth": lambda x, n: (range(n) or "empty", x[0] if range(n) else x[1]),
    "items": lambda x, n: (range(n + 1)[-1], range(n + 4)[1:3], range(n).stop, range(n + 1).index(0), x[0]),
    "type": lambda x, n: (isinstance(range(n), range), type(range(n)).__name__, range(n).__class__, x[0]),
    "types of numbers": lambda x, n: (x.__class__, x[0].__class__.__name__, int(x[n]).__class__, n.__class__),
    "text that becomes a number": lambda x, n: (int(str(int(x[0]) + n)), float(f"{x[0]:.2f}")),
    "error where it is not met": lambda x, n: x[0] if x[0] < 1 else x[7],
    "contents": lambda x, n: (list(range(n)), tuple(reversed(range(n))), 2 in range(n), sorted(range(n)), x[0]),
    "zip": lambda x, n: (list(zip(x, range(n))), dict(enumerate(range(n)))),
    "number of the program": lambda x, n: str(range(int(x[3]) + n)),
}


@pytest.mark.parametrize("name", USES)
def test_answers_are_those_of_python(name):
    function, compiled = USES[name], autojit(USES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutojitWarning)
        for n in (2, 3, 4, 5, 0, 1):
            assert compiled(X.copy(), n) == function(X, n)


def test_what_python_does_not_raise_is_a_refusal():
    with pytest.raises(NotTraceable):
        autojit(USES["text that becomes a number"], strict=True)(X.copy(), 2)


@pytest.mark.parametrize("use", [str, bool, lambda r: r == 3, lambda r: r[0], lambda r: r.stop])
def test_refused_without_numpys_semantics(use):
    with pytest.raises(ControlFlowError, match=r"uses a range\(\) of traced values|its length|test of"):
        jit(lambda n: use(range(n)), rewrite=True)(3)
    assert jit(lambda n: isinstance(range(n), range), rewrite=True)(3)


def add_pairs(x, y):
    total, seen = 0.0, []
    try:
        for a, b in zip(x, y, strict=True):
            total += a * b
    except ValueError as error:
        seen.append(str(error))
    return total, seen, [a + b for a, b in zip(x[:2], y[:2], strict=True)]


@pytest.mark.parametrize("x, y", [
    (np.arange(3.0), np.ones(3)), (np.arange(3.0), np.ones(2)), (np.arange(2.0), np.ones(5)), (np.arange(4.0), range(4)),
    (range(30), np.arange(31.0)), (np.arange(1.0), np.ones(2)), ([1.5, 2.0, 3.0], np.ones(2))])
def test_strict_zips_of_other_lengths_raise(x, y):
    def run(function):
        try:
            return repr(function(x, y))
        except ValueError as error:
            return str(error)

    compiled = autojit(add_pairs)
    assert [run(compiled), run(compiled)] == [run(add_pairs)] * 2


def test_strict_zips_of_traced_lengths_are_refused():
    with pytest.raises(ControlFlowError, match="strict=True"):
        jit(lambda x, n: [a for a, _ in zip(x, range(n), strict=True)], rewrite=True)(np.ones(3), 3)


def add_squares(a, b, step):
    total = 0.0
    for v in np.arange(a, b, step):
        total += v * v
    return total


def number_them(a, b, step):
    last, weighted = a, 0.0
    for k, v in enumerate(np.arange(a, b, step)):
        weighted, last = weighted + k * v, v
    return weighted, last


def find_least(a, b, step):
    least, count = np.inf, 0
    for v in np.arange(a, b, step):
        for w in np.arange(-1.0, v, 0.2):
            least, count = min(least, v * w - w * w), count + 1
    return least, count


@pytest.mark.parametrize("function", [add_squares, number_them, find_least])
def test_loops_over_floats_of_which_the_number_is_traced(function):
    """The very floats that NumPy makes: start + k * ((start + step) - start)."""
    compiled, rng = autojit(function, strict=True), np.random.default_rng(2)
    for k in range(40):
        given = (*(rng.normal(size=2) * 3), rng.choice([0.1, 0.01, -0.3, 1 / 3, 0.25]))
        given = tuple(map(float, given)) if k % 2 else given
        assert repr(compiled(*given)) == repr(function(*given))


@pytest.mark.parametrize("given", [
    (0.0, 1.0, 0.0), (0.0, np.inf, 1.0), (np.nan, 1.0, 1.0), (1.0, 1.0, 0.0), (0.0, 1e-320, 1e300), (0.0, 1.0, np.inf)])
def test_floats_that_cannot_be_counted_are_pythons(given):
    compiled = autojit(add_squares)
    compiled(0.0, 1.0, 0.25)
    answers = []
    for function in (add_squares, compiled):
        try:
            answers.append(repr(function(*given)))
        except Exception as error:
            answers.append((type(error), str(error)))
    assert answers[0] == answers[1]
