"""Code is the same as before, unless somebody says what has changed: `python -m tests.replay --keep`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import replay


@pytest.mark.parametrize("kind", replay.KINDS)
def test_texts_of_programs_are_those_that_are_kept(kind):
    """In a process of its own, whose processor is another one, and whose sets have another order each time."""
    command = [sys.executable, "-m", "tests.replay", "--kind", kind]
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-1500:]}"


def test_what_differs_is_named():
    kept = {"a": {"llvm": "1", "ptx": "2"}, "b": {"llvm": "1"}, "c": {"llvm": "3"}}
    found = {"a": {"llvm": "1", "ptx": "3"}, "b": {"llvm": "1"}, "d": {"llvm": "3"}}
    assert replay.compare(kept, found) == ["a: ptx", "c: llvm", "d: llvm"]
    assert replay.compare(kept, kept) == []
