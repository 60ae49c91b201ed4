"""A traced function as a function that Numba's nopython code may call.

In: examples of the arguments. Out: a function made by `numba.njit` of the same parameters: it checks shapes,
calls the program, writes what the user's function would have written into the caller's arrays and returns
what it would have returned. Where plain Python would have to run a call, it raises.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.reading import Reader, Unreadable
from jitcore.autojitted.inputs.specs import (
    ABSENT,
    ArraySpec,
    IdentitySpec,
    NumberPolicy,
    ScalarSpec,
    Spec,
    StaticSpec,
)
from jitcore.autojitted.recording.recorder import Recording, record_call
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.program import Program

_ALIGNMENT = 64


def export_function(owner: Any, values: Sequence) -> Any:
    """Args: an `AutojitFunction`; an example for each parameter.

    Raises: NotTraceable; NotImplementedError for what Numba's code cannot pass, return or change."""
    # An optional package.
    import numba

    recording, specs = _record(owner, values)
    donated, options = (False,) * len(recording.inputs), owner.options.of_program
    program = Program(recording.traced, donated, options, find_backend())
    writer = _Writer(owner, recording, specs, program)
    source = writer.write()
    exec(compile(source, "<jitcore njit>", "exec"), writer.names)
    made = numba.njit([tuple(map(numba.typeof, map(_as_argument, values)))])(writer.names["exported"])
    made.__dict__["jitcore_keeps"] = writer.kept
    return made


def _as_argument(value: Any) -> Any:
    """Arrays of any layout are taken."""
    # An optional package.
    import numba

    if not isinstance(value, np.ndarray):
        return value
    is_read_only = not value.flags.writeable
    return _Typed(numba.types.Array(numba.from_dtype(value.dtype), value.ndim, "A", is_read_only))


class _Typed:
    """What `numba.typeof` gives a known type."""

    def __init__(self, numba_type: Any):
        self._numba_type_ = numba_type


def _record(owner: Any, values: Sequence) -> tuple[Recording, list[Spec]]:
    """Traces with numbers as inputs, apart from those whose values are needed."""
    names = owner.parameters.names
    policy = NumberPolicy(owner.options.static_argnames, names)
    while True:
        reader, origins = Reader(policy.is_static), []
        try:
            specs = [reader.read(value, (name,)) for name, value in zip(names, values)]
        except Unreadable as problem:
            raise NotImplementedError(f"{owner.function.__qualname__}: {problem}") from None
        for name, spec in zip(names, specs):
            if not isinstance(spec, (ArraySpec, ScalarSpec, StaticSpec)):
                raise NotImplementedError(f"{name} is no array and no number: Numba's code cannot pass it")
        before = policy.pinned
        try:
            return record_call(owner.function, owner.parameters.call, specs, reader, origins), specs
        except Exception:
            policy.pin(origins)
            if policy.pinned == before:
                raise


class _Writer:
    """The source of an exported function.

    Attributes:
        names: what the source refers to; kept: what has to live as long as the function."""

    def __init__(self, owner: Any, recording: Recording, specs: Sequence[Spec], program: Program):
        self.owner, self.recording, self.specs, self.program = owner, recording, specs, program
        self.title = owner.function.__qualname__
        self.names: dict[str, Any] = {"np": np, "__name__": __name__}
        self.kept: list[Any] = []
        self.lines: list[str] = []
        self.arguments: dict[int, str] = {}  # place -> the parameter
        for name, spec in zip(owner.parameters.names, specs):
            if not isinstance(spec, StaticSpec):
                self.arguments[len(self.arguments)] = name
        self.captured = self._read_captured()

    def write(self) -> str:
        effects = self.recording.effects
        if effects.writes:
            raise NotImplementedError(f"{self.title} changes a container or a variable besides arrays")
        self._check_arguments()
        self._call()
        if effects.failed is not None:
            self._raise_failures(effects.failed)
        self._write_arrays()
        for line in (*effects.result, f"return {effects.value}"):
            self.lines.append(self._translate(line))
        parameters = ", ".join(self.owner.parameters.names)
        return f"def exported({parameters}):\n" + "".join(f"    {line}\n" for line in self.lines)

    def _read_captured(self) -> dict[int, np.ndarray]:
        """Captured arrays, which are read and written where they are, and numbers as they are now."""
        found: dict[int, np.ndarray] = {}
        place = len(self.arguments)
        for source, spec in self.recording.captures:
            if isinstance(spec, (StaticSpec, IdentitySpec)):
                continue
            value = eval(source.read.format(owner="owner"), {"owner": source.owner, "ABSENT": ABSENT})
            if not isinstance(spec, (ArraySpec, ScalarSpec)):
                raise NotImplementedError(f"{self.title} reads a captured {type(value).__name__}")
            if isinstance(spec, ArraySpec) and not spec.is_contiguous:
                raise NotImplementedError(f"{self.title} reads a captured array that is not C-contiguous")
            found[place] = value if isinstance(spec, ArraySpec) else np.asarray(value, spec.dtype)
            place += 1
        return found

    def _check_arguments(self) -> None:
        for name, spec in zip(self.owner.parameters.names, self.specs):
            if isinstance(spec, ArraySpec):
                text = f"{self.title} was compiled for {name} of shape {spec.shape}"
                self.lines.append(f"if {name}.shape != {spec.shape}: raise ValueError({text!r})")
            elif isinstance(spec, StaticSpec) and spec.value is not None:
                text = f"{self.title} was compiled for {name} = {spec.value!r}"
                self.lines.append(f"if {name} != {spec.value!r}: raise ValueError({text!r})")
        written = [self.arguments[p] for p in self.recording.effects.written if p in self.arguments]
        arrays = [name for place, name in self.arguments.items()
                  if isinstance(self.recording.places[place], ArraySpec)]
        if written and len(arrays) > 1:
            self.names["meet"] = _make_overlap()
            text = f"{self.title} was compiled for arrays that do not share memory"
            pairs = {frozenset((one, other)) for one in written for other in arrays if one != other}
            for one, other in sorted(map(sorted, pairs)):
                self.lines.append(f"if meet({one}, {other}): raise ValueError({text!r})")

    def _call(self) -> None:
        """Lines that call the program; its outputs are o0, o1, ..."""
        recording, program = self.recording, self.program
        consts, avals = [var.aval for var in program.traced.jaxpr.constvars], recording.traced.jaxpr.in_avals
        all_avals = [*consts, *avals]
        find = getattr(program.executable, "native_call", None)
        call = find([all_avals[i] for i in program.kept]) if find else None
        if call is None:
            raise NotImplementedError(f"{self.title} calls Python while it runs: Numba cannot call it")
        pointers = []
        for i in program.kept:
            if i < len(consts):
                self.kept.append(np.ascontiguousarray(program.const_values[i]))
                pointers.append(str(self.kept[-1].ctypes.data))
            else:
                pointers.append(self._write_input(recording.inputs[i - len(consts)]))
        for k, (shape, dtype) in enumerate(call.outputs):
            self.names[f"dtype{k}"] = dtype
            self.lines.append(f"o{k} = np.empty({shape}, dtype{k})")
            pointers.append(f"o{k}.ctypes.data")
        if call.arena_bytes:
            self.lines.append(f"arena = np.empty({call.arena_bytes + _ALIGNMENT}, np.uint8)")
            pointers.append(f"(arena.ctypes.data + {_ALIGNMENT - 1}) // {_ALIGNMENT} * {_ALIGNMENT}")
        self.lines.append(f"table = np.empty({max(len(pointers), 1)}, np.int64)")
        self.lines += [f"table[{i}] = {pointer}" for i, pointer in enumerate(pointers)]
        self.lines.append(f"entry(table.ctypes.data, {call.dims.ctypes.data})")
        # The arrays must live until the entry point has returned: their sizes are read behind the call.
        alive = [name[:-12] for name in pointers if re.fullmatch(r"v\d+\.ctypes\.data", name)] + ["table"]
        alive += ["arena"] if call.arena_bytes else []
        self.lines.append(f"alive = {' + '.join(f'{name}.size' for name in alive)}")
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(call.address)
        self.names["entry"] = entry
        self.kept += [call, entry, *self.captured.values()]

    def _write_input(self, place: int) -> str:
        """The address of an input."""
        if place in self.captured:
            return str(self.captured[place].ctypes.data)
        name, spec = self.arguments[place], self.recording.places[place]
        if isinstance(spec, ScalarSpec):
            self.lines.append(f"v{place} = np.array({name})")
        else:
            self.lines.append(f"v{place} = np.ascontiguousarray({name}{'.T' if spec.is_fortran else ''})")
        return f"v{place}.ctypes.data"

    def _raise_failures(self, failed: int) -> None:
        kinds = {type(error): str(error) for error in self.recording.failures}
        kind, text = next(iter(kinds.items())) if len(kinds) == 1 else (RuntimeError, "")
        if kind not in _NUMBA_ERRORS or not text:
            kind, text = RuntimeError, "; ".join(f"{one.__name__}: {own}" for one, own in kinds.items())
        text = f"{self.title}: {text}"
        self.lines.append(f"if o{failed}[()]: raise {kind.__name__}({text!r})")

    def _write_arrays(self) -> None:
        for place, output in self.recording.effects.written.items():
            turn = ".T" if self.recording.places[place].is_fortran else ""
            if place in self.captured:
                raise NotImplementedError(f"{self.title} changes a captured array: pass it as an argument")
            self.lines.append(f"{self.arguments[place]}{turn}[...] = o{output}")

    def _translate(self, line: str) -> str:
        """A line of `results` in Numba's Python."""
        for name in set(re.findall(r"\bc\d+\b", line)):
            value = self.recording.effects.constants.values[int(name[1:])]
            if value is not None and type(value) not in (bool, int, float, complex, str):
                what = type(value).__name__.lower()
                raise NotImplementedError(f"{self.title} returns a {what}, which Numba's code cannot have")
            line = re.sub(rf"\b{name}\b", repr(value), line)
        if re.search(r"\b(list|dict|set|new)\(", line):
            raise NotImplementedError(f"{self.title} returns a container, which Numba's code cannot have")
        line = re.sub(r"\bouts\[(\d+)\]", r"o\1", line).replace(".item()", "[()]")
        return re.sub(r"\bx(\d+)\b", lambda match: self.arguments.get(int(match[1]), match[0]), line)


_NUMBA_ERRORS = (IndexError, ValueError, ZeroDivisionError, OverflowError, RuntimeError, TypeError, KeyError,
                 AssertionError)


def _make_overlap() -> Any:
    """Whether the memory between the first and the last element of two arrays meets."""
    # An optional package.
    import numba

    @numba.njit
    def ends(x):
        low = high = x.ctypes.data
        for extent, stride in zip(x.shape, x.strides):
            if stride > 0:
                high += (extent - 1) * stride
            else:
                low += (extent - 1) * stride
        return low, high + x.itemsize

    @numba.njit
    def meet(x, y):
        if x.size == 0 or y.size == 0:
            return False
        low, high = ends(x)
        least, most = ends(y)
        return low < most and least < high

    return meet
