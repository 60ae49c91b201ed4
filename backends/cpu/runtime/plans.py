"""Plans of calls, and the functions that carry them out; no compiler is needed.

In: what a call of a native program allocates and passes on, from the scheduler or from disk. Out: a function
of the input ndarrays.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.native.libraries import NativeProgram
from jitcore.backends.cpu.runtime.launch import make_allocator, open_launchers
from jitcore.backends.cpu.runtime.memory import LARGE, choose_allocator, write_arena
from jitcore.dispatch import disk_cache

__all__ = ["CallPlan", "Output", "Run", "decode_plan", "encode_plan", "find_plan", "store_plan", "write_call"]

Run = Callable[..., list[np.ndarray]]


class Output(NamedTuple):
    """An output: the number of the input whose memory it takes over, or -1 for an array of its own."""

    source: int
    shape: tuple[int, ...]
    dtype: np.dtype


class CallPlan(NamedTuple):
    """What a call allocates and passes on, for inputs of certain shapes.

    dims: what the entry point gets beside arrays. arena_bytes: of temporaries. releases: whether a call lets
    other Python threads run meanwhile. parts: symbols that code finds in tables, opened before a call.
    owners: what addresses among dims belong to; a plan that has any is of this process alone.
    """

    num_inputs: int
    outputs: tuple[Output, ...]
    dims: tuple[int, ...]
    arena_bytes: int
    releases: bool
    parts: tuple[str, ...] = ()
    owners: tuple[object, ...] = ()

    def open_parts(self) -> None:
        for symbol in self.parts:
            images.address_of(symbol)


_KEY_BYTES, _PARTS_SIZE = 32, struct.Struct("<q")


def find_plan(key: bytes) -> tuple[CallPlan, bytes | None] | None:
    """(a plan, the key of its machine code or None where it has no code), as `store_plan` got them."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return decode_plan(stored)
    except (ValueError, IndexError):  # what was written is not what is read: it will be replaced
        return None


def store_plan(key: bytes, plan: CallPlan, code_key: bytes | None) -> None:
    cache = disk_cache.open_cache()
    if cache is not None and not plan.owners:
        cache.add(key, encode_plan(plan, code_key))


def encode_plan(plan: CallPlan, code_key: bytes | None) -> bytes:
    numbers = [plan.num_inputs, plan.arena_bytes, plan.releases, len(plan.dims), *plan.dims]
    for output in plan.outputs:
        numbers += [output.source, dtypes.SUPPORTED.index(output.dtype), len(output.shape), *output.shape]
    parts = " ".join(plan.parts).encode()
    head = (code_key or bytes(_KEY_BYTES)) + _PARTS_SIZE.pack(len(parts)) + parts
    return head + np.array(numbers, np.int64).tobytes()


def decode_plan(stored: bytes) -> tuple[CallPlan, bytes | None]:
    """Raises: ValueError or IndexError for bytes that `encode_plan` did not make."""
    code_key = stored[:_KEY_BYTES]
    try:
        (size,) = _PARTS_SIZE.unpack_from(stored, _KEY_BYTES)
    except struct.error as damage:
        raise ValueError(str(damage)) from None
    start = _KEY_BYTES + _PARTS_SIZE.size
    parts = tuple(stored[start : start + size].decode().split())
    numbers = np.frombuffer(stored, np.int64, offset=start + size).tolist()
    num_inputs, arena_bytes, releases, n_dims, *rest = numbers
    dims, at, outputs = tuple(rest[:n_dims]), n_dims, []
    while at < len(rest):
        source, dtype, ndim = rest[at : at + 3]
        at += 3 + ndim
        shape = tuple(rest[at - ndim : at])
        is_array = 0 <= dtype and len(shape) == ndim and min(shape, default=0) >= 0
        if not (is_array and -1 <= source < num_inputs):
            raise ValueError("the plan of a call is damaged")
        outputs.append(Output(source, shape, dtypes.SUPPORTED[dtype]))
    plan = CallPlan(num_inputs, tuple(outputs), dims, arena_bytes, bool(releases), parts)
    return plan, code_key if any(code_key) else None


def write_call(plan: CallPlan, compiled: NativeProgram, given_outputs: Sequence[int] = ()) -> Run:
    """The function for a program of one native step, written out for its numbers of inputs and outputs: it
    allocates outputs and arena, and calls. given_outputs: those whose arrays follow the inputs."""
    launchers = open_launchers(plan.num_inputs + len(plan.outputs) + 1)
    dims = np.array(plan.dims, dtype=np.int64)
    launch = launchers.releasing if plan.releases else launchers.holding
    names = {"launch": launch, "dims": dims, "keep": (compiled, plan.owners), "__name__": __name__}
    inputs = [f"a{k}" for k in range(plan.num_inputs)]
    lines, given, outputs = [], list(inputs), []
    for k, output in enumerate(plan.outputs):
        if output.source >= 0:
            outputs.append(inputs[output.source])
            continue
        outputs.append(f"o{k}")
        given.append(f"o{k}")
        if k in given_outputs:
            continue
        nbytes = math.prod(output.shape) * output.dtype.itemsize
        make = make_allocator(output.shape, output.dtype) if nbytes < LARGE else None
        names[f"make{k}"] = make or partial(choose_allocator(nbytes), output.shape, output.dtype)
        lines.append(f"o{k} = make{k}()")
    if plan.arena_bytes:
        lines.append(write_arena(plan.arena_bytes, names))
        given.append("arena")
    if compiled.addresses:
        lines.append(f"launch({compiled.addresses[0]}, {dims.ctypes.data}, {', '.join(given)})")
    lines.append(f"return [{', '.join(outputs)}]")
    parameters = ", ".join((*inputs, *(f"o{k}" for k in given_outputs)))
    source = f"def run({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<jitcore call>", "exec"), names)
    return names["run"]
