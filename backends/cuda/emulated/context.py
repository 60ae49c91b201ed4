"""What a running kernel and the code around it share: a record for each thread and one for the launch.

Translated code reads and writes fields at their offsets, the functions that Numba compiles by name. These have
the records in their signatures, so that Numba's cache notices when a field is added.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["LAUNCH", "THREAD", "as_pointer", "compile_cached", "resume", "start"]

#: Words of three axes: threads and blocks, their numbers and how many there are.
_AXES = ("x", "y", "z")

THREAD = np.dtype(
    [
        ("number", "i4"),  # x fastest; its low five bits are the lane
        ("state", "i4"),
        *[(f"tid_{axis}", "i4") for axis in _AXES],
        ("endless", "i4"),  # the line of a backward branch that was taken too often
        ("steps", "i8"),  # how many more backward branches it may take
        ("handle", "i8"),  # of its coroutine
        ("frame", "i8"),  # memory of the coroutine
        ("local", "i8"),  # address of its local memory
        # Where it waits: the PTX line, for what, and with what.
        ("site", "i4"),
        ("operation", "i4"),
        ("mask", "i4"),
        ("selector", "i4"),
        ("bounds", "i4"),
        ("passed", "i4"),
        ("value", "i8"),
        ("result", "i8"),
        ("tile", "f8", (16,)),
        ("tile_result", "f8", (4,)),
        # For races: the clock at its last barrier of the block, and of the block or the warp.
        ("block_epoch", "i8"),
        ("epoch", "i8"),
        ("fenced", "i4"),  # no store since its last fence
        ("acquired", "i4"),  # has read a flag of another block
    ],
    align=True,
)

LAUNCH = np.dtype(
    [
        *[(f"{name}_{axis}", "i4") for name in ("ntid", "ctaid", "nctaid") for axis in _AXES],
        ("block", "i4"),  # position in the order in which blocks run
        ("ranges", "i8"),  # addresses of tables of `races`
        ("range_count", "i8"),
        ("recent", "i8"),
        ("blocks", "i8"),
        ("spare", "i8"),  # memory for accesses that failed
        ("shared", "i8"),  # address of the block's shared memory
        ("variables", "i8"),  # addresses of the module's variables
        ("frame_bytes", "i8"),
        ("local_bytes", "i8"),  # of one thread
        ("dynamic_bytes", "i8"),  # of shared memory
        ("check_races", "i8"),
        # Time is counted in barriers and blocks.
        ("clock", "i8"),
        ("launch_start", "i8"),
        ("block_start", "i8"),
        ("acquired", "i8"),  # when a thread of the block first read a flag of another block
        ("arrived", "i4", (16,)),  # threads that have passed each barrier without waiting
        ("failure", "i4"),
        ("failed_thread", "i4"),
        ("failed_address", "i8"),
        ("failed_access", "i8"),
        ("failed_other", "i8"),
        ("failed_slot", "i4"),
    ],
    align=True,
)


def compile_cached(compiler: Callable, *signature, **options) -> Callable:
    """`njit` or `cfunc` with Numba's cache on disk, or without one where no folder for it can be written."""

    def decorate(function):
        try:
            return compiler(*signature, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return compiler(*signature, **options)(function)

    return decorate


@intrinsic
def as_pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


_POINTER, _WORD = ir.IntType(8).as_pointer(), ir.IntType(64)


@intrinsic
def start(typing_context, entry, thread, launch, parameters):
    """Calls a kernel for one thread, up to its first suspension. Returns the coroutine's handle, 0 without one."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(_WORD, [_WORD] * 3)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def resume(typing_context, handle):
    """LLVM's coroutines begin with the address of the function that continues them."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.VoidType(), [_POINTER])
        handle = builder.inttoptr(arguments[0], kind.as_pointer().as_pointer())
        builder.call(builder.load(handle), [builder.bitcast(handle, _POINTER)])
        return context.get_dummy_value()

    return types.void(types.int64), generate
