"""Why code with NumPy's semantics cannot be traced, laid out as all errors are (`jitcore.errors`).

In: a reason in a few words. Out: the error, with the traced variables of the user's line, that line, why, and
what to write instead (`remedies`).
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from jitcore import errors
from jitcore.core import source
from jitcore.core.source import SourceInfo
from jitcore.errors import NotTraceable
from jitcore.numpy_semantics.remedies import find_remedy
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.operations.texts import Text

__all__ = [
    "NeedsIdentity", "NeedsRows", "NeedsValue", "NotTraceable", "describe_reason", "exit_program",
    "needs_identity", "needs_value", "not_traceable"]


class NeedsValue(NotTraceable, errors.ConcretizationTypeError):
    """Python needs the value of a traced number or array. handle: whose."""

    def __init__(self, text: str, handle=None):
        super().__init__(text)
        self.handle = handle


class NeedsRows(NotTraceable):
    """One of many lists is wanted, and which one is not known: other forms of lists do not help."""


class NeedsIdentity(NotTraceable):
    """It matters which of several equal numbers or tuples the caller has: values do not tell that."""


def needs_identity(kind: type) -> NeedsIdentity:
    reason = f"whether two values of type {kind.__name__} are one object depends on the caller"
    return NeedsIdentity(str(not_traceable(reason)))


def not_traceable(reason: str, remedy: str = "") -> NotTraceable:
    """reason: what is met, in a few words; remedy: what to write instead, if no row of `remedies` says it."""
    frame = source.find_user_frame()
    info = None if frame is None else SourceInfo(frame.f_code, frame.f_lasti)
    variables = "" if frame is None else name_variables(frame)
    return describe_reason(reason, source.format_snippet(info), remedy, variables)


def needs_value(handle: Any, wanted: str) -> NeedsValue:
    """wanted: what Python asked for, `float(x)`."""
    reason = f"{wanted} needs the value of a traced {describe_handle(handle)}"
    return NeedsValue(str(not_traceable(reason)), handle)


def describe_reason(reason: str, where: list[str], remedy: str = "", variables: str = "") -> NotTraceable:
    """where: lines of `source.format_snippet`; variables: a sentence about them."""
    found = find_remedy(reason)
    why = "" if remedy else found.why
    return errors.build_error(NotTraceable, as_sentence(reason), detail=f"{variables} {why}".strip(),
                              where=where, fix=f"{remedy or found.fix}.")


_VERB = re.compile(
    r"\b(is|are|was|has|have|had|may|needs?|depends|cannot|does|computes|keeps|loses?|met|writes)\b")
_CLAUSE = re.compile(r"\b(that|whose|which|where)\b(?!=)")


def as_sentence(reason: str) -> str:
    """A reason with a verb: many say only what is met. Each relative clause has one of its own."""
    if reason.startswith("whether ") and " depends on " not in reason:
        return f"it is not known while tracing {reason}"
    is_sentence = len(_VERB.findall(reason)) > len(_CLAUSE.findall(reason))
    return reason if is_sentence else f"{reason} cannot be traced"


# -- the variables of a line ---------------------------------------------------------------------------------
def name_variables(frame: FrameType) -> str:
    """What the running expression reads: "x is a traced array float64[3], n a traced Python int."; or ""."""
    found: dict[str, str] = {}
    for path in _list_names(SourceInfo(frame.f_code, frame.f_lasti)):
        value = _read(frame.f_locals, path)
        if isinstance(value, Handle):
            found.setdefault(".".join(path), describe_handle(value))
    parts = [f"{name} a traced {what}" for name, what in found.items()]
    return f"{', '.join(parts[:4])}.".replace(" a ", " is a ", 1) if parts else ""


def describe_handle(handle: Handle) -> str:
    """A traced object in few words."""
    leaf_type = getattr(handle, "leaf_type", None)
    if type(handle) is Text:
        return "text"
    if leaf_type is None:
        return "array of a shape that depends on values"
    text, aval = repr(leaf_type.kind), leaf_type.aval
    if text.startswith("Python "):
        return text
    return f"{text} {aval.long() if text == 'array' else aval.dtype.name}"


def _list_names(info: SourceInfo) -> Iterator[tuple[str, ...]]:
    """Variables, and attributes of variables, in the source of an instruction."""
    try:
        tree = ast.parse(textwrap.dedent(source.read_segment(info)).strip().rstrip(":"))
    except SyntaxError:  # a part of a statement: `if`, `for`
        return
    for node in ast.walk(tree):
        path: tuple[str, ...] = ()
        while isinstance(node, ast.Attribute):
            path, node = (node.attr, *path), node.value
        if isinstance(node, ast.Name):
            yield (node.id, *path)


def _read(variables: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """What a variable or an attribute holds; no code of the user's runs."""
    value = variables.get(path[0])
    for name in path[1:]:
        value = None if isinstance(value, Handle) else getattr(value, "__dict__", {}).get(name)
    return value


def exit_program(*status: Any) -> None:
    """`sys.exit`, where a program comes to it: what ends there is Python's.

    Raises: RuntimeError, which is none of Python's and says so while tracing only."""
    raise RuntimeError("sys.exit() is called")
