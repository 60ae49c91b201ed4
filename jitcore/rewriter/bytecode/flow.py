"""What a function's control flow says: live and assigned variables, loops, and where ways meet again.

In: a `Graph` whose sites stand in blocks of their own. Out: a `Flow`. Stage: before emission; the driver
reads it when a traced value decides.

Tail merging comes first: common ends of blocks are shared. CPython writes the test of a `while` twice, before
the loop and at its end; a tracer that follows both would trace each nested loop twice at every level. Merged
are only instructions that come from the same place of the source.
"""

from __future__ import annotations

from collections.abc import Iterable

from jitcore.rewriter.bytecode.graph import (ROOT, VALUE, Block, Graph, Node, dominates, find_dominators,
                                             find_reachable, is_reducible, is_site, list_successors,
                                             reverse_edges, stack_effect)
from jitcore.rewriter.bytecode.instructions import Branch, ForIter, Instruction, Jump, NoneBranch, Raise

#: Ends of ways through a loop's body or a function: the next iteration, a return, and what is behind both.
AGAIN, RETURNED, END = "again", "returned", "end"

_COMPREHENSION_OPS = frozenset({"LIST_APPEND", "SET_ADD", "MAP_ADD"})
_READS = frozenset({"LOAD_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
#: What reads a variable in a cell, or gives the cell to a function that reads it; what assigns any variable.
CELL_READS = frozenset({"LOAD_DEREF", "DELETE_DEREF", "LOAD_CELL"})
STORES = frozenset({"STORE_FAST", "STORE_DEREF"})


class Loop:
    """A natural loop.

    Attributes:
        header: the block that dominates it; body: its blocks; latches: those that lead back to the header.
        parent: the next larger loop, or None.
        outs: blocks outside that control may leave it to, in order.
        stored: fast variables that it assigns.
        base: depth of the stack below what belongs to the loop.
        iterates: whether its header asks an iterator, which lies on the stack at `base`.
        is_comprehension: whether it builds a container that lies below on the stack; is_closed: and that
            container is no list, so that it cannot be of traced length.
    """

    def __init__(self, header: int, body: set[int]):
        self.header, self.body = header, body
        self.latches: list[int] = []
        self.parent: Loop | None = None
        self.outs: list[int] = []
        self.stored: set[str] = set()
        self.base = 0
        self.iterates = False
        self.is_comprehension = self.is_closed = False


class Flow:
    """Facts about a graph.

    Attributes:
        live: fast variables that are read before they are written, by block.
        assigned: fast variables that are bound for certain, by block.
        loops: by header; loop_of: the innermost loop of each block, or None.
        join: for each site the block where its two ways meet again, or None.
        leaves: for each site whether one of its ways may leave the iteration it is in.
    """

    def __init__(self, graph: Graph, arguments: Iterable[str]):
        self.graph = graph
        self.successors = list_successors(graph)
        self.dominators = find_dominators(self.successors, ROOT)
        self.live = find_live(graph)
        self.assigned = find_assigned(graph, frozenset(arguments))
        self.loops = self._find_loops()
        self.loop_of = {number: self._find_innermost(number) for number in graph.blocks}
        self._ways: dict[int | None, dict[Node, list[Node]]] = {}
        self._behind: dict[int, dict[Node, Node]] = {}  # by header: what all ways from a block come to next
        self._joins: dict[tuple, int | None] = {}
        self.join: dict[int, int | None] = {}
        self.leaves: dict[int, bool] = {}
        for number in graph.blocks:
            if self._is_open_site(number):
                self._describe_site(number)

    def dominates(self, number: int, other: int) -> bool:
        return dominates(self.dominators, number, other)

    # -- loops -----------------------------------------------------------------------------------------------
    def _find_loops(self) -> dict[int, Loop]:
        predecessors = reverse_edges(self.successors)
        loops: dict[int, Loop] = {}
        for number, block in self.graph.blocks.items():
            for header in block.successors:
                if self.dominates(header, number):
                    loop = loops.setdefault(header, Loop(header, {header}))
                    loop.latches.append(number)
                    waiting = [number]
                    while waiting:
                        inside = waiting.pop()
                        if inside not in loop.body and inside != ROOT:
                            loop.body.add(inside)
                            waiting += predecessors[inside]
        for loop in loops.values():
            self._describe_loop(loop)
            larger = [other for other in loops.values() if loop.body < other.body]
            loop.parent = min(larger, key=lambda other: len(other.body), default=None)
        return loops

    def _describe_loop(self, loop: Loop) -> None:
        blocks = self.graph.blocks
        outs = {target for number in loop.body for target in blocks[number].successors} - loop.body
        loop.outs = sorted(outs, key=lambda number: blocks[number].order)
        header = blocks[loop.header]
        loop.iterates = isinstance(header.terminator, ForIter) and not header.instructions
        loop.base = len(header.layout) - loop.iterates
        for number in loop.body:
            depth = len(blocks[number].layout)
            for instruction in blocks[number].instructions:
                if instruction.op in ("STORE_FAST", "DELETE_FAST"):
                    loop.stored.add(instruction.arg)
                if instruction.op in _COMPREHENSION_OPS and depth - 1 - instruction.arg < loop.base:
                    loop.is_comprehension = True
                    loop.is_closed |= instruction.op != "LIST_APPEND"
                depth += stack_effect(instruction)

    def _find_innermost(self, number: int) -> Loop | None:
        around = [loop for loop in self.loops.values() if number in loop.body]
        return min(around, key=lambda loop: len(loop.body), default=None)

    # -- sites -----------------------------------------------------------------------------------------------
    def _is_open_site(self, number: int) -> bool:
        """Whether a traced value may decide here: not in handlers of exceptions, nor in the loop of a
        comprehension whose container has no traced length."""
        block, loop = self.graph.blocks[number], self.loop_of[number]
        if not is_site(block) or block.instructions or block.handled:
            return False
        is_header = loop is not None and loop.header == number
        return not (is_header and loop.is_closed and isinstance(block.terminator, ForIter))

    def _describe_site(self, number: int) -> None:
        loop = self.loop_of[number]
        self.join[number] = self.find_join(self.graph.blocks[number].successors, loop)
        self.leaves[number] = False
        if loop is not None:
            if loop.header not in self._behind:
                self._behind[loop.header] = find_dominators(reverse_edges(self.list_ways(loop)), END)
            behind = self._behind[loop.header].get(number, END)
            self.leaves[number] = behind in (END, RETURNED) or isinstance(behind, tuple)

    def list_ways(self, loop: Loop | None) -> dict[Node, list[Node]]:
        """The ways through one iteration of a loop, or through the function. Edges back to the header lead to
        `AGAIN`, those out of the loop to ("out", block), returns to `RETURNED`, and all these to `END`."""
        key = None if loop is None else loop.header
        if key not in self._ways:
            ways: dict[Node, list[Node]] = {}
            for number in self.graph.blocks if loop is None else loop.body:
                targets = [self.name_node(target, loop) for target in self.graph.blocks[number].successors]
                ways[number] = targets or [RETURNED]
            for targets in list(ways.values()):
                for target in targets:
                    ways.setdefault(target, [END])
            ways[END] = []
            self._ways[key] = ways
        return self._ways[key]

    @staticmethod
    def name_node(number: int, loop: Loop | None) -> Node:
        """What a block is called in `list_ways`."""
        if loop is None or number in loop.body and number != loop.header:
            return number
        return AGAIN if number == loop.header else ("out", number)

    def find_join(self, numbers: Iterable[int], loop: Loop | None) -> int | None:
        """The nearest block at which ways from several blocks meet, early exits left aside; None when they
        meet nowhere."""
        key = (tuple(numbers), None if loop is None else loop.header)
        if key not in self._joins:
            self._joins[key] = self._search_join([self.name_node(number, loop) for number in key[0]], loop)
        return self._joins[key]

    def _search_join(self, starts: list[Node], loop: Loop | None) -> int | None:
        ways = self.list_ways(loop)
        goals = {AGAIN} if loop is not None else _find_common(ways, starts)
        if not goals:
            return None
        kept = find_reachable(reverse_edges(ways), goals)
        part = {node: [target for target in ways[node] if target in kept] or [END]
                for node in ways if node in kept and node != END}
        if loop is None:
            part |= {node: [END] for node in goals if RETURNED in ways[node]}
        part["start"] = [node for node in starts if node in kept]
        part[END] = []
        found = find_dominators(reverse_edges(part), END).get("start")
        if found is None or found == END:
            return None
        if found == AGAIN:
            return loop.header
        return found[1] if isinstance(found, tuple) else found


def _find_common(ways: dict[Node, list[Node]], starts: list[Node]) -> set[Node]:
    """What at least two of the starts lead to, other than returns."""
    reached = [find_reachable(ways, [start]) - {RETURNED, END} for start in starts]
    pairs = ((one, other) for place, one in enumerate(reached) for other in reached[:place])
    return {node for one, other in pairs for node in one & other}


# -- variables ----------------------------------------------------------------------------------------------
def find_entering(graph: Graph) -> dict[int, int]:
    """Blocks before loops through displays that have elements, and the blocks in which their first iterations
    begin: they have one."""
    found = {}
    for block in graph.blocks.values():
        *_, display, last = (None, None, *block.instructions)
        header = graph.blocks[block.terminator.target] if isinstance(block.terminator, Jump) else None
        if (header is not None and isinstance(header.terminator, ForIter) and display is not None
                and last.op == "GET_ITER" and display.op in _DISPLAYS and display.arg):
            found[block.number] = header.terminator.body
    return found


_DISPLAYS = ("BUILD_TUPLE", "BUILD_LIST")


def find_live(graph: Graph, with_cells: bool = False) -> dict[int, frozenset[str]]:
    """The variables that are read before they are written, by block; those in cells too `with_cells`."""
    uses = {number: _list_uses(block.instructions, with_cells) for number, block in graph.blocks.items()}
    live: dict[int, frozenset[str]] = {number: frozenset() for number in graph.blocks}
    entering = find_entering(graph)
    backwards, changed = sorted(graph.blocks.values(), key=lambda block: -block.order), True
    while changed:
        changed = False
        for block in backwards:
            read, written = uses[block.number]
            following = (entering[block.number],) if block.number in entering else block.successors
            found = read | (frozenset().union(*(live[target] for target in following)) - written)
            if block.can_raise:
                found |= live[block.handler[0]]
            if found != live[block.number]:
                live[block.number], changed = found, True
    return live


def _list_uses(instructions: Iterable[Instruction], with_cells: bool) -> tuple[frozenset, frozenset]:
    """(variables read before they are written, variables written)."""
    read, written = set(), set()
    reads, writes = (_READS | CELL_READS, STORES) if with_cells else (_READS, {"STORE_FAST"})
    for instruction in instructions:
        if instruction.op in reads and instruction.arg not in written:
            read.add(instruction.arg)
        if instruction.op in writes:
            written.add(instruction.arg)
    return frozenset(read), frozenset(written)


def find_assigned(graph: Graph, arguments: frozenset[str], with_cells: bool = False) -> dict:
    """The variables that are bound for certain, by block; those in cells too `with_cells`."""
    cells = graph.code.co_cellvars if with_cells else ()
    everything = frozenset((*graph.code.co_varnames, *cells, *graph.variables))
    assigned = dict.fromkeys(graph.blocks, everything)
    assigned[graph.entry] = arguments
    for block in graph.blocks.values():
        if block.can_raise:
            assigned[block.handler[0]] = frozenset()
    waiting = list(graph.blocks)
    while waiting:
        number = waiting.pop()
        bound = note_assigned(set(assigned[number]), graph.blocks[number].instructions, with_cells)
        for target in graph.blocks[number].successors:
            common = assigned[target] & bound
            if common != assigned[target]:
                assigned[target] = common
                waiting.append(target)
    return assigned


def note_assigned(bound: set[str], instructions: Iterable[Instruction], with_cells: bool = False) -> set[str]:
    """Changes the set of bound variables as instructions do."""
    stores = STORES if with_cells else {"STORE_FAST"}
    for instruction in instructions:
        if instruction.op in stores:
            bound.add(instruction.arg)
        elif instruction.op in ("DELETE_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_DEREF"):
            bound.discard(instruction.arg)
    return bound


def normalize_graph(code, variables: frozenset[str] | None = None, leaders: Iterable[int] = (), *,
                    asks_for_none: bool = False) -> Graph:
    """The graph of a code object with tails merged and sites in blocks of their own. leaders: see `Graph`.
    asks_for_none: whether what depends on a value being None is a site.

    A merge of parts of loops can make the graph irreducible; then it is left as the compiler wrote it."""
    for merges in (True, False):
        graph = Graph(code, variables, leaders)
        if asks_for_none:
            ask_for_none(graph)
        if merges:
            merge_tails(graph)
        split_sites(graph)
        if is_reducible(graph):
            break
    return graph


def ask_for_none(graph: Graph) -> None:
    """Has a test for None be one whose outcome may be traced."""
    for block in graph.blocks.values():
        if isinstance(block.terminator, NoneBranch):
            block.instructions.append(Instruction("UNARY_IS_NONE", 0, block.position))
            block.terminator = Branch(*block.terminator)


def split_sites(graph: Graph) -> None:
    """Gives each site an empty block of its own: the moment before a decision is the beginning of a block."""
    for block in list(graph.blocks.values()):
        if is_site(block) and block.instructions:
            site = graph.new_block(block.order + 0.125)
            site.terminator, site.handler, site.position = block.terminator, block.handler, block.position
            block.terminator = Jump(site.number)
    graph.find_layouts()


def merge_tails(graph: Graph) -> None:
    """Shares common ends among blocks that go on in the same way, until there are none."""
    while True:
        groups: dict[tuple, list[Block]] = {}
        for block in graph.blocks.values():
            if block.instructions and not isinstance(block.terminator, (Raise, ForIter)):
                end = (type(block.terminator), block.terminator, block.handler, block.handled)
                groups.setdefault((*end, block.instructions[-1].key()), []).append(block)
        renamed: dict[int, int] = {}
        if not any([_merge_group(graph, group, renamed) for group in groups.values()]):
            return

        def follow(number: int) -> int:
            while number in renamed:  # noqa: B023
                number = renamed[number]  # noqa: B023
            return number

        for block in graph.blocks.values():
            block.retarget(follow)
        graph.entry = follow(graph.entry)
        graph.remove_empty()


def _merge_group(graph: Graph, group: list[Block], renamed: dict[int, int]) -> bool:
    """Merges blocks that end alike, two at a time. renamed: gets the blocks that vanish."""
    changed = False
    while len(group) > 1:
        first, second = group[0], group.pop()
        count = _count_common(first, second)
        if not count:
            continue
        changed = True
        for one, other in zip(first.instructions[-count:], second.instructions[-count:]):
            one.offsets = other.offsets = (*one.offsets, *other.offsets)
        if count == len(second.instructions) == len(first.instructions):
            renamed[second.number] = first.number
        elif count == len(second.instructions):
            _cut(first, count, second)
            group[0] = second
        elif count == len(first.instructions):
            _cut(second, count, first)
        else:
            group[0] = _make_tail(graph, first, count)
            _cut(first, count, group[0])
            _cut(second, count, group[0])
    return changed


def _count_common(first: Block, second: Block) -> int:
    """How many instructions at the ends are equal and run on stacks of equal depth."""
    count = 0
    for one, other in zip(reversed(first.instructions), reversed(second.instructions)):
        if one.key() != other.key():
            break
        count += 1
    while count and _depth_before(first, count) != _depth_before(second, count):
        count -= 1
    return count


def _depth_before(block: Block, count: int) -> int:
    """The depth of the stack before the last instructions of a block."""
    return len(block.layout) + sum(map(stack_effect, block.instructions[: len(block.instructions) - count]))


def _make_tail(graph: Graph, block: Block, count: int) -> Block:
    tail = graph.new_block(block.order + 0.25)
    tail.instructions = block.instructions[-count:]
    tail.terminator, tail.handler, tail.position = block.terminator, block.handler, block.position
    tail.handled, tail.layout = block.handled, (VALUE,) * _depth_before(block, count)
    return tail


def _cut(block: Block, count: int, tail: Block) -> None:
    del block.instructions[-count:]
    block.terminator = Jump(tail.number)
