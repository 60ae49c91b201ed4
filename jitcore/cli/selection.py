"""Functions of a script under `autojit`, without a change of the script.

In: names of functions, or none for those that loop or use NumPy. Out: the code of the script with decorators.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Collection
from typing import Any

import jitcore
from jitcore.cli.patience import Patience, PatientFunction
from jitcore.process.generated import Pool

#: The variable of the script by which its functions are decorated.
_DECORATOR = "__jitcore_autojit__"


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
            alias.asname or alias.name for alias in node.names if alias.name.split(".")[0] == "numpy"
        }
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

    def prepare(self, source: bytes, path: str, module: types.ModuleType) -> types.CodeType | None:
        """The code of the script, its functions decorated."""
        module.__dict__[_DECORATOR] = self.decorate
        program = self.visit(ast.parse(source, path))
        if missing := sorted(set(self.names or ()) - self.found):
            print(f"jitcore run: {path} defines no function {', '.join(missing)}", file=sys.stderr)
            return None
        return compile(program, path, "exec", dont_inherit=True)

    def decorate(self, function: Callable) -> Callable:
        if self.names is None and isinstance(function, types.FunctionType):
            self.compiled.append(PatientFunction(function, self._pool, self._patience))
            return self.compiled[-1].wrapper
        made = jitcore.autojit(function)
        if hasattr(made, "report"):
            self.compiled.append(made)
        return made
