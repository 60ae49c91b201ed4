"""Section of whole scripts, as people write them: `python -m jitcore run --all` against Python itself.

In: names of the scripts in `whole_scripts`. Out: their table: seconds of whole processes, which take turns,
and whether both wrote the same. Nothing is on disk from earlier runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.bars import SCRIPT
from benchmarks.fresh_process import compile_sources
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Effort

TITLE = "Whole scripts: jitcore run --all against Python"
FOLDER = Path(__file__).parent / "whole_scripts"
_COMMANDS = {"Python": (), "jitcore": ("-m", "jitcore", "run", "--all")}
_TURNS = 3


def list_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    compile_sources()
    lines, failed, over = [["script", "Python", "jitcore", "/ Python", "", "output"]], False, 0
    for name in names:
        show(name)
        seconds, is_same = time_script(name)
        is_within = seconds["jitcore"] <= SCRIPT(seconds["Python"])
        over += not is_within
        failed |= not is_same
        lines.append([name, *map(format_seconds, seconds.values()),
                      format_ratio(seconds["jitcore"] / seconds["Python"]),
                      "within" if is_within else "OVER", "the same" if is_same else "DIFFERENT"])
    return Section(TITLE, f"{align_cells(lines)}\n\n{over} of {len(names)} scripts over the bar", failed)


def time_script(name: str) -> tuple[dict[str, float], bool]:
    """(the least seconds of a process by command, whether output and exit code are the same)."""
    environment = {**os.environ, "JITCORE_CACHE_DIR": ""}
    best, outcomes = dict.fromkeys(_COMMANDS, float("inf")), set()
    for _ in range(_TURNS):
        for label, command in _COMMANDS.items():
            start = perf_counter()
            done = subprocess.run([sys.executable, *command, str(FOLDER / f"{name}.py")], env=environment,
                                  capture_output=True, cwd=FOLDER.parent.parent)
            best[label] = min(best[label], perf_counter() - start)
            outcomes.add((done.returncode, done.stdout))
    return best, len(outcomes) == 1
