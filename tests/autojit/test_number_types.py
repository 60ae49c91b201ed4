"""Numbers whose type depends on the way that was taken: int or float, Python's or NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same, tune


@pytest.fixture(autouse=True)
def compiled_for_good(monkeypatch):
    """Programs are not compared with plain Python, which takes less time for so little work."""
    tune(monkeypatch, probed_seconds=0.0)


P = np.array([1.0, -2.0, 0.5])
ARRAYS = [P, -P, P * 0, P * 3, P.astype(np.float32), -P.astype(np.float32)]


def chosen(x):
    if x[0] > 0:
        r = 0
    else:
        r = 1.5
    return r


def replaced_by_a_scalar(x):
    r = 0
    if x[0] > 0:
        r = x[0]
    return r


def float_or_scalar(x):
    r = 0.0
    if x[0] > 0:
        r = x.sum()
    return r, r + 1, r * x[1], -r


def bool_or_int(x):
    r = True
    if x[0] > 0:
        r = 2
    return r, r + r, not r


def bool_int_or_float(x):
    r = False
    if x[0] > 0:
        r = 3
    elif x[0] < 0:
        r = x[1] * 0.25
    return r


def arithmetic(x):
    r = 0
    if x[0] > 0:
        r = 1.5
    return r // 2, r % 2, r * 2, r + 1, r / 3, 7 - r, divmod(r, 2), abs(r), r**2, r < 1, r == 0, round(r)


def small_float(x):
    r = 0
    if x[0] > 0:
        r = np.float32(1.5)
    return r + 1.1, r * x[1]


def complex_or_int(x):
    r = 1
    if x[0] > 0:
        r = 2j
    return r, r * 2


def in_containers(x):
    found = {"a": 0, "b": [1, 2]}
    if x[0] > 0:
        found["a"], found["b"][1] = x[0], 0.5
    return found


def summed_while(x):
    total, i = 0, 0
    while i < x[0]:
        total += x[i]
        i += 1
    return total, i


def largest(x):
    found = 0
    for i in range(len(x)):
        if x[i] > found:
            found = x[i]
    return found


def least_of_builtins(x):
    return max(x[0], 0), min(0, x[0]), max(0, 1.5 if x[0] > 0 else 2), x[0] or 5, x[0] > 0 and 5


def from_a_function(x):
    def find():
        if x[0] > 0:
            return 1.5
        return 0

    return find() * 2


def stored(x):
    r = 2
    if x[0] > 0:
        r = 2.75
    y = np.zeros(2, np.int64)
    y[1], x[2] = r, r
    return y


def types_asked(x):
    r = 0
    if x[0] > 0:
        r = 0.5
    return isinstance(r, float), isinstance(r, int), np.sqrt(r), x * r


def as_index(x):
    k = 0
    if x[0] > 0:
        k = np.argmin(x)
    return x[k], x[k:].sum(), len(range(3))


def only_one_has_it(x):
    r = 2.5
    if x[0] > 0:
        r = 3
    return r.bit_length() if x[0] > 0 else r


ONE = [chosen, replaced_by_a_scalar, float_or_scalar, bool_or_int, bool_int_or_float, arithmetic, small_float,
       complex_or_int, in_containers, summed_while, largest, least_of_builtins, from_a_function, stored,
       types_asked, as_index]


@pytest.mark.parametrize("function", ONE)
def test_the_type_is_the_one_that_python_gives(function):
    compiled = jitcore.autojit(function, strict=True)
    for x in (*ARRAYS, *ARRAYS):
        ours, theirs = x.copy(), x.copy()
        assert_same(function(theirs), compiled(ours))
        assert_same(theirs, ours)
    assert compiled.report().compiled == 100 and compiled.cache_info().traces == 2


def accumulated(x, n):
    total = 0
    for i in range(n):
        total += x[i % 3]
    return total


def halved(x, n):
    r = 1
    for _ in range(n):
        r = r / 2
    return r


def counted(x, n):
    r, s = 1, True
    for i in range(n):
        r = i * 0.5 if i < 2 else i
        s = i
    return r, s


def doubled(x, n):
    r, s = 1, True
    for i in range(n):
        r = r * 2 if i < 2 else r * 0.5
        s = i
    return r, s


def nested(x, n):
    total = 0
    for i in range(n):
        for j in range(i):
            total += x[j % 3]
    return total


def settled_in_inner_loops(x, n):
    total, least = 0, np.inf
    for i in range(n):
        for j in range(i):
            if x[j % 3] > 0:
                total += x[j % 3]
                if x[j % 3] < least:
                    least = x[j % 3]
            else:
                total -= x[i % 3]
        while total > 3:
            total = total / 2
    return total, least


def best(x, n):
    found, where = np.inf, -1
    for i in range(n):
        if x[i % 3] < found:
            found, where = x[i % 3], i
    return found, where


@pytest.mark.parametrize(
    "function", [accumulated, halved, counted, doubled, nested, settled_in_inner_loops, best]
)
def test_a_loop_without_iterations_keeps_the_type(function):
    compiled = jitcore.autojit(function, strict=True)
    for n in (2, 1, 5, 0, 3, 0, 1, 7, 2):
        for x in (P, P.astype(np.float32)):
            assert_same(function(x, n), compiled(x, n))
    jaxpr = compiled.inspect("jaxpr")
    assert "while" in jaxpr or "scan" in jaxpr


def test_a_settled_type_costs_the_loop_nothing():
    compiled = jitcore.autojit(accumulated, strict=True)
    for n in (4, 5, 6, 7):
        compiled(P, n)
    loop = compiled.inspect("loop program")
    assert "i32" not in loop[loop.index("while:") : loop.index("gt(")]


def test_ints_that_floats_do_not_hold_are_exact():
    def large(x, n):
        r = n
        if x[0] > 0:
            r = 0.5
        return r + 1

    compiled = jitcore.autojit(large, strict=True)
    for n in (2**60 + 1, 3, 2**60 + 3, 2**60 + 5, 7, 2**61 + 1):
        for x in (P, -P):
            assert_same(large(x, n), compiled(x, n))


def test_what_depends_on_the_type_more_than_a_number_can_say():
    def array_type(x):
        r = 2
        if x[0] > 0:
            r = 2.5
        return x.astype(np.int64) * r

    for x in ARRAYS:
        assert_same(array_type(x), jitcore.autojit(array_type)(x))
    with pytest.raises(jitcore.errors.NotTraceable, match="type"):
        jitcore.autojit(array_type, strict=True)(P)


def give_all(x, n):
    total = 0.0
    for i in range(50):
        total = total + x * 0.25 / (i + n)
    f, small = float(total), np.float32(total)
    return total, f, f * 2j, small, np.complex64(small), np.float16(small), n + 3, n > 2, np.int16(n), np.bool_(n), x, n


@pytest.mark.parametrize("x", [1.5, np.float64(1.5), np.float32(1.5), 2, True, np.int32(3), np.uint8(3), np.bool_(True)],
                         ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("n", [3, np.int64(3), False], ids=lambda n: type(n).__name__)
def test_numbers_come_out_as_they_do_of_python(x, n):
    compiled = jitcore.autojit(give_all)
    found = compiled(x, n + 1)
    first = compiled(x, n + 1)
    assert_same(first, found)
    assert_same(first, give_all(x, n + 1))
    compiled(x, n + 2)
    assert_same(first, found)  # what one call gave is not what the next one writes to


def test_a_number_is_an_object_of_its_own_in_each_call():
    half = jitcore.autojit(lambda x: [x * 0.5 + k for k in range(20)])
    results = [half(float(k)) for k in range(100)]
    assert [r[0] for r in results] == [k * 0.5 for k in range(100)]
    assert len({id(value) for r in results for value in r}) == 2000


LARGE_INTS = [2**53 - 1, 2**53, 2**53 + 1, 10**17 + 1, 2**62 + 1, 2**63 - 1, -(2**53) - 1, -(2**63), 5]
LARGE_FLOATS = [2.0**53, 1e17, 2.0**62, 2.0**63, -(2.0**53), -(2.0**63), float("nan"), 5.5]


def compare(n, x):
    return n == x, n != x, n < x, n <= x, x < n, x <= n, max(n, x), min(x, n)


def test_ints_are_compared_with_floats_exactly():
    compiled = jitcore.autojit(compare)
    known = jitcore.autojit(lambda x: (x == 2**53 + 1, x < 2**53 + 1, x >= 10**17, x > 2**62 + 1))
    for x in LARGE_FLOATS:
        assert_same(known.__wrapped__(x), known(x))
        for n in LARGE_INTS:
            assert_same(compare(n, x), compiled(n, x))


def count_up(n, x):
    steps = 0
    while n < x and steps < 9:
        n += 1
        steps += 1
    return n, steps, n == x


def test_loops_compare_ints_with_floats_exactly():
    compiled = jitcore.autojit(count_up)
    for n, x in [(0, 3.5), (1, 3.5), (2, 3.5), (3, 3.5), (2**53, 2.0**53 + 4), (2**53 + 1, 2.0**53), (2**62 - 3, 2.0**62)]:
        assert_same(count_up(n, x), compiled(n, x))


def test_squares_of_bools():
    compiled = jitcore.autojit(lambda x, n: x**n)
    for x in (np.array([True, False]), np.array([2], np.int8), np.ones(1, np.float32)):
        for n in (0, 1, 2, 3, 4, 5, 2, 1):
            assert_same(x**n, compiled(x, n))
