"""Results that take the memory of an operand which nothing reads afterwards.

In: equations of a loop's body, values about to be stored. Out: which operand a result may replace, and
whether what is computed for an element reads other elements of the memory that it goes to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitcore.core.jaxpr import DropVar, Equation, Jaxpr, Literal, Var, find_dependent, slice_eqns
from jitcore.lax.control_flow.loops import Loop
from jitcore.lax.indexing.windows import is_part
from jitcore.loopir.expr import Buffer, linearize, walk
from jitcore.loopir.values import Computed, Packed, Region, Stored, Value, any_index, is_in, is_scalar


def find_operand(lowering, routine, value: Value, goals: Sequence[Buffer | None]) -> Buffer:
    """Where a routine reads a value. A reshape of what is in memory is there, for a routine whose `sizes` say
    all; others read the shapes of buffers. goals: of its results."""
    if hasattr(routine, "sizes") and isinstance(value, Computed) and len(value.buffers) == 1:
        (buffer,), index = value.buffers, any_index(value.shape)
        is_alike = buffer.dtype == value.dtype and math.prod(buffer.shape) == math.prod(value.shape)
        if is_alike and buffer not in goals:
            element = value.at(index)
            if element.op == "load" and element.attr == (buffer, linearize(index, value.shape)):
                return buffer
    return lowering.in_memory(value).buffer


def prepare_memory(lowering, eqn: Equation, number: int, uses, env: dict, target: dict) -> None:
    """Before an equation gives its results memory of operands: saves what is read there later, and finds what
    is free."""
    protect_readers(lowering, eqn, number, uses, env, target)
    lowering.spare = find_spare(eqn, number, uses, env)


def protect_readers(lowering, eqn: Equation, number: int, uses, env: dict, target: dict) -> None:
    """Before results take the memory of operands: what was to be read from there later is read now.

    What the equation itself does in step with its reads stays as it is, see `settle`."""
    in_step = [eqn.invars[place] for place in eqn.primitive.traits.get("in_step", ())]
    for result, operand in uses.list_replaced(eqn):
        goal = target.get(result)
        if goal is None or not is_in(env.get(operand), goal):
            continue
        for var, value in list(env.items()):
            is_read = uses.is_read_from(var, number + any(var is atom for atom in in_step))
            if var is not operand and goal in value.buffers and is_read:
                stored = lowering.store_value(value, lowering.new_temp(value.shape, value.dtype))
                env[var] = lowering.keep_ranges(var, stored, uses, env)


def find_spare(eqn: Equation, number: int, uses, env: dict) -> set[Buffer]:
    """Temporaries that only this loop reads from here on: its carry may begin there."""
    spare: set[Buffer] = set()
    if eqn.primitive.name not in ("while", "scan"):
        return spare
    for var in eqn.invars:
        value = env.get(var) if isinstance(var, Var) else None
        if (not isinstance(value, Stored) or value.buffer.kind != "temp" or uses.last.get(var) != number
                or var in uses.inputs):
            continue
        readers = [other for other, found in env.items()
                   if other is not var and value.buffer in found.buffers]
        if eqn.invars.count(var) == 1 and not any(uses.is_read_from(other, number) for other in readers):
            spare.add(value.buffer)
    return spare


def reads_elsewhere(value: Value, place, buffer: Buffer) -> bool:
    """Whether the element of a value that goes to place(index) in a buffer needs other elements of it."""
    if buffer not in value.buffers:
        return False
    index = any_index(value.shape)
    own = linearize(place(index), buffer.shape)
    return any(node.op == "load" and node.attr[0] is buffer and node.attr[1] != own
               for node in walk([value.at(index)]))


def settle(lowering, value: Value, buffer: Buffer) -> Value:
    """A value that is about to overwrite what it reads: one that needs other elements is computed before. So
    are the parts of elements that go side by side, of which each is read at its own place only."""
    if isinstance(value, Packed):
        parts = [lowering.in_memory(part) if part.is_joined else settle(lowering, part, buffer)
                 for part in (value.operand, value.mask)]
        return Packed(*parts)
    if not isinstance(value, Computed) or buffer not in value.buffers:
        return value
    lowering.graph.epoch += 1
    return lowering.store_value(value, None) if reads_elsewhere(value, lambda index: index, buffer) else value


def settle_region(lowering, region: Region, buffer: Buffer) -> Region:
    """A region of a buffer whose value reads nothing else from there: one that does is stored before."""
    if buffer not in region.value.buffers:
        return region
    lowering.graph.epoch += 1
    if not region.serial and not reads_elsewhere(region.value, region.place, buffer):
        return region
    value = lowering.in_memory(region.value)
    lowering.end_group()
    return region.replace_value(value)


def list_handed_on(eqn: Equation, find_origin) -> list[tuple[Var, Var]]:
    """(result, operand) of each array that a loop carries, or that all branches hand on, or update, or fill
    without reading it.

    find_origin: (jaxpr, output) -> what a branch's output is a chain of updates of."""
    if eqn.primitive.name == "cond":
        return _list_passed(eqn, find_origin)
    carry: Sequence = ()
    if eqn.primitive.name == "while":
        *_, carry = Loop(**eqn.params).split(eqn.invars)
    elif eqn.primitive.name == "scan":
        carry = eqn.invars[eqn.params["num_consts"] :][: eqn.params["num_carry"]]
    return [(out, operand) for out, operand in zip(eqn.outvars, carry)
            if isinstance(operand, Var) and not isinstance(out, DropVar)
            and not is_scalar(out.aval.shape) and operand.aval.shape == out.aval.shape]


def _list_passed(eqn: Equation, find_origin) -> list[tuple[Var, Var]]:
    branches, pairs = [branch.jaxpr for branch in eqn.params["branches"]], []
    fills = [_list_fills(jaxpr) for jaxpr in branches]
    for number, out in enumerate(eqn.outvars):
        if isinstance(out, DropVar) or is_scalar(out.aval.shape):
            continue
        origins = [find_origin(jaxpr, jaxpr.outvars[number]) for jaxpr in branches]
        is_filled = [var in found for var, found in zip(origins, fills)]
        places = {jaxpr.invars.index(var) if var in jaxpr.invars else None
                  for jaxpr, var, flag in zip(branches, origins, is_filled) if not flag}
        place = places.pop() if len(places) == 1 else None
        if place is None or not isinstance(eqn.invars[1 + place], Var):
            continue
        filled = [jaxpr for jaxpr, flag in zip(branches, is_filled) if flag]
        if not any(_reads(jaxpr, jaxpr.invars[place]) for jaxpr in filled):
            pairs.append((out, eqn.invars[1 + place]))
    return pairs


def _list_fills(jaxpr: Jaxpr) -> set[Var]:
    """Arrays of one literal: a branch may leave these in memory that it does not read."""
    return {eqn.outvars[0] for eqn in jaxpr.eqns
            if eqn.primitive.name == "broadcast_in_dim" and isinstance(eqn.invars[0], Literal)}


def _reads(jaxpr: Jaxpr, var: Var) -> bool:
    return any(atom is var for eqn in jaxpr.eqns for atom in eqn.invars) or any(
        atom is var for atom in jaxpr.outvars)


def find_replaced(jaxpr: Jaxpr, number: int, candidates: list[Var], is_call) -> tuple[Var, set[Var]] | None:
    """What a choice between two arrays may replace, and what has to be stored for that: small parts of the
    array, which the other case reads at other places.

    candidates: cases that are not read afterwards."""
    eqn = jaxpr.eqns[number]
    for operand in candidates:
        parts = _list_parts(jaxpr, number, operand, is_call)
        if parts is not None and operand.aval.shape == eqn.outvars[0].aval.shape:
            return operand, parts
    return None


def _list_parts(jaxpr: Jaxpr, number: int, operand: Var, is_call) -> set[Var] | None:
    """What equation `number` needs of other elements of an operand than the one at its own place; None where
    that is much."""
    eqns, _ = slice_eqns(jaxpr.eqns[:number], jaxpr.eqns[number].invars)
    in_step, parts = {operand}, set()
    for eqn in eqns:
        if in_step.isdisjoint(eqn.variables):
            continue
        if eqn.primitive.traits.get("family") == "elementwise":
            in_step.update(eqn.outvars)
        elif is_call(eqn) or eqn.primitive.traits.get("stores_result"):
            continue
        elif all(is_part(out.aval.shape, operand.aval.shape, 2) for out in eqn.outvars):
            parts.update(eqn.outvars)
        else:
            return None
    return parts


def fills_ranges(jaxpr: Jaxpr, consts: Sequence[Value], is_call) -> bool:
    """Whether a loop's body sets a part of an array that it carries, at places that vary from round to round:
    a loop inside of each element would go through all the rounds, of which few concern it.

    consts: what the body's first inputs are in every round."""
    placed = [var for var, value in zip(jaxpr.invars, consts)
              if isinstance(value, Computed) and not value.buffers]
    placed += [var for eqn in jaxpr.eqns if eqn.primitive.name == "iota" for var in eqn.outvars]
    varying = [var for var in jaxpr.invars[len(consts) :] if is_scalar(var.aval.shape)]
    tests = find_dependent(jaxpr.eqns, placed) & find_dependent(jaxpr.eqns, varying)
    for number, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive.name == "select_n" and len(eqn.invars) == 3 and eqn.invars[0] in tests:
            cases = [case for case in eqn.invars[1:] if case in jaxpr.invars]
            if find_replaced(jaxpr, number, cases, is_call) is not None:
                return True
    return False
