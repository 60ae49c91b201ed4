"""Writing of scalar code for routines: counted loops, branches, slots of the stack.

In: an `ir.Function` without blocks. Out: its body, by `CodeWriter.b` (an `ir.IRBuilder`) and the statements
here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from llvmlite import ir

from jitcore.backends.llvm.registers import I64


class CodeWriter:
    """b: where code is added. Stack slots are made in the first block, so that loops do not repeat them."""

    def __init__(self, function: ir.Function):
        self.function = function
        self._entry = ir.IRBuilder(function.append_basic_block("entry"))
        start = function.append_basic_block("start")
        self._leave_entry = self._entry.branch(start)
        self._entry.position_before(self._leave_entry)
        self.b = ir.IRBuilder(start)

    def slot(self, kind: ir.Type, count: int = 1) -> ir.Value:
        """Room for `count` values on the stack, not initialised."""
        return self._entry.alloca(kind, size=ir.Constant(ir.IntType(32), count))

    @contextlib.contextmanager
    def loop(self, start: ir.Value, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """`for index in range(start, stop, step)`; gives the index, an i64."""
        b, append = self.b, self.function.append_basic_block
        before, test, body, after = b.block, append("test"), append("body"), append("after")
        b.branch(test)
        b.position_at_end(test)
        index = b.phi(I64)
        index.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", index, stop), body, after)
        b.position_at_end(body)
        yield index
        index.add_incoming(b.add(index, I64(step)), b.block)
        b.branch(test)
        b.position_at_end(after)

    def smaller(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def exchange(self, here: ir.Value, there: ir.Value) -> None:
        """Exchanges what two pointers lead to."""
        first, second = self.b.load(here), self.b.load(there)
        self.b.store(second, here)
        self.b.store(first, there)
