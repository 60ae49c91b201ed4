"""What an attempt to compile may cost: counted in steps and attempts, never in seconds."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

import jitcore
from benchmarks.plain_programs import ROWS
from jitcore.autojitted import function
from jitcore.autojitted.tiers import budget
from jitcore.autojitted.tiers.report import Tier
from jitcore.process import effort
from jitcore.rewriter.handles import Mode
from tests.autojit.checking import TUNING, assert_same, tune

STATE = "__jitcore_autojit_state__"
#: Programs with as many steps as there is time for in a test.
QUICK = [row for row in ROWS if not row.name.startswith(("1e7", "alternating", "linear", "an oscillator"))]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def compile_quietly(row_function):
    made = jitcore.autojit(row_function)
    return made, getattr(made, STATE).account


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_plain_programs_cost_no_more_than_is_free(row):
    made, account = compile_quietly(row.function)
    expected = row.function(*row.make_arguments())
    assert row.agrees(expected, made(*row.make_arguments()))
    assert account.spent <= TUNING.free + TUNING.long_program / 2 * made.cache_info().traces
    spent = account.spent
    for _ in range(2):
        assert row.agrees(expected, made(*row.make_arguments()))
    assert account.spent <= spent + TUNING.share * account.seconds  # nothing is tried again for nothing


# -- counting --------------------------------------------------------------------------------------------------
def test_work_is_counted_and_ends():
    effort.spend(1e9)  # outside of attempts
    with effort.metered(10) as outer:
        effort.spend(4)
        with effort.metered(100) as inner:
            assert inner.limit == 6
            with pytest.raises(effort.TooMuchEffort):
                effort.spend(7)
            with pytest.raises(effort.TooMuchEffort):  # from then on each time
                effort.spend(0)
        assert outer.left < 0
    effort.spend(1e9)


def test_the_same_attempt_costs_the_same():
    def f(x):
        total = 0.0
        for k in range(len(x)):
            if x[k] > 0:
                total += x[k]
        return total

    jitcore.autojit(f)(np.ones(3))  # the compiler is loaded, the program is known
    costs = []
    for _ in range(2):
        made, account = compile_quietly(f)
        made(np.ones(3))
        costs.append(account.spent)
    assert costs[0] == costs[1] > 0


class Log:
    def __init__(self):
        self.lines = []


LOG = Log()


def writes_and_runs_on(n, log):
    done = 0
    for k in range(n):
        try:
            log.append(k)
            LOG.lines.append(str(k))
            done += len(str(k))
        except Exception:
            log.append("caught")
        finally:
            done += 1
    return done


def test_an_attempt_that_is_given_up_leaves_nothing(monkeypatch):
    monkeypatch.setattr(function, "find_hindrance", lambda *given: "")
    expected, log = [], []
    LOG.lines.clear()
    result = writes_and_runs_on(3000, expected)
    lines, LOG.lines = LOG.lines, []
    made, account = compile_quietly(writes_and_runs_on)
    account.free = 0.05
    assert made(3000, log) == result
    assert log == expected and LOG.lines == lines
    assert account.price > TUNING.least and made.cache_info().compiles == 0


# -- when it is tried --------------------------------------------------------------------------------------------
def works(x, n):
    for k in range(n):
        x = x * 0.5 + k % 3
    return x


def test_what_was_given_up_is_tried_again_when_calls_have_taken_longer(monkeypatch):
    tune(monkeypatch, free=0.0, between_questions=0.0)
    made, account = compile_quietly(works)
    for _ in range(60):
        assert made(1.5, 200) == works(1.5, 200)
    assert made.cache_info().traces == 0
    assert made.__code__ is not works.__code__  # its calls are timed
    account.note_call(100.0)
    for _ in range(2):
        assert made(1.5, 200) == works(1.5, 200)
    assert made.cache_info().traces == 1


def test_a_failed_attempt_raises_the_price():
    account = budget.Account(TUNING, free=1.0, share=0.1)
    for _ in range(2):
        price = account.price
        assert account.can_afford()
        with pytest.raises(effort.TooMuchEffort), account.attempt():
            effort.spend(account.funds * effort.STEPS_PER_SECOND)
        assert account.price > 2 * price and not account.can_afford()
        account.note_call(20 * account.price)
    assert account.spent < 0.1 * account.seconds + account.free


def test_arrays_are_worth_more():
    made, account = compile_quietly(lambda x: x + 1)
    made(np.ones(3))
    assert account.free == TUNING.free_with_arrays and made.cache_info().traces == 1


def test_strict_compiles_whatever_it_costs():
    made = jitcore.autojit(ROWS[3].function, strict=True)
    assert made(5) == ROWS[3].function(5) and made.cache_info().traces == 1


# -- what is not tried -------------------------------------------------------------------------------------------
def is_odd(n):
    return n != 0 and is_even(n - 1)


def is_even(n):
    return n == 0 or is_odd(n - 1)


def yields(n):
    yield from range(n)


def reads_generator(n):
    return sum(k * 2 for k in yields(n))


def reads_file(n):
    return len(io.StringIO("x" * n).read())


@pytest.mark.parametrize(
    "plain, arguments, reason",
    [
        (is_even, (20,), "calls itself"),
        (reads_generator, (5,), "is a generator"),
        (lambda text: text.upper(), ("abc" * 100,), "a text"),
        (lambda n: n + 1, (1 << 70,), "64 bits"),
        (lambda values: len(values), ([(1, 2)] * 500,), "many Python values"),
    ],
)
def test_a_look_is_enough(plain, arguments, reason):
    made, account = compile_quietly(plain)
    assert made(*arguments) == plain(*arguments)
    assert account.spent == 0 and reason in str(made.report())


class Tally:
    made, limit = [], 3

    def __init__(self, count):
        self.count = min(count, Tally.limit)
        Tally.made.append(count)

    def own_name(self):
        return self.count


class DerivedTally(Tally):
    def own_name(self):
        return super().own_name() + DerivedTally.limit


def own_name(n):
    tally = DerivedTally(n)
    return tally.own_name() + Tally(n).count


def test_names_of_attributes_and_of_own_classes_are_no_recursion():
    made, _ = compile_quietly(own_name)
    assert made(5) == own_name(5)
    assert "calls itself" not in str(made.report()) and made.cache_info().traces == 1


def test_functions_of_arrays_are_not_judged_by_their_looks():
    def first(x, names):
        return x * len(names)

    made, _ = compile_quietly(first)
    np.testing.assert_array_equal(made(np.ones(2), "abc" * 100), np.full(2, 300.0))
    assert made.cache_info().traces == 1
    assert budget.uses_arrays(test_arrays_are_worth_more, ())


# -- plain Python that takes less time ---------------------------------------------------------------------------
def count_up(n):
    total = 0
    for k in range(n):
        total += k & 3
    return total


@pytest.mark.parametrize("calls", [5, 60])
def test_that_plain_python_takes_less_time_is_not_final(calls):
    made, account = compile_quietly(count_up)
    account.free = 4.0
    for _ in range(calls):
        assert made(3) == count_up(3)
    state = getattr(made, STATE)
    for n in (4, 5, 300_000, 300_000, 300_000):
        assert made(n) == count_up(n)
    kinds = [one.tier for one in state.signatures]
    assert Tier.TRACED in kinds
    hits = made.cache_info().traces
    for _ in range(3):
        assert made(300_000) == count_up(300_000)
    assert made.cache_info().traces == hits


def logs_and_counts(n, log):
    log.write("")
    total = 0
    for k in range(n):
        total += k & 3
    return total


@pytest.mark.parametrize("calls", [8, 70])
def test_nor_is_it_final_for_a_loop_of_a_function_that_cannot_be_traced(calls):
    made, account = compile_quietly(logs_and_counts)
    account.free, log = 4.0, io.StringIO()
    for n in (*[3] * calls, *[300_000] * 6):
        assert made(n, log) == count_up(n)
    assert Tier.TRACED in getattr(made, STATE).loops.find_tiers(logs_and_counts.__code__.co_firstlineno + 3)


def test_the_comparison_compiles_no_helpers():
    helper = jitcore.autojit(lambda x: x + 1.0)

    def f(x):
        return helper(x) * 2.0

    made = jitcore.autojit(f)
    for _ in range(4):
        assert made(1.5) == 5.0
    assert made.cache_info().traces == 1 and helper.cache_info().traces == 0


def test_what_an_attempt_takes_is_no_time_of_the_call(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget, "perf_counter", lambda: now[0])
    monkeypatch.setattr(effort, "thread_time", lambda: now[0])
    account = budget.Account(TUNING)

    def call():
        now[0] += 3
        with account.attempt():
            now[0] += 50
        now[0] += 4

    account.time_call(call)
    assert account.seconds == 7
    assert account.spent == 50 / effort.SLACK  # counted or not, it was work


def test_state_that_grows_is_traced_for_as_long_as_that_can_be_afforded():
    rows = [np.arange(4.0)]

    def f(x, n):
        for _ in range(n):
            rows.append(x * 2)
        total = 0.0
        for row in rows:
            for _ in range(3):
                total += row[0]
        return total

    made, account = compile_quietly(f)
    for n in range(5, 15):
        made(np.ones(4), n)
    assert account.spent <= account.free + TUNING.share_when_traced * account.seconds
    assert len(rows) == 1 + sum(range(5, 15))


def test_carried_leaves_are_compared_by_their_keys(monkeypatch):
    """Many leaves that a loop carries cost in proportion to their number."""
    asked = []
    original = Mode.is_equal
    monkeypatch.setattr(Mode, "is_equal", lambda self, *pair: asked.append(pair) or original(self, *pair))
    boxes = [np.full(3, float(k)) for k in range(60)]

    def f(x, n):
        held = list(boxes)
        for i in range(n):
            held = [one + x[0] for one in held]
        return held

    made = jitcore.autojit(f, strict=True)
    assert_same(made(np.ones(3), np.int64(4)), f(np.ones(3), 4))
    assert len(asked) < 60 * 10
