"""Dominators of directed graphs.

In: successors by node. Out: immediate dominators. Used on a function's blocks, and reversed for the points
where ways meet again.

Source: K. D. Cooper, T. J. Harvey, K. Kennedy, A Simple, Fast Dominance Algorithm, 2001.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from jitcore.rewriter.blocks import Graph

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
    finished: dict[Node, bool] = {ROOT: False}
    waiting = [(ROOT, iter(successors[ROOT]))]
    while waiting:
        node, rest = waiting[-1]
        for following in rest:
            if following not in finished:
                finished[following] = False
                waiting.append((following, iter(successors[following])))
                break
            if not finished[following] and not dominates(dominators, following, node):
                return False
        else:
            finished[node] = True
            waiting.pop()
    return True
