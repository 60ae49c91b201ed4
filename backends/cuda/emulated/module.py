"""Modules: PTX that is loaded on a device, with memory for its variables, and the kernels in it."""

from __future__ import annotations

import ctypes
import re
from typing import NamedTuple

import numpy as np

from jitcore.backends.cuda.emulated import collectives, movement, ptx  # noqa: F401  the rules register themselves
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.machine_code import compile_text
from jitcore.backends.cuda.emulated.memory import Memory
from jitcore.backends.cuda.emulated.translate import RUNTIME, Body, Layout
from jitcore.concurrency import Lock

__all__ = ["Kernel", "Module"]

_lock = Lock()
_programs: dict[str, _Program] = {}


class _Program:
    """A PTX text, translated: what all devices of the process share."""

    def __init__(self, text: str):
        self.assembly = ptx.parse_ptx(text)
        self.layout = Layout(self.assembly)
        self.bodies = {name: Body(each, self.layout) for name, each in self.assembly.functions.items()}
        texts = [body.translate() for body in self.bodies.values()]
        declarations = set().union(*(body.declarations for body in self.bodies.values()))
        self.llvm_ir = "\n".join([RUNTIME, *sorted(declarations), *texts])
        self.engine = compile_text(self.llvm_ir)


class Kernel(NamedTuple):
    """Attributes: entry: address; parameters: name -> bytes; shared: name -> (offset, bytes) of static ones."""

    name: str
    module: Module
    entry: int
    parameters: dict[str, int]
    shared: dict[str, tuple[int, int]]
    suspends: bool
    max_threads: int


class Module:
    """PTX that a device has loaded. Attributes: kernels: their names."""

    def __init__(self, text: str, memory: Memory):
        with _lock:
            if text not in _programs:
                _programs[text] = _Program(text)
        self._program = program = _programs[text]
        self.kernels = [name for name, body in program.bodies.items() if body.function.is_kernel]
        variables = program.assembly.variables
        self.variables = {
            name: memory.allocate(variables[name].size, f"variable {name} of {variables[name].size} bytes",
                                  variables[name].space)
            for name in program.layout.variables
        }  # fmt: skip
        for name, allocation in self.variables.items():
            content = b"".join(self._encode(*value) for value in variables[name].initial)
            content = content.ljust(allocation.size, b"\0")
            ctypes.memmove(allocation.start, content, allocation.size)
        self.lines, self.local_bytes = program.assembly.lines, program.layout.local_bytes
        self.addresses = np.array([each.start for each in self.variables.values()], np.int64)

    def _encode(self, bits: int, text: str) -> bytes:
        """An element of an initial value: a number or the address of a variable, `0xFF00(name)` a byte of it."""
        literal = ptx.parse_literal(text, bits)
        if literal is None:
            mask, name, offset = re.fullmatch(r"(?:(0x\w+|generic)\()?([\w$]+)\)?(?:\+(\d+))?", text).groups()
            if name not in self.variables:
                raise DeviceError(f"an initial value is the address of {name}, which is no variable")
            literal = self.variables[name].start + int(offset or 0)
            if mask and mask != "generic":
                literal = (literal & int(mask, 0)) >> (int(mask, 0) & -int(mask, 0)).bit_length() - 1
        return (literal & (1 << bits) - 1).to_bytes(bits // 8, "little")

    def find_kernel(self, name: str) -> Kernel:
        if name not in self.kernels:
            raise DeviceError(f"no kernel {name}, only {', '.join(self.kernels)}")
        bodies, uses, body = self._program.bodies, set(), self._program.bodies[name]
        pending = [name]
        while pending:  # functions use shared variables too
            used = bodies[pending.pop()].uses - uses
            uses |= used
            pending += used & bodies.keys()
        shared = {each: self._program.layout.shared[each] for each in sorted(uses - bodies.keys())}
        entry = self._program.engine.get_function_address(name)
        function = body.function
        return Kernel(name, self, entry, function.parameters, shared, body.suspends, function.max_threads)

    def find_line(self, line: int) -> str:
        return f"PTX line {line}: {self.lines[line - 1].strip()}"
