"""Modules: PTX that is loaded on a device, with memory for its variables, and the kernels in it."""

from __future__ import annotations

import ctypes
import re
import weakref
from typing import NamedTuple

import numpy as np

from jitcore.backends.cuda.emulated import collectives, movement, ptx  # noqa: F401  for their rules
from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.machine_code import compile_text
from jitcore.backends.cuda.emulated.memory import Memory
from jitcore.backends.cuda.emulated.translate import RUNTIME, Body, Layout
from jitcore.process.concurrency import Lock

_lock = Lock()
#: Those that somebody has loaded; each takes some megabytes.
_programs: weakref.WeakValueDictionary[str, _Program] = weakref.WeakValueDictionary()


class _Program:
    """A PTX text, translated: what all devices of the process share."""

    def __init__(self, text: str):
        self.assembly = ptx.parse_ptx(text)
        self.layout = Layout(self.assembly)
        self.bodies = {name: Body(each, self.layout) for name, each in self.assembly.functions.items()}
        texts = [body.translate() for body in self.bodies.values()]
        declarations = set().union(*(body.declarations for body in self.bodies.values()))
        self.llvm_ir = "\n".join([RUNTIME, *sorted(declarations), *texts])
        self.engine = compile_text(self.llvm_ir, self)


class Kernel(NamedTuple):
    """entry: its address; shared: name -> (offset, bytes) of the shared variables that it uses."""

    module: Module
    function: ptx.Function
    entry: int
    shared: dict[str, tuple[int, int]]


class Module:
    """PTX that a device has loaded, for as long as somebody has it or one of its kernels.

    Attributes: kernels: their names; addresses: of variables."""

    def __init__(self, text: str, memory: Memory):
        with _lock:
            program = _programs.get(text) or _programs.setdefault(text, _Program(text))
        self._program = program
        self.kernels = [name for name, function in program.assembly.functions.items() if function.is_kernel]
        self.lines, self.local_bytes = program.assembly.lines, program.layout.local_bytes
        variables = [program.assembly.variables[name] for name in program.layout.variables]
        names = [f"variable {each.name} of {each.size} bytes" for each in variables]
        places = [memory.allocate(each.size, name, each.space) for each, name in zip(variables, names)]
        self.addresses = np.array(places, np.int64)
        for place in places:
            weakref.finalize(self, memory.free, place).atexit = False
        for variable, place in zip(variables, places):
            content = b"".join(self._encode(*value) for value in variable.initial)
            ctypes.memmove(place, content.ljust(variable.size, b"\0"), variable.size)

    def _encode(self, bits: int, text: str) -> bytes:
        """An element of an initial value: a number or an address, of which `0xFF00(name)` is a byte."""
        number, variables = ptx.parse_literal(text, bits), self._program.layout.variables
        if number is None:
            pattern = r"(?:(0x\w+|generic)\()?([\w$]+)\)?(?:\+(\d+))?"
            mask, name, offset = re.fullmatch(pattern, text).groups()
            if name not in variables:
                raise DeviceError(f"an initial value is the address of {name}, which is no variable")
            number = int(self.addresses[variables[name]]) + int(offset or 0)
            if mask and mask != "generic":
                number = (number & int(mask, 0)) // (int(mask, 0) & -int(mask, 0))
        return (number & (1 << bits) - 1).to_bytes(bits // 8, "little")

    def find_kernel(self, name: str) -> Kernel:
        if name not in self.kernels:
            raise DeviceError(f"no kernel {name}, only {', '.join(self.kernels)}")
        bodies, uses, pending = self._program.bodies, set(), {name}
        while pending:  # functions use shared variables too
            used = bodies[pending.pop()].uses - uses
            uses |= used
            pending |= used & bodies.keys()
        shared = {each: self._program.layout.shared[each] for each in sorted(uses - bodies.keys())}
        entry = self._program.engine.get_function_address(name)
        return Kernel(self, bodies[name].function, entry, shared)

    def find_line(self, line: int) -> str:
        return f"PTX line {line}: {self.lines[line - 1].strip()}"
