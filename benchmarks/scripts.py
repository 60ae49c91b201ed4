"""Section of whole scripts, as people write them: `python -m jitcore run` against Python itself.

In: names of the scripts in `whole_scripts`. Out: their table: seconds of whole processes, which take turns,
with nothing on disk from earlier runs (cold) and with what such a run left (warm), wall and processor time of
the script's own process, and whether all wrote the same.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.bars import SCRIPT
from benchmarks.fresh_process import compile_sources
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Effort

TITLE = "Whole scripts: jitcore run against Python"
FOLDER = Path(__file__).parent / "whole_scripts"
#: Turns of each script; of one over its bar, as another process may have had the machine in all of these.
_TURNS, _MOST_TURNS = 3, 9
#: Scripts by the least seconds that Python takes, for which means are shown.
_CLASSES = (0.0, 2.0, 5.0)
_KINDS = ("Python", "cold", "warm")


class Time(NamedTuple):
    """Seconds of a process, by the clock and of its processors."""

    wall: float
    processor: float


def list_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    compile_sources()
    lines = [["script", *_KINDS, "cold / Python", "warm / Python", "processor", "", "", "output"]]
    failed, over, ratios = False, 0, []
    for name in names:
        show(name)
        best, is_same = time_script(name)
        python, cold, warm = (best[kind] for kind in _KINDS)
        ratios.append((python.wall, cold.wall / python.wall, warm.wall / python.wall))
        is_within = _is_within(best)
        over += not is_within
        failed |= not is_same
        processor = [format_ratio(one.processor / python.processor) for one in (cold, warm)]
        lines.append([name, *(format_seconds(best[kind].wall) for kind in _KINDS),
                      *map(format_ratio, ratios[-1][1:]), *processor, "within" if is_within else "OVER",
                      "the same" if is_same else "DIFFERENT"])
    notes = [f"{over} of {len(names)} scripts over the bar"]
    notes += [_describe_means(ratios, least) for least in _CLASSES]
    return Section(TITLE, "\n\n".join([align_cells(lines), "\n".join(filter(None, notes))]), failed)


def _describe_means(ratios: Sequence[tuple[float, float, float]], least: float) -> str:
    chosen = [(cold, warm) for python, cold, warm in ratios if python >= least]
    if not chosen:
        return ""
    cold, warm = (math.exp(sum(map(math.log, column)) / len(chosen)) for column in zip(*chosen))
    which = f"scripts of at least {least:g} s" if least else "all scripts"
    return f"geometric means of {which} ({len(chosen)}): {cold:.2f} cold, {warm:.2f} warm"


def _is_within(best: dict[str, Time]) -> bool:
    return max(best["cold"].wall, best["warm"].wall) <= SCRIPT(best["Python"].wall)


def time_script(name: str) -> tuple[dict[str, Time], bool]:
    """(the least times of a process of each kind, whether output and exit code are the same)."""
    best, outcomes = {kind: Time(math.inf, math.inf) for kind in _KINDS}, set()
    path = str(FOLDER / f"{name}.py")
    for turn in range(_MOST_TURNS):
        if turn >= _TURNS and _is_within(best):
            break
        # The first run leaves there what the second one finds; what compiles may write there even then.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for kind in _KINDS:
                command = [path] if kind == "Python" else ["-m", "jitcore", "run", path]
                time, outcome = _run(command, folder)
                best[kind] = Time(*map(min, best[kind], time))
                outcomes.add(outcome)
    return best, len(outcomes) == 1


def _run(command: Sequence[str], folder: str) -> tuple[Time, tuple[int, bytes]]:
    """(times of a process of Python, its exit code and output)."""
    environment = {**os.environ, "JITCORE_CACHE_DIR": folder, "MPLBACKEND": "Agg"}
    with tempfile.TemporaryFile() as output:
        start = perf_counter()
        process = subprocess.Popen([sys.executable, *command], env=environment, stdout=output,
                                   stderr=subprocess.DEVNULL, cwd=FOLDER.parent.parent)
        _, status, used = os.wait4(process.pid, 0)
        wall = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return Time(wall, used.ru_utime + used.ru_stime), (process.returncode, output.read())
