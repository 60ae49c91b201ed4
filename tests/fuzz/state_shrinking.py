"""Makes a program with captured state smaller while it still differs.

In: a source with `CALLS`, and a judge. Out: a source with fewer statements, calls and operands.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from typing import Any


class _Edit(ast.NodeTransformer):
    """Makes the change with this number: a statement less, its body in its place, an element, keyword or branch less."""

    def __init__(self, number: int):
        self.left, self.done = number, False

    def _take(self) -> bool:
        self.left -= 1
        if self.left < 0 and not self.done:
            self.done = True
            return True
        return False

    def _block(self, body: list, may_be_empty: bool) -> list:
        found: list = []
        for statement in body:
            if not (isinstance(statement, ast.Pass) and len(body) == 1) and self._take():
                continue
            is_definition = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
            parts = [] if is_definition else [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
            chosen = next((part for part in parts if part and self._take()), None)
            found += [self.visit(statement)] if chosen is None else chosen
        return found or ([] if may_be_empty else [ast.Pass()])

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if name in ("body", "orelse", "finalbody") and isinstance(value, list):
                setattr(node, name, self._block(value, name != "body"))
            elif name == "elts" and isinstance(value, list) and isinstance(node, (ast.List, ast.Tuple)) and len(value) > 1:
                kept = [one for one in value if not self._take()]
                node.elts = [self._expression(one) for one in kept]
            elif name == "keywords" and isinstance(node, ast.Call):
                node.keywords = [self.visit(one) for one in value if not self._take()]
            elif isinstance(value, list):
                setattr(node, name, [self.visit(one) if isinstance(one, ast.AST) else one for one in value])
            elif isinstance(value, ast.expr):
                setattr(node, name, self._expression(value))
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def _expression(self, value: ast.expr) -> ast.expr:
        """An operand in the place of an operation, the value behind a call with one argument."""
        parts = []
        if isinstance(value, ast.BinOp):
            parts = [value.left, value.right]
        elif isinstance(value, ast.IfExp):
            parts = [value.body, value.orelse]
        elif isinstance(value, ast.BoolOp):
            parts = value.values
        elif isinstance(value, ast.Call) and len(value.args) == 1:
            parts = value.args
        elif isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value.startswith("change"):
            parts = [ast.Constant("")]
        for part in parts:
            if self._take():
                return part
        return self.visit(value)


def cut_calls(source: str, count: int) -> str:
    """The program with its first calls only."""
    tree = ast.parse(source)
    calls = next(node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CALLS")
    calls.value.elts = calls.value.elts[:count]
    return ast.unparse(tree)


def open_make(source: str) -> str:
    """The program with what `make` contains in the module."""
    tree = ast.parse(source)
    body = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "make":
            body += [one for one in node.body if not isinstance(one, ast.Return)]
        elif "make()" not in ast.unparse(node):
            body.append(node)
    tree.body = body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Global(child.names) if isinstance(child, ast.Nonlocal) else child for child in node.body]
    return ast.unparse(ast.fix_missing_locations(tree))


def shrink(source: str, judge: Callable[[str], Any], limit: float = 60.0) -> tuple[str, Any]:
    """The smallest program found of which judge says something, and what it says. limit: seconds."""
    best, end = None, time.monotonic() + limit
    if found := judge(opened := open_make(source)):
        source, best = opened, found
    is_smaller = True
    while is_smaller and time.monotonic() < end:
        is_smaller, number = False, 0
        while time.monotonic() < end:
            edit = _Edit(number)
            text = ast.unparse(ast.fix_missing_locations(edit.visit(ast.parse(source))))
            if not edit.done:
                break
            try:
                is_other = len(text) < len(source) and compile(text, "", "exec") is not None
            except (SyntaxError, ValueError):
                is_other = False
            if is_other and (found := judge(text)):
                source, best, is_smaller = text, found, True
            else:
                number += 1
    return source, best or judge(source)
