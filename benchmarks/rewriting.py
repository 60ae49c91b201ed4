"""Rewriting: what it costs, and how fast a rewritten function is on values that are not traced.

In: names of programs. Out: their tables. The reference is the function itself, run by Python.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bars import REWRITE_SECONDS, REWRITTEN_BRANCHES, REWRITTEN_NUMPY
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Call, Effort, time_in_turns

TITLE = "Rewriting: Python control flow where nothing is traced"


def classify(limit):
    """A loop with a chain of comparisons."""
    low = middle = high = i = 0
    while i < limit:
        value = i * 7919 % 101
        if value < 20 or value == 50:
            low += 1
        elif value < 70:
            middle += value
        else:
            high -= 1
            if value & 1:
                high += 3
        i += 1
    return low, middle, high


def collatz(n):
    steps = 0
    while n > 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
    return steps


def count_primes(limit):
    count = 0
    for n in range(2, limit):
        for k in range(2, n):
            if k * k > n:
                count += 1
                break
            if n % k == 0:
                break
        else:
            count += 1
    return count


def escape(a, b):
    x = y = 0.0
    for k in range(1000):
        if x * x + y * y > 4:
            return k
        x, y = x * x - y * y + a, 2 * x * y + b
    return 1000


def relax(x):
    for k in range(20):
        y = np.sin(x) * 0.5 + np.cos(x)
        if y[0] > 5:
            y = y - 1
        x = x * 0.25 + y
    return x


def integrate(x):
    total = np.zeros(1000)
    while total[0] < 10:
        step = np.exp(-x * x)
        step[step < 0.1] = 0.1
        total += np.sqrt(step)
    return total


class Run(NamedTuple):
    """A function, its arguments, and what its time divided by Python's may be at most."""

    function: Callable[..., Any]
    arguments: tuple
    bar: float


RUNS = {
    "chain of comparisons": Run(classify, (1000,), REWRITTEN_BRANCHES),
    "collatz": Run(collatz, (97,), REWRITTEN_BRANCHES),
    "primes": Run(count_primes, (300,), REWRITTEN_BRANCHES),
    "escape time": Run(escape, (-0.1, 0.65), REWRITTEN_BRANCHES),
    "NumPy, 20 steps": Run(relax, (np.linspace(0, 1, 2000),), REWRITTEN_NUMPY),
    "NumPy, while": Run(integrate, (np.linspace(0, 2, 1000),), REWRITTEN_NUMPY),
}
#: Functions that are rewritten.
SUBJECTS = {"rewrite a loop with 50 instructions": count_primes, "rewrite a chain of comparisons": classify,
            "rewrite NumPy steps": relax}


def list_names() -> list[str]:
    return [*RUNS, *SUBJECTS]


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    runs, costs = [], []
    for name in names:
        show(name)
        if name in RUNS:
            runs.append(measure_run(name, effort))
        else:
            costs.append(measure_rewrite(name, effort))
    parts = []
    if runs:
        head = ["program", "Python", "rewritten", "/ Python", "bar", "", "while tracing", "/ Python"]
        parts.append(align_cells([head, *runs]))
    if costs:
        head = ["once for each function", "instructions", "jitcore", "bar", "", "first traced call adds"]
        parts.append(align_cells([head, *costs]))
    return Section(TITLE, "\n\n".join(parts))


def measure_run(name: str, effort: Effort) -> list[str]:
    from jitcore.rewriter.functions import rewrite_function

    function, arguments, bar = RUNS[name]
    rewritten = rewrite_function(function)
    found = time_in_turns({
        "Python": Call(lambda: function(*arguments)), "rewritten": Call(lambda: rewritten(*arguments)),
        "looking out": Call(lambda: rewritten(*arguments), look_out)}, effort)
    ratios = [found[kind] / found["Python"] for kind in ("rewritten", "looking out")]
    return [name, format_seconds(found["Python"]), format_seconds(found["rewritten"]),
            format_ratio(ratios[0]), f"{bar:g}", "within" if ratios[0] <= bar else "OVER",
            format_seconds(found["looking out"]), format_ratio(ratios[1])]


@contextmanager
def look_out() -> Iterator[None]:
    """Within, rewritten functions run as they do while something is traced elsewhere in the program."""
    from jitcore.rewriter.writing.resumable import PROBE

    PROBE.is_forced = True
    try:
        yield
    finally:
        PROBE.is_forced = False


def measure_rewrite(name: str, effort: Effort) -> list[str]:
    from jitcore.rewriter.functions import HOOKS, rewrite_function
    from jitcore.rewriter.writing.resumable import Template

    code, lines = SUBJECTS[name].__code__, itertools.count(10_000)
    template = Template(code, HOOKS)

    def rewrite() -> None:  # code that differs in its lines has not been seen before
        rewrite_function(types.FunctionType(code.replace(co_firstlineno=next(lines)), globals()))

    def emit() -> None:
        template._code = None
        template.code  # noqa: B018

    found = time_in_turns({"rewrite": Call(rewrite), "emit": Call(emit)}, effort)
    count = len(list(dis.get_instructions(code)))
    bar = REWRITE_SECONDS * max(1, count / 50)
    return [name, str(count), format_seconds(found["rewrite"]), format_seconds(bar),
            "within" if found["rewrite"] <= bar else "OVER", format_seconds(found["emit"])]
