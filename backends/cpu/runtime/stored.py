"""Programs on disk, for processes that do without a compiler.

In: what `CpuExecutable.store` told. Out: the function of the input ndarrays.
"""

from __future__ import annotations

from jitcore.backends.cpu import routines  # noqa: F401  provides symbols of native code on whole buffers
from jitcore.backends.cpu.native import libraries
from jitcore.backends.cpu.native.libraries import NativeProgram, find_program
from jitcore.backends.cpu.runtime import threads  # noqa: F401  provides symbols of the pool
from jitcore.backends.cpu.runtime.plans import Run, decode_plan, write_call

__all__ = ["open_program"]

def open_program(data: bytes) -> Run:
    """Raises: LookupError where its machine code is gone."""
    plan, key = decode_plan(data)
    compiled = NativeProgram() if key is None else find_program(key, libraries.DEFAULT_OPT_LEVEL)
    if compiled is None:
        raise LookupError("the machine code of a program is not on disk any more")
    plan.open_parts()
    return write_call(plan, compiled)
