"""Choices between two values, of which one reads memory at computed places: it is computed only for vectors
where a lane chooses it.

In: a "select" in lanes. Out: a branch around the dear side, whose accesses are masked. Elements outside of an
array that a gather fills in, and corrections that few elements need, are such choices.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu.scalar_ops import count_math_calls
from jitcore.loopir.expr import Expr, children, walk
from jitcore.loopir.index import Dynamic

# Expressions behind a branch; what is shared with other code may be computed twice.
MAX_NODES = 32


def find_guarded(e, node: Expr) -> Expr | None:
    """The side of a choice that goes behind a branch. e: the `FunctionEmitter`."""
    if node.op != "select" or node.dtype.kind == "c" or not e.is_vector(node.args[0].axes):
        return None
    condition, *sides = node.args
    sides = [side for side in sides if id(side) not in e.values and _reads_places(e, side)]
    if len(sides) != 1 or not e.is_vector(sides[0].axes):
        return None
    nodes = walk(sides)
    few = sum(id(inner) not in e.values for inner in nodes) <= MAX_NODES
    return sides[0] if few and not any(map(_is_call, nodes)) else None


def emit_guarded(e, node: Expr, guarded: Expr) -> ir.Value:
    """The chosen values, where the other side and the condition are in registers."""
    b, (condition, when_true, when_false) = e.b, node.args
    chosen, outer = e.expr_in_lanes(condition), e.mask
    other = e.expr_in_lanes(when_false if guarded is when_true else when_true)
    needs = chosen if guarded is when_true else b.not_(chosen)
    needs = needs if outer is None else b.and_(needs, outer)
    slot = e.stack_slot(other)

    def compute():
        e.mask = needs
        value = e.expr_in_lanes(guarded)
        e.mask = outer
        e.write_slot(slot, b.select(needs, value, other))

    bits = ir.IntType(e.lanes)
    e.when(b.icmp_unsigned("!=", b.bitcast(needs, bits), bits(0)), compute)
    return e.read_slot(slot)


def _reads_places(e, root: Expr) -> bool:
    """Whether an expression needs elements at places that lanes compute."""
    known, stack = e.guardable, [root]
    while stack:
        node = stack[-1]
        missing = [child for child in children(node) if id(child) not in known]
        if id(node) not in known and missing:
            stack.extend(missing)
            continue
        stack.pop()
        known[id(node)] = _is_gather(e, node) or any(known[id(child)] for child in children(node))
    return known[id(root)]


def _is_gather(e, node: Expr) -> bool:
    terms = node.attr[1].terms if node.op == "load" else ()
    return any(isinstance(atom, Dynamic) and e.is_vector(atom.expr.axes) for atom, _ in terms)


def _is_call(node: Expr) -> bool:
    return bool(node.args) and count_math_calls(node.op, node.args[0].dtype) > 0
