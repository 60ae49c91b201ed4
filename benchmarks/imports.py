"""Section of imports: what a process takes that imports a library and does nothing else.

In: names of libraries. Out: their table: seconds of whole processes, which take turns, so that a machine that
slows down slows down all of them; each keeps its least time.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.bars import IMPORT
from benchmarks.fresh_process import compile_sources
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Effort

TITLE = "Imports: whole processes"
#: By name, what a process imports; "Python" is one that imports nothing.
IMPORTS = {"Python": "", "numpy": "numpy", "jitcore": "jitcore, jitcore.numpy", "numba": "numba",
           "jax": "jax, jax.numpy"}
_TURNS = 4
_ROOT = Path(__file__).parent.parent


def list_names() -> list[str]:
    return list(IMPORTS)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures those that are installed. `show` is told the name of each before it starts."""
    compile_sources()
    wanted = [name for name in IMPORTS if name in names]
    found = [name for name in wanted if not IMPORTS[name] or importlib.util.find_spec(name) is not None]
    seconds = time_imports({name: IMPORTS[name] for name in found}, _TURNS * effort.processes, show)
    ours = seconds.get("jitcore")
    lines = [["import", "seconds", "jitcore's / this"]]
    for name in wanted:
        is_missing = name not in seconds
        ratio = "" if ours is None or is_missing or name == "jitcore" else format_ratio(ours / seconds[name])
        lines.append([name, "not installed" if is_missing else format_seconds(seconds[name]), ratio])
    return Section(TITLE, f"{align_cells(lines)}\n\n{_judge(seconds)}")


def time_imports(imports: Mapping[str, str], turns: int, show: Callable[[str], None]) -> dict[str, float]:
    """The least seconds of a process by name. A first turn, which fills caches, is not counted."""
    best = dict.fromkeys(imports, float("inf"))
    environment = {**os.environ, "JITCORE_CACHE_DIR": ""}
    for turn in range(turns + 1):
        for name, modules in imports.items():
            show(name)
            start = perf_counter()
            command = [sys.executable, "-c", f"import {modules}" if modules else ""]
            subprocess.run(command, env=environment, cwd=_ROOT, check=True)
            best[name] = min(best[name], perf_counter() - start) if turn else best[name]
    return best


def _judge(seconds: Mapping[str, float]) -> str:
    if not {"jitcore", "numba"} <= seconds.keys():
        return "the bar is Numba's time, which is not there"
    is_within = seconds["jitcore"] <= IMPORT * seconds["numba"]
    return f"jitcore is {'within' if is_within else 'OVER'} its bar of {IMPORT:g} times Numba's"
