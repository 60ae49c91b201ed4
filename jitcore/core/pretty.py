"""The text of a jaxpr, in the format of JAX's tutorial."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator

import numpy as np

from jitcore.core.jaxpr import Atom, ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var
from jitcore.dtypes import KeyDtype
from jitcore.process.lazy import LazyModule

folding = LazyModule("jitcore.core.folding")

_LINE_WIDTH = 80


class Names:
    """Gives each variable its letter(s) in order of first appearance: a ... z, ba, bb ..."""

    def __init__(self, fresh: Iterator[str] | None = None):
        self.names: dict[Var, str] = {}
        self.fresh = map(_letters, itertools.count()) if fresh is None else fresh

    def inside(self, primitive) -> Names:
        """Names for an inner jaxpr: those of a loop or branch go on counting, an inner jit's begin anew."""
        return Names() if primitive.name == "jit" else Names(self.fresh)

    def of(self, var: Var) -> str:
        if isinstance(var, DropVar):
            return "_"
        if var not in self.names:
            self.names[var] = next(self.fresh)
        return self.names[var]

    def typed(self, var: Var) -> str:
        return f"{self.of(var)}:{var.aval.short()}"

    def atom(self, atom: Atom) -> str:
        return format_literal(atom) if isinstance(atom, Literal) else self.of(atom)

    def head(self, jaxpr: Jaxpr) -> str:
        """The first line of a jaxpr."""
        heads = [" ".join(map(self.typed, jaxpr.constvars)), " ".join(map(self.typed, jaxpr.invars))]
        return "{ lambda " + (f"{heads[0]} " if heads[0] else "") + f"; {heads[1]}. let"

    def results(self, jaxpr: Jaxpr) -> str:
        return ", ".join(map(self.atom, jaxpr.outvars)) + ("," if len(jaxpr.outvars) == 1 else "")


def _letters(index: int) -> str:
    digits = ""
    while True:
        index, digit = divmod(index, 26)
        digits = string.ascii_lowercase[digit] + digits
        if not index:
            return digits


def format_literal(literal: Literal) -> str:
    return str(np.asarray(literal.value)[()])


def format_jaxpr(jaxpr: Jaxpr, indent: int = 0, names: Names | None = None) -> str:
    """`{ lambda consts ; args. let equations in (outs,) }`, indented by `indent` columns after the first
    line."""
    names = names or Names()
    pad = " " * indent
    head, lines = names.head(jaxpr), []
    for eqn in jaxpr.eqns:
        lines.append(pad + "    " + format_equation(eqn, names, indent + 4))
    outs = names.results(jaxpr)
    if not lines:
        return f"{head}  in ({outs}) }}"
    if len(lines) == 1 and "\n" not in lines[0]:
        text = f"{head} {lines[0].strip()} in ({outs}) }}"
        if indent + len(text) <= _LINE_WIDTH:
            return text
    return "\n".join([head, *lines, f"{pad}  in ({outs}) }}"])


def format_equation(eqn: Equation, names: Names | None = None, indent: int = 0) -> str:
    names = names or Names()
    operands = " ".join(map(names.atom, eqn.invars))
    outs = " ".join("_" if isinstance(var, DropVar) else names.typed(var) for var in eqn.outvars)
    params = [(key, value) for key, value in sorted(eqn.params.items()) if value is not None]
    params.sort(key=lambda item: item[0] != "name")
    text = f"{outs} = " if outs else ""
    text += eqn.primitive.name
    if not params:
        return f"{text} {operands}".rstrip()
    inner = names.inside(eqn.primitive)
    if not any(holds_jaxpr(value) for _, value in params):
        flat = " ".join(f"{key}={format_param(value, 0, inner)}" for key, value in params)
        if indent + len(text) + len(flat) + len(operands) + 3 <= _LINE_WIDTH:
            return f"{text}[{flat}] {operands}".rstrip()
    pad = "\n" + " " * (indent + 2)
    body = "".join(f"{pad}{key}={format_param(value, indent + 2, inner)}" for key, value in params)
    return f"{text}[{body}\n{' ' * indent}] {operands}".rstrip()


def holds_jaxpr(value) -> bool:
    items = value if isinstance(value, (tuple, list)) else [value]
    return any(isinstance(item, (ClosedJaxpr, Jaxpr)) for item in items)


def format_param(value, indent: int, names: Names) -> str:
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        return format_jaxpr(getattr(value, "jaxpr", value), indent, names)
    if isinstance(value, (tuple, list)) and holds_jaxpr(value):
        pad = "\n" + " " * (indent + 2)
        items = "".join(pad + format_param(item, indent + 2, names) for item in value)
        return f"({items}\n{' ' * indent})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, KeyDtype):
        return value.tag
    if isinstance(value, type):
        return value.__name__
    if callable(value) and not hasattr(value, "_fields"):
        return getattr(value, "__name__", repr(value))
    return str(value)


def show_html(program: Jaxpr | ClosedJaxpr) -> str:
    """What notebooks show."""
    return folding.show_jaxpr(getattr(program, "jaxpr", program))


Equation.__repr__ = format_equation
Jaxpr.__str__ = Jaxpr.__repr__ = format_jaxpr
Jaxpr._repr_html_ = ClosedJaxpr._repr_html_ = show_html
