"""Choices between two values, of which one is behind a branch.

In: a "select" in lanes of which one side reads memory at computed places. Out: a branch around that side,
whose accesses are masked, for vectors where a lane chooses it. Elements outside of an array that a gather
fills in, and corrections that few elements need, are such choices.

In: a place of an element that was checked, in a loop of scalar code: `min(max(place, 0), last)`, or the test
whether the place is outside; a negative one may count from the end. Out: a branch around all of that, which
is hardly ever taken: one comparison tells that a place is as it should be, and the processor need not wait.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.registers import I1, choose_rarely
from jitcore.backends.llvm.scalar_ops import count_math_calls, emit_operation
from jitcore.loopir.expr import Dynamic, Expr, number_of, walk


def find_guarded(e, node: Expr) -> Expr | None:
    """The side of a choice that goes behind a branch. e: the `FunctionEmitter`."""
    if _is_place(e, node):
        return node.args[0]
    if node.op != "select" or node.dtype.kind == "c" or not e.is_vector(node.args[0].axes):
        return None
    condition, *sides = node.args
    sides = [side for side in sides if id(side) not in e.values and _reads_places(e, side)]
    if len(sides) != 1 or not e.is_vector(sides[0].axes):
        return None
    nodes = walk(sides)
    few = sum(id(inner) not in e.values for inner in nodes) <= e.tuning.max_guarded_nodes
    return sides[0] if few and not any(map(_is_call, nodes)) else None


def emit_guarded(e, node: Expr, guarded: Expr) -> ir.Value:
    """The chosen values, where the other side and the condition are in registers."""
    if node.op != "select":
        return _emit_place(e, node)
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


def _is_place(e, node: Expr) -> bool:
    """Whether a number is a clamped place, or tells whether one is outside, in a loop of scalar code."""
    if e.chains is None or e.lanes > 1 or node.op not in ("min", "gt"):
        return False
    inner, last = node.args
    if node.op == "gt":  # see `Graph.op`
        is_test = inner.dtype == dtypes.uint64 and inner.op == last.op == "convert"
        return is_test and _is_last(last.args[0]) and _find_start(inner.args[0]) is not None
    return node.dtype.kind == "i" and inner.op == "max" and number_of(inner.args[1]) == 0 and _is_last(last)


def _is_last(number: Expr) -> bool:
    """Whether a number is told at run time, and never negative."""
    known = number_of(number)
    return number.op == "index" and known is not None and known >= 0


def _find_start(place: Expr) -> Expr | None:
    """The place of which one is made that counts from the end."""
    if place.op != "select" or place.args[0].op != "lt":
        return None
    start, zero = place.args[0].args
    return start if start is place.args[2] and number_of(zero) == 0 else None


def _emit_place(e, node: Expr) -> ir.Value:
    """What a node is where its place, counted from the front, is inside; computed only where it is not."""
    inner, last = node.args
    place = inner.args[0]
    start, last = e.expr(_find_start(place) or place), e.expr(last)

    def emit():
        saved, e.values = e.values, dict(e.values)
        args = [e.expr(inner), last]
        e.values = saved
        return emit_operation(e.b, node.op, [arg.dtype for arg in node.args], node.dtype, args)

    is_outside = e.b.icmp_unsigned(">", start, last)  # without sign, negative numbers are above all others
    usual = ir.Constant(I1, 0) if node.op == "gt" else start
    return choose_rarely(e.b, is_outside, emit, lambda: usual)


def _reads_places(e, root: Expr) -> bool:
    """Whether an expression needs elements at places that lanes compute."""
    known, stack = e.guardable, [root]
    while stack:
        node = stack[-1]
        missing = [child for child in node.inner if id(child) not in known]
        if id(node) not in known and missing:
            stack.extend(missing)
            continue
        stack.pop()
        known[id(node)] = _is_gather(e, node) or any(known[id(child)] for child in node.inner)
    return known[id(root)]


def _is_gather(e, node: Expr) -> bool:
    terms = node.attr[1].terms if node.op == "load" else ()
    return any(isinstance(atom, Dynamic) and e.is_vector(atom.expr.axes) for atom, _ in terms)


def _is_call(node: Expr) -> bool:
    return bool(node.args) and count_math_calls(node.op, node.args[0].dtype) > 0
