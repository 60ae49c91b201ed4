"""The specification of the loop program, executable.

In: a `Program`. Out: nothing, or `LoopProgramError` naming the statement. Runs after scheduling when
`config.check_jaxprs` is on.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore import dtypes
from jitcore.loopir.expr import Buffer, Expr, Index, walk
from jitcore.loopir.program import Kernel, Program, Reduce, Repeat, Scan, Statement, Store, Switch, While
from jitcore.loopir.traversal import peel


class LoopProgramError(TypeError):
    """A loop program breaks a rule of its language: a compiler error, not a user error."""


def check_program(program: Program) -> None:
    """Every buffer is declared, every axis is bound where it is read, results are read after their reduction,
    stored dtypes are those of the buffers, and nothing is stored into an input that is no output too."""
    _Checker(program).check_body(program.steps, frozenset(), frozenset())


class _Checker:
    def __init__(self, program: Program):
        self.declared = {*program.inputs, *program.outputs, *program.temps}
        self.writable = {*program.outputs, *program.temps}

    def check_body(self, body: Sequence[Statement], axes: frozenset, results: frozenset) -> None:
        written, known = {}, set()
        for statement in body:
            if not isinstance(statement, Statement):
                raise LoopProgramError(f"{statement!r} is not a statement")
            self.check_reads(statement, written, known)
            self.check_statement(statement, axes, results)
            results = results.union(statement.results)

    def check_statement(self, statement: Statement, axes: frozenset, results: frozenset) -> None:
        """What holds for each kind, and what its own rule says (`_RULES`)."""
        for buffer, _ in statement.loads:
            self.check_declared(buffer)
        for buffer, _ in statement.targets:
            self.check_declared(buffer)
            if buffer not in self.writable:
                raise LoopProgramError(f"store into input {buffer!r}")
        self.check_ends(statement, axes, results)
        inside = axes.union(statement.axes)
        if isinstance(statement, Repeat):
            self.check_repeat(statement, inside, results)
            results = results.union(statement.registers)
        else:
            for root in statement.roots:
                self.check_expr(root, inside, results)
        for _, offset in statement.targets:
            if offset is not None:
                self.check_index(offset, inside, results)
        if (rule := _RULES.get(type(statement))) is not None:
            rule(self, statement)
        for body in [statement.stores] if isinstance(statement, Reduce) else statement.bodies:
            self.check_body(body, inside, results)

    def check_declared(self, buffer: Buffer) -> None:
        if buffer not in self.declared:
            raise LoopProgramError(f"buffer {buffer!r} is not declared")

    def check_reads(self, statement, written: dict[Buffer, set[Index]], known: set[Expr]) -> None:
        """What a store reads for the first time in its body no store before it in the body has written.

        written: elements, known: loads of the statements before; both are added to."""
        if not isinstance(statement, Store):
            return
        for node in walk(statement.roots):
            if node.op == "load" and node not in known:
                known.add(node)
                buffer, offset = node.attr
                if offset in written.get(buffer, ()):
                    raise LoopProgramError(f"{buffer!r} is read behind a store to the element in one body")
        written.setdefault(statement.buffer, set()).add(statement.offset)

    def check_ends(self, statement: Statement, axes: frozenset, results: frozenset) -> None:
        """The ends of a range are numbers that are known where its loop begins."""
        for axis in statement.axes:
            for end in statement.bounds.get(axis, ()):
                if end is not None:
                    self.check_expr(end, axes, results)
                    if end.dtype != dtypes.int64:
                        raise LoopProgramError(f"an end of the range of {axis!r} is not an int64")
            axes = axes | {axis}
        for end in () if statement.axes else statement.ends:
            self.check_expr(end, axes, results)

    def check_repeat(self, repeat: Repeat, axes: frozenset, results: frozenset) -> None:
        for expr in repeat.initial:
            self.check_expr(expr, axes, results)
        results = results.union(repeat.registers)
        self.check_expr(repeat.condition, axes, results)
        results = results.union(*(statement.results for statement in repeat.body))
        for register, expr in zip(repeat.registers, repeat.updates):
            self.check_expr(expr, axes, results)
            if expr.dtype != register.dtype:
                raise LoopProgramError(f"register {register!r} changes its dtype")

    # -- rules of one kind --------------------------------------------------------------------------------
    def check_tile(self, kernel: Kernel) -> None:
        """A kernel in tiles is loops inside each other, the innermost ones over the tile, around stores."""
        if kernel.tile is None:
            return
        loops, body = peel(kernel.body)
        axes = tuple(loop.axis for loop in loops)
        is_tiled = axes[-2:] == kernel.tile and kernel.vector is axes[-1]
        if not is_tiled or not all(isinstance(statement, Store) for statement in body):
            raise LoopProgramError(f"the loops of a kernel are not those of its tiles {kernel.tile!r}")

    def check_value(self, statement: Store | Scan) -> None:
        value, buffer = statement.value, statement.buffer
        if value.dtype != buffer.dtype:
            raise LoopProgramError(
                f"store of {value.dtype.name} into {buffer!r}, which holds {buffer.dtype.name}")

    def check_store(self, store: Store) -> None:
        self.check_value(store)
        if store.mask is not None and store.mask.dtype != dtypes.bool_:
            raise LoopProgramError(f"the mask of a store to {store.buffer!r} is not a bool")
        if store.mask is None and store.packed:
            raise LoopProgramError(f"a packed store to {store.buffer!r} has no mask")

    def check_while(self, loop: While) -> None:
        self.check_scalar(loop.predicate, dtypes.bool_)
        for first, second in loop.swaps:
            if (first.shape, first.dtype) != (second.shape, second.dtype) or first is second:
                raise LoopProgramError(f"{first!r} and {second!r} cannot change places")
            for buffer in (first, second):
                if buffer.kind == "scalar":
                    raise LoopProgramError(f"{buffer!r} has to stay in its place")

    def check_switch(self, switch: Switch) -> None:
        self.check_scalar(switch.selector, dtypes.int32)

    def check_scalar(self, buffer: Buffer, dtype) -> None:
        if buffer.shape or buffer.dtype != dtype:
            raise LoopProgramError(f"control flow reads {buffer!r}, which is no {dtype.name} scalar")

    def check_expr(self, root: Expr, axes: frozenset, results: frozenset) -> None:
        for node in walk([root]):
            if node.op == "load":
                self.check_index(node.attr[1], axes, results)
            elif node.op == "index":
                self.check_index(node.attr, axes, results)
            elif node.op == "result" and node.attr not in results:
                raise LoopProgramError(f"result {node.attr!r} is read before its reduction")

    def check_index(self, index: Index, axes: frozenset, results: frozenset) -> None:
        for axis in index.axes() - axes:
            raise LoopProgramError(f"axis {axis!r} is read outside of its loop")
        for expr in index.exprs:
            self.check_expr(expr, axes, results)


_RULES = {Kernel: _Checker.check_tile, Store: _Checker.check_store, Scan: _Checker.check_value,
          While: _Checker.check_while, Switch: _Checker.check_switch}
