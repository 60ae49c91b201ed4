"""Loops whose body works on each lane by itself become one kernel with the loop in registers."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.schedule.loop_per_element import ElementBuilder


def lorenz_step(state, _):
    def slope(s):
        x, y, z = s[..., 0], s[..., 1], s[..., 2]
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z], axis=-1)

    middle = state + 0.005 * slope(state)
    state = state + 0.01 * slope(middle)
    return state, state


def iterate_quadratic(real, imag):
    """Rounds until |z| > 2, by lanes that stop at different rounds."""

    def body(_, carry):
        x, y, count = carry
        inside = x * x + y * y < 4
        new = jnp.where(inside, x * x - y * y + real, x), jnp.where(inside, 2 * x * y + imag, y)
        return *new, count + jnp.where(inside, 1, 0)

    return lax.fori_loop(0, 12, body, (real * 0, imag * 0, jnp.zeros(real.shape, jnp.int32)))


def newton_in_scan(x):
    """A loop in a loop: an inner `while` on a scalar, an outer `scan`."""

    def step(carry, _):
        root = lax.while_loop(lambda r: jnp.abs(r * r - carry) > 1e-4, lambda r: 0.5 * (r + carry / r), carry)
        return carry + root, root

    return lax.scan(step, x, None, length=5)


def rotate_registers(x):
    """Values move between the registers of a small carry, at positions known only at run time."""

    def body(i, c):
        a, b = c
        return b.at[i % 3].set(a[(i + 1) % 3]), a.at[0].add(b[2])

    return lax.fori_loop(0, 7, body, (x, x * 2))


def running_sums(x):
    def step(total, row):
        return total + row, (jnp.cumsum(row)[1], total.max())

    return lax.scan(step, jnp.zeros(x.shape[1:]), x, reverse=True)


def branches(x):
    def body(i, v):
        return lax.cond(i % 2 == 0, lambda v: v * 1.5, lambda v: v - 1, v)

    return lax.fori_loop(0, 9, body, x)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


LANEWISE = {
    "three numbers": (lambda s: lax.scan(lorenz_step, s, None, length=40), [normal(3)]),
    "lanes of three": (lambda s: lax.scan(lorenz_step, s, None, length=40), [normal(37, 3)]),
    "lanes last": (lambda s: lax.fori_loop(0, 9, lambda i, s: s[::-1] * 0.9 + s, s), [normal(3, 50)]),
    "grid": (iterate_quadratic, [normal(23, 19), normal(23, 19, seed=1)]),
    "vector": (iterate_quadratic, [normal(1001), normal(1001, seed=1)]),
    "nested": (jitcore.vmap(newton_in_scan), [np.abs(normal(60)) + 1]),
    "registers": (rotate_registers, [normal(3)]),
    "rows read in reverse": (running_sums, [normal(17, 4)]),
    "branches": (branches, [normal(100)]),
    "no rounds": (lambda x: lax.fori_loop(3, 3, lambda i, x: x * 2, x), [normal(10)]),
    "integers": (lambda x: lax.fori_loop(0, 5, lambda i, x: x * x - i, x), [np.arange(20, dtype=np.int16)]),
    "flags": (lambda x: lax.fori_loop(0, 5, lambda i, c: (c[1], ~c[0]), (x > 0, x < 1)), [normal(65)]),
    "table": (lambda t, i: lax.fori_loop(0, 5, lambda _, i: t[i % 50], i),
              [np.random.default_rng(0).permutation(50), np.arange(30)]),
}


@pytest.mark.parametrize("name", LANEWISE)
def test_lanewise_loops_are_one_kernel_with_the_values_of_eager_loops(name):
    function, inputs = LANEWISE[name]
    compiled = jitcore.jit(function)
    actual = jitcore.tree_util.tree_leaves(compiled(*inputs))
    expected = jitcore.tree_util.tree_leaves(function(*map(jnp.asarray, inputs)))
    for a, e in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=2e-4, atol=1e-5)
    text = compiled.inspect("loop program")
    assert "repeat:" in text
    assert "while:" not in text


def test_loops_of_single_numbers_stay_loops():
    """Their carry is in registers anyhow, and of their branches one runs."""

    def halve_or_triple(n):
        def step(carry):
            n, count = carry
            return lax.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), count + 1

        return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    compiled = jitcore.jit(halve_or_triple)
    assert [int(compiled(np.int32(n))) for n in (1, 6, 27)] == [0, 8, 111]
    assert "repeat:" not in compiled.inspect("loop program")
    nested = jitcore.jit(newton_in_scan)
    for a, e in zip(nested(np.float32(3.0)), newton_in_scan(jnp.asarray(np.float32(3.0))), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=2e-4)
    assert "repeat:" not in nested.inspect("loop program")


ACROSS_LANES = {
    "neighbours": (lambda x: lax.fori_loop(0, 5, lambda _, x: x + jnp.roll(x, 1), x), [normal(40)]),
    "sum of all": (lambda x: lax.fori_loop(0, 5, lambda _, x: x / jnp.abs(x).sum(), x), [normal(40)]),
    "reversed lanes": (lambda x: lax.fori_loop(0, 3, lambda _, x: x[::-1] * 2, x), [normal(40)]),
    "another lane's element": (lambda x: lax.fori_loop(0, 5, lambda i, x: x + x[i], x), [normal(40)]),
    "product": (lambda m: lax.fori_loop(0, 3, lambda _, x: x @ m, m), [normal(12, 12) / 4]),
    "one carry without lanes takes from one with": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] * 2, c[0][0]), (x, x[1])), [normal(30)]),
}


@pytest.mark.parametrize("name", ACROSS_LANES)
def test_loops_across_lanes_are_lowered_the_general_way(name):
    function, inputs = ACROSS_LANES[name]
    compiled = jitcore.jit(function)
    actual = jitcore.tree_util.tree_leaves(compiled(*inputs))
    expected = jitcore.tree_util.tree_leaves(function(*map(jnp.asarray, inputs)))
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=1e-4, atol=1e-5)
    assert "repeat:" not in compiled.inspect("loop program")


@pytest.mark.machine_code
def test_another_length_and_another_number_of_lanes_compile_nothing():
    f = jitcore.jit(lambda s, xs: lax.scan(lambda s, x: (s * 0.5 + x, s), s, xs))
    for length, lanes in ((20, 30), (300, 50), (41, 1000)):
        carry, history = f(normal(lanes), normal(length, lanes))
        assert history.shape == (length, lanes)
    assert f.cache_info().compiles == 1


@pytest.mark.machine_code
def test_lanes_do_not_depend_on_threads():
    real, imag = normal(300, 300), normal(300, 300, seed=1)
    many = jitcore.jit(iterate_quadratic)(real, imag)
    one = jitcore.jit(iterate_quadratic, compiler_options={"parallel": False})(real, imag)
    for a, b in zip(many, one):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_sums_of_too_many_terms_are_not_tried(monkeypatch):
    """40 sums of 50 terms are more expressions than a body may have: none of them is evaluated."""
    evaluated = []
    fold = ElementBuilder.fold_element
    monkeypatch.setattr(ElementBuilder, "fold_element", lambda *given: evaluated.append(given) or fold(*given))
    x = normal(50, 40)

    def step(_, total):
        return total + (x * total).sum(axis=0).max()

    result = jitcore.jit(lambda total: lax.fori_loop(0, 3, step, total))(np.float32(0.01))
    expected = np.float32(0.01)
    for number in range(3):
        expected = step(number, expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-4)
    assert not evaluated


def test_what_all_lanes_share_is_computed_once_in_a_round():
    def add_powers(x, z):
        return lax.fori_loop(0, 3, lambda n, total: total + x * z ** (n + 0.5), jnp.zeros_like(x))

    x, z = np.linspace(0, 1, 300), np.float64(1.5)
    jitted = jitcore.jit(add_powers)
    np.testing.assert_allclose(jitted(x, z), x * (z**0.5 + z**1.5 + z**2.5), rtol=1e-12)
    assert "repeat" not in jitted.inspect()["loop program"]
