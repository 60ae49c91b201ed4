"""Programs that ask whether plain Python has to run a call, where passes show that it never has to."""

import numpy as np
import pytest

from jitcore import autojit


def moving_means(a, window, out):
    total, count = 0.0, 0
    for i in range(len(a)):
        if not np.isnan(a[i]):
            total += a[i]
            count += 1
        if i >= window and not np.isnan(a[i - window]):
            total -= a[i - window]
            count -= 1
        out[i] = total / count if count >= 2 else np.nan


def fill_forward(a, limit, out):
    last, left = np.nan, limit
    for i in range(len(a)):
        if np.isnan(a[i]):
            out[i] = last if left > 0 else np.nan
            left -= 1
        else:
            last = out[i] = a[i]
            left = limit


def group_sums(values, labels, out):
    for i in range(len(values)):
        if labels[i] >= 0:
            out[labels[i]] += values[i]


VALUES = np.array([1, np.nan, 2, 4, np.nan, np.nan, 3, 1.5])
LABELS = np.array([0, 1, 2, 0, -1, 1, 2, 2])


@pytest.mark.parametrize("function, argument", [(moving_means, 3), (fill_forward, 1)])
def test_arrays_are_written_in_place(function, argument):
    compiled, expected = autojit(function, strict=True), np.zeros(8)
    function(VALUES, argument, expected)
    for _ in range(2):
        out = np.zeros(8)
        compiled(VALUES, argument, out)
        np.testing.assert_allclose(out, expected, rtol=1e-14)
    program = compiled.inspect("loop program")
    assert "overwrites" in program and program.count(": out ") == 1


def test_what_can_fail_leaves_arrays_to_python():
    compiled, expected = autojit(group_sums, strict=True), np.zeros(4)
    group_sums(VALUES, LABELS, expected)
    for _ in range(2):
        out = np.zeros(4)
        compiled(VALUES, LABELS, out)
        np.testing.assert_allclose(out, expected)
    assert "overwrites" not in compiled.inspect("loop program")
    out = np.zeros(2)
    with pytest.raises(IndexError):
        compiled(VALUES, LABELS, out)
    assert np.isnan(out[1]) and out[0] == 1
