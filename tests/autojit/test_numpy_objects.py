"""What scripts call of NumPy besides functions of arrays: `np.r_`, `np.vectorize`, views of bytes; and which
calls are Python's after all."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import jitcore
from jitcore import autojit
from jitcore.errors import AutojitWarning, NotTraceable
from tests.autojit.checking import check

VECTOR = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.5])
OTHER = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
MATRIX = np.arange(12.0).reshape(3, 4)
LABELS = np.array([0, 2, 1, 2, 5, 3])


@np.vectorize
def clamp(x, low):
    return x if x > low else low


ROUNDED = np.vectorize(lambda x: x * 1.5, otypes=[int])

JOINED = {
    "r_": lambda a, b: np.r_[a, b],
    "r_ with numbers": lambda a, b: np.r_[0, a[1:3], b[0], 7.5],
    "r_ of ints and a float": lambda a, b: np.r_[np.arange(3), a[0]],
    "r_ with ranges": lambda a, b: np.r_[0:3, a, 0:1:5j],
    "r_ of a selection": lambda a, b: np.r_[a[a > 2], b],
    "c_": lambda a, b: np.c_[a, b],
    "c_ of matrices": lambda a, b: np.c_[a.reshape(3, 2), b[:3]],
    "c_ of numbers": lambda a, b: np.c_[a[0], b[1], 2],
    "r_ of known numbers": lambda a, b: np.r_[1:4, 9] * a[0],
    "vectorize": lambda a, b: np.vectorize(lambda x, y: x - y if x > y else x + y)(a, b),
    "vectorize with math": lambda a, b: np.vectorize(lambda x: math.sin(x) if x > 2 else 0.0)(np.tile(a, 9)),
    "vectorize, several results": lambda a, b: np.vectorize(lambda x, y: (x + y, x > y))(a, b),
    "vectorize broadcasts": lambda a, b: np.vectorize(lambda x, y: x * y)(a[:, None], b[:3]),
    "vectorize of elements": lambda a, b: np.vectorize(lambda x: x + 1)(a[0]),
    "vectorize of plain numbers": lambda a, b: np.vectorize(lambda x: x + 1)([1, 2]) * a[0],
    "a decorated function": lambda a, b: clamp(a, b),
    "a global object": lambda a, b: ROUNDED(a),
    "vectorize captures": lambda a, b: np.vectorize(lambda x: x + b[0])(a),
}


@pytest.mark.parametrize("name", JOINED)
def test_objects_of_numpy(name):
    check(JOINED[name], VECTOR, OTHER)


def test_vectorize_follows_a_changed_array():
    compiled = jitcore.autojit(lambda a, b: clamp(a, b), strict=True)
    for low in (OTHER, OTHER / 4):
        np.testing.assert_array_equal(compiled(VECTOR, low), np.maximum(VECTOR, low))


def test_vectorize_without_elements_needs_otypes():
    compiled = jitcore.autojit(lambda a: np.vectorize(lambda x: x + 1)(a))
    with pytest.raises(ValueError, match="size 0 inputs"):
        compiled(np.zeros(0))


VIEWS = {
    "bits": lambda a: a.view(np.int64),
    "bytes of a row": lambda a: a[1].view(np.uint8),
    "pairs": lambda a: a.view(complex)[:, 0],
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    "part of windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, (2, 2))[1, :, 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_the_callers_memory(name):
    def function(a):
        a[0, 0] = 9
        return VIEWS[name](a)

    check(function, MATRIX)
    found = jitcore.autojit(function, strict=True)(given := MATRIX.copy())
    expected = function(other := MATRIX.copy())
    assert np.shares_memory(found, given) and found.strides == expected.strides
    assert found.flags.writeable == expected.flags.writeable
    given[1] = other[1] = -2
    np.testing.assert_array_equal(found, expected)


def test_windows_are_read_only():
    def store(a):
        np.lib.stride_tricks.sliding_window_view(a, 2)[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        jitcore.autojit(store)(VECTOR.copy())


def test_broadcast_arrays_may_be_written_and_are_python_then():
    def store(a, b):
        one, other = np.broadcast_arrays(a, b)
        other[1] = 5
        return one + other

    with pytest.raises(NotTraceable, match="share memory"):
        jitcore.autojit(store, strict=True)(VECTOR.copy(), np.ones(1))


BAD = {
    "view of another size": (lambda a: a.T.view(np.uint8), MATRIX),
    "view that does not divide": (lambda a: a[:, :3].view(complex), MATRIX),
    "unravel_index": (lambda a: np.unravel_index(a, (2, 2)), LABELS),
    "ravel_multi_index": (lambda a: np.ravel_multi_index((a, a), (3, 3)), LABELS),
    "bincount of negative numbers": (lambda a: np.bincount(a - 1), LABELS),
    "bincount of floats": (lambda a: np.bincount(a), VECTOR),
    "bincount of a matrix": (lambda a: np.bincount(a.reshape(2, 3)), LABELS),
    "bincount with few weights": (lambda a: np.bincount(a, a[1:]), LABELS),
    "packbits of floats": (lambda a: np.packbits(a), VECTOR),
    "unpackbits of ints": (lambda a: np.unpackbits(a), LABELS),
    "windows that are too long": (lambda a: np.lib.stride_tricks.sliding_window_view(a, 9), VECTOR),
    "lstsq of other lengths": (lambda a: np.linalg.lstsq(a, np.ones(5)), MATRIX),
    "remainder by zero": (lambda a: math.remainder(a[0], a[1] - 1.0), VECTOR),
    "ldexp beyond the range": (lambda a: math.ldexp(a[0], 5000), VECTOR),
    "dist of other lengths": (lambda a: math.dist(a, a[1:]), VECTOR),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_numpys(name):
    function, argument = BAD[name]
    with pytest.raises(Exception) as expected:
        function(argument.copy())
    with pytest.raises(type(expected.value)) as found:
        jitcore.autojit(function)(argument.copy())
    assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


@pytest.mark.parametrize("function, argument", [
    (lambda a: np.bincount(a), LABELS * 1000),
    (lambda a: np.bincount(a, minlength=2), LABELS),
    (lambda a: np.linalg.lstsq(a[:, None] * np.ones(3), a)[1:3], VECTOR),
    (lambda a: np.polyfit(a * 0 + 1, a, 1), VECTOR),
])
@pytest.mark.filterwarnings("ignore:Polyfit")
def test_what_a_program_cannot_hold_is_pythons(function, argument):
    check(function, argument, strict=False)


# -- grids ----------------------------------------------------------------------------------------------------
def over_places(a):
    total = 0.0
    for i, j in np.ndindex(*a.shape):
        if a[i, j] > 0:
            total += a[i, j] * (i - j)
    return total


def over_elements(a):
    b = np.zeros_like(a)
    for (i, j), value in np.ndenumerate(a):
        b[i, j] = value + j
        if i + 1 < len(a):
            a[i + 1, j] += value
    return b


def over_products(a):
    total = 0.0
    for i, j, k in itertools.product(range(1, 9, 2), range(5, 0, -1), range(2)):
        total += a[i, j] * k
    for i, j in itertools.product(range(3), repeat=2):
        total -= a[i, j]
    return total


def as_lists(a):
    return list(np.ndindex(2, 3)), list(np.ndenumerate(a[:2, :2])), [a[k] for k in itertools.product([0, 1], (1, 2))]


@pytest.mark.parametrize("function", [over_places, over_elements, over_products, as_lists])
def test_grids_are_one_loop(function):
    compiled = check(function, np.random.default_rng(0).normal(size=(9, 7)))
    assert function is as_lists or len(compiled.inspect("loop program").splitlines()) < 150


def test_a_grid_is_gone_through_once():
    def twice(a):
        places, total = np.ndindex(a.shape), 0.0
        for k in places:
            total += a[k]
        for _ in places:
            total += 1
        return total

    a = np.arange(30.0).reshape(5, 6)
    compiled = autojit(twice)
    with pytest.warns(AutojitWarning):
        assert compiled(a) == twice(a)


# -- np.vectorize ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"otypes": [float]}])
def test_objects_of_vectorize(options):
    def choose(x, y=2.0):
        return x * 2 + y if x > y else x - y

    vectorized = np.vectorize(choose, **options)
    compiled = autojit(vectorized, strict=True)
    x = np.random.default_rng(0).normal(size=40)
    for arguments in ((x, x[::-1]), (x, 1.5), (x,), (np.arange(6).reshape(2, 3), np.arange(3))):
        for _ in range(2):
            expected, found = vectorized(*arguments), compiled(*arguments)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert compiled.cache_info().compiles and compiled.__name__ == "choose" and compiled.pyfunc is choose


# -- what once was an error of ours ---------------------------------------------------------------------------
def first_above(d):
    total = 0.0
    for k in range(len(d) - 3):
        part = d[k : k + 3]
        above = part[part > 0]
        if len(above):
            total += above[0]
    return total


def test_masked_parts_of_a_window_in_a_loop():
    check(first_above, np.random.default_rng(0).normal(size=50))


def test_a_number_that_math_needs_in_a_while():
    def series(x):
        k, total, term = 0.0, 0.0, 1.0
        while abs(term) > 1e-12:
            term = x**k / math.gamma(k + 1.0)
            total, k = total + term, k + 1.0
        return total

    compiled = autojit(series)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert compiled(3.5) == pytest.approx(series(3.5))
    assert not any("has no attribute" in str(warning.message) for warning in caught)


THROUGH_SOURCE = {
    "piecewise": lambda a, b: np.piecewise(a, [a < 2, a > 4], [lambda v: -v, lambda v: v * 2, 0.5]),
    "polyfit": lambda a, b: np.polyfit(a, b, 2),
    "trapezoid": lambda a, b: np.trapezoid((a * 9).astype(np.int8)),
    "gradient": lambda a, b: np.gradient(a, edge_order=2),
}


@pytest.mark.parametrize("name", THROUGH_SOURCE)
def test_sources_of_numpy_are_traced(name):
    check(THROUGH_SOURCE[name], VECTOR, OTHER)


@pytest.mark.parametrize("function", [
    np.triu, lambda a: np.compress([True], a, axis=0), lambda a: np.quantile(a, 0.3, method="hazen"),
    lambda a: np.argmax(a * 1j), lambda a: np.median(a * 1j), lambda a: int(a[0] * 1j)])
def test_errors_that_numpy_does_not_raise_are_refusals(function):
    """Where an implementation has a limit of its own."""
    with pytest.raises(NotTraceable):
        autojit(function, strict=True)(VECTOR)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(autojit(function)(VECTOR), function(VECTOR))
