"""NumPy's functions on every dtype and with odd arguments: the types, wraps and errors of NumPy, never others.

What cannot be traced may be refused, and what NumPy raises may be left to it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.numpy_semantics.tracing import Deoptimized, assert_same, run_traced

pytestmark = [pytest.mark.filterwarnings("ignore")]
DTYPES = "? b B h i I l L e f d F D".split()
V, W, M, Q = [1, 3, 2, 2], [2, 1, 1, 0], [[1, 2, 1], [0, 3, 1]], [[2, 1], [1, 3]]
LOWER, NEAREST = {"method": "lower"}, {"method": "nearest"}

#: name -> (function, operands as lists, which get the dtype).
CASES = {
    "trapezoid": (lambda y: (np.trapezoid(y), np.trapezoid(y, dx=2), np.trapezoid(y, dx=0.5)), [100, 120, 127, 3]),
    "trapezoid places": (lambda y, x: np.trapezoid(y, x, axis=0), M, M),
    "unwrap": (np.unwrap, [100, -100, 27]), "unwrap period": (lambda x: np.unwrap(x, period=4), [0, 3, 6, 1]),
    "angle": (lambda z: (np.angle(z), np.angle(z, deg=True)), [1, -1, 0]), "spacing": (np.spacing, V),
    "convolve": (np.convolve, V, W), "convolve short": (np.convolve, [1, 2], V), "polymul": (np.polymul, V, W),
    "convolve same": (lambda a, v: np.convolve(a, v, "same"), V, [1, 2]),
    "convolve valid": (lambda a, v: np.convolve(a, v, "valid"), [100, 100], V),
    "correlate": (np.correlate, V, [1, 2]), "correlate short": (np.correlate, [1, 2], V),
    "correlate full": (lambda a, v: np.correlate(a, v, "full"), V, [100, 2]),
    "correlate same": (lambda a, v: np.correlate(a, v, "same"), [1, 2, 3], V), "convolve nothing": (np.convolve, [], V),
    "digitize falling": (lambda x, b: (np.digitize(x, b), np.digitize(x, b, right=True)), V, [3, 2, 1]),
    "digitize equal": (np.digitize, V, [2, 2, 2]), "digitize mixed": (np.digitize, V, [1, 3, 2]),
    "digitize known": (lambda x: (np.digitize(x, [3, 2, 1]), np.digitize(x, [1, 2, 3])), V),
    "quantile lower": (lambda x: np.quantile(x, 0.4, **LOWER), [3, 1, 2, 10]),
    "quantile higher": (lambda x: np.quantile(x, [0.2, 0.5], axis=1, method="higher", keepdims=True), M),
    "percentile nearest": (lambda x: np.percentile(x, [20, 50], **NEAREST), [3, 1, 2, 10]),
    "percentile linear": (lambda x: np.percentile(x, 30), V), "quantile too large": (lambda x: np.quantile(x, 1.5), V),
    "percentile traced": (lambda x, q: np.percentile(x, q.astype(float) * 60), V, [1, 2]),
    "average": (lambda x, w: np.average(x, weights=w), V, W), "average by 0": (lambda x, w: np.average(
        x, weights=w - w), V, W), "average along": (lambda x, w: np.average(x, axis=0, weights=w), M, [1, -1]),
    "histogram": (lambda x: np.histogram(x, 3), V), "histogram falling": (np.histogram, V, [3, 1]),
    "interp": (np.interp, [1, 2], [1, 2, 3], V[:3]), "gradient": (np.gradient, V), "ediff1d": (lambda x: np.ediff1d(
        x, to_begin=7), V), "choose": (lambda i, x: np.choose(i, [x, x]), [0, 1, 1, 0], V),
    "linspace": (lambda a: np.linspace(a[0], 2, -1), V), "linspace of one": (lambda a: np.linspace(
        a[0], 2, 1, endpoint=False), V), "sum of nothing": (lambda x: (sum(x[:0]), sum(x[:0], 1.5), sum(x)), V),
    "round": (lambda x: (np.round(x, -1), np.round(x, 1)), [15, 25, 126]), "take": (lambda x, i: np.take(
        x, i, mode="clip"), V, [0, 9, -3]), "spread": (lambda x: np.var(x, ddof=4), V), "place": (lambda x: np.place(
        x, x == x, []), V), "putmask": (lambda x: np.putmask(x, x == x, np.array(2.5)), V),
    "median": (np.median, V), "clip": (lambda x: np.clip(x, 0, 2), V), "round of an element": (lambda x: round(x[0]), V),
    "einsum": (lambda a: (np.einsum("ij", a), np.einsum("ji", a), np.einsum("ii->i", a), np.einsum("ii", a)), Q),
    "matrix power": (lambda a: np.linalg.matrix_power(a, 3), Q), "cov": (np.cov, M), "norm": (np.linalg.norm, V)}


@pytest.mark.parametrize("name", CASES)
def test_types_and_errors_are_those_of_numpy(name):
    function, *operands = CASES[name]
    for dtype in DTYPES:
        given = [np.array(x).astype(dtype) for x in operands]
        expected = error = found = None
        with np.errstate(all="ignore"):
            try:
                expected = function(*copy.deepcopy(given))
            except Exception as raised:
                error = raised
        try:
            found, _ = run_traced(function, given)
        except Exception:  # plain Python runs the call
            continue
        assert error is None, (dtype, found, error)
        assert_same(found, expected, 1e-12)


def test_signs_of_zero():
    def combine(z):
        return np.clip(z, 0.0, 1.0), np.clip(z, -1.0, -0.0), np.median(z), z.sum(), z.max(), sum(z), z.mean()

    for z in (np.array([-0.0]), np.array([-0.0, 0.0]), np.array([0.0, -0.0, -0.0])):
        for expected, found in zip(combine(z), run_traced(combine, [z])[0]):
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_slices_that_end_before_they_begin():
    def cut(x, k):
        total = 0.0
        for i in range(k):
            total += x[i : i - 2].sum()
        return total

    x = np.arange(6.0)
    for k in range(1, 6):
        try:
            assert_same(run_traced(cut, [x, k])[0], cut(x, k), 1e-12)
        except Deoptimized:
            assert k >= 1


def test_bisection_of_what_is_not_sorted():
    generator = np.random.default_rng(0)
    for side in ("left", "right"):
        for size in (1, 2, 5, 17):
            a = generator.integers(0, 6, size).astype(float)
            a[generator.integers(size)] = np.nan
            for key in (0.0, 2.5, 3.0, np.nan, np.float64(9)):
                assert_same(run_traced(np.searchsorted, [a, key])[0], np.searchsorted(a, key), 0)
                found, _ = run_traced(lambda a, v, s=side: np.searchsorted(a, v, s), [np.sort(a), key])
                assert_same(found, np.searchsorted(np.sort(a), key, side), 0)
    with pytest.raises(Deoptimized):
        run_traced(np.searchsorted, [np.array([1.0, np.nan, 2.0]), np.arange(3.0)])
