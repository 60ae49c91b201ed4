"""Runs a Python script as `python SCRIPT` would, sooner: its hot loops are compiled while it runs.

In: the path of a script and its arguments. Out: whatever the script does; its exit code. With `--functions`,
functions of these names are under `autojit` instead; with `--all`, those that loop or name NumPy, once their
calls have taken so long that this can pay.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

from jitcore.scripts.runner import Watched, run_source

if TYPE_CHECKING:
    import argparse

HELP = "run a Python script"
#: `argparse.REMAINDER`.
REMAINDER = "..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--functions", metavar="A,B", default="", help="compile these functions and no others")
    which.add_argument("--all", action="store_true", help="compile its functions that loop or use NumPy")
    parser.add_argument("--report", action="store_true", help="tell at the end what was compiled")
    parser.add_argument("script", metavar="SCRIPT", help="path of the script")
    parser.add_argument("arguments", metavar="...", nargs=REMAINDER, help="arguments of the script")


def execute(options: argparse.Namespace) -> int:
    """Returns: 0; 1 after an exception, which is printed; 2 for a script that cannot be read, or that lacks a
    function that was asked for."""
    names = [name for name in options.functions.split(",") if name]
    if not names and not options.all:
        return run_script(options.script, options.arguments, options.report)
    from jitcore.cli.selection import Selection

    selection = Selection(None if options.all else names)
    source = read_script(options.script)
    if source is None:
        return 2
    try:
        return run_source(source, options.script, options.arguments, selection.prepare)
    finally:
        if options.report:
            for function in selection.compiled:
                print(function.report(), file=sys.stderr)


def read_script(path: str) -> bytes | None:
    """None for one that cannot be read, which is told."""
    try:
        with io.open_code(os.path.abspath(path)) as file:
            return file.read()
    except OSError as error:
        print(f"jitcore run: cannot read {path}: {error.strerror}", file=sys.stderr)
        return None


def run_script(path: str, arguments: list[str], report: bool = False) -> int:
    """Runs a script whose hot loops are compiled meanwhile."""
    source = read_script(path)
    if source is None:
        return 2
    watched = Watched()
    try:
        return run_source(source, path, arguments, watched.prepare)
    finally:
        watched.finish()
        if report:
            from jitcore.scripts.report import format_report

            print(format_report(watched.sampler), file=sys.stderr)
