"""Captured state: what functions change and read of it, against plain Python, call by call."""

from __future__ import annotations

import collections
import contextlib
import io
import linecache
import sys
import types
import warnings

import numpy as np
import pytest

import jitcore
from tests.autojit.state_programs import COMPILED, PROGRAMS


def load(name: str, source: str) -> types.ModuleType:
    path = f"<state program {name}>"
    linecache.cache[path] = len(source), None, source.splitlines(True), path
    module = sys.modules[path] = types.ModuleType(path)
    module.np, module.__file__ = np, path
    exec(compile(source, path, "exec"), vars(module))
    return module


def note(value, seen: dict):
    """What can be seen of a value: types, contents, and which objects are one."""
    if isinstance(value, (bool, int, float, str, np.generic, type(None))):
        return type(value).__name__, repr(value)
    if id(value) in seen:
        return "object", seen[id(value)][0]
    seen[id(value)] = len(seen), value
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(note(key, seen), note(one, seen)) for key, one in value.items()]
    if isinstance(value, (list, tuple, set, collections.deque)):
        return type(value).__name__, [note(one, seen) for one in value]
    held = getattr(value, "__dict__", None)
    if held is None or isinstance(value, types.ModuleType):
        return type(value).__name__, getattr(value, "__name__", "")
    shown = {name: one for name, one in held.items() if name[:2] != "__" and not callable(one)}
    return type(value).__name__, note(shown, seen)


def observe(module: types.ModuleType, function, step: str):
    """What a call returns, prints and raises, what its module holds then, and which arrays share memory."""
    if step[0] == "!":
        exec(step[1:], vars(module))
        return None
    arguments = eval(f"({step},)", vars(module))
    printed, seen = io.StringIO(), {}
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = note(function(*arguments), seen)
        except Exception as error:
            result = type(error), str(error)
    variables = {key: value for key, value in vars(module).items() if key not in ("f", "np") and key[0] != "_"}
    notes = result, note(arguments, seen), note(variables, seen)
    arrays = [entry for entry in seen.values() if isinstance(entry[1], np.ndarray)]
    shared = [(i, j) for i, one in arrays for j, other in arrays if i < j and np.shares_memory(one, other)]
    return *notes, shared, printed.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_state_is_that_of_python(name):
    source, steps = PROGRAMS[name]
    modules = load(name, source), load(name, source)
    compiled = jitcore.autojit(modules[1].f, strict=name in COMPILED)
    for number, step in enumerate(steps):
        expected, found = observe(modules[0], modules[0].f, step), observe(modules[1], compiled, step)
        assert expected == found, f"call {number}: {step}"


class Slotted:
    __slots__ = ("v",)

    def __init__(self):
        self.v = 1.0


class Plain:
    def __init__(self):
        self.v = 1.0


SLOTTED, PLAIN = Slotted(), Plain()


@pytest.mark.parametrize("function, text", [
    (lambda x: x * SLOTTED.v, "SLOTTED is of type tests.autojit.test_state.Slotted, which has __slots__"),
    (lambda x: f"{PLAIN}", "the text of an object of type Plain depends on its place in memory"),
    (lambda x: hash(PLAIN) * x, "hash() of an object depends on its place in memory"),
    (lambda x: PLAIN.v is x, "whether two values of type float are one object depends on the caller"),
])
def test_why_state_is_left_to_python(function, text):
    made = jitcore.autojit(function, strict=True)
    with pytest.raises(jitcore.errors.NotTraceable) as raised:
        made(2.0)
    assert text in str(raised.value)
