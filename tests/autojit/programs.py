"""Programs that are run plainly and compiled: how they are written down, and how results are compared.

A file of programs is loaded twice, so that what the plain and the compiled functions do to variables of their
modules stays apart, and can be compared too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def R(*shape, seed=0):  # noqa: N802  short, as it stands in every line of the tables
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def I(low, high, *shape, seed=0):  # noqa: E743, N802
    """Integers."""
    return np.random.default_rng(seed).integers(low, high, shape)


def program(*inputs: Callable[[], Any]) -> Callable[[Callable], Callable]:
    """Decorator. inputs: functions that make the arguments of a call."""

    def note(function: Callable) -> Callable:
        function.inputs = inputs
        return function

    return note


def load(path: Path) -> types.ModuleType:
    """A new module of a file's."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list_programs(path: Path) -> list[str]:
    return [name for name, value in vars(load(path)).items() if hasattr(value, "inputs")]


def run(function: Callable, arguments: tuple) -> tuple[Any, BaseException | None, str]:
    """(result, exception, printed text) of a call."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        try:
            return function(*arguments), None, printed.getvalue()
        except Exception as error:
            return None, error, printed.getvalue()


def read_variables(module: types.ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items()
            if isinstance(value, (int, float, list, dict, np.ndarray)) and not name.startswith("_")}


def list_sharing(value: Any) -> list[tuple[int, int]]:
    """Which of the arrays that can be reached share memory."""
    found: list[np.ndarray] = []
    _collect(value, found, set())
    return [(i, j) for i, one in enumerate(found) for j in range(i) if np.shares_memory(one, found[j])]


def _collect(value: Any, found: list, seen: set) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        found.append(value)
    for child in _list_children(value):
        _collect(child, found, seen)


def _list_children(value: Any) -> list:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return list(vars(value).values()) if _is_instance(value) else []


def _is_instance(value: Any) -> bool:
    return hasattr(value, "__dict__") and type(value).__module__.startswith("user_programs")


def assert_alike(expected: Any, found: Any, seen: tuple[dict, dict] | None = None, path: str = "") -> None:
    """Types, dtypes, shapes, which objects are one, values; floats up to rounding."""
    seen = ({}, {}) if seen is None else seen
    assert type(expected).__name__ == type(found).__name__, (path, expected, found)
    if isinstance(expected, (np.ndarray, list, dict)) or _is_instance(expected):
        places = [known.setdefault(id(value), len(known)) for known, value in zip(seen, (expected, found))]
        assert places[0] == places[1], (path, "is another object")
    if isinstance(expected, (np.ndarray, np.generic, float, complex)):
        _assert_close(expected, found, path)
    elif isinstance(expected, (list, tuple, dict)) or _is_instance(expected):
        pairs = list(zip(_list_children(expected), _list_children(found), strict=True))
        if isinstance(expected, dict):
            assert list(expected) == list(found), path
        for place, pair in enumerate(pairs):
            assert_alike(*pair, seen, f"{path}[{place}]")
    elif not callable(expected) and type(expected).__eq__ is not object.__eq__:
        assert expected == found, path


def _assert_close(expected: Any, found: Any, path: str) -> None:
    one, other = np.asarray(expected), np.asarray(found)
    assert (one.dtype, one.shape) == (other.dtype, other.shape), path
    if isinstance(expected, np.ndarray):
        assert expected.flags.writeable == found.flags.writeable, path
    if one.dtype.kind not in "fc":
        np.testing.assert_array_equal(other, one, path)
        return
    tolerance = {2: 2e-3, 4: 2e-6}.get(one.real.dtype.itemsize, 1e-12)
    finite = np.abs(one[np.isfinite(one)])
    scale = finite.max() if finite.size == one.size > 0 else 0
    np.testing.assert_allclose(other, one, rtol=tolerance, atol=0.1 * tolerance * float(scale), err_msg=path)
