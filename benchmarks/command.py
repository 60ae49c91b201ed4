"""The command: `python -m benchmarks [run|compile|dispatch|autojit|scaling|memory|rewriting|plain|numba|
scripts|clusters|xla|tpu|cuda|gpu|import|all] [--quick] [--rows a,b] [--peers a,b] [--list] [--save]`.

In: arguments. Out: tables, geometric means and bars on the screen; 1 as exit code when jitcore failed or gave
a wrong result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks import (autojitting, clusters, compile_time, cuda, dispatch_time, gpu, imports, memory,
                        numba_form, plain, rewriting, run_time, scaling, scripts, tpu, xla)
from benchmarks.machine import describe_limits, describe_machine
from benchmarks.measured import Section
from benchmarks.peers import find_peers, find_tracing_peers
from benchmarks.results_file import save_sections
from benchmarks.timing import FULL, QUICK, Effort
from benchmarks.workloads import ROWS


class Kind(NamedTuple):
    """A section: the names of its rows, and (names, peer names, effort, show) -> the section."""

    list_names: Callable[[], Sequence[str]]
    run: Callable[[Sequence[str], Sequence[str], Effort, Callable[[str], None]], Section]


def _run_workloads(names: Sequence[str], peer_names: Sequence[str], *rest: Any) -> Section:
    wanted = set(names)
    return run_time.run_section([row for row in ROWS if row.name in wanted], find_peers(peer_names), *rest)


def _trace_only(section: ModuleType) -> Callable[..., Section]:
    """Runs a section that compares libraries that trace."""
    return lambda names, peer_names, *rest: section.run_section(names, find_tracing_peers(peer_names), *rest)


KINDS = {
    "run": Kind(lambda: [row.name for row in ROWS], _run_workloads),
    "compile": Kind(compile_time.list_names, _trace_only(compile_time)),
    "dispatch": Kind(lambda: list(dispatch_time.ROWS), _trace_only(dispatch_time)),
    "autojit": Kind(autojitting.list_names, autojitting.run_section),
    "scaling": Kind(scaling.list_names, _trace_only(scaling)),
    "memory": Kind(memory.list_names, _trace_only(memory)),
    "rewriting": Kind(rewriting.list_names, rewriting.run_section),
    "plain": Kind(plain.list_names, plain.run_section),
    "numba": Kind(numba_form.list_names, numba_form.run_section),
    "scripts": Kind(scripts.list_names, scripts.run_section),
    "clusters": Kind(clusters.list_names, clusters.run_section),
    "xla": Kind(xla.list_names, xla.run_section),
    "tpu": Kind(tpu.list_names, tpu.run_section),
    "cuda": Kind(cuda.list_names, cuda.run_section),
    "gpu": Kind(gpu.list_names, gpu.run_section),
    "import": Kind(imports.list_names, imports.run_section),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns: the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.save and (options.quick or options.rows or options.peers):
        parser.error("--save keeps whole sections, measured with care: not with --quick, --rows or --peers")
    everywhere = [kind for kind in KINDS if kind not in ("gpu", "clusters")]
    kinds = everywhere if options.section == "all" else [options.section]
    chosen = {kind: select_names(KINDS[kind].list_names(), options.rows) for kind in kinds}
    if not any(chosen.values()):
        parser.error(f"no row contains any of {options.rows!r}; --list shows them all")
    if options.list:
        print("\n".join(name for names in chosen.values() for name in names))
        return 0
    try:
        find_peers(split_texts(options.peers))
    except ValueError as error:
        parser.error(str(error))
    print(f"{describe_machine()}\n\n{describe_limits()}", flush=True)
    sections = []
    for kind, names in chosen.items():
        if names:
            effort = QUICK if options.quick else FULL
            sections.append(KINDS[kind].run(names, split_texts(options.peers), effort, Progress(len(names))))
            print(f"\r\x1b[K\n## {sections[-1].title}\n\n{sections[-1].text}", flush=True)
    if options.save:
        pages = [tpu.write_page(section) for section in sections if section.title == tpu.TITLE]
        timed = [section for section in sections if section.title != tpu.TITLE]
        print(f"\nwritten to {', '.join(map(str, [*pages, *([save_sections(timed)] if timed else [])]))}")
    return int(any(section.failed for section in sections))


def make_parser() -> argparse.ArgumentParser:
    about = "Times jitcore against other libraries."
    parser = argparse.ArgumentParser("python -m benchmarks", description=about)
    add = parser.add_argument
    add("section", nargs="?", default="run", choices=[*KINDS, "all"], help="what to measure (default: run)")
    add("--quick", action="store_true", help="few repeats: compares results, and times roughly")
    add("--rows", metavar="A,B", default="", help="rows whose name contains one of these texts")
    add("--peers", metavar="A,B", default="", help="compare with these libraries only")
    add("--list", action="store_true", help="print the names of the rows and stop")
    add("--save", action="store_true", help="also write benchmarks/results/<date>-<processor>.md")
    return parser


def split_texts(text: str) -> list[str]:
    """The comma-separated parts that are not empty."""
    return [part for part in text.split(",") if part]


def select_names(names: Sequence[str], texts: str) -> list[str]:
    """The names that contain one of the comma-separated texts; all without texts."""
    wanted = split_texts(texts)
    return [name for name in names if not wanted or any(text in name for text in wanted)]


class Progress:
    """Shows on the error stream which row is measured."""

    def __init__(self, count: int):
        self._count = count
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str) -> None:
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        print(f"\r\x1b[K[{number}/{self._count}] {name}", end="", file=sys.stderr, flush=True)
