"""What a call returns or stores is Python's object, not one that stood for it while the call was traced."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from jitcore import autojit


class Holder:
    def __init__(self):
        self.kept = None


HOLDER = Holder()
RESULTS = {
    "range": lambda x, n: range(n),
    "range in a tuple": lambda x, n: (range(1, n), x[0]),
    "enumerate": lambda x, n: enumerate(x),
    "enumerate of a range": lambda x, n: enumerate(range(n)),
    "zip": lambda x, n: zip(x, x + 1),
    "zip in a list": lambda x, n: [zip(x, range(n))],
    "reversed": lambda x, n: reversed(x),
    "iterator": lambda x, n: iter(x),
    "map": lambda x, n: map(abs, x),
    "flags": lambda x, n: x.flags,
    "polynomial": lambda x, n: np.poly1d(x),
    "method": lambda x, n: x.sum,
    "slice": lambda x, n: slice(n, None),
    "items": lambda x, n: {"a": x, n: 1}.items(),
    "kept range": lambda x, n: setattr(HOLDER, "kept", range(n)),
    "kept zip": lambda x, n: setattr(HOLDER, "kept", {n: zip(x, x)}),
}


def show(value):
    """The type, and what is in it."""
    if isinstance(value, (list, tuple, dict)):
        return type(value), [show(one) for one in (value.items() if isinstance(value, dict) else value)]
    if hasattr(value, "__next__") or isinstance(value, range):
        return type(value), [show(one) for one in value]
    return type(value), str(value.__self__.sum() if hasattr(value, "__self__") else value)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_pythons_objects(name):
    function = RESULTS[name]
    compiled = autojit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (2, np.int64(2), 3, np.int64(3), 4, 5, 6):
            x = np.array([1.5, -2.0, n])
            HOLDER.kept = None
            expected = show(function(x, n)), show(HOLDER.kept)
            HOLDER.kept = None
            assert (show(compiled(x, n)), show(HOLDER.kept)) == expected


@pytest.mark.parametrize("values", [[1, 2], (1.5,), "ab", b"ab", [[1], 2]], ids=repr)
@pytest.mark.parametrize("count", [2, np.int64(2), np.uint8(3), np.float32(0.5), np.float64(2), np.bool_(True), True], ids=repr)
def test_sequences_are_repeated(values, count):
    """Which NumPy's scalars leave to Python, and multiply nothing."""
    def before(values, n):
        return values * n

    def behind(values, n):
        return n * values

    def in_place(values, n):
        kept = values
        values *= n
        return values, kept

    def computed(values, n):
        return values * (n + n)

    for function in (before, behind, in_place, computed):
        compiled = autojit(function)
        for _ in range(2):
            found, expected = (attempt(one, values[:], count) for one in (compiled, function))
            assert found == expected


def writes_through_a_type(x):
    y = np.float64(x)
    y[0] = 9
    return y is x, x, y


def asks_scalars(x):
    return 1 in x


def goes_through_scalars(x):
    return enumerate(x).__class__


def prints_with_options(x):
    with np.printoptions(precision=2):
        return str(x / 3)


def evaluates_a_polynomial_at_infinity(x):
    return np.polyval([1, -2], x * np.inf)


@pytest.mark.parametrize("function", [writes_through_a_type, asks_scalars, goes_through_scalars, prints_with_options,
                                      evaluates_a_polynomial_at_infinity], ids=lambda function: function.__name__)
def test_what_scalars_are_not(function):
    """Neither copied by their types, nor iterable, nor printed as when they were traced."""
    for value in (np.ones(3), np.ones(3, np.float32), np.array(2.0), np.float64(2.5), 2.5, np.int8(1), True, np.ones((2, 2))[::-1]):
        compiled = autojit(function)
        for _ in range(2):
            assert attempt(compiled, copy.copy(value)) == attempt(function, copy.copy(value))


def attempt(function, *values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(function(*values))
        except (TypeError, IndexError) as error:
            return str(error)
