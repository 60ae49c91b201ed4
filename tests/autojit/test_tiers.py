"""Which tier serves a call, what is said about it, and what happens when a program must give up."""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
import threading
import types
import warnings
from time import perf_counter

import numpy as np
import pytest

import jitcore
from jitcore.autojitted.recording import recorder
from jitcore.autojitted.tiers import native
from jitcore.config import config
from jitcore.numpy_semantics.errors import NotTraceable
from jitcore.rewriter.journal import Snapshot
from tests.autojit.checking import TUNING, tune
from tests.own_files import is_own_file


def writes(x):
    y = x + 1
    sys.stdout.write("seen\n")
    return y


def draws(x):
    return x + random.SystemRandom().random()


def seeds(x):
    np.random.seed(3)
    return x


def reads_clock(x):
    return x + perf_counter()


def opens_file(x):
    with open("/dev/null", "w") as file:
        file.write("text")
    return x


def evaluates(x):
    return eval("x + 1")


def generates(n):
    yield n


@pytest.mark.parametrize("function", [writes, draws, seeds, reads_clock, opens_file, evaluates])
def test_effects_are_not_traced(function, capsys):
    line = next(i for i, text in enumerate(inspect.getsourcelines(function)[0]) if "(" in text and i)
    line += function.__code__.co_firstlineno
    with pytest.raises(NotTraceable):
        jitcore.autojit(function, strict=True)(np.ones(2))
    assert capsys.readouterr().out == ""
    compiled = jitcore.autojit(function)
    with pytest.warns(jitcore.AutojitWarning) as caught:
        compiled(np.ones(2))
    assert len(caught) == 1
    assert re.search(rf"test_tiers.py:({line}|{line + 1}): .* runs in plain Python", str(caught[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(np.ones(2))
    assert capsys.readouterr().out == ("seen\n" * 2 if function is writes else "")
    report = compiled.report()
    assert report.compiled == 0 and "python" in str(report) and str(line) in str(report) + str(line + 1)


def test_generators_are_left_alone():
    with pytest.warns(jitcore.AutojitWarning, match="generator"):
        assert jitcore.autojit(generates) is generates
    with pytest.raises(NotTraceable):
        jitcore.autojit(generates, strict=True)
    with pytest.raises(TypeError, match="expected a function"):
        jitcore.autojit(3)


def test_methods_partials_and_attributes():
    class Counter:
        def __init__(self):
            self.total = np.zeros(2)

        @jitcore.autojit(strict=True)
        def add(self, x):
            """Adds."""
            self.total = self.total + x
            return self

        @staticmethod
        def twice(x):
            return 2 * x

    counter = Counter()
    assert counter.add(1.5) is counter and counter.add(np.ones(2)) is counter
    np.testing.assert_array_equal(counter.total, [2.5, 2.5])
    assert Counter.add.__doc__ == "Adds." and Counter.add.__name__ == "add"
    assert isinstance(Counter.add, types.FunctionType)
    assert str(inspect.signature(Counter.add)) == "(self, x)"
    twice = jitcore.autojit(staticmethod(Counter.twice)).__func__
    assert twice(4) == 8
    assert jitcore.autojit(jitcore.autojit(writes)).__wrapped__ is writes


# -- programs that give up -----------------------------------------------------------------------------------
def item(x, i):
    x[0] += 1
    return x[i]


def test_index_out_of_range_raises_as_in_python():
    compiled = jitcore.autojit(item, strict=True, static_argnames=())
    x = np.arange(5.0)
    for i in (1, 2, -1, 3, -5):  # from the third value on the index is an input
        before = x[i] + (i in (0, -5))
        assert compiled(x, i) == before
    y, z = np.arange(5.0), np.arange(5.0)
    for i in (5, -6):
        with pytest.raises(IndexError) as ours:
            compiled(y, i)
        with pytest.raises(IndexError) as theirs:
            item(z, i)
        assert str(ours.value) == str(theirs.value)
    np.testing.assert_array_equal(y, z)


def divide(a, b):
    return a / b


def test_division_by_zero():
    compiled = jitcore.autojit(divide, strict=True)
    assert compiled(3.0, 2.0) == 1.5 and type(compiled(3.0, 2.0)) is float
    for _ in range(5):  # a program that gives up again and again is given up
        with pytest.raises(ZeroDivisionError):
            compiled(3.0, 0.0)
    assert compiled(3.0, 2.0) == 1.5
    assert np.isinf(compiled(np.float64(3), np.float64(0)))


# -- plain Python that is better ---------------------------------------------------------------------------------
def test_small_work_goes_to_plain_python():
    def f(x):
        return x + 1

    compiled = jitcore.autojit(f)
    for _ in range(8):
        assert compiled(3.0) == 4.0
    assert compiled.report().regions[0].tiers[0].value == "python"
    assert "less time" in str(compiled.report())
    for _ in range(TUNING.calls_before_leaving_traced):
        compiled(3.0)
    assert compiled.__code__ is f.__code__
    assert compiled(4.0) == 5.0


def test_hopeless_function_is_left_alone(capsys):
    compiled = jitcore.autojit(writes)
    with pytest.warns(jitcore.AutojitWarning):
        compiled(1.0)
    for _ in range(TUNING.calls_before_leaving):
        compiled(1.0)
    assert compiled.__code__ is writes.__code__
    assert compiled(2.0) == 3.0 and compiled.report().regions[0].tiers[0].value == "python"


# -- Numba ---------------------------------------------------------------------------------------------------
def slow_text_loop(x):
    count = 0
    for i in range(len(x)):
        key = str(i % 3)
        if key == "1":
            count += int(x[i] > 0)
    return count


def test_numba_serves_what_takes_long(monkeypatch):
    tune(monkeypatch, patience=0.0)
    monkeypatch.setattr(recorder, "MAX_EQUATIONS", 200)
    compiled = jitcore.autojit(slow_text_loop)
    x = np.ones(20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = {compiled(x) for _ in range(4)}
    assert "more than 200 operations" in str(compiled.report())
    assert results == {slow_text_loop(x)}


def test_numba_must_give_the_same():
    def wrong_for_numba(x):
        n = 1
        for _ in range(70):
            n *= 2  # Numba's ints have 64 bits
        return n

    trial = native.try_numba(wrong_for_numba, lambda f, values: f(*values), (np.ones(2),))
    assert trial.result == 2**70 and trial.compiled is None and "differs" in trial.reason


def test_disable_jit():
    compiled = jitcore.autojit(lambda x: x + 1)
    with jitcore.disable_jit():
        assert compiled(1.5) == 2.5
    assert compiled.cache_info().traces == 0


def test_inspect():
    compiled = jitcore.autojit(lambda x: np.sin(x) * 2)
    with pytest.raises(ValueError, match="has not been compiled"):
        compiled.inspect()
    compiled(np.ones(100))
    assert "sin" in compiled.inspect("jaxpr") and "kernel" in compiled.inspect("loop program")
    with pytest.raises(ValueError, match="unknown stage"):
        compiled.inspect("nothing")


def test_verbose(capsys):
    jitcore.autojit(lambda x: x + 1, verbose=True)(np.ones(2))
    assert "traced and compiled in" in capsys.readouterr().err


def test_threads_call_one_function():
    def f(x, n):
        for i in range(len(x)):
            x[i] += n
        return x.sum()

    compiled = jitcore.autojit(f, strict=True)
    failures = []

    def work(n):
        for k in range(30):
            x = np.ones(5 + k % 3)
            if compiled(x, float(n)) != (1 + n) * len(x) or x[-1] != 1 + n:
                failures.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_errors_show_no_frames_of_jitcore():
    def f(x):
        return undefined + x  # noqa: F821

    with pytest.raises(NameError) as caught:
        jitcore.autojit(f)(np.ones(2))
    files = [entry.path for entry in caught.traceback]
    assert not any(is_own_file(str(file)) for file in files), files


def test_clear_caches():
    compiled = jitcore.autojit(lambda x: np.cos(x) + 1, strict=True)
    for traces in (1, 2):
        compiled(np.ones(3))
        assert compiled.cache_info().traces == traces
        jitcore.clear_caches()


def test_defects_are_raised_where_that_is_asked_for(monkeypatch):
    """Else Python's own way is taken, so that a program of the user's goes on."""

    def shift(u):
        for _ in range(9):
            u[1:] = u[:-1] + 1
        return u

    monkeypatch.delattr(Snapshot, "find_written")
    with pytest.raises(AttributeError, match="find_written"):
        jitcore.autojit(shift)(np.zeros(5))
    with config.override(raise_defects=False):
        np.testing.assert_array_equal(jitcore.autojit(shift)(np.zeros(5)), shift(np.zeros(5)))


def test_an_element_of_an_empty_array_leaves_a_loop_compiled():
    def add_up(x, n):
        total = 0.0
        for i in range(n):
            if x.sum() > i:
                total += x[i]
                x[i] = total
        return total

    compiled = jitcore.autojit(add_up, strict=True)
    assert compiled(np.zeros(0), 20) == 0 and compiled(np.ones(30), 20) == add_up(np.ones(30), 20)
    assert all(region.unrolled is None for region in compiled.report().regions)


def test_reports_say_which_loops_were_unrolled_and_why():
    def grow(x):
        total = 0.0
        for _ in range(6):
            x = np.concatenate([x, x[:1]])
        for i in range(7):
            total += x[i % 3]
        for limit in [1, 2, 3]:
            if total > limit:
                break
            total += 1
        return total

    compiled = jitcore.autojit(grow, strict=True)
    assert all(region.unrolled is None for region in compiled.report().regions)
    assert compiled(np.ones(3)) == grow(np.ones(3))
    first = grow.__code__.co_firstlineno
    loops = [region for region in compiled.report().regions if region.kind == "loop"]
    unrolled = {region.line - first: region.unrolled for region in loops}
    assert list(unrolled) == [2, 4, 6] and unrolled[4] is None
    assert unrolled[2].startswith("ControlFlowError: 'x' has shape (3,) and (4,) before and behind an iteration")
    assert "_iterator cannot be part of a compiled loop" in unrolled[6]
    assert f"grow: traced; unrolled: {unrolled[2]}" in str(compiled.report())
    compiled.clear_cache()
    assert "unrolled:" not in str(compiled.report())


def test_recursion_may_be_as_deep_as_in_plain_python():
    @jitcore.autojit
    def counts(x, n):
        return x if n == 0 else counts(x + 1, n - 1)

    @jitcore.autojit
    def decides(x):
        return x if x[0] > 700 else decides(x + 1)

    @jitcore.autojit
    def one(x, n):
        return x if n == 0 else other(x * 2, n - 1)

    @jitcore.autojit
    def other(x, n):
        return x if n == 0 else one(x / 2, n - 1)

    @jitcore.autojit
    def opens(x, n):
        with open(os.devnull) as file:
            file.read()
        return x if n == 0 else opens(x + 1, n - 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            assert counts(np.ones(2), 700).tolist() == [701, 701] and counts(1.5, 600) == 601.5
            assert decides(np.zeros(2)).tolist() == [701, 701]
            assert one(np.ones(2), 600).tolist() == [1, 1]
            assert opens(np.ones(2), 600).tolist() == [601, 601]
            assert counts(np.ones(2), 3).tolist() == [4, 4]


def test_an_attempt_at_nested_recursion_ends():
    """In loops whose counts depend on each other: more and more bounds are forms in other counts."""
    def cut(n, prices, best):
        if best[n] >= 0:
            return best[n]
        found = 0 if n == 0 else float("-inf")
        for i in range(1, n + 1):
            found = max(found, prices[i - 1] + cut(n - i, prices, best))
        best[n] = found
        return found

    @jitcore.autojit
    def cut_rod(n, prices):
        return cut(n, prices, [float("-inf") for _ in range(n + 1)])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (5, 3):
            assert cut_rod(n, np.array([3, 1, 2, 5, 4])) == 3 * n
