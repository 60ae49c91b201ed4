"""The run time of compiled loops: what the code of a call names, and machine code from disk."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from jitcore.dispatch.generated_calls import (ABSENT, FLAGS, any_overlap, is_silent, overlaps, read_state,
                                              settle, silent, state_variable, tell_nothing)
from jitcore.process.generated import compile_function
from jitcore.process.versions import VersionGuard
from jitcore.scripts.gates import DECLINED
from jitcore.scripts.regions import FromDisk

__all__ = ["ABSENT", "ClassGuard", "define"]


def raise_interruption(error: BaseException) -> None:
    from jitcore.core.source import raise_interruption  # which is rarely needed

    raise_interruption(error)


def decline(*arguments: Any) -> Any:
    return DECLINED


_NAMES = {"MISS": DECLINED, "ABSENT": ABSENT, "np": np, "ndarray": np.ndarray, "array": np.array,
          "copyto": np.copyto, "new": object.__new__, "read_state": read_state, "silent": silent,
          "is_silent": is_silent, "raise_interruption": raise_interruption, "overlaps": overlaps,
          "any_overlap": any_overlap, "settle": settle, "plain": decline, "fail": decline}


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


def define(program: FromDisk, constants: list) -> Callable:
    """The function of a program."""
    names = {**_NAMES, "run": open_run(program), "is_known": make_check(program, constants)}
    body = "".join(f"        {line}\n" for line in program.lines)
    outer = "".join(f"{key}, " for key in names)
    numbered = "".join(f"c{k}, " for k in range(len(constants)))
    source = f"def make({outer}{numbered}):\n    def call({program.arguments}):\n{body}\n    return call\n"
    return compile_function(source, "make", __name__, "")(*names.values(), *constants)


def make_check(program: FromDisk, constants: list) -> Callable[..., int]:
    """What knows calls by native code."""
    runtime = importlib.import_module(program.runtime)
    codes = [(constants[function], constants[code]) for function, code in program.codes]
    own = [(function, code) for function, code in codes if type(function) is not FunctionType]
    if state_variable is None or any(function.__code__ is not code for function, code in own):
        return tell_nothing
    found = runtime.make_check(program.arrays, FLAGS, [one for one in codes if one not in own],
                               (state_variable, silent))
    return found or tell_nothing


def open_run(program: FromDisk) -> Callable:
    """The function of the program's inputs. Raises: LookupError."""
    run = importlib.import_module(program.runtime).open_program(program.stored, program.scalars)
    if program.consts:
        run = partial(run, *program.consts)
    kept = program.kept
    return run if kept is None else lambda *values: run(*[values[i] for i in kept])
