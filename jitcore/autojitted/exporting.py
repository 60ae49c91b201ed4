"""A traced function as a function that Numba's nopython code may call.

In: examples of the arguments. Out: a function made by `numba.njit` of the same parameters: it checks shapes,
calls the program, writes what the user's function would have written into the caller's arrays and returns
what it would have returned. Where plain Python would have to run a call, it raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.reading import NumberPolicy, Reader, Unreadable
from jitcore.autojitted.inputs.specs import ArraySpec, IdentitySpec, ScalarSpec, Spec, StaticSpec
from jitcore.autojitted.recording.recorder import Recording, record_call
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.call_facts import ABSENT
from jitcore.dispatch.program import Program
from jitcore.jitted.numba_export import NativeCaller
from jitcore.process.lazy import LazyModule

numba = LazyModule("numba")


def export_function(owner: Any, values: Sequence) -> Any:
    """Args: an `AutojitFunction`; an example for each parameter.

    Raises: NotTraceable; NotImplementedError for what Numba's code cannot pass, return or change."""
    # An optional package.
    recording, specs = _record(owner, values)
    donated, options = (False,) * len(recording.inputs), owner.options.of_program
    program = Program(recording.traced, donated, options, find_backend())
    writer = _Writer(owner, recording, specs, program)
    writer.write()
    return writer.make_function(owner.parameters.names, tuple(map(numba.typeof, map(_as_argument, values))))


def _as_argument(value: Any) -> Any:
    """Arrays of any layout are taken."""
    # An optional package.
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
            specs = reader.read_all(names, values)
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


class _Writer(NativeCaller):
    """The source of an exported function."""

    def __init__(self, owner: Any, recording: Recording, specs: Sequence[Spec], program: Program):
        super().__init__(program, recording.traced.jaxpr.in_avals, owner.function.__qualname__)
        self.owner, self.recording, self.specs = owner, recording, specs
        self.arguments: dict[int, str] = {}  # place -> the parameter
        for name, spec in zip(owner.parameters.names, specs):
            if not isinstance(spec, StaticSpec):
                self.arguments[len(self.arguments)] = name
        self.captured = self._read_captured()
        self.kept += self.captured.values()

    def write(self) -> None:
        effects = self.recording.effects
        if effects.writes:
            raise NotImplementedError(f"{self.title} changes a container or a variable besides arrays")
        self._check_arguments()
        self.write_call(lambda number: self._write_input(self.recording.inputs[number]))
        if effects.failed is not None:
            self._raise_failures(effects.failed)
        self._write_arrays()
        for line in (*effects.result, f"return {effects.value}"):
            self.lines.append(self._translate(line))

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

    def _write_input(self, place: int) -> str:
        """The variable of an input, or its address."""
        if place in self.captured:
            return str(self.captured[place].ctypes.data)
        name, spec = self.arguments[place], self.recording.places[place]
        if isinstance(spec, ScalarSpec):
            self.lines.append(f"v{place} = np.array({name})")
        else:
            self.lines.append(f"v{place} = np.ascontiguousarray({name}{spec.turn})")
        return f"v{place}"

    def _raise_failures(self, failed: int) -> None:
        kinds = {type(error): str(error) for error in self.recording.failures}
        kind, text = next(iter(kinds.items())) if len(kinds) == 1 else (RuntimeError, "")
        if kind not in _NUMBA_ERRORS or not text:
            kind, text = RuntimeError, "; ".join(f"{one.__name__}: {own}" for one, own in kinds.items())
        text = f"{self.title}: {text}"
        self.lines.append(f"if o{failed}[()]: raise {kind.__name__}({text!r})")

    def _write_arrays(self) -> None:
        for place, output in self.recording.effects.written.items():
            turn = self.recording.places[place].turn
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
        scalars = self.recording.effects.scalars
        line = re.sub(r"\bouts\[(\d+)\]",
                      lambda found: f"o{found[1]}{'[()]' if int(found[1]) in scalars else ''}", line)
        return re.sub(r"\bx(\d+)\b", lambda match: self.arguments.get(int(match[1]), match[0]), line)


_NUMBA_ERRORS = (IndexError, ValueError, ZeroDivisionError, OverflowError, RuntimeError, TypeError, KeyError,
                 AssertionError)


def _make_overlap() -> Any:
    """Whether the memory between the first and the last element of two arrays meets."""
    # An optional package.
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
