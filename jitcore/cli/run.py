"""Runs a Python script as `python SCRIPT` would.

In: the path of a script and its arguments. Out: whatever the script does; its exit code.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import types

HELP = "run a Python script"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", help="path of the script")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="arguments of the script")


def execute(options: argparse.Namespace) -> int:
    """Returns: 0; 1 after an exception, which is printed; 2 for a script that cannot be read."""
    try:
        with io.open_code(os.path.abspath(options.script)) as file:
            source = file.read()
    except OSError as error:
        print(f"jitcore run: cannot read {options.script}: {error.strerror}", file=sys.stderr)
        return 2
    return run_source(source, options.script, options.arguments)


def run_source(source: bytes, path: str, arguments: list[str]) -> int:
    """Runs source text as the module `__main__` of a process that was started for it. SystemExit passes."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:  # else the first entry is not that of the process's own script
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.modules["__main__"] = module
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        # The first frame is this function's, which the user did not write.
        trace = error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
    return 0
