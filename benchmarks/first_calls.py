"""Programs whose first call is timed, and how one is timed in a new process.

In: names of programs and libraries. Out: seconds. This module is imported by processes that time a first
call, and imports no compiler: what a library imports when it is called is part of its time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.bars import COMPILE, LONG_CHAIN
from benchmarks.inputs import make_normal, make_uniform
from benchmarks.programs import (make_increment, make_jacobi, make_many_reductions, make_network,
                                 make_operations, make_price, make_selu, make_softmax, make_train_step)


@dataclass(frozen=True)
class FirstCall:
    """A program that is compiled.

    Attributes:
        make_inputs: () -> arguments, small, so that running them takes no time.
        program: api -> function.
        modules: of the library that the program's author imports.
        bar: what jitcore's time divided by JAX's may be at most.
    """

    name: str
    make_inputs: Callable[[], tuple]
    program: Callable[[Any], Callable]
    modules: tuple[str, ...] = ("numpy",)
    bar: float = COMPILE


def _make_vector() -> tuple:
    return (make_normal(1000),)


def _make_matrix() -> tuple:
    return (make_normal(100, 100),)


def _make_options() -> tuple:
    return tuple(make_uniform(1, 2, 1000, seed=seed) for seed in range(3))


def _make_chain_row(count: int, bar: float) -> FirstCall:
    return FirstCall(f"chain of {count} operations", _make_vector, lambda api: make_operations(api, count),
                     bar=bar)


def _make_steps_row(steps: int) -> FirstCall:
    return FirstCall(f"Jacobi, {steps} steps", lambda: (make_normal(16, 16),),
                     lambda api: make_jacobi(api, steps), ("numpy", "lax"))


FEW_STEPS, MANY_STEPS = (_make_steps_row(steps) for steps in (10, 10_000))

ROWS = (
    FirstCall("x+1", _make_vector, make_increment),
    FirstCall("selu", _make_vector, make_selu),
    FirstCall("softmax", _make_matrix, make_softmax),
    FirstCall("black_scholes", _make_options, make_price, ("numpy", "scipy.special")),
    FirstCall("mlp train step", lambda: make_network(16, (30, 20, 10)), make_train_step),
    _make_chain_row(50, COMPILE),
    _make_chain_row(200, COMPILE),
    _make_chain_row(2000, LONG_CHAIN),
    FirstCall("30 separate reductions", _make_matrix, make_many_reductions),
    FEW_STEPS,
    MANY_STEPS,
)
_ROW_OF_NAME = {row.name: row for row in ROWS}


def time_first_call(package: str, name: str) -> float:
    """Seconds of a first call less those of a second one, in this process, which has called nothing before.

    The inputs are ndarrays. JAX opens its devices before, as when its users make arrays."""
    row = _ROW_OF_NAME[name]
    api = importlib.import_module(package)
    for module in row.modules:
        importlib.import_module(f"{package}.{module}")
    if package == "jax":
        api.devices()
    function, inputs = api.jit(row.program(api)), row.make_inputs()
    seconds = []
    for _ in range(2):
        start = perf_counter()
        wait_for(function(*inputs))
        seconds.append(perf_counter() - start)
    return seconds[0] - seconds[1]


def wait_for(result: Any) -> None:
    """Waits for the arrays of a result."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, tuple):
        for part in result:
            wait_for(part)
    elif not isinstance(result, np.ndarray):
        result.block_until_ready()
