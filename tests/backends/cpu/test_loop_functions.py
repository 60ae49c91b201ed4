"""Loops of scalar code become functions of their own, with the values of the loop in Python."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import autojit, lax
from jitcore.backends.cpu.native.translate import SUFFIX, split_loops


def compare(function, *args, compiled: bool = True) -> str:
    """The LLVM code of a function under autojit, whose results and writes are those of plain Python."""

    def copy():
        return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]

    given, written = copy(), copy()
    expected, wrapped = function(*given), autojit(function, strict=True)
    np.testing.assert_allclose(wrapped(*written), expected, rtol=1e-12)
    for one, other in zip(given, written):
        np.testing.assert_allclose(other, one, rtol=1e-12)
    text = wrapped.inspect("llvm")
    assert (SUFFIX in text) == compiled
    return text


def count_down(a):
    j = len(a) - 1
    while j >= 0 and a[j] > 0.25:
        a[j] -= 0.25
        j -= 1
    return j


def angles(a):
    s = 0.0
    for i in range(len(a)):
        if a[i] > 0.5:
            s += np.sin(a[i] * 1e9) * np.exp(-a[i])
    return s


def rows_and_elements(a, n):
    """Kernels between scalar loops read and write what these compute."""
    best = 0.0
    for k in range(n):
        a[k] *= 1.0 + best
        total = a.sum()
        for i in range(a.shape[0]):
            if a[i, k] > best:
                best = a[i, k] / total
        a[:, k] += best
    return best


def two_in_turn(u, v, n):
    for _ in range(n):
        for i in range(1, len(u) - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
        u, v = v, u
    return u.sum()


def chosen(a, way):
    if way > 0:
        for i in range(len(a)):
            a[i] += i
    else:
        for i in range(1, len(a)):
            a[i] -= a[i - 1]
    return a.sum()


NUMBERS = np.random.default_rng(3).random(40)


@pytest.mark.parametrize(("function", "args"), [
    (count_down, (NUMBERS,)), (count_down, (NUMBERS + 1,)), (angles, (NUMBERS,)),
    (rows_and_elements, (NUMBERS.reshape(8, 5), 4)), (two_in_turn, (NUMBERS, NUMBERS + 1, 3)),
    (two_in_turn, (NUMBERS, NUMBERS + 1, 4)), (chosen, (NUMBERS, 1)), (chosen, (NUMBERS, -1))])
def test_values_of_scalar_loops(function, args):
    compare(function, *args)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, np.bool_, np.complex64])
def test_dtypes_of_carries(dtype):
    def pick(x, start):
        def step(carry):
            i, last, found = carry
            return i + 1, x[i], lax.select(found == last, x[i], found)

        return lax.while_loop(lambda c: c[0] < 9, step, (0, start, start))[1:]

    x = (np.random.default_rng(1).random(9) * 3).astype(dtype)
    last = found = x[0]
    for value in x:
        last, found = value, value if found == last else found
    for actual, expected in zip(jitcore.jit(pick)(x, x[0]), (last, found), strict=True):
        assert np.asarray(actual) == expected


def test_an_output_may_be_a_donated_input():
    def shift(x, n):
        return lax.fori_loop(0, n, lambda i, x: x.at[i].set(x[i + 1] + x[0]), x)

    expected = NUMBERS.copy()
    for i in range(30):
        expected[i] = expected[i + 1] + expected[0]
    found = jitcore.jit(shift, donate_argnums=0)(jnp.asarray(NUMBERS), 30)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def test_a_module_without_loops_is_not_taken_apart():
    text = jitcore.jit(lambda x: x + 1)
    text(NUMBERS)
    assert split_loops(text.inspect("kernel")) == (text.inspect("kernel"), "", [])


def test_both_modules_declare_what_the_other_one_has():
    wrapped = autojit(rows_and_elements, strict=True)
    wrapped(NUMBERS.reshape(8, 5).copy(), 5)
    rest, loops, internal = split_loops(wrapped.inspect("kernel"))
    names = [name for name in internal if name.endswith(SUFFIX)]
    assert len(names) == 1
    assert f'declare void @"{names[0]}"(' in rest and f'define void @"{names[0]}"(' in loops
    for name in set(internal) - set(names):
        assert f'define void @"{name}"(' in rest and f'declare void @"{name}"(' in loops
    assert len(internal) > 1


def follow_itself(x, y, a):
    for _ in range(1000):
        x = x + (y - x) * 0.125
    return x


def follow_each_other(x, y, a):
    for _ in range(1000):
        x, y = x + y * 0.125, y - x * 0.125
    return x


def add_products(x, y, a):
    for i in range(len(a)):
        x = x + y * a[i]
    return x


def add_products_of_another(x, y, a):
    for _ in range(1000):
        x, y = x + y * 0.125, y * 0.5
    return x


@pytest.mark.parametrize(("function", "is_fused"), [
    (follow_itself, True), (follow_each_other, True), (add_products, False),
    (add_products_of_another, False)])
def test_products_that_come_from_their_sum_are_fused_into_it(function, is_fused):
    wrapped = autojit(function, strict=True, contract=True)
    x = wrapped(1.0, 2.0, NUMBERS)
    np.testing.assert_allclose(x, function(1.0, 2.0, NUMBERS), rtol=1e-12)
    loop = split_loops(wrapped.inspect("kernel"))[1]
    assert ("fadd contract" in loop, "fadd double" in loop) == (is_fused, not is_fused)
