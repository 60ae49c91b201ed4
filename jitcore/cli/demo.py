"""Shows one function on its way from Python to machine code, checks its values and times it.

In: a number of elements. Out: each stage as text, the error against NumPy in float64, times beside those of
NumPy and, where installed, JAX. Nothing is written to disk. Exit code 1 when the values are wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import math
import re
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore.config import config
from jitcore.process.lazy import LazyModule

jax = LazyModule("jax")

HELP = "trace, compile, check and time the SELU function"

_COLUMNS, _LINES = 110, 10

#: Stage -> what a line of arithmetic on vectors looks like: a load or a move tells less.
_VECTOR_ARITHMETIC = {
    "llvm": re.compile(r"^ +%\S+ = (?!load|bitcast).*<\d+ x (float|double)>"),
    "assembly": re.compile(r"^\s+(?!v?mov)\S+\s.*(%[xyz]mm\d|\bv\d+\.\d+[bhsd]\b)")}


def selu(x, alpha=1.67, lambda_=1.05):
    return lambda_ * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def make_selu(library: Any) -> Callable:
    """The same function for NumPy or jax.numpy."""

    def selu(x, alpha=1.67, lambda_=1.05):
        return lambda_ * library.where(x > 0, x, alpha * library.exp(x) - alpha)

    return selu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=read_size, default=1_000_000, metavar="N", help="elements (1000000)")


def read_size(text: str) -> int:
    """A number of elements. Raises: ArgumentTypeError for what is none."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number of elements is an integer of at least 1, not {text!r}")
    return int(text)


def execute(options: argparse.Namespace) -> int:
    """Prints the demonstration. Returns: 0, or 1 when the values are wrong."""
    with config.override(disable_jit=False, cache_dir=""):  # compiling is what there is to show
        return demonstrate(options.size)


def demonstrate(size: int) -> int:
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    compiled = jitcore.jit(selu)
    _start_compiler()
    start = perf_counter()
    result = compiled(x)
    first = perf_counter() - start
    show_stages(compiled)
    is_right = show_accuracy(x, result)
    show_times(compiled, x, first)
    return 0 if is_right else 1


def _start_compiler() -> None:
    """Compiles something else, so that the first call shows what one more function costs."""
    jitcore.jit(lambda x: x * 2)(np.ones(3, np.float32))


def show(title: str, text: str = "") -> None:
    """Prints a titled part, its lines cut to the width of the screen."""
    print(f"== {title}")
    for line in text.rstrip().splitlines():
        print(line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 4]} ...")
    print()


# -- stages --------------------------------------------------------------------------------------------------


def show_stages(compiled: jitcore.api.JitWrapped) -> None:
    """Prints the function and what became of it, stage by stage, as far as the backend tells."""
    show("The function", f"@jit\n{inspect.getsource(selu)}")
    stages = compiled.inspect()
    show("Traced: the jaxpr", stages["jaxpr"])
    show("Optimized jaxpr", stages["optimized jaxpr"])
    if "numba" in stages:
        show("The kernel: all operations in one loop, as Numba would compile it", stages["numba"])
    for stage, pattern in _VECTOR_ARITHMETIC.items():
        if stage in stages:
            lines = stages[stage].splitlines()
            part = find_dense_part(lines, pattern)
            show(f"Generated kernel, {stage}: {len(part)} of {len(lines)} lines", "\n".join(part))


def find_dense_part(lines: Sequence[str], pattern: re.Pattern[str], length: int = _LINES) -> Sequence[str]:
    """The first `length` consecutive lines of which most match the pattern."""
    matches = [pattern.search(line) is not None for line in lines]
    starts = range(max(1, len(lines) - length + 1))
    best = max(starts, key=lambda start: sum(matches[start : start + length]))
    return lines[best : best + length]


# -- values --------------------------------------------------------------------------------------------------


def show_accuracy(x: np.ndarray, result: jitcore.Array) -> bool:
    """Prints the largest difference from NumPy in float64. Returns: whether rounding explains it."""
    expected = make_selu(np)(x.astype(np.float64))
    error = np.abs(np.asarray(result) - expected).max()
    wide = np.abs(np.asarray(jitcore.jit(selu)(x.astype(np.float64))) - expected).max()
    # Near 0 SELU is a difference of numbers of about 1: their rounding is what an error is compared with.
    limits = [8 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max()) for dtype in "fd"]
    is_right = bool(error <= limits[0] and wide <= limits[1])
    verdict = "as small as rounding allows" if is_right else "WRONG: more than rounding explains"
    text = f"float32: {error:.2e}\nfloat64: {wide:.2e}\n{verdict}"
    show("Largest difference from NumPy in float64", text)
    return is_right


# -- times ---------------------------------------------------------------------------------------------------


def show_times(compiled: Callable, x: np.ndarray, first: float) -> None:
    """Prints the first call and warm calls beside NumPy and JAX."""
    x_array, selu_numpy = jitcore.device_put(x), make_selu(np)
    calls = {"jitcore": lambda: compiled(x_array).block_until_ready(), "NumPy": lambda: selu_numpy(x)}
    firsts = {"jitcore": first}
    if importlib.util.find_spec("jax"):
        calls["JAX"], firsts["JAX"] = _make_jax_call(x)
    best = time_in_turns(calls)
    lines = [f"{'':8} {'first call':>12} {'warm call':>12}"]
    for name, seconds in best.items():
        first_text = format_seconds(firsts[name]) if name in firsts else ""
        ratio = "" if name == "jitcore" else f"   jitcore takes {best['jitcore'] / seconds:.2g}x of that"
        lines.append(f"{name:8} {first_text:>12} {format_seconds(seconds):>12}{ratio}")
    show(f"Time for {x.size} float32 elements", "\n".join(lines))


def _make_jax_call(x: np.ndarray) -> tuple[Callable, float]:
    """(warm call, seconds of the first one) of the same function compiled by JAX."""
    # An optional package.
    jax.jit(lambda x: x * 2)(np.ones(3, np.float32)).block_until_ready()
    x_array, compiled = jax.device_put(x), jax.jit(make_selu(jax.numpy))
    start = perf_counter()
    compiled(x_array).block_until_ready()
    return lambda: compiled(x_array).block_until_ready(), perf_counter() - start


def time_in_turns(calls: dict[str, Callable], seconds: float = 1.0) -> dict[str, float]:
    """The least seconds of one call of each; they alternate, so that a slow moment hits all."""
    best = dict.fromkeys(calls, math.inf)
    stop = perf_counter() + seconds
    while perf_counter() < stop:
        for name, call in calls.items():
            start = perf_counter()
            call()
            best[name] = min(best[name], perf_counter() - start)
    return best


def format_seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} us"
