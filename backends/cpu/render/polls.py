"""Rendering of how loops that may run for long hear that they have to end.

In: the emitter of a function with loops, and how this function returns early. Out: instructions that follow
`interrupts` and `frames`. Stage: rendering.

Rounds that call kernels, and rounds in lanes, compare ticks. Rounds of scalar code stay as they are: who
calls the function of such a loop puts a frame around the call.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from jitcore.backends.cpu.render import frames
from jitcore.backends.cpu.runtime import interrupts
from jitcore.backends.llvm.registers import I32, I64, POINTER

__all__ = ["Poll", "call_in_frame", "check_stopped", "end_stop", "find_poll", "set_inside"]


def _declare(module: ir.Module, symbol: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    found = module.globals.get(symbol)
    if found is None:
        found = ir.Function(module, ir.FunctionType(result, arguments), symbol)
        found.attributes.add("nounwind")
    return found


def _find_tick(module: ir.Module) -> ir.Value:
    cells = module.globals.get(interrupts.CELLS_SYMBOL)
    if cells is None:
        cells = ir.GlobalVariable(module, I64, interrupts.CELLS_SYMBOL)
    return cells


def _leave_if(e, stops: ir.Value, leave: Callable[[], None]) -> None:
    """All places of a function leave it by one block."""
    if e.exit is None:
        e.exit = e.function.append_basic_block("leave")
        with e.b.goto_block(e.exit):
            leave()
    following = e.function.append_basic_block("goes_on")
    e.b.cbranch(e.b.icmp_signed("!=", stops, stops.type(0)), e.exit, following)
    e.b.position_at_end(following)


class Poll:
    """What the loops of one function ask. leave: emits how the function returns when it has to end."""

    def __init__(self, e, leave: Callable[[], None]):
        self.e, self.leave = e, leave
        self.tick = _find_tick(e.function.module)
        self.seen = e.prologue.alloca(I64)
        begin = _declare(e.function.module, interrupts.BEGIN_SYMBOL, I64)
        e.prologue.store(e.prologue.call(begin, []), self.seen)

    def emit(self) -> None:
        """In a round that takes its time."""
        e = self.e
        tick = e.b.load_atomic(self.tick, "monotonic", 8)
        with e.b.if_then(e.b.icmp_signed("!=", tick, e.b.load(self.seen)), likely=False):
            e.b.store(tick, self.seen)
            look = _declare(e.function.module, interrupts.LOOK_SYMBOL, I64)
            _leave_if(e, e.b.call(look, []), self.leave)


def find_poll(e, leave: Callable[[], None]) -> Poll:
    """That of the function under construction."""
    if e.poll is None:
        e.poll = Poll(e, leave)
    return e.poll


def check_stopped(e, leave: Callable[[], None]) -> None:
    """Behind what may have been left early, in the function that has to end then."""
    _leave_if(e, e.b.call(_declare(e.function.module, interrupts.STOPPED_SYMBOL, I64), []), leave)


def end_stop(e) -> None:
    """In the entry point that ends."""
    end = _declare(e.function.module, interrupts.END_SYMBOL, ir.VoidType())
    end.attributes.add("cold")
    e.b.call(end, [])


# -- loops of scalar code -----------------------------------------------------------------------------------
def _find_frame(e) -> ir.Value:
    """That of the calls of a function, which follow each other."""
    if e.frame is None:
        slot = e.prologue.alloca(ir.ArrayType(I64, frames.FRAME_SIZE // 8))
        slot.align = 16
        e.frame = e.prologue.bitcast(slot, POINTER)
    return e.frame


def call_in_frame(e, leave: Callable[[], None], call: Callable[[ir.Value], None]) -> None:
    """Calls a function that may be left at any instruction at which it says that it is inside of a loop.

    call: emits the call, and hands the function the frame. leave: emits how the caller returns then; it uses
    no value that was computed before."""
    module, frame = e.function.module, _find_frame(e)
    if not interrupts.has_threads():
        return call(frame)
    thread = e.b.call(_declare(module, frames.ENTER_SYMBOL, POINTER, POINTER), [frame])
    note = _declare(module, "_setjmp", I32, POINTER)
    note.attributes.add("returns_twice")
    _leave_if(e, e.b.call(note, [e.b.gep(frame, [I64(frames.PLACE_OFFSET)])]), leave)
    call(frame)
    e.b.call(_declare(module, frames.LEAVE_SYMBOL, ir.VoidType(), POINTER, POINTER), [thread, frame])


def set_inside(e, frame: ir.Value, is_inside: bool) -> None:
    """In a function that was called so, where a loop of scalar code begins or ends."""
    inside = e.b.bitcast(e.b.gep(frame, [I64(frames.INSIDE_OFFSET)]), I64.as_pointer())
    e.b.store_atomic(I64(int(is_inside)), inside, "monotonic", 8)
