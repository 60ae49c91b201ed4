"""How often the bodies of loops are traced: mostly once, in a nest no more often than it is deep, never wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from jitcore import jit
from jitcore.rewriter.control_flow import loops
from jitcore.rewriter.control_flow.carries import find_changed
from jitcore.rewriter.writing.resumable import normalize_graph
from tests.numpy_semantics.tracing import check

A = np.arange(60.0).reshape(3, 4, 5) % 7 - 2
PLACES = np.array([[0, 2, 1, 3], [2, 2, 0, 1], [3, 0, 1, 2]])


@pytest.fixture
def traced(monkeypatch):
    """How often a body was traced, by the loop's line."""
    counts: Counter[int] = Counter()
    trace_body = loops._LoopTracer._trace_body

    def trace_and_count(self):
        counts[self.driver.describe(self.driver.point(self.loop.header)).resolve().line] += 1
        return trace_body(self)

    monkeypatch.setattr(loops._LoopTracer, "_trace_body", trace_and_count)
    return counts


def nest_that_stores(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(1, a.shape[2]):
                out[i, j] += a[i, j, k] * out[i, j - 1]


def nest_that_looks_up(a, out, places):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(2):
                out[i, places[i, j]] += a[i, j, places[i, k]]


def nest_that_rebinds(a):
    total, best = a[0] + 1, a[1] * 2
    for i in range(a.shape[0]):
        for j in range(5):
            best = a[i] + j * best
        total = total + best
    return total, best


def loops_side_by_side(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j, 0]
        row = np.zeros(4)
        for j in range(1, a.shape[1]):
            row[j] = row[j - 1] + a[i, j, 1]
        out[i] += row


@pytest.mark.parametrize(("function", "arguments"), [
    (nest_that_stores, (A, np.ones((3, 4)))),
    (nest_that_looks_up, (A, np.ones((3, 4)), PLACES)),
    (nest_that_rebinds, (A,)),
    (loops_side_by_side, (A, np.ones((3, 4)))),
])
def test_what_can_be_seen_is_traced_once(traced, function, arguments):
    check(function, *arguments)
    assert traced and set(traced.values()) == {1}


def add_to(out, i, x):
    out[i] += x


def nest_that_calls(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                for l in range(3):  # noqa: E741
                    add_to(out, i, a[i, j, k] * l)


def test_nests_are_traced_no_more_often_than_they_are_deep(traced):
    check(nest_that_calls, A, np.ones(3))
    assert [count for _, count in sorted(traced.items())] == [2, 3, 4, 5]


def nest_that_widens(a, n):
    total = 0
    for _ in range(n):
        for _ in range(n):
            for i in range(n):
                total += a[i]
    return total


def test_types_that_settled_once_are_known(traced):
    a = np.array([0.5, 1.5, 2.5], np.float32)
    assert float(jit(nest_that_widens, rewrite=True)(a, np.int32(3))) == nest_that_widens(a, 3)
    assert [count for _, count in sorted(traced.items())] == [2, 3, 4]


def memory_that_is_not_written(a, n):
    b = a
    for i in range(n):
        b = b + 1
        b[i] = 10
    return b, a


def memory_that_is_written_once_rebound(a, n):
    a = a + 0
    for i in range(n):
        a[0] += i
        a = a * 2
    return a


def memory_of_two_names(a, n):
    b, c = a, np.zeros(3)
    for i in range(n):
        b[i] += 1
        c[i] = a[i]
    return b, c


def memory_read_only(a, n):
    b = np.zeros(3)
    for i in range(n):
        if a[i] > 100:
            b[i] = a[i]
    return b


@pytest.mark.parametrize("function", [
    memory_that_is_not_written, memory_that_is_written_once_rebound, memory_of_two_names, memory_read_only,
])
def test_wrong_guesses_change_nothing(function):
    for n in (0, 1, 3):
        check(function, np.array([1.0, 2.0, 4.0]), n)


def test_what_instructions_change():
    def change(a, b, c, d, e, x, n):
        a[n, 1:] += x[n] * a[n - 1, 0]
        b.T[n] = max(a[n], x)
        c -= a
        d[1:2] = 3
        e[0][n] = max(x[0], 2)
        x = a + b
        n += 1
        return c, x, n

    blocks = normalize_graph(change.__code__).blocks.values()
    assigned, written = find_changed(block.instructions for block in blocks)
    assert assigned == ["x"]
    assert written == ["a", "b", "c", "d", "e", "n"]
