"""What a running kernel shares with the code around it: a record for each thread, one for the launch.

Translated code finds fields by their offsets, functions that Numba compiles by name. These have the records
in their signatures, so that Numba's cache on disk knows when a field is added.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _make_record(words: str, numbers: str) -> np.dtype:
    fields = [(name, "i8") for name in numbers.split()] + [(name, "i4") for name in words.split()]
    return np.dtype(fields, align=True)


#: steps: jumps backwards that are left; handle, frame: of the coroutine; local: address of its local memory.
#: At the line `site` it waits for an operation, with operands from mask to bounds and value, or jumped back.
#: Clocks, see `races`: at its last barrier of the block (block_epoch), of block or warp (epoch), and since it
#: published (stamp). fenced: no store since its last fence; acquired: it has read a flag of another block.
THREAD = _make_record(
    "number state tid_x tid_y tid_z site operation mask selector bounds passed fenced acquired",
    "steps handle frame local value result block_epoch epoch stamp",
)
#: block: position in the order of blocks; ranges, recent, blocks: tables of `races`; spare: memory for what
#: failed; shared, variables: addresses of the block's shared memory, of a table of addresses; acquired: the
#: first block_epoch at which a thread of the block has read a flag of another block.
LAUNCH = _make_record(
    "ntid_x ntid_y ntid_z ctaid_x ctaid_y ctaid_z nctaid_x nctaid_y nctaid_z block "
    "failure failed_thread failed_slot",
    "ranges range_count recent blocks spare shared variables frame_bytes local_bytes clock launch_start "
    "block_start acquired failed_address failed_access failed_other",
)


def compile_cached(compiler: Callable, signature, **options) -> Callable:
    """`njit` or `cfunc` with Numba's cache on disk, or without where no folder for it can be written."""

    def decorate(function):
        try:
            return compiler(signature, cache=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return compiler(signature, **options)(function)

    return decorate


@intrinsic
def as_pointer(typing_context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@intrinsic
def call_address(typing_context, address, first, second, third):
    """A call with three words, of which the function may take fewer, and with a result, which it may omit."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 3)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(*[types.int64] * 4), generate
