"""Sources put in order: `global` and `nonlocal` where functions assign to names around them; definitions that are used."""

from __future__ import annotations

import ast
import re


def drop_unused(definitions: list[str], others: list[str]) -> list[str]:
    """The definitions without those of helpers whose names stand nowhere else."""
    while True:
        text = "\n".join([*definitions, *others])
        kept = []
        for definition in definitions:
            names = re.findall(r"\b((?:via|put)\d+)(?:Type)?\b", definition)
            if not names or len(re.findall(rf"\b{names[0]}\b", text)) > len(re.findall(rf"\b{names[0]}\b", definition)):
                kept.append(definition)
        if len(kept) == len(definitions):
            return kept
        definitions = kept


def declare_names(source: str) -> str:
    """The source with `global` or `nonlocal` where functions assign to names of the module or of `make`."""
    tree = ast.parse(source)
    make = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "make"), None)
    body = (make or tree).body
    names = {name for node in body for name in _list_assigned(node)}
    for node in body:
        _declare_inside(node, names, ast.Nonlocal if make else ast.Global)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _list_assigned(node: ast.AST) -> set[str]:
    """Names that this statement assigns to, without those of functions in it."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return set()
    return {name for child in ast.iter_child_nodes(node) for name in _list_assigned(child)}


def _declare_inside(node: ast.AST, names: set[str], declaration: type) -> None:
    if isinstance(node, ast.FunctionDef):
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        known = {name for child in node.body if isinstance(child, ast.Nonlocal) for name in child.names}
        assigned = {name for child in node.body for name in _list_assigned(child)}
        nested = {child.name for child in node.body if isinstance(child, (ast.FunctionDef, ast.ClassDef))}
        if wanted := sorted((assigned & names) - own - known - nested):
            node.body.insert(0, declaration(wanted))
    for child in ast.iter_child_nodes(node):
        _declare_inside(child, names, declaration)
