"""Bodies of kernels as Python: loops, choices, loops until something holds.

In: statements. Out: lines. What stands around kernels is `writer`'s.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.backends.python.expressions import count_uses
from jitcore.backends.python.operations import NOT, Text
from jitcore.backends.python.sweeps import Sweeps
from jitcore.loopir.expr import Expr
from jitcore.loopir.program import Choice, Loop, Repeat, Roots
from jitcore.loopir.traversal import list_writes


class Statements(Sweeps):
    """The statements, one method for each."""

    def block(self, body: Sequence) -> None:
        for statement in body:
            getattr(self, _METHODS[type(statement).__name__])(statement)

    def begin_kernel(self, body: Sequence, roots: Sequence[Expr] = ()) -> None:
        """Nothing is named, and what is to come is counted: a body, and expressions beside it."""
        self.known, self.uses = {}, count_uses([*body, *([Roots(*roots)] if roots else [])])
        self.written = list_writes(body)

    def write_loop(self, s: Loop) -> None:
        self.hoist(s.body, [s.axis])
        with self.suite(self.range(s.axis, self.ends(s.axis, s.bounds)), s.body):
            self.block(s.body)
        del self.axes[s.axis]

    def write_choice(self, s: Choice) -> None:
        for head, body in ((f"if {self.text(s.condition)}:", s.body), ("else:", s.other)):
            with self.suite(head, body):
                self.block(body)

    def write_repeat(self, s: Repeat) -> None:
        values = [self.text(expr) for expr in s.initial]
        for register in s.registers:
            self.results.setdefault(register, self.names.take("s"))
        names = ", ".join(self.results[register] for register in s.registers)
        if s.registers:
            self.line(f"{names} = {', '.join(values)}")
        inner = [Roots(s.condition, *s.updates), *s.body]
        self.hoist(inner, (), s.registers)
        with self.suite("while True:", inner):
            head, first = len(self.lines) - 1, len(self.lines)
            self._test(self.expr(s.condition), head, first)
            self.block(s.body)
            if s.registers:
                self.line(f"{names} = {', '.join(self.text(expr) for expr in s.updates)}")

    def _test(self, condition: Text, head: int, first: int) -> None:
        """The test of a loop: in its first line where nothing has to be computed before."""
        if len(self.lines) == first:
            self.lines[head] = self.lines[head].replace("True", condition.text)
        else:
            self.line(f"if not {condition.at(NOT)}:")
            self.line("    break")


_METHODS = {
    "Kernel": "write_kernel",
    "Loop": "write_loop",
    "Choice": "write_choice",
    "Store": "write_store",
    "Reduce": "write_reduce",
    "Scan": "write_scan",
    "Repeat": "write_repeat",
    "While": "write_while",
    "Switch": "write_switch",
    "Call": "write_call",
    "LibraryCall": "write_library_call",
}
