"""What a benchmark row computes: a `Workload` (time of a call) or a `CompileTime` (time of compiling).

In: sizes. Out: inputs, and the same program for every library. A program is written once against an `api`,
which is the package jitcore, the package jax, or NumPy and SciPy under the same module names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Inputs = tuple[Any, ...]
Program = Callable[[Any], Callable]

#: Peers that trace Python, for rows that mean nothing to the others.
TRACING_PEERS = ("jitcore", "JAX")
ALL_PEERS = ("jitcore", "NumPy", "Numba", "numexpr", "JAX")


@dataclass(frozen=True)
class Workload:
    """A row whose figure is the time of a warm call.

    Attributes:
        name: of the row.
        make_inputs: size -> arguments, ndarrays and Python scalars.
        size, quick_size: elements, in a normal and in a quick run.
        program: api -> function of the arguments.
        numpy: the function as NumPy users write it, where `program` needs more than NumPy has.
        numba: () -> compiled function, the best loop that a person would write; None leaves the peer out.
        numexpr: expression of the arguments a, b, c, ...; None leaves the peer out.
        peers: who takes part.
        jitted: compile the function as a whole; False where it calls `api.jit` itself.
        from_ndarrays: hand ndarrays to the compiled function, not arrays of the library.
        tolerance: largest difference of results relative to the largest value.
    """

    name: str
    make_inputs: Callable[[int], Inputs]
    program: Program
    size: int = 1_000_000
    quick_size: int = 1_000
    numpy: Callable | None = None
    numba: Callable[[], Callable] | None = None
    numexpr: str | None = None
    peers: tuple[str, ...] = ALL_PEERS
    jitted: bool = True
    from_ndarrays: bool = False
    tolerance: float = 1e-5


@dataclass(frozen=True)
class CompileTime:
    """A row whose figure is the time of a first call less that of a second one.

    Attributes:
        name: of the row.
        make_inputs: () -> arguments.
        program: (api, number) -> function in which `number`, from 0 to 1e6, is a constant. Every repeat has
            another number, so that no cache of compiled programs can answer.
    """

    name: str
    make_inputs: Callable[[], Inputs]
    program: Callable[[Any, int], Callable]
    peers: tuple[str, ...] = TRACING_PEERS
    tolerance: float = 1e-5


Row = Workload | CompileTime
