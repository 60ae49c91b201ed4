"""Measures in a new process: `python -m benchmarks.fresh_process <module> <function> <argument>...`.

In: the name of a function of strings that returns what JSON can hold. Out: what it returns, from a process
that has imported that module and nothing else.
"""

from __future__ import annotations

import compileall
import functools
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measured import explain_error

_ROOT = Path(__file__).parent.parent


def run_fresh(
    function: Callable, *arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 600
) -> Any:
    """What `function(*arguments)` returns in a new process.

    Raises: NotImplementedError if a library lacks what it needs, RuntimeError if it fails otherwise."""
    compile_sources()
    command = [sys.executable, "-m", "benchmarks.fresh_process", function.__module__, function.__name__]
    done = subprocess.run([*command, *arguments], cwd=_ROOT, env={**os.environ, **(environment or {})},
                          capture_output=True, text=True, timeout=timeout)
    if done.returncode:  # it crashed
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(lines[-1])
    answer = json.loads(done.stdout.splitlines()[-1])
    if problem := answer.get("problem"):
        kind, _, reason = problem.partition(": ")
        raise (NotImplementedError if kind == "not available" else RuntimeError)(reason)
    return answer["result"]


@functools.cache
def compile_sources() -> None:
    """Writes the bytecode of jitcore's modules, as installing does: a process that runs from a checkout and
    writes none (`PYTHONDONTWRITEBYTECODE`) would compile its sources in each first call."""
    for name in ("jitcore", "jitcore.backends"):
        for folder in importlib.import_module(name).__path__:
            compileall.compile_dir(folder, quiet=2)


def main() -> None:
    module, function, *arguments = sys.argv[1:]
    try:
        answer = {"result": getattr(importlib.import_module(module), function)(*arguments)}
    except Exception as error:
        answer = {"problem": explain_error(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
