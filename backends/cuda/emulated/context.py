"""What a running kernel shares with the code around it: a record for each thread, one for the launch.

Translated code finds fields by their offsets, the functions that Numba compiles by name. These have the records
in their signatures, so Numba's cache on disk knows when a field is added.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["LAUNCH", "THREAD", "as_pointer", "compile_cached", "resume", "start"]


def _make_record(words: str, numbers: str) -> np.dtype:
    return np.dtype([(name, "i8") for name in numbers.split()] + [(name, "i4") for name in words.split()], align=True)


#: steps: jumps backwards that are left; handle, frame: of the coroutine; local: address of its local memory. At the
#: line `site` it waits for an operation, with operands and results from mask to passed, or has jumped back. The clock at its last barrier of the block (block_epoch), of block or warp (epoch), or since
#: it published something (stamp); fenced: no store since its last fence; acquired: it has read another block's flag.
THREAD = _make_record(
    "number state tid_x tid_y tid_z site operation mask selector bounds passed fenced acquired",
    "steps handle frame local value result block_epoch epoch stamp",
)
#: block: position in the order of blocks; ranges to blocks: tables of `races`; spare: memory for what failed;
#: shared, variables: address of the block's shared memory, of a table of addresses; acquired: the block_epoch at
#: which a thread of the block first read another block's flag.
LAUNCH = _make_record(
    "ntid_x ntid_y ntid_z ctaid_x ctaid_y ctaid_z nctaid_x nctaid_y nctaid_z block failure failed_thread failed_slot",
    "ranges range_count recent blocks spare shared variables frame_bytes local_bytes dynamic_bytes check_races clock "
    "launch_start block_start acquired failed_address failed_access failed_other",
)


def compile_cached(compiler: Callable, *signature, **options) -> Callable:
    """`njit` or `cfunc` with Numba's cache on disk, or without where no folder for it can be written."""

    def decorate(function):
        try:
            return compiler(*signature, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return compiler(*signature, **options)(function)

    return decorate


_POINTER, _WORD = ir.IntType(8).as_pointer(), ir.IntType(64)


@intrinsic
def as_pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], _POINTER)

    return types.voidptr(types.int64), generate


@intrinsic
def start(typing_context, entry, thread, launch, parameters):
    """Calls a kernel for one thread, up to its first suspension. Returns the handle of the coroutine."""

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
