"""Rendering of polls: loops that may run for long ask whether they have to end.

In: the emitter of a function with loops, and how this function returns early. Out: instructions that follow
`interrupts`. Stage: rendering.

Rounds that call kernels, and rounds in lanes, compare ticks. Rounds of scalar code are counted, and whoever
has counted many calls a function: it is told to touch no memory that the loop does, so that LLVM keeps
elements in registers over the rounds as it does without it. A loop that goes up to a limit is counted in
strips of many rounds, each a loop as plain as the whole was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from llvmlite import ir

from jitcore.backends.cpu.interrupts import BEGIN_SYMBOL, CELLS_SYMBOL, LOOK_SYMBOL, POLL_SYMBOL, find_offset
from jitcore.backends.cpu.lanes import I64
from jitcore.backends.cpu.loop_functions import is_inline, outside_kernels
from jitcore.backends.cpu.sizes import is_static
from jitcore.loopir.expr import Expr, children, walk
from jitcore.loopir.program import Kernel, Native, Store, Switch, While
from jitcore.schedule.buffers import step_writes

__all__ = ["Limit", "Poll", "check_stopped", "count_rounds", "end_stop", "find_limit", "find_poll",
           "is_scalar_code"]  # fmt: skip

# Rounds of scalar code between two calls, of a nanosecond to a hundred each; loops up to a constant no larger
# than the second do not poll.
_STRIP, _FEW = 1 << 16, 64
# Expressions of a round that takes little longer than counting it.
_SHORT = 48


def _declare(module: ir.Module, symbol: str, *arguments: ir.Type) -> ir.Function:
    found = module.globals.get(symbol)
    if found is None:
        found = ir.Function(module, ir.FunctionType(I64, arguments), symbol)
        found.attributes.add("nounwind")
        if symbol == POLL_SYMBOL:
            found.attributes.add("cold")
            found.calling_convention = "preserve_mostcc"
            found.attributes.add("inaccessiblemem_or_argmemonly")
    return found


def _find_cell(module: ir.Module, name: str) -> ir.Value:
    cells = module.globals.get(CELLS_SYMBOL)
    if cells is None:
        cells = ir.GlobalVariable(module, ir.ArrayType(I64, 4), CELLS_SYMBOL)
    return cells.gep([I64(0), I64(find_offset(name) // 8)])


def _load_cell(e, name: str) -> ir.Value:
    return e.b.load_atomic(_find_cell(e.function.module, name), "monotonic", 8)


def _leave_if(e, stops: ir.Value, leave: Callable[[], None]) -> None:
    with e.b.if_then(e.b.icmp_signed("!=", stops, I64(0)), likely=False):
        leave()


class Poll:
    """What the loops of one function ask. leave: emits how the function returns when it has to end."""

    def __init__(self, e, leave: Callable[[], None]):
        self.e, self.leave = e, leave
        self.seen = e.prologue.alloca(I64)
        e.prologue.store(e.prologue.call(_declare(e.function.module, BEGIN_SYMBOL), []), self.seen)
        self.left: ir.Value | None = None

    def emit(self) -> None:
        """In a round that takes its time."""
        e = self.e
        tick = _load_cell(e, "tick")
        with e.b.if_then(e.b.icmp_signed("!=", tick, e.b.load(self.seen)), likely=False):
            e.b.store(tick, self.seen)
            _leave_if(e, e.b.call(_declare(e.function.module, LOOK_SYMBOL), []), self.leave)

    def count(self, rounds: ir.Value) -> None:
        """After rounds of scalar code."""
        e = self.e
        if self.left is None:
            self.left = e.prologue.alloca(I64)
            e.prologue.store(I64(_STRIP), self.left)
        left = e.b.sub(e.b.load(self.left), rounds)
        e.b.store(left, self.left)
        with e.b.if_then(e.b.icmp_signed("<=", left, I64(0)), likely=False):
            e.b.store(I64(_STRIP), self.left)
            poll = _declare(e.function.module, POLL_SYMBOL, I64.as_pointer())
            _leave_if(e, e.b.call(poll, [self.seen], cconv="preserve_mostcc"), self.leave)

    def cut_strip(self, first: ir.Value, limit: ir.Value) -> ir.Value:
        """How far a loop from `first` to `limit` goes before the next look."""
        b = self.e.b
        is_long = b.icmp_signed(">", b.sub(limit, first), limit.type(_STRIP))
        return b.select(is_long, b.add(first, first.type(_STRIP)), limit)


def find_poll(e, leave: Callable[[], None]) -> Poll:
    """That of the function under construction."""
    if e.poll is None:
        e.poll = Poll(e, leave)
    return e.poll


def check_stopped(e, leave: Callable[[], None]) -> None:
    """Behind what may have been left early, in the function that has to end then."""
    with e.b.if_then(e.b.icmp_signed("!=", _load_cell(e, "stop"), I64(0)), likely=False):
        _leave_if(e, e.b.call(_declare(e.function.module, LOOK_SYMBOL), []), leave)


def end_stop(e) -> None:
    """In the entry point that ends."""
    e.b.store_atomic(I64(0), _find_cell(e.function.module, "stop"), "seq_cst", 8)


# -- loops of scalar code -----------------------------------------------------------------------------------
def is_scalar_code(loop: While) -> bool:
    """Whether a loop calls no kernel: all that it does are rounds of scalar code."""
    inside = outside_kernels([loop])
    return all(is_inline(s) if isinstance(s, Kernel) else isinstance(s, (Switch, While)) for s in inside)


def count_rounds(loop: While) -> int:
    """How many rounds of a loop without limit stand side by side, so that counting them does not show."""
    inside = list(outside_kernels([*loop.cond, *loop.body]))
    if any(isinstance(statement, While) for statement in inside):
        return 1
    roots = [store.value for kernel in inside if isinstance(kernel, Kernel) for store in kernel.body]
    return 2 if len(walk(roots)) <= _SHORT else 1


class Limit(NamedTuple):
    """Of a loop that goes up: the expressions of its counter and of what the counter stays below, and the
    statements of the test."""

    counter: Expr
    bound: Expr
    test: list[Store]

    @property
    def is_near(self) -> bool:
        number = self.bound.attr
        if self.bound.op == "index":
            number = None if number.terms or not is_static(number.const) else int(number.const)
        return self.bound.op in ("const", "index") and number is not None and number <= _FEW


def find_limit(loop: While) -> Limit | None:
    """The limit of a loop of scalar code. Only how often the loop polls depends on what is found here, but
    for the bound, which no round may change."""
    if len(loop.cond) != 1 or not is_scalar_code(loop):
        return None
    test, written = loop.cond[0].body, step_writes(Native([*loop.cond, *loop.body]))
    (predicate,) = (store.value for store in test if store.buffer is loop.predicate) or (None,)
    for node in _list_conditions(predicate):
        if node.op not in ("lt", "gt"):
            continue
        counter, bound = node.args if node.op == "lt" else node.args[::-1]
        if counter.op != "load" or not _goes_up(counter, loop.body) or bound.dtype.kind != "i":
            continue
        nodes = walk([store.value for store in test])
        users = [parent for parent in nodes if any(child is bound for child in children(parent))]
        reads = {inner.attr[0] for inner in walk([bound]) if inner.op == "load"}
        if users == [node] and not reads & set(written):
            return Limit(counter, bound, test)
    return None


def _list_conditions(predicate: Expr) -> list[Expr]:
    """What has to hold for a predicate to hold."""
    if predicate.op == "and":
        return [condition for arg in predicate.args for condition in _list_conditions(arg)]
    return [predicate]


def _goes_up(counter: Expr, body: list) -> bool:
    """Whether each round adds a positive constant to the counter, maybe by way of other scalars."""
    kernels = [statement for statement in body if isinstance(statement, Kernel)]
    stored = {store.buffer: store.value for kernel in kernels for store in kernel.body}
    value, ways = stored.get(counter.attr[0]), 4
    while value is not None and value.op == "load" and ways:
        value, ways = stored.get(value.attr[0]), ways - 1
    if value is None or value.op != "add":
        return False
    return any(one is counter and other.op == "const" and other.attr > 0
               for one, other in (value.args, value.args[::-1]))  # fmt: skip
