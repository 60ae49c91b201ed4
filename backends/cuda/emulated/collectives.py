"""Rules of what threads do together: operands go to the thread's record, which waits for the scheduler."""

from __future__ import annotations

from jitcore.backends.cuda.emulated.arithmetic import decode, split
from jitcore.backends.cuda.emulated.ptx import Instruction, split_operands, width_of
from jitcore.backends.cuda.emulated.scheduler import AT_BARRIER, AT_COLLECTIVE, COLLECTIVES
from jitcore.backends.cuda.emulated.translate import Body, rule

#: What a vote makes of {r}, the lanes that say yes and above them those that take part.
_VOTES = "y = trunc i64 {r} to i32; h = lshr i64 {r}, 32; e = trunc i64 {h} to i32; "
_VOTES += "none = icmp eq i32 {y}, 0; all = icmp eq i32 {y}, {e}; "
_ANSWERS = {"any": "xor i1 {none}, true", "all": "or i1 {all}, {all}", "uni": "or i1 {none}, {all}",
            "or": "xor i1 {none}, true", "and": "or i1 {all}, {all}"}


def _wait(body: Body, name: str, mask: str, value: str, **fields: str) -> str:
    """Waits for the lanes of a mask. Returns the result, 64 bits."""
    if name not in COLLECTIVES:
        raise body.error(f"unknown operation {name}")
    fields |= {"operation": COLLECTIVES[name], "mask": body.read(mask, "i32"), "value": value}
    for field, content in fields.items():
        body.store(field, content)
    body.suspend(AT_COLLECTIVE)
    return body.load("thread", "result")


@rule("shfl", "match", "redux", "activemask")
def exchange(body: Body, instruction: Instruction) -> None:
    """`shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;`: a value, perhaps two numbers, a mask."""
    kind = instruction.take_kind()
    instruction.ignore("sync")
    name = ".".join([instruction.opcode, *filter(None, [instruction.take("*")])])
    targets, *sources = instruction.operands
    value, *numbers, mask = sources or ["1", "-1"]
    bits = f"i{width_of(kind)}"
    word = body.resize(body.read(value, bits), bits, "i64", is_signed=kind[0] == "s")
    fields = {field: body.read(number, "i32") for field, number in zip(("selector", "bounds"), numbers)}
    target, _, predicate = targets.partition("|")
    body.assign(target, _wait(body, name, mask, word, **fields), "i64")
    if predicate:
        body.assign(predicate, body.load("thread", "passed"), "i32")


@rule("vote")
def vote(body: Body, instruction: Instruction) -> None:
    instruction.take_kind()
    instruction.ignore("sync")
    mode, (target, predicate, mask) = instruction.take("ballot", *_ANSWERS), instruction.operands
    result = _wait(body, "vote", mask, body.read(predicate, "i64"))
    if mode == "ballot":
        return body.assign(target, result, "i64")
    body.assign(target, body.emit(_VOTES + _ANSWERS[mode], r=result), "i1")


@rule("mma")
def multiply_matrices(body: Body, instruction: Instruction) -> None:
    """`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {...}, {...}, {...}, {...};`: D = A B + C. A lane's
    elements of A, B and C become floats, one after the other, of which the scheduler replaces those of C."""
    kinds = [instruction.take_kind() for _ in "CBAD"]
    kind = kinds[1]
    if kinds != ["f32", kind, kind, "f32"] or kind not in ("f16", "bf16"):
        raise body.error("unknown types of matrices")
    instruction.ignore("sync", "aligned", "m16n8k16", "row", "col")
    targets, left, right, sums = (split_operands(operand[1:-1]) for operand in instruction.operands)
    words = [body.read(word, "i32") for word in left + right]
    values = [decode(body, half, kind) for word in words for half in split(body, word, 16, 2)]
    values += [decode(body, body.read(word, "i32"), "f32") for word in sums]
    place = f'%"{body.new_name("fragments")}"'
    body.allocas[place] = f"[{len(values)} x float]"
    pointers = [body.emit(f"getelementptr float, ptr {place}, i64 {n}") for n in range(len(values))]
    for pointer, value in zip(pointers, values):
        body.write(f"store float {value}, ptr {pointer}")
    _wait(body, "mma", "-1", body.emit(f"ptrtoint ptr {place} to i64"))
    for target, pointer in zip(targets, pointers[-len(sums) :]):
        body.assign(target, body.emit(f"load i32, ptr {pointer}"), "i32")


@rule("bar", "barrier")
def synchronize(body: Body, instruction: Instruction) -> None:
    """`bar.sync 0;`, `bar.sync 1, 64;`, `bar.red.popc.u32 %r1, 0, %p1;`, `bar.warp.sync -1;`"""
    instruction.ignore("cta", "aligned", "sync")
    operands, target = instruction.operands, ""
    if instruction.take("warp"):
        _wait(body, "sync", operands[0], "0")
        return
    if instruction.take("red"):
        instruction.take_kind()
        target, *operands, predicate = operands
        body.store("value", body.read(predicate, "i64"))
    body.store("operation", body.read(operands[0], "i32"))
    body.store("bounds", body.read(operands[1], "i32") if len(operands) > 1 else 0)
    body.suspend(AT_BARRIER)
    if target and instruction.take("popc"):
        body.assign(target, body.load("thread", "result"), "i64")
    elif target:
        answer = _ANSWERS[instruction.take(*_ANSWERS)]
        body.assign(target, body.emit(_VOTES + answer, r=body.load("thread", "result")), "i1")
