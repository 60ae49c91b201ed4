"""Loops over blocks of independent iterations: which loops become one, and results against Python's loops."""

from __future__ import annotations

import functools
import operator
from functools import partial

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax, make_jaxpr, vmap
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import ClosedJaxpr, eval_jaxpr, sub_jaxprs
from jitcore.passes import run_pipeline
from jitcore.passes.tuning import DEFAULT

BLOCK = DEFAULT.iterations
COUNTS = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 7]


def count_steps(n):
    """How many of Collatz's steps lead from n to 1."""
    return lax.while_loop(lambda s: s[0] != 1,
                          lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
                          (n, n - n))[1]


def leave_circle(x):
    """How often a float is squared until it is large, or 50 times."""
    return lax.while_loop(lambda s: (abs(s[0]) < 4) & (s[1] < 50), lambda s: (s[0] * s[0] - 1.3, s[1] + 1),
                          (x, jnp.int32(0)))


REDUCTIONS = {
    "max": (jnp.maximum, 0),
    "min": (jnp.minimum, 1000),
    "add": (jnp.add, 5),
    "mul": (lambda c, t: c * (t | 1), 1),
    "and": (jnp.bitwise_and, -1),
    "or": (jnp.bitwise_or, 0),
    "xor": (jnp.bitwise_xor, 3),
}


def in_python(body, lower: int, upper: int, start):
    for i in range(lower, upper):
        start = body(jnp.int32(i), start)
    return start


def is_side_by_side(function, *arguments) -> bool:
    closed = run_pipeline(make_jaxpr(function)(*arguments))
    check_jaxpr(closed)

    def has_block(closed: ClosedJaxpr) -> bool:
        shapes = [var.aval.shape for eqn in closed.jaxpr.eqns for var in eqn.outvars]
        return (BLOCK,) in shapes or any(has_block(inner) for eqn in closed.jaxpr.eqns
                                         for inner in sub_jaxprs(eqn.params))

    return has_block(closed)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    combine, start = REDUCTIONS[name]

    def body(i, total):
        return combine(total, count_steps(i + 1))

    def program(count):
        return lax.fori_loop(0, count, body, jnp.int32(start))

    assert is_side_by_side(program, 5)
    compiled = jit(program)
    for count in COUNTS:
        assert int(compiled(count)) == int(in_python(body, 0, count, jnp.int32(start)))


@pytest.mark.parametrize("count", COUNTS)
def test_known_bounds(count):
    def body(i, total):
        return jnp.maximum(total, count_steps(i + 3))

    def program():
        return lax.fori_loop(2, 2 + count, body, jnp.int32(-1))

    assert is_side_by_side(program) == (count >= BLOCK)
    assert int(jit(program)()) == int(in_python(body, 2, 2 + count, jnp.int32(-1)))


def test_several_results_counters_and_constants():
    def run(scale, count):
        def body(state):
            i, place, most, least, hits, limit = state
            value, rounds = leave_circle(place.astype(jnp.float32) * scale)
            return (i + 1, place - 3, jnp.maximum(most, value), jnp.minimum(least, rounds),
                    hits | (rounds > limit), limit)

        start = jnp.int32(0), jnp.int32(40), jnp.float32(-1), jnp.int32(99), jnp.bool_(False), jnp.int32(49)
        return lax.while_loop(lambda s: s[0] < count, body, start)

    assert is_side_by_side(run, np.float32(0.01), np.int32(5))
    compiled = jit(run)
    for count in COUNTS:
        expected = [jnp.int32(0), jnp.int32(40), -1.0, 99, False, 49]
        for _ in range(count):
            value, rounds = leave_circle(expected[1].astype(jnp.float32) * np.float32(0.01))
            expected = [expected[0] + 1, expected[1] - 3, max(expected[2], float(value)),
                        min(expected[3], int(rounds)), expected[4] or int(rounds) > 49, 49]
        found = compiled(np.float32(0.01), np.int32(count))
        np.testing.assert_allclose([float(x) for x in found], [float(x) for x in expected], 1e-6)


def test_nothing_behind_the_last_iteration_is_computed():
    """The inner loop of an iteration behind the last one would go through all negative numbers."""

    def program(count):
        def body(i, total):
            steps = lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 1, s[1] + 1), (count - 1 - i, 0))[1]
            return total + steps

        return lax.fori_loop(0, count, body, 0)

    assert is_side_by_side(program, 5)
    for count in (3, BLOCK, BLOCK + 6):
        assert int(jit(program)(count)) == count * (count - 1) // 2


@pytest.mark.parametrize("lower", [-(2**31), -BLOCK, 2**31 - 1 - 2 * BLOCK - 5])
def test_bounds_anywhere(lower):
    def body(i, total):
        return total + count_steps((i & 7) + 1)

    compiled = jit(lambda lower, upper: lax.fori_loop(lower, upper, body, jnp.int32(0)))
    upper = lower + 2 * BLOCK + 5
    assert int(compiled(np.int32(lower), np.int32(upper))) == int(in_python(body, lower, upper, jnp.int32(0)))
    assert int(compiled(np.int32(upper), np.int32(lower))) == 0


@pytest.mark.parametrize("step", [1, 3, -1])
def test_unsigned_counters(step):
    def run(count):
        start = np.uint32(0), np.uint32(500), jnp.int32(0)
        return lax.while_loop(
            lambda s: s[0] < count,
            lambda s: (s[0] + np.uint32(2), s[1] + step if step > 0 else s[1] - np.uint32(1),
                       s[2] + count_steps(s[1].astype(jnp.int32) + 1)), start)

    assert is_side_by_side(run, np.uint32(5)) == (step > 0)
    for count in (0, 1, BLOCK, 2 * BLOCK, 5 * BLOCK + 1):
        rounds = -(-count // 2)
        total = sum(int(count_steps(jnp.int32(500 + step * k + 1))) for k in range(rounds))
        assert [int(x) for x in jit(run)(np.uint32(count))] == [2 * rounds, 500 + step * rounds, total]


def count_in_blocks(program, count: int) -> int:
    """How many iterations of `program(count)` run side by side: where the first of the two loops stops."""
    closed = run_pipeline(make_jaxpr(program)(np.int32(count)))
    first = next(k for k, eqn in enumerate(closed.jaxpr.eqns) if eqn.primitive.name == "while")
    jaxpr = closed.jaxpr.replace(eqns=closed.jaxpr.eqns[: first + 1], outvars=closed.jaxpr.eqns[first].outvars[2:3])
    return int(eval_jaxpr(jaxpr, closed.consts, [np.int32(count)])[0])


def test_lanes_that_wait_for_few_others_give_up():
    def program(count, often):
        def body(i, total):
            rounds = jnp.where(i & often == 0, 800, 4)
            return total + lax.while_loop(lambda s: s[0] < rounds, lambda s: (s[0] + 1, s[1] ^ s[0]), (0, i))[1]

        return lax.fori_loop(0, count, body, 0)

    for often, expected in ((0, 20 * BLOCK), (1, 20 * BLOCK), (63, BLOCK)):
        chosen = partial(program, often=often)
        assert is_side_by_side(chosen, np.int32(5))
        assert count_in_blocks(chosen, 20 * BLOCK + 3) == expected
        rounds = [800 if i & often == 0 else 4 for i in range(20 * BLOCK + 3)]
        total = sum(i ^ functools.reduce(operator.xor, range(n)) for i, n in enumerate(rounds))
        assert int(jit(chosen)(np.int32(20 * BLOCK + 3))) == total


def test_loops_in_loops():
    def program(count):
        def body(n, total):
            def row(state):
                j, pairs = state
                pairs = lax.fori_loop(0, 3, lambda _, p: p, pairs)
                return j + 1, lax.while_loop(
                    lambda s: j * j + s[0] * s[0] <= n, lambda s: (s[0] + 1, s[1] + 1), (0, pairs))[1]

            return total + lax.while_loop(lambda s: s[0] * s[0] <= n, row, (0, 0))[1]

        return lax.fori_loop(0, count, body, 0)

    assert is_side_by_side(program, np.int32(5))
    for count in (10, 2 * BLOCK + 5):
        expected = sum(1 for n in range(count) for j in range(12) for k in range(12) if j * j + k * k <= n)
        assert int(jit(program)(np.int32(count))) == expected


def test_under_vmap():
    def program(first):
        return lax.fori_loop(0, 3 * BLOCK, lambda i, t: jnp.maximum(t, count_steps(i + first)), jnp.int32(0))

    firsts = np.array([1, 5, 1000], np.int32)
    assert list(jit(vmap(program))(firsts)) == [int(program(first)) for first in firsts]


def loop(body, start):
    return lambda count: lax.fori_loop(0, count, body, start)


@pytest.mark.parametrize("program", [
    loop(lambda i, t: t + leave_circle(i * 0.01)[0], jnp.float32(0)),  # the order of a float sum matters
    loop(lambda i, t: jnp.maximum(t, i * i), 0),  # no loop inside
    loop(lambda i, t: jnp.maximum(t, count_steps(i + 1 + (t & 1))), 0),  # reads what came before
    loop(lambda i, t: t + count_steps(jnp.abs(t) + 1), 1),
    loop(lambda i, t: t - count_steps(i + 1), 0),  # a sum that is not written as one
    loop(lambda i, t: t + lax.while_loop(  # no instruction divides integers in lanes
        lambda s: s[1] > 0, lambda s: (s[1], s[0] % s[1]), (i + 7, 21))[0], 0),
    loop(lambda i, t: t + lax.cond(i > 3, count_steps, lambda n: n, i + 1), 0),
    loop(lambda i, t: t + lax.while_loop(  # arrays
        lambda s: s.sum() < 9, lambda s: s + 1, jnp.full(3, i)).sum(), 0),
    lambda count: lax.while_loop(lambda s: (s[0] < count) & (s[1] < 90),
                                 lambda s: (s[0] + 1, s[1] + count_steps(s[0] + 1)), (0, 0)),
    lambda count: lax.while_loop(lambda s: s[0] < s[1],  # the end moves
                                 lambda s: (s[0] + 1, jnp.minimum(s[1], count + count_steps(s[0] + 1))), (0, 9)),
])
def test_other_loops_stay_as_they_are(program):
    assert not is_side_by_side(program, np.int32(70))


def test_loops_of_a_batch_stay_as_they_are():
    program = vmap(loop(lambda i, t: t + count_steps(i + 1), 0))
    assert not is_side_by_side(program, np.array([5, 70, 90], np.int32))
