"""The command line: `python -m jitcore`, also installed as `jitcore`.

In: arguments. Out: what the chosen command prints, and its exit code: 0 for success, 1 when the command found
something wrong, 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from jitcore import __version__
from jitcore.cli import cache, demo, doctor, run

#: Each has HELP, add_arguments(parser) and execute(options) -> exit code.
COMMANDS = {"cache": cache, "demo": demo, "doctor": doctor, "run": run}


def make_parser() -> argparse.ArgumentParser:
    about = "A tracing just-in-time compiler for NumPy programs."
    parser = argparse.ArgumentParser("jitcore", description=about)
    parser.add_argument("--version", action="version", version=f"jitcore {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__.split("\n", 1)[0])
        module.add_arguments(command)
        command.set_defaults(execute=module.execute)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; `arguments` are those of the process by default. Returns: the exit code."""
    options = make_parser().parse_args(arguments)
    return options.execute(options)


if __name__ == "__main__":
    sys.exit(main())
