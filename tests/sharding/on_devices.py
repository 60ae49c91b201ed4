"""Runs tables of programs on eight virtual devices, in a process of its own.

In: a module with `PROGRAMS`, functions of (jax or jitcore, its numpy) for both of which they shall give the same, and
`CHECKS`, functions that raise. Out: for each name "" where all is well, else what is wrong.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def run_table(module: str, *names: str) -> dict[str, str]:
    """names: of what is run of the table; all of it without."""
    process = start(["-m", "tests.sharding.on_devices", module, *names])
    return json.loads(process.communicate(timeout=600)[0].splitlines()[-1])


def start(arguments: list[str], devices: int = 8) -> subprocess.Popen:
    """A Python process on so many virtual devices, whose default backend is XLA."""
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu",
        "JITCORE_DEFAULT_BACKEND": "xla",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen([sys.executable, "-W", "ignore", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT,
                            env=environment)


def compare(program) -> str:
    """Runs a program by both libraries. Returns: how the results differ."""
    import jax
    import numpy as np

    import jitcore

    results = []
    for library in (jax, jitcore):
        try:
            results.append(library.tree_util.tree_leaves(program(library, library.numpy)))
        except Exception as error:
            return f"{library.__name__} raises {type(error).__name__}: {error}"
    if len(results[0]) != len(results[1]):
        return f"{len(results[0])} leaves by JAX, {len(results[1])} by jitcore"
    for i, (expected, found) in enumerate(zip(*results)):
        if isinstance(expected, (str, bool, tuple)):
            if expected != found:
                return f"leaf {i}: {found!r}, JAX has {expected!r}"
            continue
        expected, found = np.asarray(expected), np.asarray(found)
        if (expected.shape, expected.dtype) != (found.shape, found.dtype):
            return f"leaf {i}: {found.dtype}{found.shape}, JAX has {expected.dtype}{expected.shape}"
        if not np.allclose(
            expected.astype(complex), found.astype(complex), rtol=2e-5, atol=2e-5, equal_nan=True
        ):
            return f"leaf {i}: {found.ravel()[:5]}, JAX has {expected.ravel()[:5]}"
    return ""


def check(function) -> str:
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    table = importlib.import_module(sys.argv[1])
    runs = {
        name: functools.partial(compare, program) for name, program in getattr(table, "PROGRAMS", {}).items()
    }
    runs |= {
        name: functools.partial(check, function) for name, function in getattr(table, "CHECKS", {}).items()
    }
    print(json.dumps({name: runs[name]() for name in sys.argv[2:] or runs}))
