"""How a compiled function is compared with the function itself."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import jitcore
from jitcore.autojitted import Options
from jitcore.autojitted.tiers.tuning import Tuning

TUNING = Tuning()


def tune(monkeypatch, **changes: Any) -> None:
    """Functions that are compiled from now on have another tuning."""
    *defaults, _ = Options.__new__.__defaults__
    monkeypatch.setattr(Options.__new__, "__defaults__", (*defaults, dataclasses.replace(TUNING, **changes)))


def check(function: Callable, *arguments: Any, **options: Any) -> Callable:
    """Calls the function plainly and compiled, twice each: results, types and arguments must agree.

    Returns: the compiled function."""
    options.setdefault("strict", True)
    compiled = jitcore.autojit(function, **options)
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    for _ in range(2):
        expected, found = function(*theirs), compiled(*ours)
        assert_same(expected, found)
        assert_same(list(theirs), list(ours))
    return compiled


def assert_same(expected: Any, found: Any) -> None:
    """Types, dtypes, shapes, values up to rounding, and which arrays are one object."""
    _assert_same(expected, found, {}, {})


def _assert_same(expected: Any, found: Any, seen: dict, seen_there: dict) -> None:
    assert type(expected) is type(found), (type(expected), type(found))
    if isinstance(expected, np.ndarray):
        assert seen.setdefault(id(expected), len(seen)) == seen_there.setdefault(id(found), len(seen_there))
    if isinstance(expected, (np.ndarray, np.generic, float, complex)):
        one, other = np.asarray(expected), np.asarray(found)
        assert one.dtype == other.dtype and one.shape == other.shape, (one, other)
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(found)
        for one, other in zip(expected, found):
            _assert_same(one, other, seen, seen_there)
    elif isinstance(expected, dict):
        assert list(expected) == list(found)
        for key in expected:
            _assert_same(expected[key], found[key], seen, seen_there)
    elif type(expected).__eq__ is object.__eq__ and hasattr(expected, "__dict__"):
        _assert_same(vars(expected), vars(found), seen, seen_there)
    else:
        assert expected == found
