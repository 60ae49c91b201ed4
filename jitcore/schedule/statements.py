"""What statements of a kernel evaluate and store: the questions that all steps of scheduling ask."""

from __future__ import annotations

from collections.abc import Iterator

from jitcore.loopir.expr import Expr, index_exprs, walk
from jitcore.loopir.index import FloorDiv, Index
from jitcore.loopir.program import Loop, Reduce, Repeat, Scan, Store


def list_indexes(body: list) -> Iterator[Index]:
    """Every index of the body, those inside opaque terms and dynamic expressions included."""
    for statement in body:
        if isinstance(statement, (Loop, Repeat)):
            yield from list_indexes(statement.body)
        offsets = [s.offset for s in stores_of(statement)]
        if isinstance(statement, Scan):
            offsets.append(statement.offset)
        for node in walk(roots_of(statement)):
            if node.op == "load":
                offsets.append(node.attr[1])
            elif node.op == "index":
                offsets.append(node.attr)
        while offsets:
            index = offsets.pop()
            yield index
            offsets.extend(atom.index for atom, _ in index.terms if isinstance(atom, FloorDiv))


def stores_of(statement) -> list[Store]:
    """The stores that a statement makes itself."""
    if isinstance(statement, Store):
        return [statement]
    return statement.stores if isinstance(statement, Reduce) else []


def roots_of(statement) -> list[Expr]:
    """The expressions a statement evaluates itself (not those of statements inside it)."""
    if isinstance(statement, Loop):
        return []
    if isinstance(statement, Scan):
        return [statement.value, *index_exprs(statement.offset)]
    if isinstance(statement, Repeat):
        return [*statement.initial, statement.condition, *statement.updates]
    roots = [expr for _, _, expr in statement.parts] if isinstance(statement, Reduce) else []
    for store in stores_of(statement):
        roots.append(store.value)
        if store.mask is not None:
            roots.append(store.mask)
        roots.extend(index_exprs(store.offset))
    return roots
