"""What is left of a loop, as a function, where a frame that runs stands at the loop's head.

In: a code object. Out: an `EnteredOutline`: of each loop its rest, or a run of statements in it, also where
the function as a whole is not rewritten. Stage: beside `outlining`, for whole scripts.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from types import FunctionType

from jitcore.rewriter.bytecode.flow import CELL_READS, STORES, Loop
from jitcore.rewriter.bytecode.graph import Block, find_reachable, stack_effect
from jitcore.rewriter.bytecode.instructions import (CELL_SLOT_OPS, INDEX, LIMIT, ForIter, Instruction,
                                                    name_list)
from jitcore.rewriter.bytecode.versions import LOAD_ATTR_SHIFT
from jitcore.rewriter.writing.outlining import Outline, OutlinedLoop, find_offset, list_reads

__all__ = ["EnteredOutline"]

#: What needs the cell of a variable.
_CELL_OPS = CELL_READS - {"LOAD_DEREF"} | {"STORE_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF",
                                           *CELL_SLOT_OPS.values()}


class EnteredOutline(Outline):
    """An `Outline` whose loops are entered at their heads: it does not matter how their iterators were made;
    variables of functions around are parameters, as far as the function only reads them; and the lists that
    comprehensions make may be variables."""

    def _find_arguments(self) -> frozenset[str]:
        self._named: set[str] = set()
        instructions = [one for block in self.graph.blocks.values() for one in block.instructions]
        kept = {one.arg for one in instructions if one.op in _CELL_OPS}
        read, self.free = self.free - kept, self.free & kept
        for one in instructions:
            if one.op == "LOAD_DEREF" and one.arg in read:
                one.op = "LOAD_FAST"
        return super()._find_arguments() | read

    @staticmethod
    def _is_open(loop: Loop) -> bool:
        return not loop.is_closed

    def _find_begin(self, loop: Loop) -> tuple[int, frozenset, list[Instruction], bool] | None:
        return -1, frozenset(), [], loop.iterates

    def name_lists(self, loop: OutlinedLoop) -> frozenset[str]:
        """Makes lists that lie below a loop on the stack, and that it appends to, its variables.

        Returns: their names."""
        names = set()
        for number in loop.loop.body:
            block, made = self.graph.blocks[number], []
            depth = len(block.layout)
            for one in block.instructions:
                place = depth - 1 - one.arg if one.op == "LIST_APPEND" else depth
                depth += stack_effect(one)
                if place >= loop.loop.base:
                    made.append(one)
                    continue
                names.add(name_list(place))
                appends = ("LOAD_FAST", name_list(place)), ("SWAP", 2), ("LIST_APPEND", 1), ("POP_TOP", 0)
                for op, arg in appends:
                    made.append(Instruction(op, arg, one.position))
                    made[-1].offsets = one.offsets
            block.instructions[:] = made
        self._named |= names
        return frozenset(names)

    def find_rest(self, loop: OutlinedLoop, sides: Iterable[int] = (),
                  lists: Iterable[str] = (), head: int | None = None,
                  make_element: FunctionType | None = None, is_run: bool = False) -> OutlinedLoop:
        """What is left of a loop at its head, where some iterations are done: of a `for` its iterator is an
        argument, of a `while` the number of iterations. Or a run of statements in it.

        sides: offsets of parts of the loop where it is left, too. lists: variables that are lists. head: the
        offset to which the iterations of a `while` go back, behind the condition that its header decides.
        make_element: see `OutlinedLoop`. is_run: whether it begins at the offset `head`, and ends at `sides`.
        """
        blocks, natural, exits = self.graph.blocks, copy.copy(loop.loop), list(loop.exits)
        if is_run:
            natural.base, natural.iterates = natural.base + natural.iterates, False
            natural.header = self._find_start(natural, head)
        header, is_once = blocks[natural.header], False
        if sides:
            cut = [number for number in natural.body if blocks[number].order in sides]
            inside = natural.body - {*cut}
            ways = {one: [to for to in self._list_ways(blocks[one]) if to in inside] for one in natural.body}
            natural.body = {*find_reachable(ways, [natural.header])}
            reached = natural.body
            left = {one for number in reached for one in blocks[number].successors}
            is_once = natural.header not in left
            if is_once and natural.iterates:  # there is an element
                natural.body -= {natural.header}
                left = {one for number in natural.body for one in blocks[number].successors}
            exits = [self.make_exit(one.block, natural, one.offset) for one in exits if one.block in left]
            for number in cut:
                if number in left:
                    exits.append(self.make_exit(number, natural, blocks[number].order))
        instructions = [one for number in natural.body for one in blocks[number].instructions]
        read = list_reads(instructions)
        assigned = {one.arg for one in instructions if one.op in STORES}
        start = header.number if natural.iterates else self._find_start(natural, head)
        if is_once and natural.iterates:
            start = header.terminator.body
        ends = [*(one.block for one in exits), *[start][is_once:]]  # it may have done some iterations
        behind = self.graph.variables.union(*(self.live[number] for number in ends))
        grown = frozenset(lists) - {*loop.cells, *loop.free, *assigned}
        grown -= self._list_otherwise_read(instructions)
        variable = self._find_counter(natural)
        told = {variable} if sides or len(exits) > 1 else set()
        results = (assigned & (behind | told) | grown) - {*loop.free}
        known = self.live[start] | self.graph.variables & results
        into = known & (read | results) - {*loop.free} - grown
        bound = frozenset(self.assigned[start]) - self._cleared
        certain = frozenset.intersection(*(frozenset(self.assigned[number]) for number in ends)) | grown
        head = (Instruction("GET_ITER"),) if natural.iterates and not is_once else ()
        is_limited = not natural.iterates and not is_run
        own = (INDEX,) if make_element is not None else (LIMIT,) * is_limited
        counter = own[0] if own else variable if variable in results else None
        return loop._replace(
            loop=natural, head=head, depth=natural.base, is_limited=is_limited,
            takes_iterable=natural.iterates,
            parameters=tuple(sorted(into)), unsure=into - bound, varying=loop.varying | into & natural.stored,
            results=(*sorted(results), *own), unsure_results=frozenset(results) - (certain - self._cleared),
            exits=tuple(exits), grown=tuple(sorted(grown)), head_block=start, make_element=make_element,
            is_once=is_once, counter=counter)

    @staticmethod
    def _list_ways(block: Block) -> list[int]:
        """Where control may go from a block, with its handler."""
        return [*block.successors, *([block.handler[0]] if block.can_raise else ())]

    def is_caught_alike(self, loop: OutlinedLoop) -> bool:
        """Whether what a loop raises goes to where it goes at its beginning."""
        body, outside = loop.loop.body, self.graph.blocks[loop.head_block].handler
        own = {self.graph.blocks[number].handler for number in body} - {outside, None}
        return all(handler[0] in body for handler in own)

    def find_loop(self, body: Iterable[int]) -> OutlinedLoop | None:
        """The smallest loop that has instructions at all these offsets of the code object which it reads."""
        known = {offset for number in self.graph.blocks for offset in self._list_offsets(number)}
        wanted = known.intersection(body)
        around = [one for one in self.loops
                  if wanted <= {offset for number in one.loop.body for offset in self._list_offsets(number)}]
        return min(around, key=lambda one: len(one.loop.body), default=None)

    def _list_offsets(self, number: int) -> set[int]:
        block = self.graph.blocks[number]
        own = {offset for one in block.instructions for offset in one.offsets}
        return own | ({int(block.order)} if block.order % 1 == 0 else set())

    def _find_start(self, loop: Loop, head: int | None) -> int:
        found = [number for number in loop.body if (find_offset(self.graph.blocks[number]) or -1) == head]
        return found[0] if found else loop.header

    def _list_otherwise_read(self, instructions: Sequence[Instruction]) -> set[str]:
        """Variables that more is done with than calling their method `append`."""
        append = ("LOAD_ATTR", "append")
        following = [(one.op, self.code.co_names[one.arg >> LOAD_ATTR_SHIFT] if one.op == "LOAD_ATTR" else "")
                     for one in instructions[1:]]
        return {name for one, then in zip(instructions, [*following, ("", "")]) if then != append
                for name in list_reads([one])} - self._named

    def _find_counter(self, loop: Loop) -> str | None:
        """The variable that has the number of the iteration: of a `for` the one that it goes through with,
        where nothing else in it assigns that."""
        header = self.graph.blocks[loop.header]
        if not isinstance(header.terminator, ForIter):
            return None
        first = self.graph.blocks[header.terminator.body].instructions[:1]
        if not first or first[0].op not in STORES:
            return None
        name = first[0].arg
        stores = [one for number in loop.body for one in self.graph.blocks[number].instructions
                  if one.op in (*STORES, "LOAD_FAST_AND_CLEAR", "DELETE_FAST") and one.arg == name]
        return name if len(stores) == 1 else None

    def find_fresh(self, loop: OutlinedLoop) -> frozenset[str]:
        """Results that each iteration assigns before it reads them, or ends, or leaves the loop: of a loop
        that has an iteration before it their values do not matter."""
        blocks, body, header = self.graph.blocks, loop.loop.body, loop.loop.header
        everything = frozenset(loop.results) - {*loop.free}
        assigned = {number: everything for number in body} | {header: frozenset()}
        read: set[str] = set()
        before = {number: {last for one in body if number in blocks[one].successors
                           for last in self._list_last(one, number)} for number in body - {header}}
        changed = True
        while changed:
            changed = False
            for number in body - {header}:
                known = [self._note_fresh(assigned[one], one) for one in before[number]]
                found = frozenset.intersection(everything, *known)
                changed |= found != assigned[number]
                assigned[number] = found
        fresh = everything
        for number in body:
            known = set(assigned[number])
            for one in blocks[number].instructions:
                read |= list_reads([one]) - known
                known |= {one.arg} if one.op in STORES else set()
            is_exhaustion = number == header and loop.loop.iterates
            leaves = any(target not in body or target == header for target in blocks[number].successors)
            if leaves and not is_exhaustion:
                fresh &= known
        return fresh - read

    def _list_last(self, number: int, following: int) -> list[int]:
        """Blocks that come before a block on the way to another one: of a loop that has an iteration, on the
        way behind it, those that end one."""
        blocks, ways = self.graph.blocks, self.graph.blocks[number].terminator
        if not isinstance(ways, ForIter) or following != ways.exit:
            return [number]
        before = {one.number for one in blocks.values() if number in one.successors}
        return [*before - self._entering.keys()] if before & self._entering.keys() else [number]

    def _note_fresh(self, assigned: frozenset[str], number: int) -> frozenset[str]:
        return assigned | {one.arg for one in self.graph.blocks[number].instructions if one.op in STORES}
