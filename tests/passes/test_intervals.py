"""`jitcore.passes.intervals`: what loop counters can be is used, and nothing else is concluded."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import autojit, jit, lax
from jitcore.passes import run_pipeline


def marks(function, *args) -> list:
    """`in_bounds` of each dynamic slice and update of a function's program, in order; None for no note."""
    found = []

    def visit(closed):
        for eqn in closed.jaxpr.eqns:
            if eqn.primitive.name.startswith("dynamic_"):
                found.append(eqn.params.get("in_bounds"))
            for value in eqn.params.values():
                for inner in value if isinstance(value, (tuple, list)) else (value,):
                    if hasattr(inner, "jaxpr"):
                        visit(inner)

    visit(run_pipeline(jitcore.make_jaxpr(function)(*args)))
    return found


def check(function, expected_marks, *args) -> None:
    """The notes on the slices, and the values against the loop run by Python."""
    assert marks(function, *args) == expected_marks
    with jitcore.disable_jit():
        expected = function(*args)
    np.testing.assert_allclose(jit(function)(*args), expected, rtol=1e-6)


X = np.linspace(1, 2, 7, dtype=np.float32)


def element(x, place):
    return lax.dynamic_slice(x, (place,), (1,), allow_negative_indices=False)[0]


def test_counter_of_a_known_loop_is_inside():
    check(lambda x: lax.fori_loop(0, 7, lambda i, s: s + x[i] * x[i - 1], np.float32(0)), [(True,)] * 2, X)


def test_counter_that_passes_the_end_is_clamped():
    check(lambda x: lax.fori_loop(0, 8, lambda i, s: s + element(x, i), np.float32(0)), [None], X)


def test_counter_below_a_traced_bound_is_not_inside_of_the_array():
    def total(x, n):
        return lax.fori_loop(0, n, lambda i, s: s + element(x, i), np.float32(0))

    check(total, [None], X, 9)


def test_bound_of_an_inner_loop_is_the_counter_of_the_outer_one():
    def triangle(x):
        def row(i, s):
            return lax.fori_loop(0, i, lambda j, t: t + element(x, i - j - 1), s)

        return lax.fori_loop(0, 7, row, np.float32(0))

    check(triangle, [(True,)], X)  # i - j relates two counters (`linear_forms`)

    def products(x):
        return lax.fori_loop(0, 7, lambda i, s: lax.fori_loop(0, i, lambda j, t: t + x[j], s), np.float32(0))

    check(products, [(True,)], X)


def test_step_that_a_condition_decides():
    def pack(x):
        def step(i, carry):
            out, count = carry
            out = lax.dynamic_update_slice(out, x[i][None], (count,), allow_negative_indices=False)
            return out, count + jnp.where(x[i] > 1.4, 1, 0)

        return lax.fori_loop(0, 7, step, (jnp.zeros_like(x), 0))[0]

    check(pack, [(True,)] * 2, X)


def test_halving_finds_its_place_inside():
    def search(x, value):
        def step(carry):
            low, high = carry
            middle = (low + high) // 2
            is_below = element(x, middle) < value
            return jnp.where(is_below, middle + 1, low), jnp.where(is_below, high, middle)

        return lax.while_loop(lambda c: c[0] < c[1], step, (0, 7))[0]

    check(search, [(True,)], X, np.float32(1.5))


def test_numbers_that_wrap_around_are_not_trusted():
    def walk(x):
        def step(i, carry):
            place, s = carry
            read = element(x, place)
            return place * np.int8(3) + np.int8(1), s + read

        return lax.fori_loop(0, 7, step, (np.int8(0), np.float32(0)))[1]

    check(walk, [None], X)

    def climb(x):
        def step(i, carry):
            place, s = carry
            read = element(x, place - np.int8(100))
            return place + np.int8(1), s + read

        return lax.fori_loop(0, 40, step, (np.int8(100), np.float32(0)))[1]

    check(climb, [None], X)


def test_condition_says_nothing_of_what_the_loop_does_not_change():
    """What reads at `n - 1` may run before the loop's first test."""

    def repeat(x, n):
        def step(carry):
            i, s = carry
            return i + 1, s + element(x, n - 1)

        n = jnp.minimum(jnp.maximum(n, 0), 7)
        return lax.while_loop(lambda c: c[0] < n, step, (0, np.float32(0)))[1]

    assert marks(repeat, X, 0) == [None]
    for n in (0, 3, 9):
        assert jit(repeat)(X, n) == pytest.approx(min(n, 7) * X[min(n, 7) - 1], rel=1e-6)


def test_condition_of_a_branch_holds_in_it():
    def choose(x):
        def step(i, s):
            return s + lax.cond(i < 7, lambda: element(x, i), lambda: np.float32(0))

        return lax.fori_loop(0, 20, step, np.float32(0))

    check(choose, [(True,)], X)

    def choose_otherwise(x):
        def step(i, s):
            return s + lax.cond(i > 3, lambda: element(x, i), lambda: np.float32(0))

        return lax.fori_loop(0, 20, step, np.float32(0))

    check(choose_otherwise, [None], X)


def test_branches_that_all_run_read_inside():
    """In lanes a branch is computed where it is not chosen too: places far outside must not be read."""

    def total(x, v):
        def step(i, s):
            place = i * 100_000_000
            return s + lax.cond(place < 7, lambda: element(x, place) * v, lambda: v - s)

        return lax.fori_loop(0, 20, step, v)

    check(total, [(True,)], X, np.linspace(0, 1, 100, dtype=np.float32))


def test_a_flag_says_what_held_where_it_was_set():
    """`while j >= 0 and x[j] > limit`, its test at the end of the body."""

    def search(x, limit, start):
        def step(carry):
            j, _ = carry
            j = j - 1
            goes_on = lax.cond(j >= 0, lambda: element(x, j) > limit, lambda: jnp.zeros((), bool))
            return j, goes_on

        return lax.while_loop(lambda c: c[1], step, (jnp.minimum(start, 6), x[-1] > limit))[0]

    def read(x, limit, start):
        def step(carry):
            j, s, _ = carry
            s = s + element(x, j)
            j = j - 1
            goes_on = lax.cond(j >= 0, lambda: element(x, j) > limit, lambda: jnp.zeros((), bool))
            return j, s, goes_on

        start = jnp.clip(start, 0, 6)
        return lax.while_loop(lambda c: c[2], step, (start, np.float32(0), x[-1] > limit))[1]

    assert marks(search, X, np.float32(1.2), 5)[-1] is None  # from a start below 0 it may go anywhere
    check(read, [(True,), (True,)], X, np.float32(1.2), 5)
    check(read, [(True,), (True,)], X, np.float32(0), 6)


def test_a_failure_that_ends_the_loop_bounds_the_next_round():
    """`while not failed: failed |= i out of range; x[i]`: i is at most one step outside where the loop goes on."""

    def walk(x, n):
        def step(carry):
            i, failed, s = carry
            failed = failed | (i < 0) | (i > 6)
            return i + 2, failed, s + element(x, i)

        return lax.while_loop(lambda c: (c[2] < n) & ~c[1], step, (0, False, np.float32(0)))[2]

    found = run_pipeline(jitcore.make_jaxpr(walk)(X, np.float32(9)))
    assert " lt " not in str(found).split("body_jaxpr")[1].split("cond_jaxpr")[0]
    for n in (0, 3, 100):
        assert jit(walk)(X, np.float32(n)) == pytest.approx(float(walk_in_python(X, n)), rel=1e-6)


def walk_in_python(x, n) -> np.float32:
    i, failed, s = 0, False, np.float32(0)
    while s < n and not failed:
        failed = failed or i < 0 or i > 6
        s += x[min(max(i, 0), 6)]
        i += 2
    return s


def test_steps_that_branches_take():
    def pack(x, n):
        def step(i, carry):
            out, count = carry
            out = lax.dynamic_update_slice(out, x[i][None], (count,), allow_negative_indices=False)
            return out, lax.cond(x[i] > 1.4, lambda: count + 1, lambda: count)

        return lax.fori_loop(0, jnp.minimum(n, 7), step, (jnp.zeros(8, np.float32), 0))[0]

    check(pack, [(True,)] * 2, X, 7)


def test_lanes_that_ended_do_not_read_outside():
    """Under vmap a loop goes on until its last lane ends."""

    def total(x, n):
        return lax.fori_loop(0, jnp.minimum(n, 7), lambda i, s: s + x[i], np.float32(0))

    assert marks(total, X, 5) == [(True,)]
    counts = np.arange(-1, 10)
    assert all(note is None for note in marks(jitcore.vmap(total, (None, 0)), X, counts))
    expected = [X[: min(max(n, 0), 7)].sum() for n in counts]
    np.testing.assert_allclose(jit(jitcore.vmap(total, (None, 0)))(X, counts), expected, rtol=1e-6)


def test_derivative_of_a_loop_with_known_counters():
    def total(x):
        return lax.fori_loop(0, 7, lambda i, s: s + x[i] * x[i - 1], np.float32(0))

    np.testing.assert_allclose(jit(jitcore.grad(total))(X), np.roll(X, 1) + np.roll(X, -1), rtol=1e-6)


def test_autojit_reads_and_writes_without_clamps():
    @autojit(strict=True)
    def relax(a, x):
        for i in range(1, a.shape[0]):
            for j in range(i):
                a[i, j] += a[i - 1, j] * x[i % 3]
        return a

    rng = np.random.default_rng(0)
    a, x = rng.random((9, 9)), rng.random(3)
    expected = a.copy()
    for i in range(1, 9):
        for j in range(i):
            expected[i, j] += expected[i - 1, j] * x[i % 3]
    np.testing.assert_allclose(relax(a.copy(), x), expected, rtol=1e-12)
    program = relax.inspect("loop program")
    assert "max(" not in program and "min(" not in program


@pytest.mark.parametrize("seed", range(20))
def test_random_loops_agree_with_python(seed):
    """Counters with steps and conditions of both signs, and places computed of them."""
    rng = np.random.default_rng(seed)
    start, step, limit, scale, shift, size = (int(n) for n in rng.integers(-5, 6, 6))
    modulus, rounds = int(rng.integers(1, 9)), int(rng.integers(1, 30))

    def function(x):
        def body(carry):
            i, k, s = carry
            place = lax.rem(i * scale + shift, np.int32(modulus)) + jnp.where(i < limit, k, size)
            read = element(x, place)
            return i + step, k + 1, s + read * (k + 1)

        def holds(carry):
            i, k, _ = carry
            return (k < rounds) & (i * step <= 10)

        return lax.while_loop(holds, body, (np.int32(start), np.int32(0), np.float32(0)))[2]

    with jitcore.disable_jit():
        expected = function(X)
    np.testing.assert_allclose(jit(function)(X), expected, rtol=1e-5)


def test_counter_that_soon_goes_slower_gives_no_number_of_rounds():
    """The first round, of which the carry's start is known, adds 1 to the counter; every second one adds 0."""

    def function(x):
        def body(carry):
            i, wait, k, s = carry
            return i + (1 - wait), 1 - wait, k + 1, s + element(x, k)

        zero = np.int32(0)
        return lax.while_loop(lambda carry: carry[0] < 6, body, (zero, zero, zero, np.float32(0)))[3]

    check(function, [None], X)


@pytest.mark.parametrize("chosen", [0, 1])
def test_choice_by_an_integer_may_be_of_each_case(chosen):
    def function(x, which):
        def body(i, s):
            return s + element(x, lax.select_n(which, np.int32(2), np.int32(1000)) + 0 * i)

        return lax.fori_loop(0, 3, body, np.float32(0))

    check(function, [None], X, np.int32(chosen))


def test_largest_of_no_elements_is_none_of_them():
    def function(x, n):
        largest = lax.reduce_max(x, (0,))
        return lax.fori_loop(0, n, lambda i, count: count + jnp.where(largest > 0, 1, 10), 0)

    empty = jnp.full((0,), 3, np.int32)
    assert jit(lambda n: function(jnp.full((0,), 3, np.int32), n))(2) == function(empty, 2) == 20


def test_a_flag_that_is_never_set_is_a_number():
    def function(x):
        def body(i, carry):
            count, failed, s = carry
            count = count + jnp.where(x[i] > 1.5, 1, 0).astype(np.int64)

            def divide(s, failed):
                return s + 1 / count.astype(np.float64), failed | (count == 0)

            s, failed = lax.cond(count >= 2, divide, lambda s, failed: (s, failed), s, failed)
            return count, failed, s

        _, failed, s = lax.fori_loop(0, 7, body, (np.int64(0), False, np.float64(0)))
        return failed, s

    closed = run_pipeline(jitcore.make_jaxpr(function)(X))
    assert str(closed.jaxpr.outvars[0]) == "Literal(False)"
    assert not any(str(var.aval) == "bool[]" for eqn in closed.jaxpr.eqns for var in eqn.outvars)
    assert jit(function)(X)[1] == pytest.approx(1 / 2 + 1 / 3)


def test_a_flag_that_can_be_set_stays():
    def function(x, n):
        def body(i, failed):
            return failed | (x[i] > n)

        return lax.fori_loop(0, 7, body, False)

    assert bool(jit(function)(X, np.float32(1.9))) and not jit(function)(X, np.float32(3))
