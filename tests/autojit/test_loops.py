"""Functions that cannot be traced as a whole: their loops are compiled, and all else is as in plain Python."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import logging
import random
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import jitcore
from jitcore.autojitted import loops
from jitcore.autojitted.recording import recorder
from jitcore.autojitted.tiers import native
from tests.autojit.checking import TUNING, assert_same, tune


class Canvas:
    """What a library's C code might be: nothing is known of its objects."""

    __slots__ = ("calls",)

    def __init__(self):
        self.calls = []

    def line(self, *values):
        self.calls.append([float(value) for value in values])


class Unknown:
    __slots__ = ()

    def __eq__(self, other):
        return type(other) is Unknown

    __hash__ = None


class Console:
    """What prints, and is not known to do so."""

    __slots__ = ()

    def print(self, *values):
        print(*values)


console = Console()
logger = logging.getLogger("tests.autojit.loops")
canvas = Canvas()


def run(function, arguments):
    """(result or exception, output, what was drawn, arguments behind the call)."""
    canvas.calls.clear()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = function(*arguments)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            result = (type(error).__name__, str(error), frames[-1].lineno, frames[-1].name)
    return result, out.getvalue(), copy.deepcopy(canvas.calls), list(arguments)


def check(function, *arguments, calls: int = 3, compiled=None):
    """Calls the function plainly and compiled; everything that can be seen of the calls must agree.

    compiled: lines of the loops that must be traced, counted from the function's first; all others are not.
    Returns: the compiled function."""
    made = jitcore.autojit(function)
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(calls):
            expected, found = run(function, theirs), run(made, ours)
            assert_same(expected[0], found[0])
            assert expected[1:3] == found[1:3]
            assert_same(expected[3], found[3])
    if compiled is not None:
        assert list_traced(made) == compiled, str(made.report())
    return made


def list_traced(made):
    """The lines of the loops that are traced, counted from the function's first."""
    first = made.__wrapped__.__code__.co_firstlineno
    return [region.line - first for region in made.report().regions
            if region.kind == "loop" and "traced" in [tier.value for tier in region.tiers]]


# -- what stands in the way ----------------------------------------------------------------------------------
def prints_around(x, n):
    console.print("begin")
    total = 0.0
    for i in range(n):
        total += x[i] * i
    console.print("end", round(total, 6))
    return total


def logs_between(x, n):
    k = 0
    while k < n:
        x[k] += 1
        k += 1
    logger.debug("half of it %s", k)
    for i in range(n):
        x[i] *= 2
    return k


def opens_a_file(x):
    with open("/dev/null", "w") as file:
        for i in range(len(x)):
            x[i] += i
        file.write(str(x))
        total = 0
        for v in x:
            total += v
    return total


def draws_numbers(x):
    noise = np.random.default_rng(3).normal(size=len(x))
    start = random.Random(4).random()
    for i in range(len(x)):
        x[i] += noise[i] * start
    return x.sum()


def reads_a_clock(x):
    start = time.time()
    for i in range(1, len(x)):
        x[i] += x[i - 1]
    return time.time() >= start


def has_words(x):
    words = {"a": 1}
    for word in "some words and words".split():
        words[word] = words.get(word, 0) + 1
    console.print(words)
    for i in range(len(x)):
        x[i] = x[i] ** 2
    return words, x.max()


def knows_a_class(x, thing):
    for i in range(len(x)):
        x[i] += 1
    if isinstance(thing, Unknown):
        x[0] = -1
    return x, thing.__class__


def plots(x):
    for i in range(len(x)):
        x[i] = x[i] * 0.5
    canvas.line(*x)
    s = 0.0
    for v in x:
        s += v
    return s


def iterates_a_generator(x):
    total = 0.0
    for v in (v * v for v in x):
        total += v
    console.print(total)
    for i in range(len(x)):
        total += x[i]
    return total


def tries(x, n):
    console.print("try")
    try:
        for i in range(n):
            x[i] += 1
    except IndexError as error:
        return str(error), i, x[0]
    finally:
        for j in range(2):
            x[j] -= 1
    return i


@pytest.mark.parametrize(
    ("function", "arguments", "compiled"),
    [
        (prints_around, (np.arange(40.0), 40), [3]),
        (logs_between, (np.arange(30.0), 25), [2, 6]),
        (opens_a_file, (np.arange(6.0),), [2, 6]),
        (draws_numbers, (np.arange(7.0),), [3]),
        (reads_a_clock, (np.arange(7.0),), [2]),
        (plots, (np.arange(9.0),), [1, 5]),
        (iterates_a_generator, (np.arange(5.0),), [5]),
        (tries, (np.arange(5.0), 5), None),
        (tries, (np.arange(5.0), 9), None),
        (knows_a_class, (np.arange(5.0), Unknown()), [1]),
    ],
)
def test_loops_beside_what_is_not_traced(function, arguments, compiled):
    made = check(function, *arguments, compiled=compiled)
    assert made.report().regions[0].tiers[0].value == "python"


def test_words_beside_a_loop():
    made = check(has_words, np.arange(5.0))
    assert 5 in list_traced(made)


# -- ways out of a loop --------------------------------------------------------------------------------------
def leaves(x, limit):
    console.print(limit)
    for i in range(len(x)):
        if x[i] > limit:
            where = i
            break
    else:
        where = -1
    for i in range(len(x)):
        for j in range(i):
            if x[i] + x[j] > 2 * limit:
                return "two", i, j, where
    k = 0
    while True:
        k += 1
        if k > limit:
            return "one", k, where


@pytest.mark.parametrize("limit", [-3.0, 2.5, 3.5, 7.0, 100.0])
def test_break_else_and_return(limit):
    check(leaves, np.arange(8.0), limit, compiled=None)


def test_break_else_and_return_are_compiled():
    *found, last = list_traced(check(leaves, np.arange(8.0), 7.0))
    assert found == [2, 8, 9] and last == (13 if sys.version_info < (3, 14) else 14)  # the line of `while True`


def binds_on_some_ways(n, verbose):
    console.print(n)
    for i in range(n):
        last = i * 2.0
        if verbose:
            text = "seen"
    for k in range(n):
        if k > 100:
            del last
            break
    try:
        return last, i, text
    except UnboundLocalError as error:
        return str(error)


@pytest.mark.parametrize("n", [0, 1, 5, 110])
@pytest.mark.parametrize("verbose", [False, True])
def test_variables_without_a_value(n, verbose):
    check(binds_on_some_ways, n, verbose)


def continues_an_iterator(x):
    console.print("iterator")
    rest = iter(x)
    for v in rest:
        if v > 2:
            break
    for w in rest:
        v += w
    return v


def test_iterators_that_are_alive_before_the_loop():
    check(continues_an_iterator, [1.0, 2.0, 3.0, 4.0, 5.0], compiled=[])


# -- errors --------------------------------------------------------------------------------------------------
def fails_inside(x, n):
    console.print("fails")
    for i in range(n):
        x[i] = 1 / (3 - i)
    return x


def test_errors_name_the_users_line():
    made = check(fails_inside, np.zeros(5), 4, calls=5)
    with pytest.raises(ZeroDivisionError) as caught:
        made(np.zeros(5), 4)
    last = caught.traceback[-1]
    assert last.lineno + 1 - fails_inside.__code__.co_firstlineno == 3 and last.name == "fails_inside"


def suppresses(x, n):
    seen = -1
    with contextlib.suppress(IndexError):
        for i in range(n):
            seen = i
            x[i] += 1
    console.print(seen)
    return seen


@pytest.mark.parametrize("n", [3, 9])
def test_what_a_handler_reads_is_up_to_date(n):
    check(suppresses, np.zeros(5), n)


# -- nested loops --------------------------------------------------------------------------------------------
def reports_steps(x, n):
    for step in range(n):
        change = 0.0
        for i in range(1, len(x) - 1):
            new = 0.5 * (x[i - 1] + x[i + 1])
            change = max(change, abs(new - x[i]))
            x[i] = new
        if step % 2 == 0:
            console.print(step, round(change, 9))
        k = 0
        while k < len(x):
            x[k] += x[k - 1] * 0.125
            k += 1
    return change


def test_loops_inside_a_loop_that_is_refused():
    made = check(reports_steps, np.linspace(0, 1, 300) ** 2, 6, compiled=[3, 10])
    report = made.report()
    assert 0 < report.compiled < 100
    first = reports_steps.__code__.co_firstlineno
    assert {reason.line - first for reason in report.reasons} == {8}  # console.print(step, round(...))
    assert report.regions[0].tiers[0].value == "python"


def test_loops_are_compiled_in_the_first_call():
    made = jitcore.autojit(reports_steps)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        made(np.linspace(0, 1, 300), 4)
    state = made.__dict__["__jitcore_autojit_state__"]
    inner = state.loops.loops[1]
    assert inner.info().traces == 1 and len(inner.signatures) == 1  # the step is no input of it


# -- variables of functions around and inside ----------------------------------------------------------------
def uses_comprehensions(x, n):
    console.print("comprehension")
    scale = 2.0
    total = 0.0
    for i in range(n):
        row = [x[i] * scale * k for k in range(3)]
        total += sum(row)
        scale = scale + 0.5
    return total, scale, row


def shares_a_variable(x, n):
    count = 0

    def add():
        nonlocal count
        count += 1
        return count

    console.print("shared")
    for i in range(n):
        x[i] += add()
    for i in range(n):
        x[i] *= 2
    return count


def makes_functions(x, n):
    console.print("functions")
    made, scale = [], 3.0
    for i in range(n):
        made.append(lambda v: v * scale + i)
    scale = 4.0
    return [f(x[0]) for f in made]


def make_counter():
    state = np.zeros(1)

    def step(x, n):
        nonlocal state
        console.print(state[0])
        for i in range(n):
            state[0] += x[i]
        for i in range(n):
            state = state + x[i]
        return state.copy()

    return step


def test_variables_in_cells():
    check(uses_comprehensions, np.arange(6.0), 6, compiled=None)
    made = check(shares_a_variable, np.arange(6.0), 6)
    assert 11 in list_traced(made)
    check(makes_functions, np.arange(3.0), 3)
    plain, compiled = make_counter(), jitcore.autojit(make_counter())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            assert_same(run(plain, (np.arange(4.0), 4)), run(compiled, (np.arange(4.0), 4)))
    assert "traced" in str(compiled.report())


TOTAL = 0.0


def sets_a_global(x):
    global TOTAL
    console.print(TOTAL)
    for v in x:
        TOTAL += v
    return TOTAL


def test_global_variables():
    global TOTAL
    TOTAL = 0.0
    expected = [run(sets_a_global, (np.arange(4.0),))[:2] for _ in range(3)]
    TOTAL = 0.0
    made = jitcore.autojit(sets_a_global)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [run(made, (np.arange(4.0),))[:2] for _ in range(3)] == expected
    assert list_traced(made) == [3]


def looks_at_its_frame(x):
    for i in range(len(x)):
        x[i] += i
    return sorted(locals())


def test_functions_that_show_their_variables_are_left_alone():
    check(looks_at_its_frame, np.zeros(3), compiled=[])


# -- memory --------------------------------------------------------------------------------------------------
def has_views(x):
    console.print("views")
    left, same = x[:-1], x
    for i in range(len(left)):
        left[i] += same[i + 1]
        x[i] *= 0.5
    items, table = [1.0, 2.0], {"a": x}
    for i in range(2):
        items[i] += table["a"][i]
        table["b"] = items[i]
    u, v = x, x.copy()
    for _ in range(3):
        v[1:] = u[:-1]
        u, v = v, u
    return x, left, items, table, u, v


class Model:
    def __init__(self):
        self.state, self.steps = np.linspace(0, 1, 5), 0

    def advance(self, n):
        console.print(self.steps)
        for _ in range(n):
            self.state = self.state * 0.5
            self.steps += 1
        return self.steps


def test_memory_and_objects():
    check(has_views, np.arange(6.0))
    made = check(Model.advance, Model(), 4)
    assert list_traced(made) == [2]


# -- tiers ---------------------------------------------------------------------------------------------------
def test_the_warning_names_the_loops():
    with pytest.warns(jitcore.AutojitWarning) as caught, contextlib.redirect_stdout(io.StringIO()):
        jitcore.autojit(logs_between)(np.arange(30.0), 25)
    first = logs_between.__code__.co_firstlineno
    assert len(caught) == 1
    assert f"except for its loops at lines {first + 2} and {first + 6}, which are compiled" in str(
        caught[0].message
    )


def test_strict_raises_as_before():
    with pytest.raises(jitcore.errors.NotTraceable, match="console is of type"):
        jitcore.autojit(prints_around, strict=True)(np.arange(4.0), 4)


def test_a_function_that_is_left_alone_keeps_its_loops():
    made = check(prints_around, np.arange(2000.0), 2000, calls=TUNING.calls_before_leaving + 3, compiled=[3])
    assert made.__code__ is not prints_around.__code__
    assert made.__code__.co_names[:-1] == prints_around.__code__.co_names


def refuses_all(n):
    total = 0
    for i in range(n):
        print(i)
        for k in range(2):
            canvas.line(k)
            total += k
    return total


def test_a_function_whose_loops_are_all_refused_is_itself_again():
    made = check(refuses_all, 3, calls=TUNING.calls_before_leaving + 3, compiled=[])
    assert made.__code__ is refuses_all.__code__


def counts_words(x):
    sys.stdout.write("words")
    count = 0
    for i in range(len(x)):
        key = str(i % 3)
        if key == "1":
            count += int(x[i] > 0)
    return count


def test_a_loop_is_given_to_numba(monkeypatch):
    tune(monkeypatch, patience=0.0)
    clock = (1 - 0.5**k for k in itertools.count())  # Numba, which comes later, always takes less time
    monkeypatch.setattr(native, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(recorder, "MAX_EQUATIONS", 100)
    made = check(counts_words, np.ones(20_000), calls=4)
    report = made.report()
    assert [tier.value for tier in report.regions[1].tiers] == ["numba"], str(report)
    assert report.compiled > 30


def test_numba_does_not_repeat_effects(monkeypatch):
    tune(monkeypatch, patience=0.0)
    check(refuses_all, 3, calls=4)
    assert "print() is called" in native.find_obstacle(refuses_all)
    assert not native.find_obstacle(reports_nothing)


def reports_nothing(x):
    for i in range(len(x)):
        x[i] = np.sqrt(x[i])
    return x


def test_clear_and_disable():
    made = check(prints_around, np.arange(10.0), 10, compiled=[3])
    made.clear_cache()
    assert list_traced(made) == []
    with jitcore.disable_jit(), contextlib.redirect_stdout(io.StringIO()):
        assert made(np.arange(10.0), 10) == prints_around(np.arange(10.0), 10)
    assert list_traced(made) == []


def test_loops_wait_while_tracing_in_vain_takes_longer_than_the_calls(monkeypatch):
    def f(x):
        for i in range(len(x)):
            console.print(x[i])
        for i in range(len(x)):
            x[i] += 1
        return x

    tries = iter([True])
    monkeypatch.setattr(loops.Loops, "may_try", lambda self: next(tries, False))
    made = jitcore.autojit(f)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        made(np.zeros(3))
        assert list_traced(made) == []
        monkeypatch.undo()
        np.testing.assert_array_equal(made(np.zeros(3)), np.ones(3))
    assert list_traced(made) == [3] and made.cache_info().traces == 1
    assert "kernel" in made.inspect("loop program")


def test_threads_call_one_function():
    def f(x, n, log):
        log.write("")
        for i in range(len(x)):
            x[i] += n
        total = 0.0
        for v in x:
            total += v
        return total

    made, log, failures = jitcore.autojit(f), io.StringIO(), []

    def work(n):
        for k in range(25):
            x = np.ones(50 + k % 3)
            if made(x, float(n), log) != (1 + n) * len(x) or x[-1] != 1 + n:
                failures.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_many_signatures_of_a_loop_are_bounded():
    def f(n):
        console.print(n)
        total = 0.0
        for i in range(3):
            total += np.zeros(n)[i]
        return total

    made = jitcore.autojit(f)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for n in range(3, 60):
            assert made(n) == 0.0
    loop = made.__dict__["__jitcore_autojit_state__"].loops.loops[0]
    assert loop.info().traces <= 20
