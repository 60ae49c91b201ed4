"""Basic blocks: the control flow graph of a code object in normal form, and its dominators.

In: a code object. Out: a `Graph` of `Block`s with the layout of the stack at the beginning of each; immediate
dominators, of the graph and, reversed, for the points where ways meet again. Stage: behind decoding.

A layout says of each place on the stack whether it holds a value (V), a NULL (N), or one of them (D).

Source: K. D. Cooper, T. J. Harvey, K. Kennedy, A Simple, Fast Dominance Algorithm, 2001.
"""

from __future__ import annotations

import bisect
import opcode
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import CodeType

from jitcore.rewriter.bytecode.instructions import (CELL_SLOT_OPS, NEXT, POP_NEXT, Branch, Decoded, ForIter,
                                                    Instruction, Jump, Position, Raise, Return, Terminator,
                                                    decode)
from jitcore.rewriter.bytecode.versions import BEGIN_OF_WITH, HAS_PRECALL, NULL_BELOW, VERSION, find_opcode

VALUE, NULL, MAYBE = "V", "N", "D"

Layout = tuple[str, ...]


class Block:
    """Instructions that run one after the other, and where control goes then.

    Attributes:
        number: its name in terminators.
        order: blocks are emitted in this order, which is that of the source.
        handler: (number of a block, stack depth, whether the offset is pushed) for exceptions in it, or None.
        layout: of the stack at its beginning.
        handled: how many exceptions are being handled there; more than 0 inside an except or finally clause.
        position: of its terminator.
    """

    __slots__ = ("number", "order", "instructions", "terminator", "handler", "layout", "handled", "position")

    def __init__(self, number: int, order: float):
        self.number, self.order = number, order
        self.instructions: list[Instruction] = []
        self.terminator: Terminator | None = None
        self.handler: tuple[int, int, bool] | None = None
        self.layout: Layout | None = None
        self.handled = 0
        self.position: Position | None = None

    @property
    def successors(self) -> tuple[int, ...]:
        return tuple(self.terminator)

    def retarget(self, rename) -> None:
        """Applies a function to every block number that it mentions."""
        self.terminator = type(self.terminator)(*map(rename, self.terminator))
        if self.handler is not None:
            self.handler = (rename(self.handler[0]), *self.handler[1:])

    @property
    def can_raise(self) -> bool:
        """Whether an instruction in it may send control to its handler."""
        return self.handler is not None and bool(self.instructions)


class Graph:
    """The blocks of a function by number. entry: the first. max_depth: of the stack. variables: see
    `decode`. leaders: offsets at which blocks begin, beside those where control comes together."""

    def __init__(self, code: CodeType, variables: frozenset[str] | None = None, leaders: Iterable[int] = ()):
        self.code, self.variables = code, variables or frozenset()
        self.blocks: dict[int, Block] = {}
        self.entry = 0
        self.max_depth = 0
        self._next = 0
        #: For each call instruction, by identity, how deep below the top its callable lies (1 is the top).
        self.callee_depths: dict[int, int] = {}
        _Builder(self, decode(code, variables)).build(leaders)
        self.remove_empty()
        self.find_layouts()

    def new_block(self, order: float) -> Block:
        block = self.blocks[self._next] = Block(self._next, order)
        self._next += 1
        return block

    def in_order(self) -> list[Block]:
        return sorted(self.blocks.values(), key=lambda block: block.order)

    # -- changes ---------------------------------------------------------------------------------------------
    def remove_empty(self) -> None:
        """Lets control go past blocks that only jump on, and removes what it cannot reach."""

        def follow(number: int) -> int:
            seen = set()
            while number not in seen:
                block = self.blocks[number]
                if block.instructions or not isinstance(block.terminator, Jump):
                    break
                seen.add(number)
                number = block.terminator.target
            return number

        for block in self.blocks.values():
            block.retarget(follow)
        self.entry = follow(self.entry)
        self.remove_unreachable()

    def remove_unreachable(self) -> None:
        seen = find_reachable(list_successors(self), [self.entry])
        self.blocks = {number: block for number, block in self.blocks.items() if number in seen}

    # -- the stack -------------------------------------------------------------------------------------------
    def find_layouts(self) -> None:
        """Raises: AssertionError where two ways to a block bring stacks of different depth."""
        for block in self.blocks.values():
            block.layout, block.handled = None, 0
        self.max_depth, self.callee_depths = 0, {}
        waiting = [(self.entry, (), 0)]
        while waiting:
            number, layout, handled = waiting.pop()
            block = self.blocks[number]
            if block.layout is not None:
                if len(block.layout) != len(layout):
                    raise AssertionError(f"block {number} is reached with {block.layout} and {layout}")
                continue
            block.layout, block.handled = layout, handled
            waiting += self._run_block(block)

    def _run_block(self, block: Block) -> list[tuple[int, Layout, int]]:
        """(number, layout, exceptions being handled) of each block that control may go to from here."""
        stack, handled, reached = list(block.layout), block.handled, []
        if block.can_raise:
            target, depth, pushes_offset = block.handler
            reached.append((target, tuple(stack[:depth]) + (VALUE,) * (pushes_offset + 1), handled))
        for instruction in block.instructions:
            if instruction.op in CALLS:
                self.callee_depths[id(instruction)] = find_callee(instruction, stack)
            handled += {"PUSH_EXC_INFO": 1, "POP_EXCEPT": -1}.get(instruction.op, 0)
            apply_to_stack(instruction, stack)
            self.max_depth = max(self.max_depth, len(stack))
        terminator = block.terminator
        if isinstance(terminator, ForIter):
            reached.append((terminator.body, (*stack, VALUE), handled))
            reached.append((terminator.exit, tuple(stack[:-1]), handled))
            self.max_depth = max(self.max_depth, len(stack) + 1)
            return reached
        if not isinstance(terminator, (Jump, Return, Raise)):
            stack.pop()
        return reached + [(target, tuple(stack), handled) for target in block.successors]


class _Builder:
    """Fills a graph with the blocks of a decoded code object."""

    def __init__(self, graph: Graph, decoded: Decoded):
        self.graph, self.decoded = graph, decoded
        self.offsets = [step.offset for step in decoded.steps]
        self.block_at: dict[int, Block] = {}

    def build(self, leaders: Iterable[int]) -> None:
        for offset in sorted(self._find_leaders() | {*leaders} & {*self.offsets}):
            self.block_at[offset] = self.graph.new_block(offset)
        handler_of = self._find_handlers()
        block: Block | None = None
        for number, step in enumerate(self.decoded.steps):
            started = self.block_at.get(step.offset)
            if started is not None:
                if block is not None and block.terminator is None:
                    block.terminator = Jump(started.number)
                block, block.handler = started, handler_of.get(step.offset)
            if block.terminator is not None:
                continue  # never reached
            block.instructions += step.instructions
            if step.terminator is not None:
                block.position = step.position
                following = self.offsets[number + 1] if number + 1 < len(self.offsets) else None
                block.terminator = self._resolve(step.terminator, following, block)
        self.graph.entry = self.block_at[self.offsets[0]].number

    def _find_leaders(self) -> set[int]:
        leaders = {self.offsets[0], *self.decoded.loop_exits.values()}
        for step, following in zip(self.decoded.steps, [*self.offsets[1:], None]):
            if step.terminator is not None:
                leaders.update(target for target in step.terminator if target >= 0)
                if following is not None:
                    leaders.add(following)
        for handler in self.decoded.handlers:
            leaders.update(self._at_or_behind(offset) for offset in (handler.start, handler.stop))
            leaders.add(handler.target)
        leaders.discard(None)
        return leaders

    def _at_or_behind(self, offset: int) -> int | None:
        place = bisect.bisect_left(self.offsets, offset)
        return self.offsets[place] if place < len(self.offsets) else None

    def _find_handlers(self) -> dict[int, tuple[int, int, bool]]:
        found = {}
        for handler in self.decoded.handlers:
            target = self.block_at[handler.target].number
            first = bisect.bisect_left(self.offsets, handler.start)
            for offset in self.offsets[first : bisect.bisect_left(self.offsets, handler.stop)]:
                found[offset] = (target, handler.depth, handler.pushes_offset)
        return found

    def _resolve(self, terminator: Terminator, following: int | None, block: Block) -> Terminator:
        """The terminator with numbers of blocks for offsets."""
        if isinstance(terminator, ForIter):
            exit_block = self.block_at[self.decoded.loop_exits[terminator.exit]]
            return ForIter(self.block_at[following].number, exit_block.number)

        def find(target: int) -> int:
            if target == NEXT:
                return self.block_at[following].number
            if target != POP_NEXT:
                return self.block_at[target].number
            extra = self.graph.new_block(following - 0.5)
            extra.instructions = [Instruction("POP_TOP", 0, block.position)]
            extra.terminator, extra.handler = Jump(self.block_at[following].number), block.handler
            return extra.number

        return type(terminator)(*map(find, terminator))


# -- what instructions do to the stack ----------------------------------------------------------------------
CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})

_PUSHES = dict.fromkeys(("LOAD_FAST", "LOAD_CELL", "LOAD_DEREF", "LOAD_CONST", "LOAD_SMALL_INT"), VALUE) | {
    "PUSH_NULL": NULL, "LOAD_FAST_AND_CLEAR": MAYBE, CELL_SLOT_OPS["LOAD_FAST_AND_CLEAR"]: MAYBE}
_POPS = frozenset({"STORE_FAST", "STORE_DEREF", "POP_TOP", CELL_SLOT_OPS["STORE_FAST"]})
_KEEPS = frozenset({"DELETE_FAST", "DELETE_DEREF", "UNARY_IS_NONE", CELL_SLOT_OPS["DELETE_FAST"],
                    CELL_SLOT_OPS["MAKE_CELL"]})


def apply_to_stack(instruction: Instruction, stack: list[str]) -> None:
    """Changes a layout as an instruction changes the stack."""
    op, arg = instruction.op, instruction.arg
    if op in _PUSHES:
        stack.append(_PUSHES[op])
    elif op in _POPS:
        stack.pop()
    elif op == "SWAP":
        stack[-1], stack[-arg] = stack[-arg], stack[-1]
    elif op == "COPY":
        stack.append(stack[-arg])
    elif op == "BEFORE_WITH" and BEGIN_OF_WITH:
        stack += [MAYBE, VALUE]
    elif op not in _KEEPS:
        effect = stack_effect(instruction)
        if effect < 0:
            del stack[effect:]
        stack += [VALUE] * max(effect, 0)
        if op in CALLS:
            stack[-1] = VALUE


def stack_effect(instruction: Instruction) -> int:
    """By how much an instruction of the normal form makes the stack deeper."""
    op, arg = instruction.op, instruction.arg
    if op in _PUSHES or op == "COPY":
        return 1
    if op in _POPS:
        return -1
    if op in _KEEPS or op == "SWAP":
        return 0
    if op == "CALL" and HAS_PRECALL:
        return -arg - 1
    if op == "BEFORE_WITH" and BEGIN_OF_WITH:
        return 2
    number, arg = find_opcode(op, arg)
    return opcode.stack_effect(number, arg if number >= opcode.HAVE_ARGUMENT else None, jump=False)


def find_callee(instruction: Instruction, stack: list[str]) -> int:
    """How deep below the top of the stack a call finds its callable (1 is the top)."""
    op, arg = instruction.op, instruction.arg
    if op == "CALL_KW":
        return arg + 3
    if op == "CALL_FUNCTION_EX":
        return 4 if VERSION >= (3, 14) else (2 if NULL_BELOW else 3) + (arg & 1)
    if not NULL_BELOW:
        return arg + 2
    # [NULL, f, arguments], or [f, self, arguments] of decorators and comprehensions
    return arg + 1 if stack[-arg - 2] == NULL else arg + 2


def is_site(block: Block) -> bool:
    """Whether a block ends where a traced value may decide."""
    return isinstance(block.terminator, (Branch, ForIter))


Node = Hashable
Successors = Mapping[Node, Sequence[Node]]

#: The node before a function's entry.
ROOT = -1


def list_postorder(successors: Successors, root: Node) -> list[Node]:
    order, seen = [], {root}
    waiting: list[tuple[Node, Iterator[Node]]] = [(root, iter(successors[root]))]
    while waiting:
        node, rest = waiting[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                waiting.append((following, iter(successors[following])))
                break
        else:
            order.append(node)
            waiting.pop()
    return order


def reverse_edges(successors: Successors) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {node: [] for node in successors}
    for node, following in successors.items():
        for other in following:
            found[other].append(node)
    return found


def find_dominators(successors: Successors, root: Node) -> dict[Node, Node]:
    """The immediate dominator of each node that can be reached; the root's is itself."""
    order = list_postorder(successors, root)
    place = {node: number for number, node in enumerate(order)}
    predecessors: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for following in successors[node]:
            predecessors[following].append(node)
    dominators = {root: root}

    def intersect(one: Node, other: Node) -> Node:
        while one != other:
            while place[one] < place[other]:
                one = dominators[one]
            while place[other] < place[one]:
                other = dominators[other]
        return one

    changed = True
    while changed:
        changed = False
        for node in reversed(order[:-1]):
            new = None
            for previous in predecessors[node]:
                if previous in dominators:
                    new = previous if new is None else intersect(previous, new)
            if dominators.get(node) != new:
                dominators[node], changed = new, True
    return dominators


def find_reachable(successors: Successors, starts: Iterable[Node]) -> set[Node]:
    seen, waiting = set(), list(starts)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += successors[node]
    return seen


def dominates(dominators: Mapping[Node, Node], node: Node, other: Node) -> bool:
    """Whether every way to `other` goes through `node`."""
    while other != node:
        above = dominators.get(other, other)
        if above == other:
            return False
        other = above
    return True


# -- of blocks ----------------------------------------------------------------------------------------------
def list_successors(graph: Graph) -> dict[Node, Sequence[Node]]:
    """The successors of each block, the handlers of its exceptions among them; `ROOT` leads to the entry."""
    successors: dict[Node, Sequence[Node]] = {ROOT: (graph.entry,)}
    for number, block in graph.blocks.items():
        handlers = (block.handler[0],) if block.can_raise else ()
        successors[number] = (*block.successors, *handlers)
    return successors


def is_reducible(graph: Graph) -> bool:
    """Whether each edge that goes back leads to a block that dominates its origin."""
    successors = list_successors(graph)
    dominators = find_dominators(successors, ROOT)
    place = {node: number for number, node in enumerate(list_postorder(successors, ROOT))}
    return all(place[following] < place[node] or dominates(dominators, following, node)
               for node in place for following in successors[node])
