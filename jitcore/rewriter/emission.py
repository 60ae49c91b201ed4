"""Code that can be entered and left at many points: the code object that a rewritten function runs.

In: a code object. Out: a `Template`: the original instructions in their order and with their source
positions, and around them
- a guard before each site: is what decides traced?
- a stop check at each point where ways of a traced decision may end: is this an exit that was asked for?
- a stub for each of these, which saves the stack in variables and returns a `Suspended`;
- at the beginning a dispatch, which restores variables and stack and goes to one of these points.

The code has the parameters $self (the first argument, for `super()`), $point, $state and $exits, which is
None until there is something to look for. The guards are `value in guard` and `helper @ value`: no call
instructions, which differ between versions.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterable
from types import CodeType
from typing import Any

import numpy as np

from jitcore.rewriter.assembler import Assembler, Handler, Label
from jitcore.rewriter.blocks import MAYBE, NULL, VALUE, Block
from jitcore.rewriter.flow import Flow
from jitcore.rewriter.instructions import (
    Branch,
    ForIter,
    Instruction,
    Jump,
    NoneBranch,
    Unsupported,
)
from jitcore.rewriter.merging import normalize_graph
from jitcore.rewriter.versions import IN_PLACE, LOOP_ENDS, MATRIX_MULTIPLY, REMAINDER, REMAINDER_IN_PLACE

_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
_VARIADIC, _NESTED, _PLAIN = 0x04 | 0x08, 0x10, 0x01 | 0x02
PARAMETERS = ("$self", "$point", "$state", "$exits")
_, POINT, STATE, EXITS = PARAMETERS
_NULL_SLOT = "$null"


#: Types of values that are never traced.
_READABLE = frozenset({int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, type(None),
                       types.FunctionType, types.BuiltinFunctionType, re.Match})  # fmt: skip


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
        source: the original code object.
        points: by block number; stops: those that may be asked for as exits.
        places: what `_find_places` says, once there is `code`.
        vectors: for each entry of `code` the names of the variables that `$state` holds, in order.
        arguments: names; cells: names of the variables for which each activation makes a cell.
        tests: those of `while` loops by header, as far as somebody asked (`loop_tests.find_test`).
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
        self.tests: dict[int, Any] = {}
        self.vectors: dict[int, tuple[str, ...]] = {}
        self._code: CodeType | None = None

    @property
    def code(self) -> CodeType:
        """The code with many entries, made when the function is first called while something is traced."""
        if self._code is None:
            code = _Emission(self).run()
            self.places = self._find_places()
            self._code = code  # last: another thread may look
        return self._code

    def _find_places(self) -> list[int] | None:
        """For each variable that the first entry takes, its number among the arguments, or -1; None where
        these are the arguments themselves."""
        names = self.vectors[self.entry.number]
        found = [self.arguments.index(name) if name in self.arguments else -1 for name in names]
        return None if found == list(range(len(self.arguments))) else found

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


    def begins_while(self, number: int) -> bool:
        """Whether a block is the head of a loop that asks no iterator, and makes what decides."""
        loop = self.flow.loops.get(number)
        return (loop is not None and number in self.stops and not loop.iterates
                and not isinstance(self.graph.blocks[number].terminator, ForIter)
                and bool(self.graph.blocks[number].instructions))  # fmt: skip


def count_arguments(code: CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


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
        labels = {number: Label() for number in (self.graph.entry, *ordered)}
        for number in labels:
            self.out.load(POINT)
            self.out.load_const(self.template.points[number])
            self.out.emit("IS_OP", 0)
            self.out.branch("TRUE", labels[number], exact=True)
        for number in labels:
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
        """Saves the stack and returns; the frame's variables go with it. A debugger asks for the line of a
        return."""
        out, block = self.out, self.graph.blocks[number]
        layout, position = block.layout, next((item.position for item in block.instructions), block.position)
        out.place(label)
        for depth in range(len(layout) - 1, -1, -1):
            out.store(_NULL_SLOT if layout[depth] == NULL else name_slot(depth))
        out.load_const(_SUSPENDER)
        out.load_const(self.template.points[number])
        out.emit("BINARY_OP", MATRIX_MULTIPLY, position)
        out.emit("RETURN_VALUE", 0, position)

    # -- blocks ---------------------------------------------------------------------------------------------
    def _write_block(self, block: Block, following: int | None) -> None:
        out, number = self.out, block.number
        out.place(self.labels[number])
        out.handler = self._handler(block)
        if number in self.template.stops:
            go_on = self._skip_where_free()
            out.load_const(self.template.points[number])
            out.load(EXITS)
            out.emit("CONTAINS_OP", 0)
            out.branch("TRUE", self._stub(number), exact=True)
            out.place(go_on)
            if self.template.begins_while(number):
                out.load_const(self.template.points[number])
                out.load_const(self.hooks.roll_guard)
                out.emit("CONTAINS_OP", 0)
                out.branch("TRUE", self._stub(number), exact=True)
        out.place(self.bodies[number])
        self._write_instructions(block)
        self._write_terminator(block, following)

    def _handler(self, block: Block) -> Handler | None:
        """Of all that is written for a block, what comes before its instructions too: Python 3.13 looks for
        the handler of an error in a call, or in a generator that a loop asks, at the instruction before."""
        if block.handler is None or block.handler[0] not in self.labels:
            return None
        target, depth, pushes_offset = block.handler
        return Handler(self.labels[target], depth, pushes_offset)

    def _write_instructions(self, block: Block) -> None:
        is_resolved, bound = False, set(self.flow.assigned[block.number])
        for place, instruction in enumerate(block.instructions):
            if instruction.op == "KW_NAMES":  # stands between a call's operands and the call
                self._resolve_callee(block.instructions[place + 1])
                is_resolved = True
            elif id(instruction) in self.graph.callee_depths:
                if not is_resolved:
                    self._resolve_callee(instruction)
                is_resolved = False
            if instruction.op == "POP_TOP" and place and block.instructions[place - 1].op == "PUSH_EXC_INFO":
                self.out.apply(self.hooks.pass_refusal, instruction.position)  # `except:`
            self._write_instruction(instruction)
            if instruction.op == "LOAD_FAST" and instruction.arg not in bound:
                self.out.apply(self.hooks.read_variable(instruction.arg), instruction.position)
            elif instruction.op == "STORE_FAST":
                bound.add(instruction.arg)
            elif instruction.op in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                bound.discard(instruction.arg)

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
            self._write_get_iter(position)
        elif op == "CONTAINS_OP":
            self._apply_to_tuple(2, hooks.not_contains if arg else hooks.contains, position)
        elif op == "IS_OP":
            self._apply_to_tuple(2, hooks.is_not if arg else hooks.is_same, position)
        elif op in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            self.out.apply(hooks.choose_caught, position)
            self.out.add(instruction)
        elif op == "WITH_EXCEPT_START":
            self.out.add(instruction)
            self.out.apply(hooks.choose_suppressed, position)
        elif op == "FORMAT_VALUE":  # up to 3.12: 4 where there is a specification, and the conversion
            self._apply_to_tuple(2 if arg & 4 else 1, hooks.format_value(arg & 3), position)
        elif op in ("FORMAT_SIMPLE", "FORMAT_WITH_SPEC"):
            self._apply_to_tuple(1 if op == "FORMAT_SIMPLE" else 2, hooks.format_value(0), position)
        elif op == "CONVERT_VALUE":
            self.out.apply(hooks.convert_value(arg), position)
        elif op == "BUILD_STRING":
            self._apply_to_tuple(arg, hooks.join_parts, position)
        elif op == "BINARY_OP" and arg == REMAINDER:
            self._apply_to_tuple(2, hooks.remainder, position)
        elif op == "BINARY_OP" and arg in IN_PLACE:
            plain = self._skip_where_plain(position)
            self.out.emit("COPY", 2, position)
            self.out.emit("COPY", 2, position)
            self._store(2, hooks.note_in_place, position)
            self.out.place(plain)
            if arg == REMAINDER_IN_PLACE:
                self._apply_to_tuple(2, hooks.remainder_in_place, position)
            else:
                self.out.add(instruction)
        elif op == "BINARY_SUBSCR":
            plain, done = self._skip_where_plain(position), Label()
            self._apply_to_tuple(2, hooks.read_item, position)
            self.out.jump(done, position)
            self.out.place(plain)
            self.out.add(instruction)
            self.out.place(done)
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
        elif op == "LIST_APPEND":
            self.out.emit("COPY", arg + 1, position)
            self._store(2, hooks.append_item, position)
        elif op == "STORE_SLICE":
            self._store(4, hooks.store_slice, position)
        else:
            self.out.add(instruction)

    def _write_get_iter(self, position) -> None:
        """Makes an iterator. Code that no driver runs looks at iterators from the first traced one on."""
        out, done = self.out, Label()
        out.apply(self.hooks.make_iterator, position)
        out.load(EXITS, position)
        out.branch("NOT_NONE", done, position)
        out.emit("COPY", 1, position)
        out.load_const(self.hooks.iterator_guard, position)
        out.emit("CONTAINS_OP", 0, position)
        out.branch("FALSE", done, position, exact=True)
        out.load_const(frozenset(), position)
        out.store(EXITS, position)
        out.place(done)

    def _skip_where_free(self, position=None) -> Label:
        """Jumps to a label, which is not placed yet, where no driver runs the code: it has no exits then."""
        label = Label()
        self.out.load(EXITS, position)
        self.out.branch("NONE", label, position)
        return label

    def _skip_where_plain(self, position) -> Label:
        """Jumps to a label, which is not placed yet, where the first of two operands is no ndarray."""
        label = Label()
        self.out.emit("COPY", 2, position)
        self.out.load_attribute("__class__", position)
        self.out.load_const(np.ndarray, position)
        self.out.emit("IS_OP", 0, position)
        self.out.branch("FALSE", label, position, exact=True)
        return label

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
                    is_given = self.template.arguments[:1] == (".0",)  # made by the code around it
                    go_on = Label() if is_given else self._skip_where_free(position)
                    self._write_guard(block, self.hooks.iterator_guard)
                    self.out.place(go_on)
                pad = Label()
                self.pads.append((pad, exit_block))
                self.out.emit("FOR_ITER", pad, position)
                if body != following:
                    self.out.jump(self.labels[body], position)
            case Branch(true, false):
                if block.number in self.flow.join:
                    self._write_branch_guard(block)
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
        """The guard of a branch; what is often decided by passes it without one."""
        known = Label()
        for value in (True, False):
            self.out.emit("COPY", 1, block.position)
            self.out.load_const(value, block.position)
            self.out.emit("IS_OP", 0, block.position)
            self.out.branch("TRUE", known, block.position, exact=True)
        self.out.emit("COPY", 1, block.position)
        self.out.load_attribute("__class__", block.position)
        self.out.load_const(_READABLE, block.position)
        self.out.emit("CONTAINS_OP", 0, block.position)
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
