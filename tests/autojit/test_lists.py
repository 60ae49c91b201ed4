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
