"""Code that can be entered and left at many points: the code object that a rewritten function runs.

In: a code object. Out: a `Template`: the original instructions in their order and with their source
positions, and around them
- a guard before each site: is what decides traced?
- a stop check at each point where ways of a traced decision may end: is this an exit that was asked for?
- a stub for each of these, which saves the stack in variables and returns a `Suspended`;
- at the beginning a dispatch, which restores variables and stack and goes to one of these points.

The code has the parameters $self (the first argument, for `super()`), $point, $state and $exits. The guards
are `value in guard` and `helper @ value`: no call instructions, which differ between versions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

from jitcore.rewrite.assembler import Assembler, Handler, Label
from jitcore.rewrite.blocks import MAYBE, NULL, VALUE, Block
from jitcore.rewrite.flow import Flow
from jitcore.rewrite.instructions import (
    Branch,
    ForIter,
    Instruction,
    Jump,
    NoneBranch,
    Unsupported,
)
from jitcore.rewrite.merging import normalize_graph
from jitcore.rewrite.versions import HAS_PRECALL, LOOP_ENDS, MATRIX_MULTIPLY, NULL_BELOW

_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_VARIADIC, _NESTED, _PLAIN = 0x04 | 0x08, 0x10, 0x01 | 0x02
PARAMETERS = ("$self", "$point", "$state", "$exits")
_, POINT, STATE, EXITS = PARAMETERS
_NULL_SLOT = "$null"


class Point:
    """A place of a function where its code may be entered and left: the beginning of a block. Points are
    compared by identity."""

    __slots__ = ("number", "block")

    def __init__(self, number: int, block: Block | None):
        self.number, self.block = number, block

    def __repr__(self) -> str:
        return f"Point({self.number})"


class Undefined:
    """Stands for a variable that is not bound."""

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED = Undefined()


class Suspended:
    """What the code returns when it stops at a point. variables: of its frame, the saved stack among them."""

    __slots__ = ("point", "variables")

    def __init__(self, point: Point, variables: dict[str, Any]):
        self.point, self.variables = point, variables


class _Suspender:
    def __matmul__(self, point: Point) -> Suspended:
        return Suspended(point, dict(sys._getframe(1).f_locals))


_SUSPENDER = _Suspender()


def name_slot(depth: int) -> str:
    """The variable that holds a place of the stack while the code is left."""
    return f"$s{depth}"


class Template:
    """What is common to all activations of a function.

    Attributes:
        source: the original code object; code: the one with many entries; entry_code: one with the signature
            of the original, whose constant at `runner_place` is called with the tuple of all arguments.
        points: by block number; stops: those that may be asked for as exits.
        vectors: for each entry the names of the variables that `$state` holds, in order.
        arguments: names; cells: names of the variables for which each activation makes a cell.
    """

    def __init__(self, code: CodeType, hooks):
        """hooks: `hooks.Hooks`. Raises: Unsupported for a function that is left as it is."""
        if code.co_flags & _GENERATOR_FLAGS:
            raise Unsupported("a generator or coroutine")
        self.source, self.hooks = code, hooks
        self.arguments = code.co_varnames[: count_arguments(code)]
        self.flow = Flow(normalize_graph(code), self.arguments)
        self.graph = self.flow.graph
        self.points = {number: Point(number, block) for number, block in self.graph.blocks.items()}
        self.entry = self.points[self.graph.entry]
        self.stops = self._find_stops()
        self.cells = code.co_cellvars
        self.vectors: dict[int, tuple[str, ...]] = {}
        self.code = _Emission(self).run()
        self.entry_code, self.runner_place = _make_entry(code, self.arguments)

    def _find_stops(self) -> set[int]:
        flow = self.flow
        stops = {join for join in flow.join.values() if join is not None}
        for loop in flow.loops.values():
            stops |= {*loop.outs, loop.header}
            if len(loop.outs) > 1:
                stops.add(flow.find_join(loop.outs, loop.parent))
        stops |= {number for number, leaves in flow.leaves.items() if leaves}
        stops.discard(None)
        return {number for number in stops if not self.graph.blocks[number].handled}


def count_arguments(code: CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def _make_entry(code: CodeType, arguments: tuple[str, ...]) -> tuple[CodeType, int]:
    """(code that calls a constant with the tuple of all arguments, the place of that constant)."""
    out, position = Assembler(code, arguments), _first_position(code)
    runner = object()  # each function puts its own in its place
    out.begin(position)
    if NULL_BELOW:
        out.emit("PUSH_NULL", 0, position)
    out.load_const(runner, position)
    if not NULL_BELOW:
        out.emit("PUSH_NULL", 0, position)
    for name in arguments:
        out.emit("LOAD_FAST", out.variable(name), position)
    out.emit("BUILD_TUPLE", len(arguments), position)
    if HAS_PRECALL:
        out.emit("PRECALL", 1, position)
    out.emit("CALL", 1, position)
    out.emit("RETURN_VALUE", 0, position)
    flags = code.co_flags & (_VARIADIC | _NESTED) | _PLAIN
    return out.assemble(len(arguments) + 4, co_flags=flags), out.const(runner)


def _first_position(code: CodeType) -> tuple[int, int, int, int]:
    return code.co_firstlineno, code.co_firstlineno, 0, 0


class _Emission:
    """Writes the code with many entries of a template."""

    def __init__(self, template: Template):
        self.template, self.hooks, self.flow = template, template.hooks, template.flow
        self.graph, code = template.graph, template.source
        cells = (*code.co_freevars, *code.co_cellvars)
        names = [name for name in code.co_varnames if name not in cells]
        self.out = Assembler(code, (*PARAMETERS, *names), cells)
        blocks = self.graph.blocks
        self.labels = {number: Label() for number in blocks}  # with the stop check
        self.bodies = {number: Label() for number in blocks}  # behind it
        self.stubs: dict[int, Label] = {}
        self.pads: list[tuple[Label, int]] = []
        self.stack_size = self.graph.max_depth + 6

    def run(self) -> CodeType:
        code = self.template.source
        self.out.begin(_first_position(code))
        self._write_dispatch()
        ordered = self.graph.in_order()
        for block, following in zip(ordered, [*ordered[1:], None]):
            self._write_block(block, None if following is None else following.number)
        self.out.handler = None
        self._write_pads()
        for number, label in self.stubs.items():
            self._write_stub(number, label)
        flags = code.co_flags & ~(_VARIADIC | 0x40) | _PLAIN
        return self.out.assemble(self.stack_size + 2, co_argcount=len(PARAMETERS), co_kwonlyargcount=0,
                                 co_posonlyargcount=0, co_flags=flags)  # fmt: skip

    # -- entering -------------------------------------------------------------------------------------------
    def _write_dispatch(self) -> None:
        sites = [target for number in self.flow.join for target in self.graph.blocks[number].successors]
        entries = {*self.template.stops, *sites} - {self.graph.entry}
        ordered = sorted(entries, key=lambda number: self.graph.blocks[number].order)
        labels = {number: Label() for number in ordered}
        for number in ordered:
            self.out.load(POINT)
            self.out.load_const(self.template.points[number])
            self.out.emit("IS_OP", 0)
            self.out.branch("TRUE", labels[number], exact=True)
        self._write_entry(self.graph.blocks[self.graph.entry])
        for number in ordered:
            self.out.place(labels[number])
            self._write_entry(self.graph.blocks[number])

    def _write_entry(self, block: Block) -> None:
        """Restores variables and stack, and goes on behind the stop check."""
        number, out = block.number, self.out
        slots = [name_slot(depth) for depth, kind in enumerate(block.layout) if kind != NULL]
        names = (*sorted(self.flow.live[number]), *slots)
        self.template.vectors[number] = names
        self.stack_size = max(self.stack_size, len(names) + 2)
        out.load(STATE)
        out.emit("UNPACK_SEQUENCE", len(names))
        for name in names:
            out.store(name)
        out.load_const(None)
        out.store(STATE)
        certain = self.flow.assigned[number] | {
            name_slot(depth) for depth, kind in enumerate(block.layout) if kind == VALUE}  # fmt: skip
        for name in names:
            if name not in certain:
                bound = Label()
                out.load(name)
                out.load_const(UNDEFINED)
                out.emit("IS_OP", 0)
                out.branch("FALSE", bound, exact=True)
                out.emit("DELETE_FAST", out.variable(name))
                out.place(bound)
        for depth, kind in enumerate(block.layout):
            if kind == NULL:
                out.emit("PUSH_NULL")
            elif kind == MAYBE:
                out.emit("LOAD_FAST_AND_CLEAR", out.variable(name_slot(depth)))
            else:
                out.load(name_slot(depth))
        out.jump(self.bodies[number])

    # -- leaving --------------------------------------------------------------------------------------------
    def _stub(self, number: int) -> Label:
        return self.stubs.setdefault(number, Label())

    def _write_stub(self, number: int, label: Label) -> None:
        """Saves the stack and returns; the frame's variables go with it."""
        out, layout = self.out, self.graph.blocks[number].layout
        out.place(label)
        for depth in range(len(layout) - 1, -1, -1):
            out.store(_NULL_SLOT if layout[depth] == NULL else name_slot(depth))
        out.load_const(_SUSPENDER)
        out.load_const(self.template.points[number])
        out.emit("BINARY_OP", MATRIX_MULTIPLY)
        out.emit("RETURN_VALUE")

    # -- blocks ---------------------------------------------------------------------------------------------
    def _write_block(self, block: Block, following: int | None) -> None:
        out, number = self.out, block.number
        out.place(self.labels[number])
        out.handler = None
        if number in self.template.stops:
            out.load_const(self.template.points[number])
            out.load(EXITS)
            out.emit("CONTAINS_OP", 0)
            out.branch("TRUE", self._stub(number), exact=True)
        out.place(self.bodies[number])
        if block.can_raise:
            out.handler = self._handler(block)
        self._write_instructions(block)
        self._write_terminator(block, following)

    def _handler(self, block: Block) -> Handler:
        target, depth, pushes_offset = block.handler
        return Handler(self.labels[target], depth, pushes_offset)

    def _write_instructions(self, block: Block) -> None:
        is_resolved = False
        for place, instruction in enumerate(block.instructions):
            if instruction.op == "KW_NAMES":  # stands between a call's operands and the call
                self._resolve_callee(block.instructions[place + 1])
                is_resolved = True
            elif id(instruction) in self.graph.callee_depths:
                if not is_resolved:
                    self._resolve_callee(instruction)
                is_resolved = False
            self._write_instruction(instruction)

    def _resolve_callee(self, call: Instruction) -> None:
        """Lets the hook choose what is called instead of the callable, which lies below its arguments."""
        depth, position = self.graph.callee_depths[id(call)], call.position
        if depth > 1:
            self.out.emit("SWAP", depth, position)
        self.out.apply(self.hooks.resolve, position)
        if depth > 1:
            self.out.emit("SWAP", depth, position)

    def _write_instruction(self, instruction: Instruction) -> None:
        """The instruction itself, or a hook in its place where a traced operand means something else."""
        op, arg, position, hooks = instruction.op, instruction.arg, instruction.position, self.hooks
        names = self.template.source.co_names
        if op == "UNARY_NOT":
            self.out.apply(hooks.logical_not, position)
        elif op == "GET_ITER":
            self.out.apply(hooks.make_iterator, position)
        elif op == "CONTAINS_OP":
            self._apply_to_tuple(2, hooks.not_contains if arg else hooks.contains, position)
        elif op == "IS_OP":
            self._apply_to_tuple(2, hooks.is_not if arg else hooks.is_same, position)
        elif op == "STORE_DEREF":
            self.out.add(Instruction("LOAD_CELL", arg, position))
            self._store(2, hooks.store_cell, position)
        elif op == "STORE_GLOBAL":
            self.out.load_const(names[arg], position)
            self._store(2, hooks.store_global, position)
        elif op == "STORE_ATTR":
            self.out.load_const(names[arg], position)
            self._store(3, hooks.store_attribute, position)
        elif op == "STORE_SUBSCR":
            self._store(3, hooks.store_item, position)
        elif op == "STORE_SLICE":
            self._store(4, hooks.store_slice, position)
        else:
            self.out.add(instruction)

    def _apply_to_tuple(self, count: int, hook, position) -> None:
        self.out.emit("BUILD_TUPLE", count, position)
        self.out.apply(hook, position)

    def _store(self, count: int, hook, position) -> None:
        self._apply_to_tuple(count, hook, position)
        self.out.emit("POP_TOP", 0, position)

    def _write_terminator(self, block: Block, following: int | None) -> None:
        position = block.position
        match block.terminator:
            case Jump(target):
                if target != following:
                    self.out.jump(self.labels[target])
            case ForIter(body, exit_block):
                if block.number in self.flow.join:
                    self._write_guard(block, self.hooks.iterator_guard)
                if block.handler is not None:
                    self.out.handler = self._handler(block)
                pad = Label()
                self.pads.append((pad, exit_block))
                self.out.emit("FOR_ITER", pad, position)
                if body != following:
                    self.out.jump(self.labels[body], position)
            case Branch(true, false):
                if block.number in self.flow.join:
                    self._write_branch_guard(block)
                if block.handler is not None:
                    self.out.handler = self._handler(block)
                self._write_branch(("TRUE", "FALSE"), (true, false), following, position)
            case NoneBranch(none, other):
                self.out.emit("COPY", 1, position)
                self.out.load_const(self.hooks.poison_guard, position)
                self.out.emit("CONTAINS_OP", 0, position)
                self.out.emit("POP_TOP", 0, position)
                self._write_branch(("NONE", "NOT_NONE"), (none, other), following, position)

    def _write_guard(self, block: Block, guard) -> None:
        """Leaves the code if the value on top of the stack is traced."""
        self.out.emit("COPY", 1, block.position)
        self.out.load_const(guard, block.position)
        self.out.emit("CONTAINS_OP", 0, block.position)
        self.out.branch("TRUE", self._stub(block.number), block.position, exact=True)

    def _write_branch_guard(self, block: Block) -> None:
        """The guard of a branch; True and False pass it without one."""
        known = Label()
        for value in (True, False):
            self.out.emit("COPY", 1, block.position)
            self.out.load_const(value, block.position)
            self.out.emit("IS_OP", 0, block.position)
            self.out.branch("TRUE", known, block.position, exact=True)
        self._write_guard(block, self.hooks.guard)
        self.out.place(known)

    def _write_branch(self, kinds: tuple[str, str], targets: Iterable[int], following, position) -> None:
        first, second = targets
        if first == following:
            self.out.branch(kinds[1], self.labels[second], position)
            return
        self.out.branch(kinds[0], self.labels[first], position)
        if second != following:
            self.out.jump(self.labels[second], position)

    def _write_pads(self) -> None:
        """What FOR_ITER expects at its target; then control goes where it would have gone."""
        for pad, target in self.pads:
            self.out.place(pad)
            for name in LOOP_ENDS:
                self.out.emit(name)
            self.out.jump(self.labels[target])
