"""The ways in which a call can be served, and the warning that says when a slower one is taken."""

from __future__ import annotations

import enum
import linecache
import re
import types
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from jitcore.core.source import SourcePosition
from jitcore.errors import AutojitWarning, NotTraceable
from jitcore.numpy_semantics.errors import describe_reason
from jitcore.rewriter.user_code import is_library_file

__all__ = ["AutojitWarning", "Reason", "Tier", "find_reason", "warn_of"]


class Tier(enum.Enum):
    """Best first."""

    TRACED = "traced"
    NUMBA = "numba"
    PYTHON = "python"


class Reason(NamedTuple):
    """Why a tier was left: what could not be done, and the user's line.

    details: what a message says of it below its first line, where the error said it."""

    file: str
    line: int
    text: str
    details: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"

    def as_error(self) -> NotTraceable:
        """The error that is raised with `strict`."""
        return describe_reason(self.text, _show_line(self.file, self.line))


def _show_line(file: str, line: int) -> list[str]:
    """The lines of a message that show a line of the user's."""
    text = linecache.getline(file, line).strip()
    return [f"  {file}:{line}", f"    {text}"] if text else []


def find_reason(error: BaseException, function: types.FunctionType) -> Reason:
    """Where in the user's code an exception arose, and what it says."""
    code = function.__code__
    file, line = code.co_filename, code.co_firstlineno
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_library_file(name) and not name.startswith("<jitcore") and trace.tb_lineno:
            file, line = name, trace.tb_lineno
        trace = trace.tb_next
    text, details = _split_message(error)
    return Reason(file, line, text, details if "To fix: " in details else "")


def find_loop_reason(position: SourcePosition, error: Exception) -> Reason:
    """Why a loop is no loop of the program."""
    return Reason(position.file, position.line, _split_message(error)[0])


def _split_message(error: BaseException) -> tuple[str, str]:
    """The first line of a message, with the exception's type where that says more, and the rest."""
    try:
        text, _, details = str(error).strip().partition("\n")
    except NotTraceable:  # the user's own, with a traced value in it
        text = details = ""
    if not isinstance(error, NotTraceable):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text, details


def warn_of(reason: Reason, name: str, tier: Tier, loops: Sequence[int] = ()) -> None:
    """Says that a function goes on in a lower tier, why, and what to write instead.

    loops: lines of the loops that are compiled for themselves."""
    how = {Tier.NUMBA: "is compiled by Numba", Tier.PYTHON: "runs in plain Python"}[tier]
    if loops:
        *first, last = map(str, dict.fromkeys(loops))
        lines = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
        how = f"{how}, except for its loops at {lines}, which are compiled"
    details = reason.details or str(reason.as_error()).partition("\n")[2]
    details = re.sub(r"\nSee help\(.*\)$", "\nSee help(jitcore.errors.AutojitWarning)", details)
    message = f"{reason}; {name} {how}\n{details}"
    warnings.warn_explicit(message, AutojitWarning, reason.file, reason.line)
