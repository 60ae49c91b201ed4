"""Runs a jaxpr on ndarrays with the NumPy implementations of its primitives.

In: a `ClosedJaxpr` and ndarrays. Out: ndarrays of the dtypes that the jaxpr declares. Nothing is compiled or
traced: eager control flow and the reference backend execute here.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from jitcore.core.jaxpr import ClosedJaxpr, DropVar, Literal, Var
from jitcore.core.trace import to_numpy


def run_jaxpr_numpy(closed_jaxpr: ClosedJaxpr, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a jaxpr for these arguments.

    Args:
        closed_jaxpr: any well-formed jaxpr, effects included (they happen in the order of the equations).
        args: one ndarray per invar, of its dtype.

    Returns: one ndarray per outvar, of its dtype. It may be an argument itself or a view of one."""
    with np.errstate(all="ignore"):
        return build_program(closed_jaxpr)(args)


def build_program(closed_jaxpr: ClosedJaxpr) -> NumpyProgram:
    """The `NumpyProgram` of a jaxpr, built once for each jaxpr object: a loop calls its body many times."""
    program = _programs.get(closed_jaxpr)
    if program is None:
        program = _programs[closed_jaxpr] = NumpyProgram(closed_jaxpr)
    return program


class NumpyProgram:
    """A jaxpr resolved to numbered slots, so that running it looks up no variable.

    Called with a sequence of ndarrays, returns a list of ndarrays. The caller silences floating-point
    warnings."""

    __slots__ = ("_slots", "_first_arg", "_num_args", "_steps", "_outs")

    def __init__(self, closed_jaxpr: ClosedJaxpr):
        jaxpr = closed_jaxpr.jaxpr
        values: list = [to_numpy(const) for const in closed_jaxpr.consts]
        slot_of: dict[Var, int] = {var: slot for slot, var in enumerate(jaxpr.constvars)}
        self._first_arg, self._num_args = len(values), len(jaxpr.invars)
        for var in jaxpr.invars:
            slot_of[var] = len(values)
            values.append(None)

        def find_slot(atom) -> int:
            if not isinstance(atom, Literal):
                return slot_of[atom]
            values.append(atom.to_numpy())
            return len(values) - 1

        self._steps: list[tuple] = []
        last_step_of_slot: dict[int, int] = {}
        for step, eqn in enumerate(jaxpr.eqns):
            reads = [find_slot(atom) for atom in eqn.invars]
            last_step_of_slot |= dict.fromkeys(reads, step)
            writes = []
            for var in eqn.outvars:
                slot = None
                if not isinstance(var, DropVar):
                    slot = slot_of[var] = len(values)
                    values.append(None)
                writes.append((slot, var.aval.dtype))
            primitive = eqn.primitive
            self._steps.append((primitive.impl, eqn.params, reads, writes, primitive.multiple_results, []))
        self._outs = [find_slot(atom) for atom in jaxpr.outvars]
        self._free_after_last_read(last_step_of_slot)
        self._slots = values

    def _free_after_last_read(self, last_step_of_slot: dict[int, int]) -> None:
        kept = set(self._outs)
        for slot, step in last_step_of_slot.items():
            if slot not in kept:
                self._steps[step][-1].append(slot)

    def __call__(self, args: Sequence[np.ndarray]) -> list[np.ndarray]:
        if len(args) != self._num_args:
            raise TypeError(f"the jaxpr takes {self._num_args} arguments, got {len(args)}")
        slots = self._slots.copy()
        slots[self._first_arg : self._first_arg + self._num_args] = args
        for impl, params, reads, writes, multiple_results, dead in self._steps:
            outs = impl(*[slots[slot] for slot in reads], **params)
            for (slot, dtype), out in zip(writes, outs if multiple_results else (outs,)):
                if slot is not None:
                    slots[slot] = np.asarray(out, dtype)
            for slot in dead:
                slots[slot] = None
        return [slots[slot] for slot in self._outs]


_programs: weakref.WeakKeyDictionary[ClosedJaxpr, NumpyProgram] = weakref.WeakKeyDictionary()
