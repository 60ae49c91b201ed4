"""What a row of the run-time section computes: a `Workload`.

In: sizes. Out: inputs, and the same computation for every library. A program is written once against an
`api`, which is the package jitcore, the package jax, or NumPy and SciPy under the same module names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Inputs = tuple[Any, ...]
Program = Callable[[Any], Callable]


@dataclass(frozen=True)
class Workload:
    """One row: the time of a warm call.

    Attributes:
        name: of the row, ending in its dtype.
        make_inputs: size -> arguments: ndarrays, Python scalars, dicts of ndarrays.
        program: api -> function of the arguments.
        size, tiny: what `make_inputs` is given when times are taken, and when only results are compared.
        numpy: the function as NumPy users write it. None stands for `program` on NumPy, where it can run
            there; otherwise there has to be a `reference`.
        numba: a compiled function, the best loop that a person would write; None leaves the peer out.
        numexpr: expression of the arguments a, b, c, ...; None leaves the peer out.
        reference: what gives the right result from the inputs themselves; None stands for the NumPy function
            on inputs widened to float64.
        summarize: result -> what is compared, for results that are right in more than one form.
        tolerance: largest difference relative to the largest value; None stands for that of the dtype.
        mismatches: largest share of the elements of an integer result that may differ, where rounding
            decides.
        bytes_moved, flops: of the arguments, the least that any program moves or computes.
        same_library: every peer calls the same library (LAPACK, FFT).
    """

    name: str
    make_inputs: Callable[[int], Inputs]
    program: Program
    size: int = 1_000_000
    tiny: int = 1_000
    numpy: Callable | None = None
    numba: Callable | None = None
    numexpr: str | None = None
    reference: Callable | None = None
    summarize: Callable[[Any], Any] | None = None
    tolerance: float | None = None
    mismatches: float = 0.0
    bytes_moved: Callable[..., float] | None = None
    flops: Callable[..., float] | None = None
    same_library: bool = False

    @property
    def dtype(self) -> str:
        """What the row computes in: the last word of its name."""
        return self.name.rsplit(" ", 1)[1]


#: Dtypes as rows name them.
DTYPES = {"f32": "float32", "f64": "float64"}
WIDE_DTYPES = ("f64", "c128")
