"""Code that can be entered and left at many points: the code object that a rewritten function runs.

In: a code object. Out: a `Template`: the original instructions in their order and with their source
positions, and around them
- a guard before each site: is what decides traced?
- a stop check at each point where ways of a traced decision may end: is this an exit that was asked for?
- a stub for each of these, which saves the stack in variables and returns a `Suspended`;
- at the beginning a dispatch, which restores variables and stack and goes to one of these points.

The code has the parameters $self (the first argument, for `super()`), $point, $state and $exits, which is
None until there is something to look for. Hooks stand in place of operations in which a traced value means
something else: `value in guard` and `helper @ value`, no call instructions, which differ between versions.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from jitcore.rewriter.bytecode.assembler import Assembler, BlockWriter, Label
from jitcore.rewriter.bytecode.flow import Flow, normalize_graph
from jitcore.rewriter.bytecode.graph import MAYBE, NULL, VALUE, Block, Graph
from jitcore.rewriter.bytecode.instructions import (Branch, ForIter, Instruction, NoneBranch, Unsupported,
                                                    count_arguments, find_first_position, is_generator)
from jitcore.rewriter.bytecode.versions import (BEGIN_OF_WITH, COMPARE_SHIFT, COMPARISONS, IN_PLACE,
                                                LOAD_ATTR_SHIFT, REMAINDER, REMAINDER_IN_PLACE)
from jitcore.rewriter.handles import UNDEFINED


class _Row(NamedTuple):
    """What is written for an instruction.

    Attributes:
        hook: its name; count: of its operands, more than one in a tuple.
        is_store: whether there is no result; names: by how much the argument is shifted, if it is the place
            of a name that is the last operand."""

    hook: str
    count: int = 1
    is_store: bool = False
    names: int | None = None


_ROWS = {
    "UNARY_NOT": _Row("logical_not"), "BINARY_SUBSCR": _Row("read_item", 2),
    "STORE_SUBSCR": _Row("store_item", 3, True), "DELETE_SUBSCR": _Row("delete_item", 2, True),
    "STORE_SLICE": _Row("store_slice", 4, True), "STORE_GLOBAL": _Row("store_global", 2, True, 0),
    "DELETE_GLOBAL": _Row("delete_global", 1, True, 0),
    "LOAD_ATTR": _Row("read_attribute", 2, False, LOAD_ATTR_SHIFT),
    "STORE_ATTR": _Row("store_attribute", 3, True, 0), "DELETE_ATTR": _Row("delete_attribute", 2, True, 0)}
_QUESTIONS = {"MATCH_SEQUENCE": ("is_sequence", 1), "MATCH_MAPPING": ("is_mapping", 1),
              "GET_LEN": ("find_length", 1), "MATCH_KEYS": ("match_keys", 2)}
_UNARY = {"UNARY_NEGATIVE": "neg", "UNARY_POSITIVE": "pos", "UNARY_INVERT": "invert"}


class HookedWriter(BlockWriter):
    """Args:
        hooks: `hooks.Hooks`.
        assigned: fast variables that are bound for certain, by block.
    """

    def __init__(self, graph: Graph, out: Assembler, hooks, assigned: dict[int, frozenset[str]]):
        super().__init__(graph, out, graph.blocks)
        self.hooks, self.assigned = hooks, assigned
        self.source: CodeType = graph.code

    def write_instructions(self, block: Block) -> None:
        is_resolved, bound = False, set(self.assigned[block.number])
        for place, instruction in enumerate(block.instructions):
            self.out.position = instruction.position
            if instruction.op == "KW_NAMES":  # stands between a call's operands and the call
                self._resolve_callee(block.instructions[place + 1])
                is_resolved = True
            elif id(instruction) in self.graph.callee_depths:
                if not is_resolved:
                    self._resolve_callee(instruction)
                is_resolved = False
            if instruction.op == "POP_TOP" and place and block.instructions[place - 1].op == "PUSH_EXC_INFO":
                self.out.apply(self.hooks.pass_refusal)  # `except:`
            if instruction.op == "DELETE_FAST" and instruction.arg not in bound:
                self.out.load(instruction.arg)
                self._apply(self.hooks.read_variable(instruction.arg), is_store=True)
            self._write_instruction(instruction)
            following = block.instructions[place + 1].op if place + 1 < len(block.instructions) else None
            if instruction.op == "PUSH_EXC_INFO" and following != "WITH_EXCEPT_START":
                self.out.apply(self.hooks.enter_handler)
            if instruction.op == "LOAD_FAST" and instruction.arg not in bound:
                self.out.apply(self.hooks.read_variable(instruction.arg))
            elif instruction.op == "STORE_FAST":
                bound.add(instruction.arg)
            elif instruction.op in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
                bound.discard(instruction.arg)

    def _resolve_callee(self, call: Instruction) -> None:
        """Lets the hook choose what is called instead of the callable, which lies below its arguments."""
        depth, self.out.position = self.graph.callee_depths[id(call)], call.position
        if depth > 1:
            self.out.swap(depth)
        self.out.apply(self.hooks.resolve)
        if depth > 1:
            self.out.swap(depth)

    def _apply(self, hook, count: int = 1, *, is_store: bool = False) -> None:
        self.out.apply(hook, count)
        if is_store:
            self.out.pop()

    def _write_instruction(self, instruction: Instruction) -> None:
        """The instruction itself, or a hook in its place where a traced operand means something else."""
        row, write = _ROWS.get(instruction.op), _WRITERS.get(instruction.op)
        self.out.position = instruction.position
        if row is not None:
            if row.names is not None:
                self.out.load_const(self.source.co_names[instruction.arg >> row.names])
            self._apply(getattr(self.hooks, row.hook), row.count, is_store=row.is_store)
        elif write is not None:
            write(self, instruction)
        else:
            self.out.add(instruction)

    # -- instructions that need more than a row --------------------------------------------------------------
    def write_get_iter(self, instruction: Instruction) -> None:
        """Makes an iterator."""
        self.out.add(instruction)

    def _write_test(self, instruction: Instruction) -> None:
        hooks, is_negated = self.hooks, bool(instruction.arg)
        found = {"CONTAINS_OP": (hooks.contains, hooks.not_contains), "IS_OP": (hooks.is_same, hooks.is_not)}
        self.out.apply(found[instruction.op][is_negated], 2)

    def _write_catch(self, instruction: Instruction) -> None:
        self.out.apply(self.hooks.choose_caught)
        self.out.add(instruction)

    def _write_end_of_with(self, instruction: Instruction) -> None:
        self.out.add(instruction)
        self.out.apply(self.hooks.choose_suppressed)

    def _write_format(self, instruction: Instruction) -> None:
        """Up to 3.12: 4 where there is a specification, and the conversion."""
        op, arg = instruction.op, instruction.arg
        is_old = op == "FORMAT_VALUE"
        if not (arg & 4 if is_old else op == "FORMAT_WITH_SPEC"):
            self.out.load_const("")
        self.out.apply(self.hooks.format_value(arg & 3 if is_old else 0), 2)

    def _write_build_string(self, instruction: Instruction) -> None:
        self.out.emit("BUILD_TUPLE", instruction.arg)
        self.out.apply(self.hooks.join_parts)

    def _write_operator(self, instruction: Instruction) -> None:
        number = instruction.arg
        if number in IN_PLACE:
            plain = Label()
            self.out.copy(2)
            self.out.load_attribute("__class__")
            self.out.branch_is(np.ndarray, plain, holds=False)
            self.out.copy(2)
            self.out.copy(2)
            self._apply(self.hooks.note_in_place, 2, is_store=True)
            self.out.place(plain)
        own = {REMAINDER: self.hooks.remainder, REMAINDER_IN_PLACE: self.hooks.remainder_in_place}
        self.out.apply(own.get(number) or self.hooks.operate(number), 2)

    def _write_slice(self, instruction: Instruction) -> None:
        self.out.emit("BUILD_SLICE", 2)
        self.out.apply(self.hooks.read_item, 2)

    def _write_begin_of_with(self, instruction: Instruction) -> None:
        self.out.apply(self.hooks.enter_context)
        self.out.emit("UNPACK_SEQUENCE", 2)
        if BEGIN_OF_WITH:
            self.out.emit("PUSH_NULL")
            self.out.swap()

    def _write_store_deref(self, instruction: Instruction) -> None:
        self.out.add(Instruction("LOAD_CELL", instruction.arg, instruction.position))
        self._apply(self.hooks.store_cell, 2, is_store=True)

    def _write_delete_deref(self, instruction: Instruction) -> None:
        self.out.add(Instruction("LOAD_CELL", instruction.arg, instruction.position))
        self._apply(self.hooks.note_deleted, is_store=True)
        self.out.add(instruction)

    def _write_append(self, instruction: Instruction) -> None:
        self.out.copy(instruction.arg + 1)
        self._apply(self.hooks.append_item, 2, is_store=True)

    def _write_question(self, instruction: Instruction) -> None:
        """Of the subject of `match`, or of it and keys, which stay on the stack."""
        hook, count = _QUESTIONS[instruction.op]
        for _ in range(count):
            self.out.copy(count)
        self.out.apply(getattr(self.hooks, hook), count)

    def write_guard(self, block: Block) -> None:
        if isinstance(block.terminator, NoneBranch):  # raises for a value that cannot be known
            self.out.copy()
            self.out.load_const(self.hooks.poison_guard)
            self.out.emit("CONTAINS_OP")
            self.out.pop()


_Writer = Callable[[HookedWriter, Instruction], None]
_WRITERS: dict[str, _Writer] = {
    "GET_ITER": lambda writer, instruction: writer.write_get_iter(instruction),
    "CONTAINS_OP": HookedWriter._write_test, "IS_OP": HookedWriter._write_test,
    "CHECK_EXC_MATCH": HookedWriter._write_catch, "CHECK_EG_MATCH": HookedWriter._write_catch,
    "WITH_EXCEPT_START": HookedWriter._write_end_of_with, "BEFORE_WITH": HookedWriter._write_begin_of_with,
    "FORMAT_VALUE": HookedWriter._write_format, "FORMAT_SIMPLE": HookedWriter._write_format,
    "FORMAT_WITH_SPEC": HookedWriter._write_format, "BUILD_STRING": HookedWriter._write_build_string,
    "CONVERT_VALUE": lambda writer, instruction: writer.out.apply(
        writer.hooks.convert_value(instruction.arg)),
    "BINARY_OP": HookedWriter._write_operator, "BINARY_SLICE": HookedWriter._write_slice,
    "COMPARE_OP": lambda writer, instruction: writer.out.apply(
        writer.hooks.compare(COMPARISONS[instruction.arg >> COMPARE_SHIFT]), 2),
    **dict.fromkeys(_UNARY, lambda writer, instruction: writer.out.apply(
        writer.hooks.apply_unary(_UNARY[instruction.op]))),
    "UNARY_IS_NONE": lambda writer, instruction: writer.out.apply(writer.hooks.is_none),
    "STORE_DEREF": HookedWriter._write_store_deref, "DELETE_DEREF": HookedWriter._write_delete_deref,
    "LIST_APPEND": HookedWriter._write_append, **dict.fromkeys(_QUESTIONS, HookedWriter._write_question),
    "MATCH_CLASS": lambda writer, instruction: writer.out.apply(
        writer.hooks.match_class(instruction.arg), 3)}


_VARIADIC, _NESTED, _PLAIN = 0x04 | 0x08, 0x10, 0x01 | 0x02
PARAMETERS = ("$self", "$point", "$state", "$exits")
_, POINT, STATE, EXITS = PARAMETERS
_NULL_SLOT = "$null"


#: Types of values that are never traced.
_READABLE = frozenset({int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, type(None),
                       types.FunctionType, types.BuiltinFunctionType, re.Match})


class Point:
    """A place of a function where its code may be entered and left: the beginning of a block. Points are
    compared by identity."""

    __slots__ = ("number", "block")

    def __init__(self, number: int, block: Block | None):
        self.number, self.block = number, block

    def __repr__(self) -> str:
        return f"Point({self.number})"


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
        tests: those of `while` loops by header, as far as somebody asked (`while_loops.find_test`).
    """

    def __init__(self, code: CodeType, hooks):
        """hooks: `hooks.Hooks`. Raises: Unsupported for a function that is left as it is."""
        if is_generator(code):
            raise Unsupported("a generator")
        self.source, self.hooks = code, hooks
        self.arguments = code.co_varnames[: count_arguments(code)]
        self.flow = Flow(normalize_graph(code, asks_for_none=True), self.arguments)
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
            code = _Writer(self).run()
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
                and bool(self.graph.blocks[number].instructions))


class _Writer(HookedWriter):
    """Writes the code with many entries of a template. labels: of blocks, with the stop check."""

    def __init__(self, template: Template):
        self.template, self.flow, code = template, template.flow, template.source
        cells = (*code.co_freevars, *code.co_cellvars)
        names = [name for name in code.co_varnames if name not in cells]
        out = Assembler(code, (*PARAMETERS, *names), cells)
        super().__init__(template.graph, out, template.hooks, self.flow.assigned)
        self.bodies = {number: Label() for number in self.graph.blocks}  # behind the stop check
        self.stubs: dict[int, Label] = {}
        self.stack_size = self.graph.max_depth + 6

    def run(self) -> CodeType:
        code = self.source
        self.out.begin(find_first_position(code))
        self.out.position = None
        self._write_dispatch()
        self.write_blocks(self.graph.in_order())
        for number, label in self.stubs.items():
            self._write_stub(number, label)
        flags = code.co_flags & ~(_VARIADIC | 0x40) | _PLAIN
        return self.out.assemble(self.stack_size + 2, co_argcount=len(PARAMETERS), co_kwonlyargcount=0,
                                 co_posonlyargcount=0, co_flags=flags)

    # -- entering -------------------------------------------------------------------------------------------
    def _write_dispatch(self) -> None:
        sites = [target for number in self.flow.join for target in self.graph.blocks[number].successors]
        entries = {*self.template.stops, *sites} - {self.graph.entry}
        ordered = sorted(entries, key=lambda number: self.graph.blocks[number].order)
        labels = {number: Label() for number in (self.graph.entry, *ordered)}
        for number, label in labels.items():
            self.out.load(POINT)
            self.out.branch_is(self.template.points[number], label)
        for number, label in labels.items():
            self.out.place(label)
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
            name_slot(depth) for depth, kind in enumerate(block.layout) if kind == VALUE}
        for name in names:
            if name not in certain:
                out.unbind_if(name, UNDEFINED)
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
        layout, out.position = block.layout, None
        out.place(label)
        for depth in range(len(layout) - 1, -1, -1):
            out.store(_NULL_SLOT if layout[depth] == NULL else name_slot(depth))
        out.load_const(self.template.points[number])
        out.position = next((item.position for item in block.instructions), block.position)
        out.apply(_SUSPENDER)
        out.emit("RETURN_VALUE")

    # -- blocks ---------------------------------------------------------------------------------------------
    def write_block(self, block: Block, following: Label | None) -> None:
        out, number, point = self.out, block.number, self.template.points[block.number]
        out.place(self.labels[number])
        out.handler, out.position = self.find_handler(block), None
        if number in self.template.stops:
            go_on = Label()
            self._skip_where_free(go_on)
            out.load_const(point)
            out.load(EXITS)
            out.emit("CONTAINS_OP")
            out.branch("TRUE", self._stub(number), exact=True)
            out.place(go_on)
            if self.template.begins_while(number):
                out.load_const(point)
                out.branch_in(self.hooks.roll_guard, self._stub(number))
        out.place(self.bodies[number])
        self.write_instructions(block)
        self.write_terminator(block, following)

    def write_get_iter(self, instruction: Instruction) -> None:
        """Makes an iterator. Code that no driver runs looks at iterators from the first traced one on."""
        out, done = self.out, Label()
        out.apply(self.hooks.make_iterator)
        out.load(EXITS)
        out.branch("NOT_NONE", done)
        out.copy()
        out.branch_in(self.hooks.iterator_guard, done, holds=False)
        out.load_const(frozenset())
        out.store(EXITS)
        out.place(done)

    def _skip_where_free(self, label: Label) -> None:
        """Goes to a label where no driver runs the code: it has no exits then."""
        self.out.load(EXITS)
        self.out.branch("NONE", label)

    def write_guard(self, block: Block) -> None:
        if block.number not in self.flow.join:
            super().write_guard(block)
        elif isinstance(block.terminator, Branch):
            self._write_branch_guard(block)
        else:
            go_on = Label()
            if self.template.arguments[:1] != (".0",):  # an iterator made by the code around it
                self._skip_where_free(go_on)
            self._leave_if(self.hooks.iterator_guard, block)
            self.out.place(go_on)

    def _leave_if(self, guard: Any, block: Block) -> None:
        """Leaves the code if the value on top of the stack is traced."""
        self.out.copy()
        self.out.branch_in(guard, self._stub(block.number))

    def _write_branch_guard(self, block: Block) -> None:
        """The guard of a branch; what is often decided by passes it without one."""
        out, known = self.out, Label()
        for value in (True, False):
            out.copy()
            out.branch_is(value, known)
        out.copy()
        out.load_attribute("__class__")
        out.branch_in(_READABLE, known)
        out.apply(self.hooks.read_truth)
        self._leave_if(self.hooks.guard, block)
        out.place(known)
