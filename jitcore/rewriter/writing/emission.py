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
from types import CodeType
from typing import Any

from jitcore.rewriter.bytecode.assembler import Assembler, Label
from jitcore.rewriter.bytecode.flow import Flow, normalize_graph
from jitcore.rewriter.bytecode.graph import MAYBE, NULL, VALUE, Block
from jitcore.rewriter.bytecode.instructions import Branch, ForIter, Unsupported, is_generator
from jitcore.rewriter.bytecode.versions import MATRIX_MULTIPLY
from jitcore.rewriter.writing.hooked import HookedWriter

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
        if is_generator(code):
            raise Unsupported("a generator")
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
                and bool(self.graph.blocks[number].instructions))


def count_arguments(code: CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)


def find_first_position(code: CodeType) -> tuple[int, int, int, int]:
    return code.co_firstlineno, code.co_firstlineno, 0, 0


class _Emission(HookedWriter):
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
        self._write_dispatch()
        self.write_blocks()
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
            name_slot(depth) for depth, kind in enumerate(block.layout) if kind == VALUE}
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
    def write_block(self, block: Block, following: int | None) -> None:
        out, number = self.out, block.number
        out.place(self.labels[number])
        out.handler = self.find_handler(block)
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
        self.write_instructions(block)
        self.write_terminator(block, following)

    def write_get_iter(self, position) -> None:
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

    def write_guard(self, block: Block) -> None:
        if block.number not in self.flow.join:
            return
        if isinstance(block.terminator, Branch):
            self._write_branch_guard(block)
            return
        is_given = self.template.arguments[:1] == (".0",)  # made by the code around it
        go_on = Label() if is_given else self._skip_where_free(block.position)
        self._write_guard(block, self.hooks.iterator_guard)
        self.out.place(go_on)

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
        self.out.apply(self.hooks.read_truth, block.position)
        self._write_guard(block, self.hooks.guard)
        self.out.place(known)

