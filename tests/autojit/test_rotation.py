"""Loops whose variables exchange their arrays: double buffers, and rotations of three."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import jitcore
from tests.autojit.checking import assert_same, check
from tests.codegens import codegen, pytest_generate_tests  # noqa: F401

LENGTHS = (0, 1, 2, 3, 4, 7)


def smooth(u):
    return u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])


# -- programs that are compiled ------------------------------------------------------------------------------
def heat(u, n):
    v = u.copy()
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u


def heat_in_place(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u


def heat_both(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        v[0] += 1
        u, v = v, u
    return u, v


def heat_by_names(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        old = u
        u = v
        v = old
    return [v, u]


def heat_by_out(u, v, n):
    for _ in range(n):
        np.multiply(u, 0.5, out=v)
        v[1:-1] += 0.1 * u[:-2]
        u, v = v, u
    return v


def heat_while(u, v, n):
    i = 0
    while i < n:
        i += 1
        v[1:-1] = smooth(u)
        u, v = v, u
    return u, i


def heat_break(u, v, n):
    for i in range(20):
        v[1:-1] = smooth(u)
        u, v = v, u
        if i + 1 >= n:
            break
    return u


def leapfrog(before, now, n):
    after = np.zeros_like(now)
    for _ in range(n):
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.1 * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now, after = now, after, before
    return now, before


def rotate_back(a, b, c, n):
    for _ in range(n):
        a += b * 0.5
        a, b, c = c, a, b
    return b, a


def two_cycles(a, b, c, d, e, n):
    for i in range(n):
        a += 1 + i
        c *= 2
        a, b = b, a
        c, d, e = e, c, d
    return a, c, e


def write_behind_known(u, v):
    for _ in range(7):
        v[1:-1] = smooth(u)
        u, v = v, u
    u[0] = 5.0
    return u


def nested_known(u, v, n):
    for _ in range(n):
        for _ in range(50):
            v[1:-1] = smooth(u)
            u, v = v, u
        u[0] += 1.0
    return u


def nested_odd(u, v, n):
    for _ in range(n):
        for _ in range(3):
            v[1:-1] = smooth(u)
            u, v = v, u
        v[2] = u[1]
    return v


def is_first(u, v, n):
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u.sum() if u is first else -u.sum()


def copy_back(u, v, n):
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return first.sum(), first


def view_behind(u, n):
    v = u.copy()
    inner = u[1:-1]
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u, inner.copy(), inner


def local_view(x, n):
    u, v = x.copy(), x + 1
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u, first


def in_function(u, n):
    a, b = u.copy(), u * 2
    found = heat_in_place(a, b, n)
    return found, heat(u, n)


class Grid:
    def __init__(self, u):
        self.u, self.v = u, u.copy()


def attributes(u, n):
    grid = Grid(u)
    for _ in range(n):
        grid.v[1:-1] = smooth(grid.u)
        grid.u, grid.v = grid.v, grid.u
    return grid.u


V = np.linspace(0.0, 1.0, 12) ** 2
TABLE = [
    (heat, (V,)), (heat_in_place, (V, V + 1)), (heat_both, (V, V + 1)), (heat_by_names, (V, V + 1)),
    (heat_by_out, (V, V + 1)), (heat_while, (V, V + 1)), (leapfrog, (V, V + 1)),
    (rotate_back, (V, V + 1, V + 2)), (two_cycles, (V, V + 1, V + 2, V + 3, V + 4)), (nested_known, (V, V + 1)),
    (nested_odd, (V, V + 1)), (is_first, (V, V + 1)), (copy_back, (V, V + 1)), (view_behind, (V,)),
    (local_view, (V,)), (in_function, (V,)), (attributes, (V,)),
]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function, arrays", TABLE, ids=[function.__name__ for function, _ in TABLE])
def test_traced_length(function, arrays, length):
    compiled = check(function, *arrays, length)
    assert all(region.unrolled is None for region in compiled.report().regions)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function, arrays", TABLE, ids=[function.__name__ for function, _ in TABLE])
def test_known_length(function, arrays, length):
    check(function, *arrays, length, static_argnames="n")


def test_one_program_for_many_lengths():
    compiled = jitcore.autojit(heat_both, strict=True)
    for length in range(5, 15):
        ours, theirs = (V.copy(), V + 1), (V.copy(), V + 1)
        assert_same([heat_both(*theirs, length), *theirs], [compiled(*ours, length), *ours])
    assert compiled.cache_info().traces == 3  # two lengths that are taken for fixed, and one for all


@pytest.mark.parametrize("length", [200, 201])
def test_known_length_is_rolled(length):
    def run(u):
        v = u.copy()
        for _ in range(length):
            v[1:-1] = smooth(u)
            u, v = v, u
        return u

    compiled = check(run, V)
    assert all(region.unrolled is None for region in compiled.report().regions)


def test_break_behind_the_exchange():
    check(heat_break, V, V + 1, 6)
    check(heat_break, V, V + 1, 7)


def test_writes_behind_a_known_length():
    check(write_behind_known, V, V + 1)


# -- whole programs ------------------------------------------------------------------------------------------
def jacobi(p, b, tolerance):
    new, change, count = p.copy(), 1.0, 0
    while change > tolerance:
        new[1:-1, 1:-1] = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - b[1:-1, 1:-1])
        change = np.abs(new - p).max()
        p, new = new, p
        count += 1
    return p, count


def life(board, n):
    other = np.zeros_like(board)
    for _ in range(n):
        count = np.zeros_like(board[1:-1, 1:-1])
        for i in range(3):
            for j in range(3):
                if i != 1 or j != 1:
                    count += board[i : board.shape[0] - 2 + i, j : board.shape[1] - 2 + j]
        alive = board[1:-1, 1:-1]
        other[1:-1, 1:-1] = (count == 3) | ((alive == 1) & (count == 2))
        board, other = other, board
    return board


def wave(u, steps):
    before, after, energy = u.copy(), np.empty_like(u), np.zeros(3)
    for k in range(steps):
        after[...] = 2 * u - before
        after[1:-1, 1:-1] += 0.2 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        energy[k % 3] = (after**2).sum()
        before, u, after = u, after, before
    return u, energy


@pytest.mark.parametrize("seed", range(3))
def test_programs(seed):
    random = np.random.default_rng(seed)
    grid = random.random((9, 8))
    check(jacobi, grid, random.random((9, 8)) / 50, 1e-3 / (seed + 1))
    check(life, random.integers(0, 2, (9, 8)), 5 + seed)
    check(wave, grid, 6 + seed)


# -- what is right whichever way it runs ---------------------------------------------------------------------
def view_inside(u, v, n):
    inner = u[1:-1]
    for _ in range(n):
        v[1:-1] = smooth(u) + inner
        u, v = v, u
    return u


def view_in_test(u, v, n):
    first, i = u, 0
    while first.sum() < 40.0 and i < n:
        v[1:-1] = smooth(u) + 1
        u, v = v, u
        i += 1
    return u, i


def store_by_other_name(u, v, n):
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        first[:] = 1.0
        u, v = v, u
    return u, v


def identity_inside(u, v, n):
    first, count = u, 0
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
        count += u is first
    return u, count


def sharing_inside(u, v, n):
    first, count = u, 0
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
        count += np.may_share_memory(u, first)
    return u, count


def conditional(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        if u.sum() > 3.5:
            u, v = v, u
    return u


def kept_name(u, v, n):
    old = v
    for _ in range(n):
        v[1:-1] = smooth(u)
        old = u
        u, v = v, u
    old[0] = 3.0
    return u, old


def one_array(u, n):
    v = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u, v


def rows(a, n):
    u, v = a[0], a[1]
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u


def reversed_view(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v[::-1], u
    return u


def write_behind(u, v, n):
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    u[0] = 7.0
    first[1] = 8.0
    return u


def second_loop(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u
    for _ in range(3):
        v[1:-1] = smooth(u)
        u, v = v, u
    return u


def nested_traced(u, v, n):
    for i in range(n):
        for _ in range(i):
            v[1:-1] = smooth(u)
            u, v = v, u
        v[0] = u[1]
    return u


def break_before(u, v, n):
    for i in range(20):
        v[1:-1] = smooth(u)
        if i >= n:
            break
        u, v = v, u
    return u


def in_branch(u, v, n):
    if u.sum() > 1:
        for _ in range(n):
            v[1:-1] = smooth(u)
            u, v = v, u
    return u


def swap_with_new(u, v, n):
    for _ in range(n):
        v[1:-1] = smooth(u)
        u, v = v, u * 0.5
    return u, v


def to_one_name(u, v, n):
    first = u
    for _ in range(n):
        v[1:-1] = smooth(u)
        v, u = u, first
    return u, v


def overwrite_alone(u, n):
    for i in range(n):
        u[:] = 1.0 * i
        u = np.asarray(u)
    return u


def listed(u, v, n):
    pair = [u, v]
    for _ in range(n):
        pair[1][1:-1] = smooth(pair[0])
        pair[0], pair[1] = pair[1], pair[0]
    return pair[0]


def choose_local(x, n):
    one, other = x + 1, x + 2
    found = one if n > 2 else other
    return found, one, found is one


OTHERS = [
    view_inside, view_in_test, store_by_other_name, identity_inside, sharing_inside, conditional, kept_name,
    write_behind, second_loop, nested_traced, break_before, in_branch, swap_with_new, to_one_name,
    reversed_view, listed, heat_break,
]


def run_both(function, *arguments):
    """Results and arguments of the function, plain and compiled."""
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = jitcore.autojit(function)
        for _ in range(2):
            assert_same([function(*theirs), *theirs], [compiled(*ours), *ours])


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", OTHERS, ids=[function.__name__ for function in OTHERS])
def test_others(function, length):
    run_both(function, V, V + 1, length)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", [one_array, overwrite_alone, choose_local])
def test_others_of_one_array(function, length):
    run_both(function, V, length)


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_one_array(length):
    run_both(rows, np.stack([V, V + 1]), length)


def test_one_array_as_two_arguments():
    run_both(lambda u, n: heat_both(u, u, n), V, 3)
    run_both(lambda a, n: heat_both(a[:-1], a[1:], n), V, 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_layouts(order):
    grid = np.asarray(np.random.default_rng(0).random((6, 5)), order=order)
    run_both(heat_both, grid, np.ascontiguousarray(grid + 1), 3)
    run_both(heat_both, grid[::2], grid[::2] + 1, 3)


def test_read_only():
    def attempt(function):
        u, v = V.copy(), V + 1
        u.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            function(u, v, 3)
        return [u, v]

    assert_same(attempt(heat_both), attempt(jitcore.autojit(heat_both)))
