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
from collections.abc import Callable
from time import perf_counter

import numpy as np

import jitcore
import jitcore.numpy as jnp

HELP = "trace, compile, check and time the SELU function"

ALPHA, LAMBDA = 1.67, 1.05
_COLUMNS, _LINES = 110, 10
_VECTOR_REGISTER = re.compile(r"%[xyz]mm\d|\bv\d+\.\d+[bhsd]\b")
_VECTOR_VALUE = re.compile(r"<\d+ x (float|double|i\d+)>")


def selu(x):
    return LAMBDA * jnp.where(x > 0, x, ALPHA * jnp.exp(x) - ALPHA)


def selu_numpy(x):
    return LAMBDA * np.where(x > 0, x, ALPHA * np.exp(x) - ALPHA)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=read_size, default=1_000_000, metavar="N", help="elements (1000000)")


def read_size(text: str) -> int:
    """A number of elements. Raises: ArgumentTypeError for what is none."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of elements: give an integer of at least 1")
    return int(text)


def execute(options: argparse.Namespace) -> int:
    """Prints the demonstration. Returns: 0, or 1 when the values are wrong."""
    x = np.random.default_rng(0).standard_normal(options.size).astype(np.float32)
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
    if "loop program" in stages:
        show("Loop program: all operations in one loop", stages["loop program"])
    for stage, pattern in (("llvm", _VECTOR_VALUE), ("assembly", _VECTOR_REGISTER)):
        if stage in stages:
            text, total = stages[stage], len(stages[stage].splitlines())
            part = find_vector_code(text, pattern) or text.splitlines()[:_LINES]
            show(f"Generated kernel, {stage}: {len(part)} of {total} lines", "\n".join(part))


def find_vector_code(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The first lines of the longest run of lines that match the pattern."""
    best: list[str] = []
    run: list[str] = []
    for line in text.splitlines():
        run = [*run, line] if pattern.search(line) else []
        if len(run) > len(best):
            best = run
    return best[:_LINES]


# -- values --------------------------------------------------------------------------------------------------


def show_accuracy(x: np.ndarray, result: jitcore.Array) -> bool:
    """Prints the largest difference from NumPy in float64. Returns: whether it is as small as it has to be."""
    expected = selu_numpy(x.astype(np.float64))
    error = np.abs(np.asarray(result) - expected).max()
    wide = np.abs(np.asarray(jitcore.jit(selu)(x.astype(np.float64))) - expected).max()
    # SELU subtracts numbers near ALPHA, so that an error is measured against their rounding.
    limits = [4 * ALPHA * np.finfo(dtype).eps * max(1.0, np.abs(expected).max()) for dtype in "fd"]
    is_right = bool(error <= limits[0] and wide <= limits[1])
    show("Largest difference from NumPy in float64", f"""\
float32: {error:.2e}
float64: {wide:.2e}
{"as small as rounding allows" if is_right else "WRONG: more than rounding explains"}""")
    return is_right


# -- times ---------------------------------------------------------------------------------------------------


def show_times(compiled: Callable, x: np.ndarray, first: float) -> None:
    """Prints the first call and warm calls beside NumPy and JAX."""
    x_array = jitcore.device_put(x)
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
    import jax

    def selu_jax(x):
        return LAMBDA * jax.numpy.where(x > 0, x, ALPHA * jax.numpy.exp(x) - ALPHA)

    jax.jit(lambda x: x * 2)(np.ones(3, np.float32)).block_until_ready()
    x_array, compiled = jax.device_put(x), jax.jit(selu_jax)
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
