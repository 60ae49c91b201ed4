"""`while` loops whose test Python can read: long ones are compiled as loops; what tracing takes has an end."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit
from tests.autojit.checking import assert_same


def sums(x, n):
    i, total = 0, 0.0
    while i * i < n:
        total += x[i % 3] * i
        i += 1
    return total, i


def sieves(n):
    flags = np.ones(n + 1, dtype=np.bool_)
    flags[:2] = False
    i = 2
    while i * i <= n:
        if flags[i]:
            for j in range(i * i, n + 1, i):
                flags[j] = False
        i += 1
    return flags.sum()


def leaves(x, n):
    k = 0
    while True:
        k += 1
        if k > n:
            break
        if x[k % len(x)] > 100:
            return -1.0
        x[k % len(x)] += k
    else:
        k = -1
    return x.sum() + k


def counts_down(x, n):
    while n:
        n -= 1
        m = 0
        while m < 3:
            x[m] += n
            m = m + 1
    return x


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(sums, (np.arange(3.0), 10_000)), (sieves, (3000,)), (leaves, (np.arange(4.0), 300)),
     (leaves, (np.arange(4.0), 3000)), (counts_down, (np.zeros(3), 500))],
)
def test_long_loops_are_loops(function, arguments):
    made = jitcore.autojit(function, strict=True)
    ours, theirs = ([x.copy() if isinstance(x, np.ndarray) else x for x in arguments] for _ in range(2))
    assert_same(function(*theirs), made(*ours))
    assert_same(theirs, ours)
    assert not made.__dict__["__jitcore_autojit_state__"].unrolled
    assert "while" in made.inspect("jaxpr") or "scan" in made.inspect("jaxpr")


def strides(x):
    m = 1
    while m < len(x):
        x[::m] += 1
        m *= 2
    return m


def grows(x, n):
    found, k = [], 0
    while k < n:
        found.append(x * k)
        k += 1
    return found


def plain_numbers(x, n):
    k = 0
    while k * k < n:  # computes nothing that is traced
        k += 1
    return x[:k], k


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(strides, (np.zeros(40),)), (grows, (np.float64(2.0), 30)), (plain_numbers, (np.arange(9.0), 60))])
def test_loops_that_need_the_values_are_written_out(function, arguments):
    made = jitcore.autojit(function, strict=True)
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    assert_same(function(*arguments), made(*copies))
    assert_same(list(arguments), copies)


def test_jit_rolls_too():
    def f(x, n):
        i = 0
        while i < n:
            x = jnp.sqrt(x) + i
            i = i + 1
        return x

    compiled = jit(f, rewrite=True, static_argnums=1)
    short, long = (len(compiled.trace(1.0, n).jaxpr.eqns) for n in (10, 1000))
    assert short == 20 and long < 50
    assert compiled(1.0, 300) == pytest.approx(f(np.float32(1.0), 300))


def test_tracing_has_an_end():
    def f(x, n):
        table, i = {}, 0
        while i < n:
            table[i] = x[i % 3] + i
            i += 1
        return table

    made = jitcore.autojit(f)
    start = time.thread_time()
    with pytest.warns(jitcore.AutojitWarning, match="a loop cannot be compiled as a loop"):
        found = made(np.arange(3.0), 100_000)
    assert len(found) == 100_000 and found[99_999] == 99_999.0
    assert time.thread_time() - start < 20


def test_marks_of_a_loop_that_is_written_out_are_taken_back():
    def f(x):
        u = x.copy()
        v = u
        for _ in range(3):
            v[0] += 1
            v = v.copy()
        return u, v

    made = jitcore.autojit(f, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(f(np.zeros(2)), made(np.zeros(2)))
