"""`%jit_timeit`: how long an expression of jitted functions takes, at first and later, and what that is without
jitcore: in NumPy, and under JAX and Numba where these are installed.

In: the text of an expression, or of a cell, and the variables of the session. Out: a `Timing`, a table and in
notebooks a chart; results are compared.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Callable, Sequence
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from jitcore import tree_util
from jitcore.config import config
from jitcore.hypertext import cut, escape, format_table, show_table
from jitcore.jitted.comparison import format_seconds
from jitcore.jitted.wrapper import JitWrapped
from jitcore.notebooks.variants import (JaxVariant, NoCounterpart, NumbaVariant, NumpyVariant, copy_arrays,
                                        find_plain, is_installed, jax, list_names, renew)
from jitcore.process.lazy import LazyModule

shell_errors = LazyModule("IPython.core.error")

__all__ = ["Timing", "time_expression"]

#: Seconds and runs in which later calls are timed, and the least seconds of a run, which may be many calls.
_SECONDS, _MOST_RUNS, _RUN_SECONDS = 0.3, 200, 1e-3
_HEAD = ("", "first call", "later calls", "quartiles", "difference")


class Row(NamedTuple):
    """One way to run the expression.

    first: seconds of its first call; runs: seconds of later calls, sorted, of several made one after the other
    their mean.
    difference: of its result from that of the first row; error: what its call raised, or ""."""

    label: str
    first: float = math.nan
    runs: Sequence[float] = ()
    difference: str = ""
    error: str = ""

    def list_cells(self) -> tuple[str, ...]:
        if self.error:
            return self.label, self.error
        low, high = (self.runs[len(self.runs) * part // 4] for part in (1, 3))
        return (self.label, format_seconds(self.first), format_seconds(self.runs[0]),
                f"{format_seconds(low)} to {format_seconds(high)}", self.difference)


class Timing:
    """Attributes:
    rows: jitcore first.
    results: by row, what the expression gave at first, and what its arrays held then."""

    def __init__(self, expression: str, rows: Sequence[Row], results: dict[str, Any]):
        self.expression, self.rows, self.results = expression, list(rows), results

    def __repr__(self) -> str:
        return f"{self.expression}\n{format_table([_HEAD, *[row.list_cells() for row in self.rows]], str.rjust)}"

    def _repr_html_(self) -> str:
        table = show_table(_HEAD, [row.list_cells() for row in self.rows], cut(self.expression, 200))
        return f"<div>{table}{draw_bars([(row.label, row.runs[0]) for row in self.rows if row.runs])}</div>"


def draw_bars(bars: Sequence[tuple[str, float]]) -> str:
    """A chart of seconds, as SVG."""
    longest = max([seconds for _, seconds in bars], default=0.0) or 1.0
    label = "; ".join(f"{name} {format_seconds(seconds)}" for name, seconds in bars)
    height = 22 * len(bars)
    parts = []
    for number, (name, seconds) in enumerate(bars):
        y, width = 22 * number, max(1.0, 300 * seconds / longest)
        parts.append(f'<text x="70" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
                     f'<rect x="76" y="{y + 3}" width="{width:.1f}" height="16" fill="#4c9be8"/>'
                     f'<text x="{82 + width:.0f}" y="{y + 15}">{format_seconds(seconds)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" width="460" '
            f'height="{height}" font-family="sans-serif" font-size="12" fill="currentColor">'
            f"<title>{escape(label)}</title>{''.join(parts)}</svg>")


def time_expression(text: str, variables: dict[str, Any], setup: str = "") -> Timing:
    """Args: text: of an expression, or of statements that end with one; variables: those of the session; setup:
    statements that run once, before.
    Raises: UsageError for a text that names nothing decorated, or that does not end with an expression."""
    if setup:
        variables = dict(variables)
        exec(compile(setup, "<setup>", "exec"), variables)
    code = compile_call(text)
    names = [name for name in dict.fromkeys(list_names(code)) if name in variables]
    decorated = [name for name in names if find_plain(variables[name]) is not None]
    if not decorated:
        raise shell_errors.UsageError("the expression names no function that is decorated by jit or autojit")
    kinds = [NumpyVariant]
    if any(isinstance(variables[name], JitWrapped) for name in decorated) and is_installed("jax"):
        kinds.append(JaxVariant)
    kinds += [NumbaVariant] if is_installed("numba") else []
    rows, results = [], {}
    for label, read in (("jitcore", renew), *[(kind.label, kind().read) for kind in kinds]):
        with contextlib.ExitStack() as stack:
            if label == JaxVariant.label:
                stack.enter_context(jax.enable_x64(config.enable_x64))
            try:
                given = {name: read(value) for name, value in copy_arrays(names, variables).items()}
                row, results[label] = _measure(label, _bind(code, given), given)
            except Exception as error:
                kind = "" if isinstance(error, NoCounterpart) else f"{type(error).__name__}: "
                rows.append(Row(label, error=kind + cut(str(error).strip().partition("\n")[0], 200)))
                continue
        expected = results.get("jitcore")
        rows.append(row._replace(difference=compare_results(expected, results[label]) if expected else ""))
    return Timing(" ".join(text.split()), rows, results)


def compile_call(text: str) -> CodeType:
    """Code of a function of no arguments that runs the text and returns its last expression."""
    body = ast.parse(text).body
    if not body or not isinstance(body[-1], ast.Expr):
        raise shell_errors.UsageError("what is timed ends with an expression, whose values are compared")
    body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
    module: Any = ast.parse("def call(): pass")
    module.body[0].body = body
    found = compile(ast.fix_missing_locations(module), "<jit_timeit>", "exec").co_consts
    return next(const for const in found if isinstance(const, CodeType))


def _bind(code: CodeType, variables: dict[str, Any]) -> Callable[[], Any]:
    return FunctionType(code, {"__builtins__": __builtins__, **variables})


def _measure(label: str, call: Callable[[], Any], given: dict[str, Any]) -> tuple[Row, Any]:
    start = perf_counter()
    result = _wait(call())
    first = perf_counter() - start
    arrays = [value for value in given.values() if isinstance(value, np.ndarray)]
    seen = tree_util.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, (result, arrays))
    runs: list[float] = []
    spent, count = 0.0, 1
    while not runs or spent < _SECONDS and len(runs) < _MOST_RUNS:
        start = perf_counter()
        for _ in range(count):
            last = call()
        _wait(last)
        seconds = perf_counter() - start
        spent += seconds
        if seconds < _RUN_SECONDS and not runs:
            count = max(2 * count, min(10 * count, int(count * _RUN_SECONDS / max(seconds, 1e-9))))
        else:
            runs.append(seconds / count)
    return Row(label, first, sorted(runs)), seen


def _wait(result: Any) -> Any:
    for leaf in tree_util.tree_leaves(result):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return result


def compare_results(expected: Any, found: Any) -> str:
    """The largest difference of two pytrees, as a part of the largest element, and dtypes where they differ."""
    (ours, tree), (theirs, other) = tree_util.tree_flatten(expected), tree_util.tree_flatten(found)
    ours, theirs = list(map(np.asarray, ours)), list(map(np.asarray, theirs))
    if tree != other or [one.shape for one in ours] != [one.shape for one in theirs]:
        return "another structure or shape"
    worst = max([_measure_difference(a, b) for a, b in zip(ours, theirs)], default=0.0)
    dtypes = sorted({b.dtype.name for a, b in zip(ours, theirs) if a.dtype != b.dtype})
    return ", ".join(["equal" if worst == 0 else f"{worst:.1e}", *dtypes])


def _measure_difference(a: np.ndarray, b: np.ndarray) -> float:
    if a.dtype.kind in "OSUMm" or not a.size:
        return 0.0 if np.array_equal(a, b) else math.inf
    kind = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    a, b = a.astype(kind), b.astype(kind)
    with np.errstate(all="ignore"):
        distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        largest = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return float(np.where(np.isnan(distance), math.inf, distance).max() / (largest or 1.0))
