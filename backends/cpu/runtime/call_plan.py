"""Call plans: what a call of a native program needs to know of it, kept on disk beside its code.

In: a scheduled program with its layout, or the key of a jaxpr whose program an earlier process scheduled.
Out: a `CallPlan`. Stage: between machine code and a call. With a plan from disk, a process neither schedules
a program nor writes its text: it looks up the code, and calls.
"""

from __future__ import annotations

import functools
import os
import struct
from typing import NamedTuple

import numpy as np

import jitcore
from jitcore import dtypes
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import images
from jitcore.backends.cpu.render.calling_convention import ProgramLayout
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.dispatch import disk_cache
from jitcore.dispatch.backend import CompileOptions
from jitcore.loopir.index import Address
from jitcore.loopir.program import Call, Program, While
from jitcore.loopir.traversal import flatten, list_outermost
from jitcore.passes.canonical import LOCAL, program_key
from jitcore.schedule.buffers import count_bytes, plan_arena

__all__ = ["CallPlan", "Output", "find_plan", "key_of_plan", "list_parts", "plan_call", "store_plan"]

# Bytes of arrays above which a call lets other Python threads run meanwhile; below, it would cost more than
# it takes.
RELEASE_BYTES = 65536

#: Where a program is made from a jaxpr: with other sources, it may be another program.
_SOURCES = ("lax", "loopir", "schedule")


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


def plan_call(program: Program, layout: ProgramLayout) -> tuple[CallPlan, list[int]]:
    """(the plan of a program, where in the arena its temporaries lie)."""
    offsets, arena_bytes = plan_arena(program, layout.arena)
    numbers = {buffer: number for number, buffer in enumerate(program.inputs)}
    numbers |= {output: numbers[source] for output, source in program.aliases.items()}
    outputs = tuple(
        Output(numbers.get(buffer, -1), tuple(map(int, buffer.shape)), buffer.dtype)
        for buffer in program.outputs
    )
    dims = (*offsets, *layout.sizes.values({}))
    total = arena_bytes + sum(map(count_bytes, layout.given))
    releases = total > RELEASE_BYTES or _may_run_long(program)
    owners = tuple(size.owner for size in layout.sizes.slots if isinstance(size, Address))
    plan = CallPlan(len(program.inputs), outputs, dims, arena_bytes, releases, list_parts(program), owners)
    return plan, offsets


def _may_run_long(program: Program) -> bool:
    return any(isinstance(statement, (While, Call)) for statement in list_outermost(program.steps))


def list_parts(program: Program) -> tuple[str, ...]:
    """Symbols that code finds in tables."""
    calls = [call for call in flatten(program.steps) if isinstance(call, Call)]
    return tuple(sorted({symbol for call in calls for symbol in getattr(call.routine, "parts", ())}))


# -- on disk ------------------------------------------------------------------------------------------------
_KEY_BYTES, _PARTS_SIZE = 32, struct.Struct("<q")


def key_of_plan(closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> bytes | None:
    """The key of the plan of a jaxpr of known shapes; None where it cannot be kept."""
    computed = program_key(closed_jaxpr)
    if computed.startswith(LOCAL):
        return None
    fused = () if options.contract else host.list_fused_operations()  # part of the key of its code
    return host.make_key("plan", _stamp_scheduler(), computed, repr((options, fused)))


@functools.cache
def _stamp_scheduler() -> str:
    root = os.path.dirname(jitcore.__file__)
    return repr([host.stamp_sources(os.path.join(root, name)) for name in _SOURCES])


def find_plan(key: bytes) -> tuple[CallPlan, bytes | None] | None:
    """(a plan, the key of its machine code or None where it has no code), as `store_plan` got them."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return _decode(stored)
    except (ValueError, IndexError):  # what was written is not what is read: it will be replaced
        return None


def store_plan(key: bytes, plan: CallPlan, code_key: bytes | None) -> None:
    cache = disk_cache.open_cache()
    if cache is not None and not plan.owners:
        cache.add(key, _encode(plan, code_key))


def _encode(plan: CallPlan, code_key: bytes | None) -> bytes:
    numbers = [plan.num_inputs, plan.arena_bytes, plan.releases, len(plan.dims), *plan.dims]
    for output in plan.outputs:
        numbers += [output.source, dtypes.SUPPORTED.index(output.dtype), len(output.shape), *output.shape]
    parts = " ".join(plan.parts).encode()
    head = (code_key or bytes(_KEY_BYTES)) + _PARTS_SIZE.pack(len(parts)) + parts
    return head + np.array(numbers, np.int64).tobytes()


def _decode(stored: bytes) -> tuple[CallPlan, bytes | None]:
    """Raises: ValueError or IndexError for bytes that `_encode` did not make."""
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
