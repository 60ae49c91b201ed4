"""Rules of what threads do together: the operands go to the thread's record, the thread waits, and `scheduler`
leaves the result there."""

from __future__ import annotations

from jitcore.backends.cuda.emulated import scheduler
from jitcore.backends.cuda.emulated.ptx import Instruction, width_of
from jitcore.backends.cuda.emulated.translate import Body, rule


def _wait(body: Body, operation: int, mask: str, value: str = "0", **fields: str | int) -> str:
    """Waits for the lanes of a mask. Returns the result, 64 bits."""
    lanes = body.read(mask, "i32")
    for name, content in {"operation": operation, "mask": lanes, "value": value, **fields}.items():
        body.store("thread", name, content)
    body.suspend(scheduler.AT_COLLECTIVE)
    return body.load("thread", "result")


@rule("shfl")
def shuffle(body: Body, instruction: Instruction) -> None:
    instruction.take_kind()
    instruction.ignore("sync")
    mode = instruction.take(*scheduler.SHUFFLE)
    targets, value, selector, bounds, mask = instruction.operands
    target, _, predicate = targets.partition("|")
    operands = {"selector": body.read(selector, "i32"), "bounds": body.read(bounds, "i32")}
    result = _wait(body, scheduler.SHUFFLE[mode], mask, body.read(value, "i64"), **operands)
    body.assign(target, result, "i64")
    if predicate:
        body.assign(predicate, body.load("thread", "passed"), "i32")


@rule("vote")
def vote(body: Body, instruction: Instruction) -> None:
    """The result holds the lanes that say yes, and above them those that take part."""
    instruction.take_kind()
    instruction.ignore("sync")
    mode = instruction.take("ballot", "all", "any", "uni")
    target, predicate, mask = instruction.operands
    value = body.read(predicate.lstrip("!"), "i64")
    if predicate[0] == "!":
        value = body.emit(f"xor i64 {value}, 1")
    result = _wait(body, scheduler.BALLOT, mask, value)
    if mode == "ballot":
        return body.assign(target, result, "i64")
    votes = "y = trunc i64 {r} to i32; h = lshr i64 {r}, 32; e = trunc i64 {h} to i32; none = icmp eq i32 {y}, 0; "
    votes += {
        "any": "xor i1 {none}, true",
        "all": "icmp eq i32 {y}, {e}",
        "uni": "all = icmp eq i32 {y}, {e}; or i1 {none}, {all}",
    }[mode]
    body.assign(target, body.emit(votes, r=result), "i1")


@rule("match")
def match(body: Body, instruction: Instruction) -> None:
    bits, mode = width_of(instruction.take_kind()), instruction.take("any", "all")
    instruction.ignore("sync")
    targets, value, mask = instruction.operands
    target, _, predicate = targets.partition("|")
    operation = scheduler.MATCH_ANY if mode == "any" else scheduler.MATCH_ALL
    body.assign(target, _wait(body, operation, mask, body.resize(body.read(value, f"i{bits}"), f"i{bits}", "i64")), "i64")
    if predicate:
        body.assign(predicate, body.load("thread", "passed"), "i32")


@rule("redux")
def reduce(body: Body, instruction: Instruction) -> None:
    kind = instruction.take_kind()
    instruction.ignore("sync")
    operation = scheduler.REDUCE[instruction.take(*scheduler.REDUCE)]
    target, value, mask = instruction.operands
    word = body.resize(body.read(value, "i32"), "i32", "i64", is_signed=kind[0] == "s")
    body.assign(target, _wait(body, operation, mask, word), "i64")


@rule("activemask")
def find_active_lanes(body: Body, instruction: Instruction) -> None:
    instruction.take_kind()
    body.assign(instruction.operands[0], _wait(body, scheduler.ACTIVE_LANES, "-1"), "i64")


@rule("bar", "barrier")
def synchronize(body: Body, instruction: Instruction) -> None:
    """`bar.sync 0`, `bar.sync 1, 64`, `bar.arrive 1, 64`, `bar.red.popc.u32 %r1, 0, %p1`, `bar.warp.sync -1`."""
    instruction.ignore("cta", "aligned")
    operands = instruction.operands
    if instruction.take("warp"):
        instruction.take("sync")
        return _wait(body, scheduler.SYNCHRONIZE, operands[0])
    what = instruction.take("sync", "arrive", "red")
    votes = what == "red" and instruction.take("popc", "and", "or")
    if votes:
        target, *operands, predicate = operands
        instruction.take_kind()
        body.store("thread", "value", body.read(predicate, "i64"))
    if what == "arrive":  # does not wait
        pointer, kind = body.point_to("launch", "arrived", int(operands[0]))
        count = body.emit(f"n = load {kind}, ptr {pointer}; add {kind} {{n}}, 1")
        return body.write(f"store {kind} {count}, ptr {pointer}")
    body.store("thread", "operation", body.read(operands[0], "i32"))
    body.store("thread", "bounds", body.read(operands[1], "i32") if len(operands) > 1 else 0)
    body.suspend(scheduler.AT_BARRIER)
    if votes:
        result = "n = trunc i64 {r} to i32; h = lshr i64 {r}, 32; e = trunc i64 {h} to i32; "
        result += {"popc": "or i32 {n}, 0", "and": "icmp eq i32 {n}, {e}", "or": "icmp ne i32 {n}, 0"}[votes]
        body.assign(target, body.emit(result, r=body.load("thread", "result")), "i32" if votes == "popc" else "i1")
