"""The command line: `python -m jitcore`, also installed as `jitcore`.

In: arguments. Out: what the chosen command prints, and its exit code: 0 for success, 1 when the command found
something wrong, 2 for arguments that make no sense.
"""

from __future__ import annotations

import importlib
import sys

from jitcore import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

#: Modules of `jitcore.cli`. Each has HELP, add_arguments(parser) and execute(options) -> exit code;
#: `run` reads its arguments itself: those of a script may look like options.
COMMANDS = ("cache", "demo", "doctor", "run")


def make_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """names: of the commands that it knows; only their modules are loaded."""
    import argparse

    about = "A tracing just-in-time compiler for NumPy programs."
    parser = argparse.ArgumentParser("jitcore", description=about)
    parser.add_argument("--version", action="version", version=f"jitcore {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        module = importlib.import_module(f"jitcore.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.__doc__.split("\n", 1)[0])
        module.add_arguments(command)
        command.set_defaults(execute=getattr(module, "execute", None))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; `arguments` are those of the process by default. Returns: the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["run"] and given[1:2] not in (["-h"], ["--help"]):  # a parser takes 5 ms
        return importlib.import_module("jitcore.cli.run").run(given[1:])
    options = make_parser(given[:1] if given and given[0] in COMMANDS else COMMANDS).parse_args(given)
    return options.execute(options)


if __name__ == "__main__":
    sys.exit(main())
