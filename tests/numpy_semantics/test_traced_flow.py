"""Handles under traced control flow: kinds that meet, stores in arms and loops, failures, aliases."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore.numpy_semantics.errors import NotTraceable
from tests.numpy_semantics.tracing import Static, check, check_error, run_traced, trace_call

V = np.array([3.0, -1.0, 2.5, 0.0, -4.0, 7.0, 1.0, -2.0])
A = np.arange(30.0).reshape(5, 6) % 7 - 2


def total(a):
    s = 0
    for i in range(a.shape[0]):
        s += a[i]
    return s


def count_and_find(a, x):
    count, place = 0, -1
    for i in range(len(a)):
        if a[i] > x:
            count += 1
            place = i
    return count, place, place >= 0


def largest(a):
    best = a[0]
    for x in a:
        best = max(best, x)
    return best


def stores_in_arms(a, b):
    for i in range(a.shape[0]):
        if a[i] > 0:
            b[i] = a[i]
        elif a[i] < -3:
            b[i] = -100
            b[i - 1] = 50
        if b[i] > 2:
            b[0] += 1
    return b.sum()


def different_parts_in_arms(a, x):
    if x > 0:
        a[1:3] = x
        a[2] += 1
    else:
        a[2:5] *= 2
        a[0] = -x
    return a


def whole_arrays_in_arms(a, b, x):
    if x > 0:
        a[:] = b
    else:
        a += 1
        b = b * 2
    return a, b


def gauss_seidel(A, count):
    for t in range(count):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[1] - 1):
                A[i, j] = (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]) / 4.0


def periodic(a):
    out = np.zeros_like(a)
    n = len(a)
    for i in range(n):
        out[i] = a[i - 1] + a[(i + 1) % n]
    return out


def rows_are_views(A):
    for row in A:
        if row[0] > 0:
            row[1:] = 0
        row[0] = -1
    return A.copy()


def newton(x):
    steps = 0
    y = x
    while abs(y * y - x) > 1e-12 * x and steps < 50:
        y = 0.5 * (y + x / y)
        steps += 1
    return y, steps


def search(a, x):
    for i in range(len(a)):
        if a[i] == x:
            return i
    return -1


def bubble_sort(a):
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def logic(x, y):
    return (x > 0 and y > 0, x > 0 or y > 9, not x > y, x if x > y else y, 0 < x < 10, x and y, x or y)


CASES = [
    (total, (V,)), (total, (np.arange(5),)), (total, (np.arange(5, dtype=np.float32),)), (count_and_find, (V, 1.5)),
    (largest, (V,)), (stores_in_arms, (V, V * 0.5)), (different_parts_in_arms, (V, 2.0)),
    (different_parts_in_arms, (V, -2.0)), (whole_arrays_in_arms, (V, V * 2, 1.0)), (whole_arrays_in_arms, (V, V * 2, -1.0)),
    (gauss_seidel, (A, Static(3))), (periodic, (V,)), (rows_are_views, (A,)), (newton, (2.0,)), (newton, (np.float64(3),)),
    (search, (V, 2.5)), (search, (V, 99.0)), (bubble_sort, (V,)), (fibonacci, (30,)), (collatz, (27,)), (logic, (3.0, 1.5)),
    (logic, (-3, 4)),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: x.__name__ if callable(x) else "")
def test_functions(function, args):
    check(function, *args)


def test_ints_that_leave_64_bits_are_left_to_python():
    check_error_or_python(fibonacci, 100)
    check_error_or_python(lambda n: n * n * n, 2**40)


def check_error_or_python(function, *args):
    from tests.numpy_semantics.tracing import Deoptimized

    with pytest.raises(Deoptimized):
        run_traced(function, args)


def test_failures_under_traced_conditions():
    def read(a, i):
        if i >= 0:
            return a[i]
        return 0.0 * a[0]

    check(read, V, 3)
    check(read, V, -1)
    check_error(read, V, 8)

    def divide(x, y):
        total = 0.0
        for i in range(3):
            total += x / (y - i)
        return total

    check(divide, 1.0, 5.0)
    check_error(divide, 1.0, 2.0)


def test_a_store_in_an_arm_does_not_copy_the_array():
    def clear(a):
        for i in range(len(a)):
            if a[i] < 0:
                a[i] = 0

    closed = trace_call(clear, [V])[0]
    (loop,) = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name in ("while", "scan")]
    body = loop.params["body_jaxpr" if loop.primitive.name == "while" else "jaxpr"]
    (branch,) = [eqn for eqn in body.jaxpr.eqns if eqn.primitive.name == "cond"]
    assert [var.aval.shape for var in branch.outvars] == [()]


def test_what_is_known_to_be_inside_is_not_checked():
    for function, args in ((gauss_seidel, (A, Static(3))), (periodic, (V,)), (bubble_sort, (V,))):
        assert not trace_call(function, args)[4].can_fail


def test_a_part_that_is_written_twice_is_stored_once():
    def update(a, i, reads):
        a[i] += 1
        a[i] *= 2
        if reads:
            a[0] += a[i - 1]
        a[i] -= 1

    for reads, count in ((False, 1), (True, 3)):
        closed = trace_call(update, [V, Static(3), Static(reads)])[0]
        stores = [eqn for eqn in list_used(closed.jaxpr) if eqn.primitive.name == "dynamic_update_slice"]
        assert len(stores) == count
        for eqn in stores:  # no two of one array, which would copy it
            assert sum(other.invars[0] is eqn.invars[0] for other in stores) == 1


def list_used(jaxpr) -> list:
    needed, found = set(map(id, jaxpr.outvars)), []
    for eqn in reversed(jaxpr.eqns):
        if any(id(var) in needed for var in eqn.outvars):
            needed.update(map(id, eqn.invars))
            found.append(eqn)
    return found


def test_an_array_that_may_be_one_of_two_is_not_written():
    def choose(a, b, x):
        c = a if x > 0 else b
        c[0] = 5

    with pytest.raises(NotTraceable, match="share memory"):
        run_traced(choose, [V, V * 2, 1.0])
    check(lambda a, b, x: (a if x > 0 else b) * 2, V, V + 1, 1.0)


def test_in_place_changes_of_a_new_array_in_a_loop():
    def accumulate(a):
        s = np.zeros(a.shape[1])
        t = s
        for row in a:
            s += row
            s[0] = 0
        return s, t

    check(accumulate, A)
