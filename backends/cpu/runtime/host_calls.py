"""Programs that call Python: library calls between native steps, and from within native loops and branches.

In: a loop program with `LibraryCall`s, its machine code and its layout. Out: a function of the input
ndarrays, written out line by line; and the native function `jitcore_call_host`, by which machine code calls a
Python function. Stage: binding a program to sizes; run time.

Between native steps the ndarray that a library returns becomes the buffer, if nobody else has it; otherwise
it is copied. Within a native step the library's result is copied to where native code expects it.

    i64 jitcore_call_host(PyObject *host, i64 number, i8 **addresses, i64 count)

calls `host(number, *addresses)` with the GIL and returns 0, or `RAISED` with the exception set: native code
then returns `RAISED` at once, and the launcher raises. Nothing of a call is kept outside of it, so that a
program may run in several threads at a time, and within its own callbacks.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jitcore.backends.cpu.compiler import ProgramLayout
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.libraries import NativeProgram
from jitcore.backends.cpu.runtime.launch import RAISED
from jitcore.backends.cpu.runtime.memory import choose_allocator, write_arena
from jitcore.loopir.expr import Buffer
from jitcore.loopir.program import LibraryCall, Program
from jitcore.loopir.traversal import list_buffers
from jitcore.process.lazy import LazyModule

if TYPE_CHECKING:
    from jitcore.backends.cpu.native.text_writer import Operand, RuntimeWriter

#: It is loaded where the code is not on disk.
writing = LazyModule("jitcore.backends.cpu.native.text_writer")

SYMBOL = "jitcore_call_host"


# -- results ------------------------------------------------------------------------------------------------
def _count_references(result) -> int:
    return sys.getrefcount(result)


# What `adopt` counts for an object that only its argument refers to; it depends on the interpreter.
_UNSHARED = _count_references(np.empty(1))


def adopt(result, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The result of a library as a C-contiguous array that nobody else has: itself, or a copy."""
    if result.__class__ in (list, tuple):
        (result,) = result
    if result.__class__ is np.ndarray and sys.getrefcount(result) <= _UNSHARED:
        flags = result.flags
        is_own = flags.owndata and flags.c_contiguous and flags.writeable
        if is_own and result.shape == shape and result.dtype == dtype:
            return result
    copy = np.empty(shape, dtype)
    copy[...] = result
    return copy


def adopt_all(results: Sequence, kinds: Sequence[tuple]) -> list[np.ndarray]:
    """`adopt` for each of several results. kinds: (shape, dtype) of each."""
    results = list(results)[::-1]  # taken from its end, a result is not in the list any more
    return [adopt(results.pop(), shape, dtype) for shape, dtype in kinds]


# -- the call -----------------------------------------------------------------------------------------------
def write_steps(program: Program, compiled: NativeProgram, layout: ProgramLayout, dims: np.ndarray,
                offsets: list[int], arena_bytes: int,
                launch: Callable[..., int]) -> Callable[..., list[np.ndarray]]:
    """The function of the input ndarrays that runs a program's steps and returns the outputs."""
    writer = _CallWriter(program, layout, dict(zip(layout.arena, offsets)), arena_bytes)
    writer.names |= {"launch": launch, "dims": dims, "keep": (compiled, layout.sizes)}
    addresses = iter(compiled.addresses)
    for number, step in enumerate(program.steps):
        if isinstance(step, LibraryCall):
            writer.call(f"function{number}", step)
        else:
            writer.line(f"launch({next(addresses)}, {dims.ctypes.data}, {', '.join(writer.given())})")
        writer.release(number)
    return writer.finish()


class _CallWriter:
    """Source of the function, and the names it uses."""

    def __init__(self, program: Program, layout: ProgramLayout, offsets: dict[Buffer, int], arena_bytes: int):
        self.program, self.layout, self.offsets = program, layout, offsets
        self.names = {
            "__name__": __name__, "ndarray": np.ndarray, "no_array": np.empty(0),
            "errstate": np.errstate, "adopt": adopt, "adopt_all": adopt_all,
        }
        self.inputs = [f"a{k}" for k in range(len(program.inputs))]
        self.name_of: dict[Buffer, str] = dict(zip(program.inputs, self.inputs))
        self.name_of |= {output: self.name_of[source] for output, source in program.aliases.items()}
        self.lines: list[str] = []
        self.last_use = _find_last_uses(program)
        if layout.arena:
            self.line(write_arena(arena_bytes, self.names))
        if layout.host_calls:
            self.names |= {"make_host": _make_host, "calls": list(layout.host_calls), "array": np.array}
            self.line("host = make_host(calls)")
            self.line("host_cell = array((id(host),))")
        later = _find_made(program)
        for buffer in layout.given:
            if buffer not in self.name_of and buffer not in later:
                self.line(f"{self.name(buffer)} = {self.allocator(buffer)}({self.kind(buffer)})")

    def line(self, text: str) -> None:
        self.lines.append(text)

    def name(self, buffer: Buffer) -> str:
        return self.name_of.setdefault(buffer, f"x{len(self.name_of)}")

    def allocator(self, buffer: Buffer) -> str:
        number, size = len(self.names), math.prod(map(int, buffer.shape))
        self.names[f"make{number}"] = choose_allocator(size * buffer.dtype.itemsize)
        return f"make{number}"

    def kind(self, buffer: Buffer) -> str:
        """Shape and dtype, as arguments."""
        number = len(self.names)
        self.names[f"shape{number}"] = tuple(map(int, buffer.shape))
        self.names[f"dtype{number}"] = buffer.dtype
        return f"shape{number}, dtype{number}"

    def given(self) -> list[str]:
        """What native steps get; an array that is still to be made is none of theirs."""
        names = [self.name_of.get(buffer, "no_array") for buffer in self.layout.given]
        return names + ["arena"] * bool(self.layout.arena) + ["host_cell"] * bool(self.layout.host_calls)

    def operand(self, buffer: Buffer) -> str:
        if buffer not in self.name_of:  # a temporary of the arena
            kind = self.kind(buffer)
            self.line(f"{self.name(buffer)} = ndarray({kind}, arena, {self.offsets[buffer]})")
        return self.name_of[buffer]

    def call(self, function: str, step: LibraryCall) -> None:
        self.names[function] = step.function
        call = f"{function}({', '.join(map(self.operand, step.inputs))})"
        kinds = [self.kind(buffer) for buffer in step.outputs]
        outputs = [self.name(buffer) for buffer in step.outputs]
        if len(outputs) == 1:
            call = f"{outputs[0]} = adopt({call}, {kinds[0]})"
        elif outputs:
            call = f"{', '.join(outputs)} = adopt_all({call}, ({', '.join(f'({kind})' for kind in kinds)}))"
        self.line(call)

    def release(self, number: int) -> None:
        """Frees the temporaries that step `number` was the last to use."""
        for buffer in self.layout.made:
            if self.last_use[buffer] == number:
                self.line(f"{self.name(buffer)} = no_array")

    def finish(self) -> Callable[..., list[np.ndarray]]:
        outputs = ", ".join(self.name_of[buffer] for buffer in self.program.outputs)
        body = [*(f"        {line}" for line in self.lines), f"        return [{outputs}]"]
        head = [f"def run({', '.join(self.inputs)}):", '    with errstate(all="ignore"):']
        exec(compile("\n".join([*head, *body]), "<jitcore call>", "exec"), self.names)
        return self.names["run"]


def _find_made(program: Program) -> set[Buffer]:
    """Buffers that a library call makes: nothing touches them before."""
    made, touched = set(), set(program.inputs)
    for step in program.steps:
        if isinstance(step, LibraryCall):
            made |= set(step.outputs) - touched - set(step.inputs)
        touched |= list_buffers([step])
    return made


def _find_last_uses(program: Program) -> dict[Buffer, int]:
    """Number of the last step that touches each buffer."""
    return {buffer: number for number, step in enumerate(program.steps) for buffer in list_buffers([step])}


# -- calls from native code ---------------------------------------------------------------------------------
def _make_host(calls: list[LibraryCall]) -> Callable[..., None]:
    """What the native steps of one run of a program call."""
    return functools.partial(_call_host, calls, {})


def _call_host(calls: list[LibraryCall], bound: dict, number: int, *addresses: int) -> None:
    """Runs library call `number` on the memory at these addresses, of its inputs and then its outputs.

    bound: the calls made so far in this run, by number and addresses, with the arrays there; loops that swap
    memory need few of them."""
    key = number, addresses
    found = bound.get(key)
    if found is None:
        call = calls[number]
        arrays = list(map(_view_memory, [*call.inputs, *call.outputs], addresses))
        count = len(call.inputs)
        found = bound[key] = functools.partial(call.function, *arrays[:count]), arrays[count:]
    run, outputs = found
    results = run()
    if len(outputs) == 1 and isinstance(results, np.ndarray | np.generic):
        results = (results,)
    for array, result in zip(outputs, results):
        array[...] = result


def _view_memory(buffer: Buffer, address: int) -> np.ndarray:
    shape = tuple(map(int, buffer.shape))
    size = buffer.dtype.itemsize
    for extent in shape:
        size *= extent
    return np.ndarray(shape, buffer.dtype, (ctypes.c_char * size).from_address(address))


def _render() -> str:
    """LLVM text of the call: `host(number, *addresses)`."""
    w = writing.RuntimeWriter()
    with w.function(f"i64 @{SYMBOL}(ptr %host, i64 %number, ptr %addresses, i64 %count)", None):
        status, gil = w.variable(RAISED), w.call("PyGILState_Ensure")
        arguments = w.call("PyTuple_New", w.add("%count", 1))
        w.require(w.compare("ne", arguments, "null", "ptr"), "leave")
        _put(w, arguments, 0, "%number")
        with w.loop(0, "%count") as k:
            _put(w, arguments, w.add(k, 1), w.item("%addresses", k, "i64"))
        answer = w.call("PyObject_CallObject", "%host", arguments)
        w.require(w.compare("ne", answer, "null", "ptr"), "drop")
        w.call("Py_DecRef", answer)
        w.store(0, status)
        w.go("drop")
        w.start_block("drop")
        w.call("Py_DecRef", arguments)
        w.go("leave")
        w.start_block("leave")
        w.call("PyGILState_Release", gil)
        w.do(f"ret i64 {w.load(status)}")
    return w.text()


def _put(w: RuntimeWriter, arguments: str, place: Operand, value: Operand) -> None:
    item = w.call("PyLong_FromLongLong", value)
    w.require(w.compare("ne", item, "null", "ptr"), "drop")
    w.call("PyTuple_SetItem", arguments, place, item)


@functools.cache
def _open_library() -> libraries.Library:
    library, _ = libraries.find_or_compile("host_calls", "", _render)
    return library


images.provide(SYMBOL, lambda symbol: _open_library().address(symbol))
