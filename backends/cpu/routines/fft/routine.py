"""The routine for `fft`: Fourier transforms of complex64 and complex128, and of float32 and float64.

In: an equation. Out: the routine, or None where SciPy's implementation serves: lengths with prime factors
above 13. The machine code (`stages`) is the same for all transforms of a dtype; what it does is a table of
numbers (`plan`), whose address it is told.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Fft
from jitcore.backends.cpu.routines.fft.plan import Request, Transform, plan_transform
from jitcore.core.jaxpr import Equation
from jitcore.lax.define import product
from jitcore.lax.fft import FftType
from jitcore.loopir.expr import Address
from jitcore.schedule.nest import RunTimeSize

_REAL_SIDES = {FftType.RFFT: "in", FftType.IRFFT: "out"}


class FftRoutine:
    """One transform. sizes: what machine code is told."""

    def __init__(self, dtype: np.dtype, transform: Transform):
        self.dtype, self.temporary = dtype, transform.temporary
        self.sizes = (Address(transform.address, transform),)

    def __str__(self) -> str:
        return f"fft_f{4 * self.dtype.itemsize}{'_using' if self.temporary else ''}"

    def scratch(self) -> list[tuple[tuple, np.dtype]]:
        return [((RunTimeSize(self.temporary),), self.dtype)] if self.temporary else []

    def emit(self, renderer, call) -> None:
        buffers = [*call.inputs, *call.outputs, *(call.scratch or call.outputs)]
        symbol = f"jitcore_fft_stages_f{4 * self.dtype.itemsize}"
        renderer.run(symbol, *map(renderer.address_of, buffers), renderer.count(self.sizes))


def find_routine(eqn: Equation, tuning: Fft) -> FftRoutine | None:
    """The routine for an `fft`; None for lengths that it has no code for."""
    x, out = eqn.invars[0].aval, eqn.outvars[0].aval
    kind, lengths = eqn.params["fft_type"], tuple(map(int, eqn.params["fft_lengths"]))
    batch = int(product(x.shape[: x.ndim - len(lengths)]))
    if batch == 0 or 0 in lengths:
        return None
    dtype = x.dtype if dtypes.is_complex(x.dtype) else out.dtype
    itemsize = dtype.itemsize // 2
    lanes = host.native_vector_bytes() // itemsize
    is_inverse = kind in (FftType.IFFT, FftType.IRFFT)
    side = _REAL_SIDES.get(kind, "")
    transform = plan_transform(Request(batch, lengths, itemsize, lanes, is_inverse, side, tuning))
    return None if transform is None else FftRoutine(dtype, transform)
