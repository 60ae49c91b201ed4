"""Lists that loops fill are compiled: as rows of an array, or with a traced length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jitcore
from jitcore.errors import AutojitWarning, ControlFlowError
from tests.autojit.checking import check
from tests.autojit.programs import load

PROGRAMS = load(Path(__file__).with_name("user_programs_lists.py"))
#: Those that a loop compiled as a loop fills, and so many operations are enough for.
ROLLED = """history_of_numbers history_of_arrays above_zero peaks until_small pairs_of_two_loops while_large
    collatz two_ways records run_lengths warping_path filtered filtered_and_used
    without_outliers items_in_place""".split()


@pytest.mark.parametrize("name", ROLLED)
def test_is_compiled_as_a_loop(name):
    function = getattr(PROGRAMS, name)
    compiled = jitcore.autojit(function, strict=True)
    arguments = function.inputs[0]()
    compiled(*(arguments if type(arguments) is tuple else (arguments,)))
    assert not any(region.unrolled for region in compiled.report().regions), compiled.report()


def test_elements_leave_the_program_as_one_array():
    def halves(x):
        found = []
        for _ in range(200):
            x = x * 0.5
            found.append(x.sum())
        return found

    compiled = check(halves, np.arange(3.0))
    assert compiled.inspect("loop program").count(": out ") == 1


def test_list_longer_than_its_capacity_is_python_s():
    def count(n):
        found = []
        i = 0
        while i < n:
            found.append(i)
            i += 1
        return found

    compiled = jitcore.autojit(count)
    for n in (5, 6, 7, 8, 9_000):
        assert compiled(n) == list(range(n))


def test_errors_are_those_of_lists():
    def third(x):
        found = [v for v in x if v > 0]
        return found[2]

    def pop(x):
        found = [v for v in x if v > 0]
        return found.pop()

    for function, message in ((third, "list index out of range"), (pop, "pop from empty list")):
        compiled = jitcore.autojit(function)
        assert compiled(np.arange(9.0)) == function(np.arange(9.0))
        with pytest.raises(IndexError, match=message):
            compiled(-np.arange(9.0))


def test_sums_of_small_ints_are_those_of_python():
    def total(x):
        found = []
        for i in range(len(x)):
            if x[i] > 0:
                found.append(np.int16(i))
        return sum(found), sum(found, 3)

    check(total, np.ones(50))


def test_an_array_of_an_iterator():
    def collect(x):
        return np.fromiter((v * 2 for v in x), float), np.fromiter([x[0], x[1]], int, count=1)

    check(collect, np.arange(5.0))
    with pytest.raises(ValueError, match="iterator too short"):
        jitcore.autojit(lambda x: np.fromiter([x[0]], float, count=3))(np.ones(2))


@pytest.mark.parametrize("size", [3, 10])
def test_words_chosen_for_each_element_are_refused_by_name(size):
    """Each side of the first choice goes through the rest of the array by itself."""

    def name_signs(x):
        return ["more" if v > 0 else "less" for v in x]

    x = np.arange(size) - 1.5
    with pytest.raises(ControlFlowError, match="'more'"):
        jitcore.autojit(name_signs, strict=True)(x)
    with pytest.warns(AutojitWarning, match="'more'"):
        assert jitcore.autojit(name_signs)(x) == name_signs(x)


# -- lists of traced length ---------------------------------------------------------------------------------------
DRAWS = np.random.default_rng(0).normal(size=120)


def positive(x):
    return [v for v in x if v > 0]


def pairs(x):
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append((int(x[i] * 3) % 4, float(x[i])))
    return found


def cut(x):
    found = positive(x)
    n = len(found)
    return (found[:2], found[::2], found[1:], found[-3:], found[5:2:-1], found[::-2], found[1000:], found[-1000:3],
            found[10:5], found[: n // 2], found[n // 2 :], found[-n:], found[n - 3 : -1], found[:])


def arrange(x):
    found = positive(x)
    found.sort()
    down = sorted(found, reverse=True)
    kept = list(found)
    kept.append(x[0])
    return found[0], found[len(found) // 2], down[:3], len(found), len(kept), kept[-1]


def arrange_pairs(x):
    found = pairs(x)
    found.sort()
    return found, sorted(found, reverse=True)[:5], max(found), min(found, key=lambda pair: pair[1]), [k for k, _ in found]


def join(x):
    found = positive(x)
    found += positive(-x)[:5]
    found.extend(found[:3])
    return found + positive(x - 1), found + [x[0], x[1]], [x[2]] + found, len(found)


def search(x):
    found = [int(v * 10) for v in x if v > 0]
    return 3 in found, 1000 in found, found.index(found[4]), found.index(found[-1])


def walk(x):
    found = positive(x)
    return [a * b for a, b in zip(found, found[1:])], sum(found[:5]), max(found[2:7]), np.array(found[3:6])


@pytest.mark.parametrize("function", [cut, arrange, arrange_pairs, join, search, walk])
def test_lists_of_traced_length(function):
    check(function, DRAWS)


def test_sorts_keep_the_order_of_equal_elements():
    def arrange_zeros(x):
        return sorted(v for v in x if v < 1), sorted([v for v in x if v < 1], reverse=True)

    x = np.array([0.5, -0.0, 0.0, -0.0, 2.0, -1.0, 0.0] * 5)
    assert repr(jitcore.autojit(arrange_zeros)(x)) == repr(arrange_zeros(x))


def test_what_depends_on_nan_is_left_to_python():
    x = np.where(np.arange(40) % 7 == 3, np.nan, DRAWS[:40])
    for function in (lambda x: sorted([v for v in x if not v < 0]), lambda x: x[3] in [v for v in x if not v < 0]):
        assert repr(jitcore.autojit(function)(x)) == repr(function(x))


def test_errors_of_searches():
    compiled = jitcore.autojit(lambda x: [int(v) for v in x if v > 0].index(7))
    with pytest.raises(ValueError, match="not in list"):
        compiled(DRAWS)
