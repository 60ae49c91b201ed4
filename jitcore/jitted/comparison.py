"""`compare`: one function on every backend that is there.

In: a function and arguments. Out: a `Comparison`: for each backend how far its results are from those of the
first one, what the first and later calls take, kernels and bytes; a table to print, and in notebooks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from jitcore import dtypes, tree_util
from jitcore.dispatch.backend import list_backends
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.hypertext import format_table, show_table
from jitcore.jitted.wrapper import JitWrapped

__all__ = ["Comparison", "Row", "compare"]

#: Seconds and calls for which the fastest one is looked for.
_SECONDS, _MAX_CALLS = 0.2, 1000
_ORDER = ("cpu", "reference", "xla", "gpu", "cuda", "tpu")


class Row(NamedTuple):
    """One backend.

    ulp: largest distance of its results from those of the first row, in units in the last place; of integers
        and bools, in ones; inf where types, shapes or NaNs differ.
    first, warm: seconds of the first call and of the fastest later one.
    kernels: loops or fusions that the program is made of, bytes: read and written by it, as far as the
        backend tells, else None.
    error: what a call raised, or ""."""

    backend: str
    ulp: float = math.nan
    first: float = math.nan
    warm: float = math.nan
    kernels: int | None = None
    bytes: float | None = None
    error: str = ""


class Comparison:
    """Attributes:
    rows: one for each backend.
    results: by backend, what the function returned."""

    def __init__(self, name: str, rows: Sequence[Row], results: dict[str, Any]):
        self.name, self.rows, self.results = name, list(rows), results

    @property
    def ulp(self) -> float:
        """The largest distance of all."""
        return max([row.ulp for row in self.rows if not row.error], default=math.nan)

    def _list_cells(self) -> list[tuple[str, ...]]:
        head = ("backend", "difference", "first call", "later calls", "kernels", "bytes")
        return [head, *map(_format_row, self.rows)]

    def __repr__(self) -> str:
        return f"{self.name}\n{format_table(self._list_cells(), str.rjust)}"

    def _repr_html_(self) -> str:
        head, *rows = self._list_cells()
        return show_table(head, rows, self.name)


def _format_row(row: Row) -> tuple[str, ...]:
    if row.error:
        return row.backend, row.error
    kernels = "-" if row.kernels is None else str(row.kernels)
    count = "-" if row.bytes is None else f"{row.bytes:,.0f}"
    times = map(format_seconds, (row.first, row.warm))
    return (row.backend, _format_ulp(row.ulp), *times, kernels, count)


def _format_ulp(ulp: float) -> str:
    return "equal" if ulp == 0 else f"{ulp:.3g} ulp"


def format_seconds(seconds: float) -> str:
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            break
    return f"{seconds * factor:.3g} {unit}"


def compare(fun: Callable, *args: Any, backends: Sequence[str] | None = None, **kwargs: Any) -> Comparison:
    """Runs a function on several backends and compares what they return.

    Args:
        fun: jitted or not; it is compiled for each backend.
        args, kwargs: of a call.
        backends: names, the first of which the others are compared with; None for all that are there.
    Returns: a `Comparison`, which prints as a table.
    Example:
        >>> print(jitcore.compare(lambda x: jnp.tanh(x).sum(), np.ones(1000, np.float32)))  # doctest: +SKIP
    """
    options = fun._function.options if isinstance(fun, JitWrapped) else DEFAULT_OPTIONS
    plain = fun.__wrapped__ if isinstance(fun, JitWrapped) else fun
    present, _ = list_backends()
    known = [name for name in _ORDER if name in present]
    names = [*known, *sorted(present.keys() - set(known))] if backends is None else list(backends)
    rows, results, expected = [], {}, None
    for name in names:
        jitted = JitWrapped(plain, options._replace(backend=name, sharding=None))
        try:
            row, result = _run(jitted, name, args, kwargs)
        except Exception as error:
            text = str(error).partition("\n")[0]
            rows.append(Row(name, error=f"{type(error).__name__}: {text}"))
            continue
        expected = result if expected is None else expected
        rows.append(row._replace(ulp=measure_distance(expected, result)))
        results[name] = result
    return Comparison(getattr(plain, "__name__", "function"), rows, results)


def _run(jitted: JitWrapped, name: str, args: tuple, kwargs: dict) -> tuple[Row, Any]:
    def call():
        start = perf_counter()
        result = jitted(*args, **kwargs)
        for leaf in tree_util.tree_leaves(result):
            if hasattr(leaf, "block_until_ready"):
                leaf.block_until_ready()
        return perf_counter() - start, result

    first, result = call()
    warm, spent, count = math.inf, 0.0, 0
    while spent < _SECONDS and count < _MAX_CALLS:
        seconds, _ = call()
        warm, spent, count = min(warm, seconds), spent + seconds, count + 1
    program = jitted._function.last_program
    assert program is not None
    texts = program.executable.texts(program.argument_names)
    bytes_accessed = program.executable.cost().get("bytes accessed")
    return Row(name, math.nan, first, warm, count_kernels(texts), bytes_accessed), result


#: By stage: what begins a kernel in its text.
_KERNELS = {
    "loop program": r"^\s*kernel\b",
    "hlo": r"^\s*(?:ROOT )?\S+ = .* (?:fusion|custom-call|dot|convolution)\(",
}


def count_kernels(texts: dict[str, Callable[[], str]]) -> int | None:
    """How many kernels a program is made of, as far as its texts tell."""
    for stage, pattern in _KERNELS.items():
        if stage in texts:
            return len(re.findall(pattern, texts[stage](), re.MULTILINE))
    return None


# -- distances ----------------------------------------------------------------------------------------------
def measure_distance(expected: Any, found: Any) -> float:
    """The largest distance of two pytrees of arrays; see `Row.ulp`."""
    one, other = tree_util.tree_flatten(expected), tree_util.tree_flatten(found)
    if one[1] != other[1]:
        return math.inf
    return max([_measure_arrays(np.asarray(a), np.asarray(b)) for a, b in zip(one[0], other[0])], default=0.0)


def _measure_arrays(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return math.inf
    if not a.size:
        return 0.0
    if dtypes.is_complex(a.dtype):
        return max(_measure_arrays(a.real, b.real), _measure_arrays(a.imag, b.imag))
    if not dtypes.is_inexact(a.dtype):
        return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())
    unit = ml_dtypes.finfo(a.dtype).eps
    tiny = float(ml_dtypes.finfo(a.dtype).tiny)
    a, b = a.astype(np.float64), b.astype(np.float64)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        steps = np.exp2(np.floor(np.log2(np.maximum(np.maximum(np.abs(a), np.abs(b)), tiny)))) * float(unit)
        distances = np.where(is_same, 0.0, np.abs(a - b) / steps)
    return float(np.where(np.isnan(distances), math.inf, distances).max())
