"""autojit: large programs with writes in place against the same without, and calls of small functions.

In: names of rows. Out: their table. Models of physics in plain NumPy are compiled and run beside what is
written for `jitcore.numpy`; programs of n, 2n and 4n statements are compiled; calls of functions of three
small arrays are timed beside Numba's. All results are compared with NumPy's. What compiles is timed by the
processor, as it may have a second thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.compile_time import keep_off_disk
from benchmarks.inputs import make_normal
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Call, Effort, stop_collector, time_in_turns
from benchmarks.workloads.models import MODELS

TITLE = "autojit: large programs and small calls"
#: autojit's time divided by that of `jitcore.numpy`, by that of a call by Numba, of half of a program.
SAME, CALL, DOUBLE = 1.2, 2.0, 2.4
TIMES = ("compile", "run")
STATEMENTS = (100, 200, 400)


# -- small functions ----------------------------------------------------------------------------------------
def write(a, b, c):
    c[:] = a * b + a


def combine(a, b, c):
    return a * b + c


def add_up(a, b, c):
    return (a * b + c).sum()


CALLS = {"call: an array is written": write, "call: a new array": combine, "call: a number": add_up}


def make_program(count: int) -> Callable:
    """A function of so many statements, most of which write in place."""
    lines = ["def program(x, y):", "    x, y = x.copy(), y.copy()"]
    for k in range(count // 4):
        lines += [f"    x[1:-1] += 0.{k % 7 + 1} * (x[2:] - 2 * x[1:-1] + x[:-2])",
                  f"    y[:] = np.maximum(y * 0.9 + x, 0.{k % 9})", f"    x[0] = x[-2] * y[{k % 5}]",
                  f"    y = np.where(x > 0.{k % 8}, y, x)"]
    names = {"np": np}
    exec("\n".join([*lines, "    return x, y"]), names)
    return names["program"]


class Row(NamedTuple):
    """What one row shows: seconds of autojit, and of another; who that is; what the ratio may be."""

    name: str
    seconds: float
    other: float
    who: str
    bar: float

    @property
    def cells(self) -> list[str]:
        ratio = self.seconds / self.other
        judged = "" if math.isnan(ratio) else "within" if ratio <= self.bar else "OVER"
        other = "" if math.isnan(self.other) else format_seconds(self.other)
        return [self.name, format_seconds(self.seconds), other, self.who, format_ratio(ratio),
                f"{self.bar:g}", judged]


def list_names() -> list[str]:
    models = [f"{time}: {name}" for name in MODELS for time in TIMES]
    return [*models, *map(_name_program, STATEMENTS), *CALLS]


def _name_program(count: int) -> str:
    return f"compile: {count} statements"


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    import jitcore

    jitcore.autojit(lambda x: x + 1, strict=True)(np.ones(3))
    rows: list[Row] = []
    for model in MODELS:
        wanted = [time for time in TIMES if f"{time}: {model}" in names]
        if wanted:
            show(wanted[0] + ": " + model)
            rows += measure_model(model, wanted, effort)
    before = math.nan
    for count in STATEMENTS:
        if _name_program(count) in names:
            show(_name_program(count))
            seconds = measure_program(count, effort)
            rows.append(Row(_name_program(count), seconds, before, "half of them", DOUBLE))
            before = seconds
    for name in [name for name in CALLS if name in names]:
        show(name)
        rows.append(measure_call(name, effort))
    head = ["what", "autojit", "other", "which is", "ratio", "bar", ""]
    return Section(TITLE, align_cells([head, *(row.cells for row in rows)]))


def measure_model(model: str, wanted: Sequence[str], effort: Effort) -> list[Row]:
    """Raises: AssertionError for a wrong result."""
    import jitcore

    function, build, make_inputs, side, _ = MODELS[model]
    arguments = make_inputs(side)
    right = function(*map(np.copy, arguments))
    made = {"autojit": lambda: jitcore.autojit(function, strict=True),
            "jnp": lambda: jitcore.jit(build(jitcore))}
    compiled, seconds = time_compiles({who: (make, arguments) for who, make in made.items()}, effort)
    calls = {}
    for who, call in compiled.items():
        given = tuple(np.copy(value) for value in arguments)
        for one, expected in zip(call(*given), right, strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
        calls[who] = Call(lambda call=call, given=given: call(*given))
    found = {"compile": seconds, "run": time_in_turns(calls, effort) if "run" in wanted else {}}
    return [Row(f"{time}: {model}", found[time]["autojit"], found[time]["jnp"], "jitcore.numpy", SAME)
            for time in wanted]


def time_compiles(made: dict[str, tuple[Callable, tuple]], effort: Effort) -> tuple[dict, dict]:
    """(functions, the least seconds of the processor of a first call less those of a second), by name; each
    is new, with empty caches, and they take turns. made: what makes a function, its arguments."""
    import jitcore

    compiled, best = {}, dict.fromkeys(made, math.inf)
    with keep_off_disk(), stop_collector():
        for _ in range(effort.compiles):
            for name, (make, arguments) in made.items():
                jitcore.clear_caches()
                function = compiled[name] = make()
                given = tuple(np.copy(value) for value in arguments)
                first, second = (_time_processor(function, given) for _ in range(2))
                best[name] = min(best[name], first - second)
    return compiled, best


def _time_processor(function: Callable, arguments: tuple) -> float:
    start = process_time()
    function(*arguments)
    return process_time() - start


def measure_program(count: int, effort: Effort) -> float:
    """Seconds of compiling. Raises: AssertionError for a wrong result."""
    import jitcore

    program, arguments = make_program(count), tuple(make_normal(2, 1000, dtype="float64"))
    compiled, seconds = time_compiles(
        {"it": (lambda: jitcore.autojit(program, strict=True), arguments)}, effort)
    np.testing.assert_allclose(compiled["it"](*arguments), program(*arguments), rtol=1e-7)
    return seconds["it"]


def measure_call(name: str, effort: Effort) -> Row:
    """Raises: AssertionError for a wrong result."""
    import numba

    import jitcore

    function, inputs = CALLS[name], make_normal(3, 3, dtype="float64")
    calls, results = {}, []
    for who, compile in (("NumPy", lambda f: f), ("autojit", jitcore.autojit), ("Numba", numba.njit)):
        compiled, given = compile(function), tuple(inputs.copy())
        results.append([np.zeros(()) if x is None else x for x in (compiled(*given), *given)])
        calls[who] = Call(lambda call=compiled, given=given: call(*given))
    for result in results[1:]:
        for one, expected in zip(result, results[0], strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-14)
    found = time_in_turns(calls, effort)
    return Row(name, found["autojit"], found["Numba"], "Numba", CALL)
