"""Where in the user's code something happened: capture, text for messages, tracebacks without internals.

In: the running Python stack. Out: a `SourceInfo` (one per equation and per tracer origin), source lines with
a caret for `jitcore.errors`, and exceptions whose traceback shows only the user's frames. Used by tracing and
by every public entry point; depends on `config` alone.

Capture happens for every traced operation, so it stores only the code object and the instruction offset.
File, line and column are looked up when somebody asks.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from itertools import islice
from opcode import opname
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from jitcore.config import config
from jitcore.docstrings import document

P = ParamSpec("P")
R = TypeVar("R")

SNIPPET_WIDTH = 96  # columns of source text that fit beside its indentation in a message

# Frames of these packages are never the place where the user wrote an operation ...
_CARRIERS = frozenset(
    {"jitcore", "numpy", "optree", "functools", "contextlib", "opt_einsum", "numba", "llvmlite"}
)
# ... and frames of these tell the user nothing in a traceback. NumPy's stay: the user may have called it.
_HIDDEN = frozenset({"jitcore", "numba", "llvmlite", "optree"})


class _PackageTable(dict):
    """Module name -> is its top-level package one of `packages`? Filled on first sight of each module."""

    def __init__(self, packages: frozenset[str]):
        super().__init__()
        self.packages = packages

    def __missing__(self, module_name: Any) -> bool:
        found = isinstance(module_name, str) and module_name.partition(".")[0] in self.packages
        self[module_name] = found
        return found


_carries = _PackageTable(_CARRIERS)
_hidden = _PackageTable(_HIDDEN)


class SourcePosition(NamedTuple):
    """A resolved position: lines from 1, columns from 0 in bytes of UTF-8, None where Python kept none."""

    file: str
    line: int
    end_line: int | None
    column: int | None
    end_column: int | None
    function: str


class SourceInfo:
    """A point in the user's code: a code object and an instruction offset in bytes. Hashable."""

    __slots__ = ("code", "lasti")

    def __init__(self, code: CodeType, lasti: int):
        self.code = code
        self.lasti = lasti

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceInfo) and self.code is other.code and self.lasti == other.lasti

    def __hash__(self) -> int:
        return hash((id(self.code), self.lasti))

    def __repr__(self) -> str:
        return f"SourceInfo({summarize_source(self)})"

    def resolve(self) -> SourcePosition:
        """File, line, columns and function of this point."""
        code = self.code
        line, end_line, start, end = next(islice(code.co_positions(), _find_producer(code, self.lasti), None),
                                          (None, None, None, None))
        if line is None:  # instructions that the compiler added have no position of their own
            line, end_line, start, end = code.co_firstlineno, None, None, None
        return SourcePosition(code.co_filename, line, end_line, start, end, code.co_name)


def _find_producer(code: CodeType, lasti: int) -> int:
    """Number of the instruction whose position to show, counting code units."""
    unit = max(lasti, 0) // 2
    name = opname[code.co_code[2 * unit]]
    # Python may give a conditional jump the position of the whole statement; the condition stands before it.
    # So does the test of the first operand of `and` and `or`, which is a copy of it from Python 3.13 on.
    if unit > 0 and name == "TO_BOOL" and opname[code.co_code[2 * unit - 2]] == "COPY":
        unit -= 1
        name = "COPY"
    while unit > 0 and ("JUMP" in name or name in ("COPY", "EXTENDED_ARG")):
        unit -= 1
        name = opname[code.co_code[2 * unit]]
    return unit


def capture_source(skip: int = 0) -> SourceInfo | None:
    """The innermost frame of the user's code, or None when the stack has none.

    skip: frames above the caller to pass over unseen; frames of jitcore, NumPy and their helpers are passed
    anyway."""
    frame: FrameType | None = sys._getframe(skip + 1)
    while frame is not None:
        if not _carries[frame.f_globals.get("__name__")]:
            return SourceInfo(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


def find_user_frame() -> FrameType | None:
    """The frame that `capture_source` finds, for messages that read its variables."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _carries[frame.f_globals.get("__name__")]:
        frame = frame.f_back
    return frame


def warn_user(message: str) -> None:
    """A warning at the user's line; none where no code of a user is under way."""
    if (frame := find_user_frame()) is not None:
        warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)


def read_segment(info: SourceInfo) -> str:
    """The source text of an instruction, without what surrounds it; "" where it is unknown."""
    position = info.resolve()
    if position.column is None or position.end_line is None or position.end_column is None:
        return ""
    lines = [_read_line(position.file, n).encode() for n in range(position.line, position.end_line + 1)]
    lines[-1] = lines[-1][: position.end_column]
    lines[0] = lines[0][position.column :]
    return b"".join(lines).decode(errors="replace")


def locate_function(fun: Any) -> tuple[str, str]:
    """(name, "file:line") of a callable; "" for the place of a builtin or an object without Python code."""
    while True:
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        elif hasattr(fun, "__func__"):
            fun = fun.__func__
        else:
            break
    name = getattr(fun, "__name__", None) or type(fun).__name__
    code = getattr(fun, "__code__", None) or getattr(getattr(type(fun), "__call__", None), "__code__", None)
    return name, format_place(code.co_filename, code.co_firstlineno) if code else ""


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def inspect_signature(fun: Callable) -> inspect.Signature:
    """The signature. Annotations may be of names that are not defined yet, from Python 3.14 on.

    Raises: TypeError, ValueError, as `inspect.signature`."""
    if sys.version_info < (3, 14):
        return inspect.signature(fun)
    return inspect.signature(fun, annotation_format=inspect.Format.FORWARDREF)


def read_signature(fun: Callable) -> inspect.Signature | None:
    """The signature, or None for builtins that have none."""
    try:
        return inspect_signature(fun)
    except (ValueError, TypeError):
        return None


def list_positional(signature: inspect.Signature) -> tuple[list[inspect.Parameter], str]:
    """The positional parameters, and the name of what takes any others; "" where nothing does."""
    parameters = signature.parameters.values()
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    rest = (parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.VAR_POSITIONAL)
    return positional, next(rest, "")


def summarize_source(info: SourceInfo | None) -> str:
    """A position for listings of programs, "file.py:12 (f)"; "" for None."""
    if info is None:
        return ""
    position = info.resolve()
    file = position.file if find_cell(position.file) else os.path.basename(position.file)
    return f"{format_place(file, position.line)} ({position.function})"


def format_place(file: str, line: int | str) -> str:
    """A line for messages: "file.py:12", or "Cell In[3], line 12" where IPython made the file's name."""
    cell = find_cell(file)
    return f"{cell}, line {line}" if cell else f"{file}:{line}"


def find_cell(file: str) -> str:
    """A cell as IPython names it in tracebacks, "Cell In[3]"; "" where the file is none of its cells."""
    ipython = sys.modules.get("IPython.core.getipython")
    shell = ipython and ipython.get_ipython()
    found = shell and shell.compile.format_code_name(file)
    return " ".join(found) if found else ""


def format_snippet(info: SourceInfo | None, width: int = SNIPPET_WIDTH) -> list[str]:
    """Lines for a message: place, source text, caret. Shorter where something is unknown, [] for None.

    Of an expression over several lines the first is shown. Lines longer than `width` are cut around the
    caret."""
    if info is None:
        return []
    position = info.resolve()
    lines = [f"  {format_place(position.file, position.line)}"]
    raw = _read_line(position.file, position.line).rstrip()
    text = raw.lstrip()
    if not text:
        return lines
    indent = len(raw) - len(text)
    text = "".join(" " if char == "\t" else char for char in text)
    start = _count_characters(raw, position.column) - indent
    end = _count_characters(raw, position.end_column) - indent
    if position.end_line != position.line:
        end = len(text)
    if not 0 <= start < end <= len(text):  # no columns kept, or the file has changed since it was compiled
        return [*lines, "    " + _cut_text(text, 0, width)[0]]
    shown, offset = _cut_text(text, start, width)
    start, end = start - offset, min(end - offset, len(shown))
    marker = " " * _count_columns(shown[:start]) + "^" * _count_columns(shown[start:end])
    return [*lines, "    " + shown, "    " + marker]


def _cut_text(text: str, start: int, width: int) -> tuple[str, int]:
    """(the part of `text` around index `start` that fits `width`, how far indices move to the left in it)."""
    if len(text) <= width:
        return text, 0
    first = 0 if start < width // 2 else min(start - width // 4, len(text) - width)
    shown = text[first : first + width]
    if first + width < len(text):
        shown = shown[:-3] + "..."
    if first > 0:
        shown = "..." + shown[3:]
    return shown, first


def _read_line(file: str, line: int) -> str:
    linecache.checkcache(file)
    return linecache.getline(file, line)


def _count_characters(text: str, byte_offset: int | None) -> int:
    """Characters before an offset in bytes; -1 for None."""
    if byte_offset is None:
        return -1
    return byte_offset if text.isascii() else len(text.encode()[:byte_offset].decode(errors="replace"))


def _count_columns(text: str) -> int:
    """Columns of a terminal: East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


# --- tracebacks ---------------------------------------------------------------------------------------------


def api_boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public entry point: exceptions leave it without the frames of jitcore.

    Costs one extra Python call. Where that counts, write the `try` in place:
    `except Exception as exc: filter_traceback(exc); raise` (a bare `raise`, which adds no frame)."""

    @functools.wraps(fun)
    def call_filtered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as exc:
            filter_traceback(exc)
            raise

    return call_filtered


#: Packages whose functions are written in other public functions ...
_LIBRARIES = ("experimental", "image", "lax", "nn", "numpy", "ops", "random", "scipy")
#: ... but for these modules, through which calls of others go, or which call functions of the user's.
_WAYS_IN = frozenset({"jitcore.numpy.arrays.operators", "jitcore.numpy.arrays.methods",
                      "jitcore.numpy.arrays.protocols", "jitcore.numpy.vectorizing"})


def is_called_by_user() -> bool:
    """Whether the public function that is running was called by the user, not by another one of jitcore's:
    what a flag forbids the user, such as implicit promotion, libraries may do."""
    frame: FrameType | None = sys._getframe(1)
    entry = api_boundary.__code__.co_consts
    while frame is not None and _hidden[frame.f_globals.get("__name__")]:
        is_entry, frame = frame.f_code in entry, frame.f_back
        while is_entry and frame is not None:
            name = frame.f_globals.get("__name__", "")
            if name not in _WAYS_IN:
                if name.startswith("jitcore.") and name.split(".")[1] in _LIBRARIES:
                    return False
                break
            frame = frame.f_back
    return True


def bound_module(module: ModuleType, names: Iterable[str]) -> None:
    """Makes the public functions of a module entry points, see `api_boundary`, with complete docstrings."""
    for name in names:
        if isinstance(function := getattr(module, name), FunctionType):
            public = api_boundary(function)
            public.__module__, public.__qualname__ = module.__name__, name  # by which it is pickled
            setattr(module, name, public)
    document(module, names)


def filter_traceback(exc: BaseException) -> None:
    """Remove the frames of jitcore and its code generators from an exception and those it is chained to.

    An implicit context that was raised and caught inside jitcore is hidden; a `raise ... from` is kept.
    Nothing changes while `config.traceback_filtering` is off."""
    if not config.traceback_filtering:
        return
    _note_defect(exc)
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        current.__traceback__ = _drop_hidden(current.__traceback__)
        following = current.__cause__
        if following is None and not current.__suppress_context__:
            following = current.__context__
            if following is not None and _drop_hidden(following.__traceback__) is None:
                current.__suppress_context__ = True
                following = None
        current = following


def _drop_hidden(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while traceback is not None:
        if not _hidden[traceback.tb_frame.f_globals.get("__name__")]:
            kept.append(traceback)
        traceback = traceback.tb_next
    rebuilt: TracebackType | None = None
    for entry in reversed(kept):
        line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno  # instructions may be of no line
        rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, line)
    return rebuilt


def raise_interruption(exc: BaseException) -> None:
    """Raises what a signal's handler has raised, if that is the exception or one that it is chained to.

    For code that takes any exception as a sign that something cannot be done: Python runs handlers between
    any two instructions, and where native code lets it."""
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        around, entry = None, current.__traceback__
        while entry is not None:
            if around is not None and _is_handler(entry.tb_frame, around):
                raise current
            around, entry = entry.tb_frame, entry.tb_next
        current = current.__cause__ or current.__context__


def _is_handler(frame: FrameType, around: FrameType) -> bool:
    """Whether a call is one of a signal's handler: its last argument is the frame that was interrupted."""
    code = frame.f_code
    names = code.co_varnames
    if not code.co_flags & inspect.CO_VARARGS:
        return code.co_argcount >= 2 and frame.f_locals.get(names[code.co_argcount - 1]) is around
    rest = frame.f_locals.get(names[code.co_argcount + code.co_kwonlyargcount])
    return isinstance(rest, tuple) and len(rest) > 0 and rest[-1] is around


def _note_defect(exc: BaseException) -> None:
    """An assertion or look-up failing inside jitcore is a defect, whose report would lack its place."""
    if not isinstance(exc, (AssertionError, KeyError, NameError)) or hasattr(exc, "__notes__"):
        return
    entry = exc.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is not None and _hidden[entry.tb_frame.f_globals.get("__name__")]:
        code = entry.tb_frame.f_code
        exc.add_note(
            f"Raised inside jitcore at {code.co_filename}:{entry.tb_lineno}; "
            "config.update('traceback_filtering', False) shows every frame."
        )
