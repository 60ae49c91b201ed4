"""Code that can be entered and left at many points: the code object that a rewritten function runs.

In: a code object. Out: a `Template`: the original instructions in their order and with their source
positions, and around them
- a guard before each site: is what decides traced?
- a stop check at each point where ways of a traced decision may end: is this an exit that was asked for?
- a stub for each of these, which saves the stack in variables and returns a `Suspended`;
- at the beginning a dispatch, which restores variables and stack and goes to one of these points.

The code has the parameters $self (the first argument, for `super()`), $point, $state and $exits, which is
None until there is something to look for.

And the entry of a rewritten function: its own code, behind a question.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from types import CodeType
from typing import Any

from jitcore.core.trace import context, eval_trace
from jitcore.rewriter.bytecode.assembler import Assembler, Label, insert_code
from jitcore.rewriter.bytecode.flow import Flow, normalize_graph
from jitcore.rewriter.bytecode.graph import MAYBE, NULL, VALUE, Block
from jitcore.rewriter.bytecode.instructions import (
    Branch,
    ForIter,
    Instruction,
    Unsupported,
    count_arguments,
    find_first_position,
    is_generator,
)
from jitcore.rewriter.bytecode.versions import OPCODES
from jitcore.rewriter.handles import UNDEFINED, current
from jitcore.rewriter.journal import logs
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


# -- the function's own code, behind a question --------------------------------------------------------------
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
    """The entries of all functions with one code object. arguments: the names of its parameters.

    The code is the function's own with some instructions in front, which ask whether anything is being
    traced. Where nothing is, no variable holds a traced value, and the function's own instructions run as
    they always did: same speed, same frames, same lines. Otherwise a runner gets the arguments, and what it
    returns is the result."""

    def __init__(self, code: CodeType, arguments: tuple[str, ...]):
        out, runner = Assembler(code, code.co_varnames, code.co_freevars, code.co_cellvars), object()
        own_code = Label()
        out.load_const(None)
        out.branch_in(PROBE, own_code, holds=False)
        out.position = find_first_position(code)
        out.push_callee(runner)  # each function puts its own in its place
        for name in arguments:
            out.load(name)
        out.emit("BUILD_TUPLE", len(arguments))
        out.call(1)
        out.emit("RETURN_VALUE")
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
