"""The entry of a rewritten function: its own code, behind a question.

In: a code object. Out: the same with some instructions in front, which ask whether anything is being
traced. Where nothing is, no variable holds a traced value, and the function's own instructions run as they
always did: same speed, same frames, same lines. Otherwise a runner gets the arguments, and what it returns is
the result.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

from jitcore.core.trace import context, eval_trace
from jitcore.rewriter.bytecode.assembler import Assembler, Label, insert_code
from jitcore.rewriter.bytecode.versions import HAS_PRECALL, NULL_BELOW, OPCODES
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import logs


class _Probe:
    """`None in self`: whether rewritten code has to look out for traced values in this thread.

    is_forced: looks out always, so that tests reach the code that does on ordinary values."""

    __slots__ = ("is_forced",)

    def __init__(self):
        self.is_forced = False

    def __contains__(self, _) -> bool:
        return (context.trace is not eval_trace or current.mode is not None or bool(logs.stack)
                or self.is_forced)


PROBE = _Probe()


class Entry:
    """The entries of all functions with one code object. arguments: the names of its parameters."""

    def __init__(self, code: CodeType, arguments: tuple[str, ...]):
        out, runner = Assembler(code, ()), object()  # each function puts its own in its place
        position = (code.co_firstlineno, code.co_firstlineno, 0, 0)
        own_code = Label()
        out.load_const(None)
        out.load_const(PROBE)
        out.emit("CONTAINS_OP", 0)
        out.branch("FALSE", own_code, exact=True)
        if NULL_BELOW:
            out.emit("PUSH_NULL", 0, position)
        out.load_const(runner, position)
        if not NULL_BELOW:
            out.emit("PUSH_NULL", 0, position)
        for number, name in enumerate(arguments):
            out.emit("LOAD_DEREF" if name in code.co_cellvars else "LOAD_FAST", number, position)
        out.emit("BUILD_TUPLE", len(arguments), position)
        if HAS_PRECALL:
            out.emit("PRECALL", 1, position)
        out.emit("CALL", 1, position)
        out.emit("RETURN_VALUE", 0, position)
        out.place(own_code)
        self._code = insert_code(code, out, _find_begin(code), len(arguments) + 4)
        self._place = out.const(runner)

    def make_code(self, runner: Callable[[tuple], Any]) -> CodeType:
        """The code with a runner, which is called with the tuple of all arguments."""
        consts = list(self._code.co_consts)
        consts[self._place] = runner
        return self._code.replace(co_consts=tuple(consts))


def _find_begin(code: CodeType) -> int:
    """The offset behind RESUME; what stands before it makes cells."""
    data = code.co_code
    return next(at for at in range(0, len(data), 2) if data[at] == OPCODES["RESUME"]) + 2
