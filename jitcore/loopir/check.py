"""The specification of the loop program, executable.

In: a `Program`. Out: nothing, or `LoopProgramError` naming the statement. Runs after scheduling when
`config.check_jaxprs` is on.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.loopir.expr import Buffer, Expr, index_exprs, walk
from jitcore.loopir.index import Axis, Dynamic, Index
from jitcore.loopir.program import (
    Call,
    Choice,
    Kernel,
    LibraryCall,
    Loop,
    Program,
    Reduce,
    Repeat,
    Scan,
    Store,
    Switch,
    While,
)


class LoopProgramError(TypeError):
    """A loop program breaks a rule of its language: a compiler error, not a user error."""


def check_program(program: Program) -> None:
    """Every buffer is declared, every axis is bound where it is read, results are read after their
    reduction, stored
    dtypes are those of the buffers, and nothing is stored into an input that is no output too."""
    checker = _Checker(program)
    for step in program.steps:
        if isinstance(step, LibraryCall):
            checker.check_call(step.name, step.inputs, step.outputs)
        else:
            checker.check_body(step.body, frozenset(), set())


class _Checker:
    def __init__(self, program: Program):
        self.declared = {*program.inputs, *program.outputs, *program.temps}
        self.writable = {*program.outputs, *program.temps}

    def check_declared(self, buffer: Buffer) -> None:
        if buffer not in self.declared:
            raise LoopProgramError(f"buffer {buffer!r} is not declared")

    def check_body(self, body: list, axes: frozenset, results: set) -> None:
        results, written, known = set(results), {}, set()
        for statement in body:
            self.check_reads(statement, written, known)
            if isinstance(statement, Kernel):
                self.check_tile(statement)
                self.check_body(statement.body, axes, set())
            elif isinstance(statement, Loop):
                self.check_bounds(statement, (statement.axis,), axes, results)
                self.check_body(statement.body, axes | {statement.axis}, results)
            elif isinstance(statement, Reduce):
                inner = axes | set(statement.axes)
                self.check_bounds(statement, statement.axes, axes, results)
                for _, _, expr in statement.parts:
                    self.check_expr(expr, inner, results)
                self.check_body(statement.stores, inner, results)
                results |= {result for result, _, _ in statement.parts}
            elif isinstance(statement, Scan):
                inner = axes | {statement.axis}
                self.check_write(statement.buffer, statement.offset, statement.value, inner, results)
            elif isinstance(statement, Store):
                self.check_write(statement.buffer, statement.offset, statement.value, axes, results)
                if statement.mask is not None:
                    self.check_expr(statement.mask, axes, results)
                    if statement.mask.dtype != dtypes.bool_:
                        raise LoopProgramError(f"the mask of a store to {statement.buffer!r} is not a bool")
                elif statement.packed:
                    raise LoopProgramError(f"a packed store to {statement.buffer!r} has no mask")
            elif isinstance(statement, Choice):
                self.check_expr(statement.condition, axes, results)
                for body in (statement.body, statement.other):
                    self.check_body(body, axes, results)
                results |= {result for s in statement.body for result, _, _ in getattr(s, "parts", ())}
            elif isinstance(statement, Repeat):
                self.check_repeat(statement, axes, results)
                results |= set(statement.registers)
            elif isinstance(statement, Call):
                written = [*statement.outputs, *statement.scratch]
                self.check_call(statement.routine, statement.inputs, written)
                if statement.epilogue is not None:
                    self.check_body([statement.epilogue], axes, set())
            elif isinstance(statement, LibraryCall):
                self.check_call(statement.name, statement.inputs, statement.outputs)
            elif isinstance(statement, While):
                self.check_scalar(statement.predicate, dtypes.bool_)
                for pair in statement.swaps:
                    self.check_swap(*pair)
                self.check_body(statement.cond, axes, set())
                self.check_body(statement.body, axes, set())
            elif isinstance(statement, Switch):
                self.check_scalar(statement.selector, dtypes.int32)
                for branch in statement.branches:
                    self.check_body(branch, axes, set())
            else:
                raise LoopProgramError(f"{statement!r} is not a statement")

    def check_reads(self, statement, written: dict[Buffer, set[Index]], known: set[Expr]) -> None:
        """What a store reads for the first time in its body no store before it in the body has written.

        written: elements, known: loads of the statements before; both are added to."""
        if not isinstance(statement, Store):
            return
        read = [statement.value, *index_exprs(statement.offset)]
        for node in walk(read if statement.mask is None else [*read, statement.mask]):
            if node.op == "load" and node not in known:
                known.add(node)
                buffer, offset = node.attr
                if offset in written.get(buffer, ()):
                    raise LoopProgramError(f"{buffer!r} is read behind a store to the element in one body")
        written.setdefault(statement.buffer, set()).add(statement.offset)

    def check_bounds(self, statement: Loop | Reduce, inner: tuple, axes: frozenset, results: set) -> None:
        """The ends of a range are numbers that are known where its loop begins."""
        for axis in inner:
            for end in statement.bounds.get(axis, ()):
                if end is not None:
                    self.check_expr(end, axes, results)
                    if end.dtype != dtypes.int64:
                        raise LoopProgramError(f"an end of the range of {axis!r} is not an int64")
            axes = axes | {axis}

    def check_tile(self, kernel: Kernel) -> None:
        """A kernel in tiles is loops inside each other, the innermost ones over the tile, around stores."""
        if kernel.tile is None:
            return
        axes, body = [], kernel.body
        while len(body) == 1 and isinstance(body[0], Loop):
            axes.append(body[0].axis)
            body = body[0].body
        is_tiled = tuple(axes[-2:]) == kernel.tile and kernel.vector is axes[-1]
        if not is_tiled or not all(isinstance(statement, Store) for statement in body):
            raise LoopProgramError(f"the loops of a kernel are not those of its tiles {kernel.tile!r}")

    def check_repeat(self, repeat: Repeat, axes: frozenset, results: set) -> None:
        for expr in repeat.initial:
            self.check_expr(expr, axes, results)
        inside = results | set(repeat.registers)
        self.check_expr(repeat.condition, axes, inside)
        self.check_body(repeat.body, axes, inside)
        defined = {register for s in repeat.body if isinstance(s, Repeat) for register in s.registers}
        for register, expr in zip(repeat.registers, repeat.updates):
            self.check_expr(expr, axes, inside | defined)
            if expr.dtype != register.dtype:
                raise LoopProgramError(f"register {register!r} changes its dtype")

    def check_call(self, name, inputs: list[Buffer], outputs: list[Buffer]) -> None:
        for buffer in [*inputs, *outputs]:
            self.check_declared(buffer)
        for buffer in outputs:
            if buffer not in self.writable:
                raise LoopProgramError(f"{name} writes to input {buffer!r}")

    def check_scalar(self, buffer: Buffer, dtype) -> None:
        self.check_declared(buffer)
        if buffer.shape or buffer.dtype != dtype:
            raise LoopProgramError(f"control flow reads {buffer!r}, which is no {dtype.name} scalar")

    def check_swap(self, first: Buffer, second: Buffer) -> None:
        if (first.shape, first.dtype) != (second.shape, second.dtype) or first is second:
            raise LoopProgramError(f"{first!r} and {second!r} cannot change places")
        for buffer in (first, second):
            self.check_declared(buffer)
            if buffer not in self.writable or buffer.kind == "scalar":
                raise LoopProgramError(f"{buffer!r} has to stay in its place")

    def check_write(self, buffer: Buffer, offset: Index, value: Expr, axes: frozenset, results: set) -> None:
        self.check_declared(buffer)
        if buffer not in self.writable:
            raise LoopProgramError(f"store into input {buffer!r}")
        if value.dtype != buffer.dtype:
            raise LoopProgramError(
                f"store of {value.dtype.name} into {buffer!r}, which holds {buffer.dtype.name}"
            )
        self.check_expr(value, axes, results)
        self.check_index(offset, axes, results)

    def check_expr(self, root: Expr, axes: frozenset, results: set) -> None:
        for node in walk([root]):
            if node.op == "load":
                buffer, index = node.attr
                self.check_declared(buffer)
                self.check_index(index, axes, results)
            elif node.op == "index":
                self.check_index(node.attr, axes, results)
            elif node.op == "result" and node.attr not in results:
                raise LoopProgramError(f"result {node.attr!r} is read before its reduction")

    def check_index(self, index: Index, axes: frozenset, results: set) -> None:
        for atom, _ in index.terms:
            if isinstance(atom, Axis):
                if atom not in axes:
                    raise LoopProgramError(f"axis {atom!r} is read outside of its loop")
            elif isinstance(atom, Dynamic):
                self.check_expr(atom.expr, axes, results)
            else:
                self.check_index(atom.index, axes, results)
