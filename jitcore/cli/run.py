"""Runs a Python script as `python SCRIPT` would, some or all of its functions under `autojit`.

In: the path of a script and its arguments. Out: whatever the script does; its exit code. With `--functions`,
functions of these names are compiled as they are called; with `--all`, those that loop or name NumPy, once
their calls have taken so long that this can pay.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import sys
import types
from collections.abc import Callable, Collection
from typing import Any

import jitcore
from jitcore.cli.patience import Patience, PatientFunction
from jitcore.process.generated import Pool, drop_watching

HELP = "run a Python script"


#: The variable of the script by which its functions are decorated.
_DECORATOR = "__jitcore_autojit__"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--functions", metavar="A,B", default="", help="compile these functions of the script")
    which.add_argument("--all", action="store_true", help="compile its functions that loop or use NumPy")
    parser.add_argument("--report", action="store_true", help="tell at the end what was compiled")
    parser.add_argument("script", metavar="SCRIPT", help="path of the script")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER, help="arguments of the script")


def execute(options: argparse.Namespace) -> int:
    """Returns: 0; 1 after an exception, which is printed; 2 for a script that cannot be read, or that lacks a
    function that was asked for."""
    try:
        with io.open_code(os.path.abspath(options.script)) as file:
            source = file.read()
    except OSError as error:
        print(f"jitcore run: cannot read {options.script}: {error.strerror}", file=sys.stderr)
        return 2
    names = [name for name in options.functions.split(",") if name]
    if not names and not options.all:
        return run_source(source, options.script, options.arguments)
    selection = Selection(None if options.all else names)
    try:
        return run_source(source, options.script, options.arguments, selection)
    finally:
        if options.report:
            for function in selection.compiled:
                print(function.report(), file=sys.stderr)


class Selection(ast.NodeTransformer):
    """Decorates functions of a script.

    Args:
        names: of functions, or None for those that loop or use NumPy and have no decorator yet.

    Attributes:
        found: the names that the script defines.
        compiled: what has a `report` of each function that was decorated.
    """

    def __init__(self, names: Collection[str] | None):
        self.names = names
        self.compiled: list[Any] = []
        self.found: set[str] = set()
        self._patience = Patience()
        self._pool = Pool(self._patience.free, self._patience.share)
        self._numpy: set[str] = set()

    def visit_Import(self, node: ast.Import) -> ast.Import:
        self._numpy |= {
            alias.asname or alias.name for alias in node.names if alias.name.split(".")[0] == "numpy"}
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if (node.module or "").split(".")[0] == "numpy":
            self._numpy |= {alias.asname or alias.name for alias in node.names}
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.found.add(node.name)
        if node.name in self.names if self.names is not None else self._is_worth_it(node):
            decorator = ast.Name(_DECORATOR, ast.Load(), lineno=node.lineno, col_offset=node.col_offset,
                                 end_lineno=node.lineno, end_col_offset=node.col_offset)
            node.decorator_list.insert(0, decorator)
        return node  # functions inside are traced with it

    def _is_worth_it(self, node: ast.FunctionDef) -> bool:
        inner = list(ast.walk(node))
        if node.decorator_list or any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in inner):
            return False
        named = {part.id for part in inner if isinstance(part, ast.Name)}
        if not named.isdisjoint(self._numpy):
            return True
        return node.name not in named and any(isinstance(part, (ast.For, ast.While)) for part in inner)

    def decorate(self, function: Callable) -> Callable:
        if self.names is None and isinstance(function, types.FunctionType):
            self.compiled.append(PatientFunction(function, self._pool, self._patience))
            return self.compiled[-1].wrapper
        made = jitcore.autojit(function)
        if hasattr(made, "report"):
            self.compiled.append(made)
        return made


def run_source(source: bytes, path: str, arguments: list[str], selection: Selection | None = None) -> int:
    """Runs source text as the module `__main__` of a process that was started for it. SystemExit passes."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:  # else the first entry is not that of the process's own script
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.modules["__main__"] = module
    try:
        program = source
        if selection is not None:
            module.__dict__[_DECORATOR] = selection.decorate
            program = selection.visit(ast.parse(source, path))
            if missing := sorted(set(selection.names or ()) - selection.found):
                print(f"jitcore run: {path} defines no function {', '.join(missing)}", file=sys.stderr)
                return 2
        exec(compile(program, path, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        # The first frame is this function's, which the user did not write.
        trace = drop_watching(error.__traceback__.tb_next)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
    return 0
