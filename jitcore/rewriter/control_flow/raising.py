"""Exceptions under a traced condition: which ones a program can raise, and the checks that do it.

In: an exception that left the code of an arm, or a value of which it depends on traced conditions whether it
is bound. Out: a check in the program that is being recorded: `lax.raise_if`, or what the mode has for it.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from jitcore import errors
from jitcore.array import Array
from jitcore.config import config
from jitcore.core.jaxpr import Equation, Literal
from jitcore.core.source import format_place
from jitcore.core.trace import Tracer
from jitcore.lax import elementwise
from jitcore.lax.control_flow.raise_if import raise_if
from jitcore.rewriter.bytecode.instructions import read_handlers
from jitcore.rewriter.bytecode.versions import NAMES
from jitcore.rewriter.errors import caught_outside_error
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.objects import Place, is_user_code

_RAISES = frozenset({"RAISE_VARARGS", "RERAISE"})


def negate(predicate: Array | bool) -> Array | bool:
    return not predicate if isinstance(predicate, bool) else elementwise.eq(predicate, False)


def is_explicit(error: BaseException) -> bool:
    """Whether the user's code raised it by `raise`, by `assert` or by reading a variable that is not bound,
    and not because something cannot be traced."""
    entry, cause = error.__traceback__, error
    while cause is not None:
        if type(cause).__module__.startswith("jitcore."):
            return False
        cause = cause.__context__
    if entry is None:
        return False
    while entry.tb_next is not None:
        entry = entry.tb_next
    code = entry.tb_frame.f_code
    if type(error) is UnboundLocalError:
        return is_user_code(code) or code is fail.__code__
    return is_user_code(code) and NAMES[code.co_code[entry.tb_lasti]] in _RAISES


def fail(predicate: Array | bool, error: BaseException) -> None:
    """Raises an exception where a predicate holds when the program runs; at once where that is certain.

    Raises: the exception itself where the program cannot."""
    if predicate is False:
        return
    if any(isinstance(arg, Handle) for arg in error.args):  # what the program keeps must hold no tracer
        error.args = tuple([arg.preview() if isinstance(arg, Handle) else arg for arg in error.args])
    if current.mode is not None:
        if not current.mode.fail(predicate, error):
            raise error
        return
    if predicate is True:
        raise error
    raise_if(predicate, error)


def note_place(error: BaseException) -> None:
    """Adds the line that raised an exception, which a program raises without a traceback."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is not None:
        code = entry.tb_frame.f_code
        place = format_place(code.co_filename, entry.tb_lineno)
        note = f"[jitcore] raised at {place} in {code.co_qualname}()"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


# -- handlers of the user's code ----------------------------------------------------------------------------
#: Errors that say that code cannot be traced. Plain Python would not have raised them.
_REFUSALS = (errors.NotTraceable, errors.ControlFlowError, errors.ConcretizationTypeError,
             errors.TracerIntegerConversionError, errors.TracerArrayConversionError,
             errors.NonConcreteBooleanIndexError, errors.TracerMutationError,
             errors.UnexpectedTracerError)


def is_refusal(error: BaseException | None) -> bool:
    """Whether an error says, or was raised while another one said, that code cannot be traced."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, _REFUSALS):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


#: Modules that do what Python does, or call what does it.
_ON_BEHALF = frozenset({
    "jitcore.rewriter.operations.hooks", "jitcore.rewriter.operations.redirects",
    "jitcore.rewriter.control_flow.iterators", "jitcore.numpy_semantics.values.conversions",
    "jitcore.autojitted.inputs.attributes"})


#: What says that code is wrong wherever it is raised, and what does if the interpreter raises it.
_ALWAYS_DEFECTS, _DEFECTS = AssertionError, (AttributeError, KeyError, NameError)


def is_raised_defect(error: BaseException) -> bool:
    """Whether an error shows that jitcore itself is wrong, and `config.raise_defects` wants such errors: it
    comes from our code, which does not raise it on behalf of the user's."""
    if not config.raise_defects or not isinstance(error, (_ALWAYS_DEFECTS, *_DEFECTS)):
        return False
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or is_refusal(error):
        return False
    name, code = entry.tb_frame.f_globals.get("__name__", ""), entry.tb_frame.f_code
    if not name.startswith("jitcore.") or is_user_code(code) or name in _ON_BEHALF:
        return False
    return isinstance(error, _ALWAYS_DEFECTS) or NAMES[code.co_code[entry.tb_lasti]] not in _RAISES


def is_left_to_python(error: BaseException) -> bool:
    """Whether a side of a traced condition that an error ended is left to who runs the call instead, where
    the program comes there: under a mode, for what Python or NumPy raise too."""
    if current.mode is None or isinstance(error, (RecursionError, MemoryError)) or is_raised_defect(error):
        return False
    if isinstance(error, TypeError) and _NAMED.search(str(error)):
        return False
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__module__.startswith("jitcore."):
            return False
        cause = cause.__context__
    return True


def make_conditional(error: BaseException) -> None:
    """Marks an error that ended a side of a traced condition: it is not known whether Python would come
    there."""
    if not is_refusal(error):
        error.__dict__["jitcore_is_conditional"] = True


def is_doubtful(error: BaseException) -> bool:
    """Whether Python may not have raised an error: it ended a side of a traced condition, or, under a mode,
    comes from code of jitcore."""
    if error is not None and error.__dict__.get("jitcore_is_conditional", False):
        return True
    if current.mode is None or error is None:
        return False
    frame = _find_raising(error.__traceback__)
    if frame is None or frame.f_code.co_name == fail.__name__:  # what Python raises for certain
        return False
    name = frame.f_globals.get("__name__", "")
    if name in _ON_BEHALF:
        return isinstance(error, TypeError) and _NAMED.search(str(error)) is not None
    return name.startswith("jitcore.")


#: What messages call a type, and no type of Python's or NumPy's is called: that of a stand-in.
_NAMED = re.compile(r"\b(NDArray|Scalar|Number|Mixed|Text|Traced\w+|Array)\b")


def _find_raising(trace: TracebackType | None) -> FrameType | None:
    """The innermost frame of the user's code or of ours: libraries raise for those that call them."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        is_ours = trace.tb_frame.f_globals.get("__name__", "").startswith("jitcore.")
        found = trace.tb_frame if is_ours or is_user_code(code) else found
        trace = trace.tb_next
    return found


def choose_caught(kinds: Any) -> Any:
    """What an `except` clause catches of the exception that it is asked about: a refusal only by its name."""
    error = sys.exception()
    if is_doubtful(error):
        return ()
    if not is_refusal(error):
        return kinds
    listed = kinds if isinstance(kinds, tuple) else (kinds,)
    return tuple([kind for kind in listed if isinstance(kind, type) and issubclass(kind, _REFUSALS)])


def pass_refusal(error: BaseException) -> BaseException:
    """At the beginning of an `except` clause that catches all. Raises: the error, if it is a refusal."""
    if is_refusal(error) or is_doubtful(error):
        raise error
    return error


def enter_handler(error: BaseException) -> BaseException:
    """At the beginning of a handler, of a `finally` clause too. Raises: under a mode, a refusal: who runs the
    code instead has no such error to clean up behind."""
    return error if current.mode is None else pass_refusal(error)


def choose_suppressed(is_suppressed: Any) -> Any:
    """Whether a `with` statement goes on behind an exception, of what its `__exit__` returns."""
    error = sys.exception()
    return is_suppressed and not is_refusal(error) and not is_doubtful(error)


# -- handlers of callers ------------------------------------------------------------------------------------
def check_callers(error: BaseException) -> None:
    """Raises: ControlFlowError where a caller's `except` may catch an exception that a program shall raise:
    the caller's code is not traced a second time. A mode knows what to do."""
    place = None if current.mode is not None else _find_catcher()
    if place is not None:
        raise caught_outside_error(type(error).__name__, place) from error


def _find_catcher() -> Place | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if is_user_code(frame.f_code):
            if _catches(frame.f_code, frame.f_lasti):
                return Place(frame.f_code, frame.f_lineno)
        elif name.startswith("jitcore.") and not name.startswith("jitcore.rewriter."):
            return None  # what called this does so through a transformation
        frame = frame.f_back
    return None


def _catches(code: CodeType, offset: int) -> bool:
    handlers, seen = list(read_handlers(code)), set()
    while True:
        found = next((handler for handler in handlers if handler.start <= offset < handler.stop), None)
        if found is None or found.target in seen:
            return False
        if _is_except(code, found.target):
            return True
        seen.add(found.target)
        offset = found.target  # `finally` and `with` raise again, into what is around them


#: What may stand before an `except` clause's test; a hook is asked there by `helper @ value`.
_BEFORE_MATCH = ("PUSH_", "LOAD_", "CACHE", "EXTENDED_ARG", "BUILD_TUPLE", "COPY", "SWAP", "BINARY_OP")


def _is_except(code: CodeType, offset: int) -> bool:
    """Whether a handler begins as an `except` clause does."""
    names = [NAMES[op] for op in code.co_code[offset : offset + 80 : 2]]
    for name in names:
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            return True
        if not name.startswith(_BEFORE_MATCH):
            return name == "POP_TOP"
    return False


# -- variables ----------------------------------------------------------------------------------------------
class MaybeUnbound:
    """What a variable holds that only some ways have bound. Reading it adds a check.

    Attributes:
        value: what it holds where it is bound.
        predicate, holds: it is not bound where the traced predicate is equal to `holds`.
    """

    def __init__(self, value: Any, predicate: Array | bool, holds: bool = True):
        self.value, self.predicate, self.holds = value, predicate, holds

    @property
    def is_unbound(self) -> Array | bool:
        return self.predicate if self.holds else negate(self.predicate)


def read_variable(value: Any, name: str) -> Any:
    """What a variable holds that may not be bound. Raises: UnboundLocalError where it is not for certain."""
    if type(value) is MaybeUnbound:
        if not _is_excluded(value.predicate, value.holds):
            error = UnboundLocalError(
                f"cannot access local variable '{name}' where it is not associated with a value")
            fail(value.is_unbound, error)
        value = value.value
    return value


class _Path(threading.local):
    """The conditions under which the code that is being traced runs: (predicate, whether it holds)."""

    def __init__(self):
        self.conditions: list[tuple[Any, bool]] = []


_path = _Path()


@contextlib.contextmanager
def assume(predicate: Any, holds: bool) -> Iterator[None]:
    """Within, code is traced that runs where a predicate is equal to `holds`."""
    _path.conditions.append((predicate, holds))
    try:
        yield
    finally:
        _path.conditions.pop()


def _is_excluded(predicate: Any, holds: bool) -> bool:
    """Whether the code that is being traced runs only where a predicate is not equal to `holds`."""
    return any(known != holds and _is_equal(other, predicate) for other, known in _path.conditions)


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two predicates are one value, or are computed alike."""
    if one is other:
        return True
    if type(one) is not Tracer or type(other) is not Tracer or one.owner is not other.owner:
        return False
    eqns = [_find_equation(tracer) for tracer in (one, other)]
    if None in eqns or eqns[0].primitive is not eqns[1].primitive or eqns[0].params != eqns[1].params:
        return False
    return all(map(_is_equal_atom, eqns[0].invars, eqns[1].invars))


def _find_equation(tracer: Tracer) -> Equation | None:
    found = (eqn for eqn in reversed(getattr(tracer.owner, "eqns", ())) if tracer.atom in eqn.outvars)
    return next(found, None)


def _is_equal_atom(one: Any, other: Any) -> bool:
    if isinstance(one, Literal) and isinstance(other, Literal):
        return one.aval == other.aval and bool(one.value == other.value)
    return one is other
