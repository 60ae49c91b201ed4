"""Runs a Python script as `python SCRIPT` would, sooner: its hot loops are compiled while it runs.

In: the path of a script, or `-m` and the name of a module, and arguments. Out: whatever the program does; its
exit code. With `--report` a table at the end, or a page beside it.
"""

from __future__ import annotations

import io
import os
import sys

from jitcore.scripts.sessions import runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import NoReturn

HELP = "run a Python script or module"
_USAGE = "jitcore run [--report [FILE.html]] [--check] (SCRIPT | -m MODULE) [ARGUMENT ...]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """For the help; `run` reads them itself."""
    parser.usage = _USAGE
    parser.add_argument("--report", action="store_true",
                        help="tell at the end what was compiled, or why not; in FILE.html beside the source")
    parser.add_argument("--check", action="store_true",
                        help="compare all that compiled code does with what Python does")
    parser.add_argument("-m", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="path of the script")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="arguments of the program")


def run(arguments: Sequence[str]) -> int:
    """Returns: 0. Raises: whatever the program raises; SystemExit(2) for arguments that make no sense, and
    for a script that cannot be read."""
    rest, module, report, checks = list(arguments), None, None, False
    while rest and rest[0].startswith("-") and module is None:
        option = rest.pop(0)
        if option == "-m" and rest:
            module = rest.pop(0)
        elif option == "--report":
            report = rest.pop(0) if rest and rest[0].endswith((".html", ".htm")) else ""
        elif option == "--check":
            checks = True
        else:
            refuse(f"usage: {_USAGE}\njitcore run: {option} is no option, or lacks something")
    if module is None and not rest:
        refuse(f"usage: {_USAGE}\njitcore run: there is no script")
    if module is None:
        path = rest.pop(0)
        try:
            with io.open_code(os.path.abspath(path)) as file:
                source = file.read()
        except OSError as error:
            refuse(f"jitcore run: cannot read {path}: {error.strerror}")
    session = runner.open_session("" if module is not None else path)
    try:
        if module is None:
            runner.run_script(source, path, rest, session)
        else:
            runner.run_module(module, rest, session)
    finally:
        if report is not None:
            from jitcore.scripts.sessions.report import write_report

            write_report(None if session is None else session.sampler, report)
    return 0


def refuse(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    raise SystemExit(2)
