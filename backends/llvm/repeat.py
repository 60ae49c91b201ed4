"""Rendering of `Repeat`: loops over scalars in registers, inside of a kernel.

In: a `loopir.Repeat` and the emitter of the function around it. Out: instructions. In lanes, all lanes of a
vector go round together until the last one's condition fails; lanes that ended keep their registers.
"""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.llvm.registers import choose
from jitcore.loopir.program import Repeat


def emit_repeat(kernel, e, repeat: Repeat) -> None:
    """Emits the loop and leaves the registers' last values in `e.results`.

    kernel: the `KernelRenderer`, for hoisting and for the statements inside."""
    _forget_registers(e, repeat)
    kernel.hoist(e, [repeat], set())
    slots = [e.stack_slot(_value_for(e, register, initial))
             for register, initial in zip(repeat.registers, repeat.initial)]
    outside, around = e.values, e.active
    test, body, after = (e.function.append_basic_block(name) for name in ("repeat", "round", "ended"))
    e.b.branch(test)
    e.b.position_at_end(test)
    e.values = dict(outside)
    _load_registers(e, repeat, slots)
    going = e.expr(repeat.condition)
    in_lanes = isinstance(going.type, ir.VectorType)
    if in_lanes:
        running = e.active if e.active is not None else e.mask
        going = going if running is None else e.b.and_(going, running)
        e.active = going
    e.b.cbranch(_is_any(e, going) if in_lanes else going, body, after)
    e.b.position_at_end(body)
    kernel.emit_statements(e, repeat.body)
    updates = [_value_for(e, register, expr) for register, expr in zip(repeat.registers, repeat.updates)]
    for register, slot, new in zip(repeat.registers, slots, updates):
        old = e.results[register]
        e.write_slot(slot, choose(e.b, going, new, old) if in_lanes and e.is_vector(register.axes) else new)
    e.emit_poll()
    e.b.branch(test)
    e.b.position_at_end(after)
    e.values, e.active = outside, around
    _load_registers(e, repeat, slots)


def _forget_registers(e, repeat: Repeat) -> None:
    """Values from another copy of the loop (whole vectors, the rest) are not to be read in this one."""
    for register in repeat.registers:
        e.results.pop(register, None)
    for inner in repeat.body:
        if isinstance(inner, Repeat):
            _forget_registers(e, inner)


def _value_for(e, register, expr) -> ir.Value:
    return e.expr_in_lanes(expr) if e.is_vector(register.axes) else e.expr(expr)


def _load_registers(e, repeat: Repeat, slots) -> None:
    for register, slot in zip(repeat.registers, slots):
        e.results[register] = e.read_slot(slot)


def _is_any(e, lanes: ir.Value) -> ir.Value:
    """Whether one of the bits is set."""
    bits = ir.IntType(lanes.type.count)
    return e.b.icmp_unsigned("!=", e.b.bitcast(lanes, bits), bits(0))
