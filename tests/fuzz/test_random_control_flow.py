"""Random programs with Python control flow: rewritten, on ordinary values and traced, against plain Python."""

from __future__ import annotations

import contextlib
import copy
import io
import linecache
import random
import re
import time
import traceback
import warnings

import numpy as np
import pytest

from jitcore import autojit, jit
from jitcore.autojitted.tiers.report import AutojitWarning, Tier
from jitcore.rewriter.functions import rewrite_function
from tests.rewrite.identity import look_out_always
from tests.rewrite.random_functions import write_program

#: x, y: integers; u: a multiple of 1/4; w: a list of integers.
INPUTS = (
    (0, 0, 0.5, [3, -1, 4]),
    (3, -2, -1.25, [1, 2, 3]),
    (12, 4, 2.0, [0, 0, 5]),
    (-5, 7, 0.0, [2, 9, -3]),
    (1, 30, 6.75, [4, 4, 1]),
)
_FILE = "<program {}>"


def load_program(seed: int):
    source, name = write_program(seed), _FILE.format(seed)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space: dict = {}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def call_all(function, count: int) -> list:
    """(inputs, what the function returns for them), of those where it does not raise."""
    found = []
    for x, y, u, w in copy.deepcopy(INPUTS):
        try:
            found.append(((x, y, u, w), function(x, y, u, count, w)))
        except (UnboundLocalError, ZeroDivisionError):
            continue
    return found


def check_program(seed: int) -> None:
    """count, a number that decides too, stays concrete: there is one trace for all inputs."""
    function, count = load_program(seed), seed % 4
    expected = call_all(function, count)
    rewritten = rewrite_function(function)
    with look_out_always():
        assert repr(call_all(rewritten, count)) == repr(expected), f"seed {seed}, ordinary values"
    traced = jit(lambda x, y, u, w: rewritten(x, y, u, count, w), backend="reference")
    for (x, y, u, w), result in expected:
        found = [float(value) for value in traced(x, y, u, np.asarray(w, np.int32))]
        assert found == [float(value) for value in result], f"seed {seed}, traced, inputs {x, y, u, w}"
    linecache.cache.pop(_FILE.format(seed))


@pytest.mark.parametrize("first", range(0, 200, 10))
def test_random_control_flow(first):
    for seed in range(first, first + 10):
        check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 2200, 50))
def test_more_random_control_flow(first):
    for seed in range(first, first + 50):
        check_program(seed)


# -- what cannot be traced stands beside and inside of the loops ------------------------------------------------
_BLOCKERS = ("print('p', {})", "print(str({}), end=';')", "_ = time.time()", "open('/dev/null').close()",
             "hidden(str({}))", "_ = random.random()")
_ENDS_STATEMENT = re.compile(r" {4,}[a-z][a-z0-9_\[\]', ]* [-+*/%]?= .*[\w)\]]$")


class Hidden:
    """A callable of which nothing is known."""

    __slots__ = ()

    def __call__(self, text):
        print(text)


def load_blocked_program(seed: int):
    """The program with statements that cannot be traced behind some of its assignments."""
    choose, lines, is_inside = random.Random(seed), [], False
    for line in write_program(seed).splitlines():
        lines.append(line)
        is_inside = line.startswith("def f(") or is_inside and not line.startswith("def ")
        if is_inside and _ENDS_STATEMENT.match(line) and choose.random() < 0.15:
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(indent + choose.choice(_BLOCKERS).format(choose.choice("abc")))
    source, name = "\n".join(lines) + "\n", _FILE.format(f"{seed} with blockers")
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    space: dict = {"time": time, "random": random, "hidden": Hidden()}
    exec(compile(source, name, "exec"), space)
    return space["f"]


def watch_all(function, count: int) -> list:
    """(result or exception with its line, what was printed, the list behind the call) for all inputs."""
    found = []
    for x, y, u, w in copy.deepcopy(INPUTS):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                result = function(x, y, u, count, w)
            except (UnboundLocalError, ZeroDivisionError) as error:
                line = traceback.extract_tb(error.__traceback__)[-1].lineno
                result = type(error), str(error), line
        found.append(repr((result, out.getvalue(), w)))
    return found


def check_blocked_program(seed: int) -> int:
    """Returns: how many loops were compiled."""
    function = load_blocked_program(seed)
    compiled = autojit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutojitWarning)
        for _ in range(2):
            assert watch_all(compiled, seed % 4) == watch_all(function, seed % 4), f"seed {seed}"
    report = compiled.report()
    return sum(region.kind == "loop" and Tier.TRACED in region.tiers for region in report.regions)


@pytest.mark.parametrize("first", [0, 10])
def test_loops_beside_blockers(first):
    assert sum(check_blocked_program(seed) for seed in range(first, first + 10)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 420, 20))
def test_more_loops_beside_blockers(first):
    for seed in range(first, first + 20):
        check_blocked_program(seed)


def test_programs_are_what_they_should_be():
    """Which statements the default programs have, so that a change of the generator cannot lose one."""
    text = "\n".join(write_program(seed) for seed in range(200))
    for wanted in ("while True:", "break", "continue", "else:", "elif", "try:", "finally:", "except", " in zip(", "reversed(",
                   "enumerate(", ", -1)", " and ", " or ", "not ", " if ", "box.grow(", "table['r'] =", "values[", "bump(", "+ 1000, "):
        assert text.count(wanted) > 3, wanted
