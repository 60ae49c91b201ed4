"""Loops as functions, and gates before them: on ordinary values the function does what it did."""

from __future__ import annotations

import dis
import inspect
import sys
import types

import pytest

from jitcore.rewriter.writing.outlined import Gate, list_parameters, write_gates, write_loop
from jitcore.rewriter.writing.outlining import Outline
from tests.fuzz.test_random_control_flow import call_all, load_program

DECLINED, UNBOUND = object(), object()


def outline(function, declines=lambda number: False, is_open=True):
    """(the function with gates, its outline, numbers of the loops that were called)."""
    code = function.__code__
    found, called = Outline(code), []
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))

    def make_call(loop):
        closure = tuple([cells[name] for name in loop.free]) or None
        made = types.FunctionType(
            write_loop(found, loop, UNBOUND), function.__globals__, "loop", None, closure
        )

        def call(*values):
            assert len(values) == len(list_parameters(loop))
            if declines(loop.number):
                return DECLINED
            called.append(loop.number)
            return made(*values)

        return call

    calls = [make_call(loop) for loop in found.loops]
    gates = [Gate() for _ in calls]
    for gate in gates:
        gate.is_open = is_open
    made = types.FunctionType(write_gates(found, calls, gates, DECLINED, UNBOUND), function.__globals__,
                              function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made, found, called


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_programs(first):
    count = 0
    for seed in range(first, first + 20):
        function = load_program(seed)
        expected = repr(call_all(function, seed % 4))
        for declines in (lambda n: False, lambda n: n % 2 == 0, lambda n: n % 2 == 1):
            made, _, called = outline(function, declines)
            assert repr(call_all(made, seed % 4)) == expected, f"seed {seed}"
            count += len(called)
    assert count > 50


def leaves(n, words, *, factor=1):
    total, k = 0, 0
    for i, word in enumerate(words):
        total += i * factor
        if word == "stop":
            break
        if word == "return":
            return "early", i, total
    else:
        total = -total
    while k < n:
        k += 1
        if k == 7:
            return "late", k, total
        while True:
            total += 1
            if total % 3 == 0:
                break
    for a, b in zip([1, 2], [3, 4]):
        for c in sorted([6, 5]):
            total += a * b * c
            if total > 60:
                return total, a, b
    return total, k


@pytest.mark.parametrize("words", [[], ["a"], ["a", "stop", "b"], ["a", "b", "return"]])
@pytest.mark.parametrize("n", [0, 2, 9])
@pytest.mark.parametrize("period", [1, 2, 3])
def test_ways_out(words, n, period):
    made, found, called = outline(leaves, lambda number: number % period == period - 1 and period > 1)
    assert made(n, words, factor=2) == leaves(n, words, factor=2)
    assert len(found.loops) == 5 and (called or period > 1)


def test_what_goes_in_and_out():
    found = Outline(leaves.__code__)
    by_line = {loop.line - leaves.__code__.co_firstlineno: loop for loop in found.loops}
    inner = 14 if sys.version_info < (3, 14) else 15  # `while True:` has instructions of its own, or none
    assert list(sorted(by_line)) == [2, 10, inner, 18, 19]
    first = by_line[2]
    assert set(first.parameters) == {"words", "total", "factor"} and not first.unsure
    assert set(first.results) == {"i", "total"} and len(first.exits) == 3 and not first.takes_iterable
    assert by_line[19].takes_iterable  # sorted() is called before
    assert by_line[inner].parent == by_line[10].number and by_line[10].parent is None
    assert by_line[10].size > by_line[inner].size and found.size > sum(
        by_line[line].size for line in (2, 10, 18)
    )


def test_closed_gates_change_nothing():
    made, _, called = outline(leaves, is_open=False)
    for words in ([], ["a", "return"]):
        assert made(3, words) == leaves(3, words)
    assert not called
    assert inspect.signature(made) == inspect.signature(leaves)
    lines = {line for _, _, line in made.__code__.co_lines() if line}
    assert lines == {line for _, _, line in leaves.__code__.co_lines() if line}


def catches(x):
    try:
        for i in range(5):
            x[i] += 1
    except IndexError:
        return i
    for word in x:
        try:
            word.upper()
        except AttributeError:
            break
    return x


def shows_variables(n):
    for i in range(n):
        pass
    return locals()


def test_loops_that_stay():
    assert not Outline(shows_variables.__code__).loops
    caught = Outline(catches.__code__).loops
    assert [loop.is_caught for loop in sorted(caught, key=lambda loop: loop.line)][0]
    for x in ([1, 2, 3, 4, 5], [1, 2]):
        made, _, _ = outline(catches, lambda number: True)
        assert made(list(x)) == catches(list(x))


def test_positions_are_those_of_the_source():
    made, found, _ = outline(leaves)
    for code in (made.__code__, write_loop(found, found.loops[0], UNBOUND)):
        assert code.co_filename == __file__ and code.co_name == "leaves"
        known = {item.positions.lineno for item in dis.get_instructions(leaves)}
        assert {item.positions.lineno for item in dis.get_instructions(code)} <= known
