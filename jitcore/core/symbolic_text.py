"""Symbolic shapes as text, and the sizes that their variables have in concrete shapes.

In: "b, 2*n" with constraints on the variables, or shapes with symbolic dimensions beside concrete ones. Out:
tuples of dimensions, sizes by name. The notation is that of `jax.export.symbolic_shape`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jitcore.core.symbolic import (Dim, DimExpr, DimOp, DimVar, dim_max, dim_min, evaluate, free_variables,
                                   substitute)

_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
           ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": dim_max, "min": dim_min}


class SymbolicScope:
    """Names of dimensions, and what is known of them. Every dimension is at least 1.

    Args:
        constraints: "n >= 4", "n <= 10", bounds of the sizes of n; "m == 2*n", of which m is an abbreviation;
            "mod(n, 4) == 0", by which n is 4 times the dimension "n_by_4".

    Raises: ValueError for a constraint that cannot be read; NotImplementedError for one of another form.
    Source: jax.export.SymbolicScope."""

    def __init__(self, constraints: Iterable[str] = ()):
        if isinstance(constraints, str):
            raise ValueError(f"constraints must be a sequence of strings, got {constraints!r}")
        self.constraints = tuple(constraints)
        self._bounds: dict[str, tuple[int | None, int | None]] = {}
        self._known: dict[str, str] = {}  # what a name is an abbreviation of
        for constraint in sorted(self.constraints, key=lambda text: "==" not in text):
            self._add(constraint)

    def find(self, name: str) -> Dim:
        """The dimension of a name."""
        if name in self._known:
            return parse_dim(self._known[name], self.find, "constraint")
        return DimVar(name, *self._bounds.get(name, (1, None)))

    def _add(self, constraint: str) -> None:
        parts = re.split(r"(==|>=|<=)", constraint)
        if len(parts) != 3:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        left, right = (parse_dim(text, self.find, f"constraint {constraint!r}") for text in parts[::2])
        if parts[1] == "==":
            self._add_equation(constraint, left, right, parts[2])
        else:
            self._add_bound(constraint, left - right if parts[1] == ">=" else right - left)

    def _add_equation(self, constraint: str, left: Dim, right: Dim, text: str) -> None:
        if isinstance(left, DimVar):
            self._known[left.name] = text
        elif isinstance(left, DimOp) and left.kind == "mod" and isinstance(left.left, DimVar) and right == 0:
            self._known[left.left.name] = f"{left.right}*{left.left}_by_{left.right}"
        else:
            raise _unknown_constraint(constraint)

    def _add_bound(self, constraint: str, difference: Dim) -> None:
        """A dimension that is not negative."""
        line = _read_line(difference) if isinstance(difference, DimExpr) else None
        if line is None:
            raise _unknown_constraint(constraint)
        variable, factor, rest = line
        lower, upper = variable.lower, variable.upper
        if factor > 0:
            lower = max(-(rest // factor), lower or 1)
        else:
            limit = rest // -factor
            upper = limit if upper is None else min(limit, upper)
        if upper is not None and upper < (lower or 1):
            raise ValueError(f"the constraint {constraint!r} leaves no size for {variable}")
        self._bounds[variable.name] = lower, upper

    def __repr__(self) -> str:
        return f"SymbolicScope({list(self.constraints)})"


def _unknown_constraint(constraint: str) -> NotImplementedError:
    return NotImplementedError(f"the constraint {constraint!r}: a dimension knows bounds that are numbers "
                               "(n >= 4), what it is an abbreviation of (m == 2*n), and what divides it "
                               "(mod(n, 4) == 0)")


def _read_line(dim: Dim) -> tuple[DimVar, int, int] | None:
    """(v, a, b) where dim is a v + b."""
    variables = free_variables(dim)
    if len(variables) != 1:
        return None
    (variable,) = variables
    rest, one, two = (_value_at(dim, variable, size) for size in (0, 1, 2))
    is_line = two - one == one - rest and dim == (one - rest) * variable + rest
    return (variable, one - rest, rest) if is_line else None


def _value_at(dim: Dim, variable: DimVar, size: int) -> int:
    """Of a dimension with one variable, whatever the bounds of that are."""
    return evaluate(substitute(dim, {variable.name: DimVar("v", None, None)}), {"v": size})


# -- text ----------------------------------------------------------------------------------------------------
def parse_shape(spec: str | None, find: Callable[[str], Dim], like: Sequence[Dim] | None = None
                ) -> tuple[Dim, ...]:
    """The dimensions of a text; `like` is the shape of which "_" and "..." take theirs.

    Raises: ValueError with the place of what cannot be read, and for numbers that `like` has otherwise."""
    text = "..." if spec is None else spec.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    parts = _split(text)
    if parts[-1] == "":  # of "(b,)", and of ""
        parts = parts[:-1]
    if "..." in parts:
        place = parts.index("...")
        if place != len(parts) - 1:
            raise _syntax_error(spec, place, "... must be at the end")
        if like is None:
            raise _syntax_error(spec, place, "spec contains ... but no 'like' shape was given")
        parts = [*parts[:-1], *["_"] * (len(like) - place)]
    if like is not None and len(parts) != len(like):
        raise _syntax_error(spec, len(parts), f"like={tuple(like)} has {len(like)} dimensions")
    return tuple(_parse_part(spec, i, part, find, like) for i, part in enumerate(parts))


def _split(text: str) -> list[str]:
    """At the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parse_part(spec: str | None, place: int, part: str, find: Callable, like: Sequence[Dim] | None) -> Dim:
    if part == "_":
        if like is None:
            raise _syntax_error(spec, place, "spec contains '_' but no 'like' shape was given")
        return like[place]
    try:
        dim = parse_dim(part, find, "")
    except ValueError as error:
        raise _syntax_error(spec, place, str(error)) from None
    if like is not None and isinstance(dim, int) and isinstance(like[place], int) and dim != like[place]:
        raise _syntax_error(spec, place, f"different size {dim} for known dimension; like={tuple(like)}")
    return dim


def _syntax_error(spec: str | None, place: int, reason: str) -> ValueError:
    return ValueError(f"syntax error in symbolic shape {spec!r} in dimension {place}: {reason}.")


def parse_dim(text: str, find: Callable[[str], Dim], where: str) -> Dim:
    """One dimension: sums, products, powers, `floordiv`, `mod`, `max` and `min` of names and ints.

    Raises: ValueError for other text, saying where."""
    try:
        return _read(ast.parse(text.strip().replace("^", "**"), mode="eval").body, find)
    except (SyntaxError, ValueError):
        raise ValueError(f"cannot read {text.strip()!r}{' of the ' + where if where else ''}") from None


def _read(node: ast.AST, find: Callable[[str], Dim]) -> Any:
    if isinstance(node, ast.Name):
        return find(node.id)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_read(node.operand, find)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_read(node.left, find), _read(node.right, find))
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
    if is_call and node.func.id in _FUNCTIONS and len(node.args) == 2:
        return _FUNCTIONS[node.func.id](*(_read(argument, find) for argument in node.args))
    raise ValueError


# -- sizes ---------------------------------------------------------------------------------------------------
def solve_sizes(pairs: Iterable[tuple[Dim, int]]) -> dict[str, int]:
    """The sizes of the variables of dimensions that have these values: where a dimension is a variable, or
    has one alone in it that is multiplied by a number. What the other dimensions are is not looked at.

    Raises: ValueError for a variable for which there is no such dimension."""
    open_pairs = [(dim, size) for dim, size in pairs if isinstance(dim, DimExpr)]
    sizes = {dim.name: size for dim, size in reversed(open_pairs) if isinstance(dim, DimVar)}
    names = {variable.name for dim, _ in open_pairs for variable in free_variables(dim)}
    is_changed = True
    while is_changed and len(sizes) < len(names):
        is_changed = False
        for dim, size in open_pairs:
            known = {variable.name: sizes[variable.name] for variable in free_variables(dim)
                     if variable.name in sizes}
            line = _read_line(substitute(dim, known))
            if line is not None:
                variable, factor, rest = line
                sizes[variable.name], is_changed = (size - rest) // factor, True
    if len(sizes) < len(names):
        raise ValueError(f"the sizes of {', '.join(sorted(names - sizes.keys()))} do not follow from "
                         f"{', '.join(str(dim) for dim, _ in open_pairs)}")
    return sizes
