"""Random programs with numbers that may be None, and with generators, compiled, against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitcore
from jitcore.rewriter.control_flow.raising import is_refusal
from tests.fuzz.optional_programs import write_folds, write_program

ARGUMENTS = ((np.array([0.5, -1.0, 2.0, 0.25, 3.0, -0.5, 1.0, 0.125, 2.5, 1.5, -2.0, 0.0]), 12, 1),
             ([1, -2, 3, 0, 2, 1, 5, -1, 4, 2, 0, 3], 12, 0.5), (np.zeros(0), 0, 2))


def run(function: Any, arguments: tuple) -> str:
    try:
        return repr(function(*arguments))
    except Exception as error:
        if is_refusal(error):
            return ""
        return f"{type(error).__name__}: {error}"


def compare(seed: int, write: Callable = write_program) -> int:
    """How many calls were compiled."""
    source = write(seed)
    names: dict[str, Any] = {}
    exec(compile(source, f"<program {seed}>", "exec"), names)
    compiled = jitcore.autojit(names["f"], strict=True)
    count = 0
    for arguments in ARGUMENTS:
        for _ in range(2):
            found = run(compiled, arguments)
            assert found in ("", run(names["f"], arguments)), f"{source}\n{arguments}"
        count += found != ""
    return count


def test_some_programs():
    assert sum(map(compare, range(40))) >= 25  # else nothing is compared


def test_some_folds():
    assert sum(compare(seed, write_folds) for seed in range(30)) >= 70


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 2100, 100))
@pytest.mark.parametrize("write", [write_program, write_folds])
def test_many_programs(start, write):
    for seed in range(start, start + 100):
        compare(seed, write)
