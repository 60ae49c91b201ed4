"""The run time of compiled loops: what the code of a call names, and machine code from disk.

In: a program as it lies on disk. Out: its function. Programs of Python's numbers, and of lists of these, do
without NumPy in a process that has not loaded it: that takes 70 ms.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import FunctionType
from typing import Any

from jitcore.dispatch.call_facts import ABSENT, FLAGS, tell_nothing
from jitcore.process import lazy, lists
from jitcore.process.generated import compile_function
from jitcore.process.versions import VersionGuard
from jitcore.scripts.gates import DECLINED
from jitcore.scripts.regions import FromDisk

np = lazy.LazyModule("numpy")
generated_calls = lazy.LazyModule("jitcore.dispatch.generated_calls")  # which needs NumPy

__all__ = ["ABSENT", "ARRAYS", "ClassGuard", "define"]


def raise_interruption(error: BaseException) -> None:
    from jitcore.core.source import raise_interruption  # which is rarely needed

    raise_interruption(error)


def decline(*arguments: Any) -> Any:
    return DECLINED


def overlap_not(*arrays: Any) -> bool:
    """Of arrays of lists, each of which has memory of its own."""
    return False


def copy_to(target: ctypes.Array, source: ctypes.Array) -> None:
    ctypes.memmove(target, source, ctypes.sizeof(target))


#: Stands for the state of NumPy's errors, where there is none.
_state: ContextVar = ContextVar("jitcore.scripts.state", default=None)
#: What only code of programs names, and asks of arrays, that need NumPy.
ARRAYS = frozenset(("np", "ndarray", "array", "settle", "tolist", "strides", "transpose", "shape",
                    "flags", "ndim"))
_NAMES = {"MISS": DECLINED, "ABSENT": ABSENT, "new": object.__new__, "read_state": _state.get,
          "silent": [_state.get()], "raise_interruption": raise_interruption, "plain": decline,
          "fail": decline, "copyto": copy_to, "overlaps": overlap_not, "any_overlap": overlap_not}
#: What packs lists where there is no NumPy.
_CELLS = {lists.pack: lists.pack_cells, lists.pack_text: lists.pack_text_cells}


def list_names(has_arrays: bool) -> dict[str, Any]:
    """What the code of calls names. has_arrays: whether arrays are NumPy's."""
    if not has_arrays:
        return _NAMES
    names = "read_state", "silent", "is_silent", "overlaps", "any_overlap", "settle"
    return {**_NAMES, "np": np, "ndarray": np.ndarray, "array": np.array, "copyto": np.copyto,
            **{name: getattr(generated_calls, name) for name in names}}


class ClassGuard(VersionGuard):
    """Whether a class has the variables that it had when this was made."""

    def __init__(self, kind: type):
        super().__init__(kind)
        self.found = [dict(vars(base)) for base in self.mro]

    def is_same(self) -> bool:
        return all(map(_holds, self.mro, self.found))


def _holds(kind: type, found: dict[str, Any]) -> bool:
    """Whether the variables of a class are the same objects."""
    now = vars(kind)
    return now.keys() == found.keys() and all(now[name] is value for name, value in found.items())


def find_runtime(program: FromDisk) -> Any:
    return importlib.import_module(program.runtime)


def define(program: FromDisk, constants: list) -> Callable:
    """The function of a program."""
    has_arrays = program.needs_numpy or lazy.is_loaded("numpy")
    if not has_arrays:
        constants = [partial(_CELLS.get(one.func, one.func), *one.args) if isinstance(one, partial) else one
                     for one in constants]
    names = list_names(has_arrays)
    names = {**names, "run": open_run(program, has_arrays),
             "is_known": make_check(program, constants, names["silent"], has_arrays)}
    body = "".join(f"        {line}\n" for line in program.lines)
    outer = "".join(f"{key}, " for key in names)
    numbered = "".join(f"c{k}, " for k in range(len(constants)))
    source = f"def make({outer}{numbered}):\n    def call({program.arguments}):\n{body}\n    return call\n"
    return compile_function(source, "make", __name__, "")(*names.values(), *constants)


def make_check(program: FromDisk, constants: list, silent: list, has_arrays: bool) -> Callable[..., int]:
    """What knows calls by native code. silent: the state of errors in which it does."""
    state = generated_calls.state_variable if has_arrays else _state
    codes = [(constants[function], constants[code]) for function, code in program.codes]
    own = [(function, code) for function, code in codes if type(function) is not FunctionType]
    if state is None or any(function.__code__ is not code for function, code in own):
        return tell_nothing
    found = find_runtime(program).make_check(program.arrays, FLAGS, [one for one in codes if one not in own],
                                             (state, silent), has_arrays)
    return found or tell_nothing


def open_run(program: FromDisk, has_arrays: bool) -> Callable:
    """The function of the program's inputs. Raises: LookupError."""
    run = find_runtime(program).open_program(program.stored, program.scalars, has_arrays)
    if program.consts:
        run = partial(run, *program.consts)
    kept = program.kept
    return run if kept is None else lambda *values: run(*[values[i] for i in kept])
