"""Tail merging: code that the compiler wrote twice becomes one again.

In: a `Graph`. Out: the same with common ends of blocks shared. CPython writes the test of a `while` twice,
before the loop and at its end; a tracer that follows both would trace each nested loop twice at every level.
Merged are only instructions that come from the same place of the source.
"""

from __future__ import annotations

from jitcore.rewriter.blocks import VALUE, Block, Graph, is_site, stack_effect
from jitcore.rewriter.dominators import is_reducible
from jitcore.rewriter.instructions import ForIter, Jump, Raise


def normalize_graph(code) -> Graph:
    """The graph of a code object with tails merged and sites in blocks of their own.

    A merge of parts of loops can make the graph irreducible; then it is left as the compiler wrote it."""
    graph = Graph(code)
    merge_tails(graph)
    split_sites(graph)
    if is_reducible(graph):
        return graph
    graph = Graph(code)
    split_sites(graph)
    return graph


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
