"""Rules of moves, memory, jumps and calls."""

from __future__ import annotations

from jitcore.backends.cuda.emulated import races
from jitcore.backends.cuda.emulated.arithmetic import apply, join, split
from jitcore.backends.cuda.emulated.ptx import Instruction, split_operands, width_of
from jitcore.backends.cuda.emulated.races import ACQUIRE, READ, RELEASE, STRONG, TRAP, WRITE
from jitcore.backends.cuda.emulated.translate import Body, rule

_SCOPES = ("cta", "cluster", "gpu", "gl", "sys")
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "L1::*", "L2::*")
#: How strong the orders of memory make an access.
_ORDERS = {"relaxed": STRONG, "volatile": STRONG, "acquire": STRONG | ACQUIRE, "release": STRONG | RELEASE,
           "acq_rel": STRONG | ACQUIRE | RELEASE, "sc": STRONG | ACQUIRE | RELEASE, "mmio": STRONG}  # fmt: skip
_ATOMIC = {
    "exch": "{b}",
    "inc": "p = icmp uge i32 {a}, {b}; n = add i32 {a}, 1; select i1 {p}, i32 0, i32 {n}",
    "dec": "z = icmp eq i32 {a}, 0; g = icmp ugt i32 {a}, {b}; p = or i1 {z}, {g}; n = sub i32 {a}, 1; "
    "select i1 {p}, i32 {b}, i32 {n}",
    "cas": "p = icmp eq {t} {a}, {b}; select i1 {p}, {t} {c}, {t} {a}",
}


def _list_registers(operand: str) -> list[str]:
    return split_operands(operand[1:-1]) if operand.startswith("{") else [operand]


# -- moves ---------------------------------------------------------------------------------------------------
@rule("mov")
def move(body: Body, instruction: Instruction) -> None:
    """Also between a register and several of a part of its width each."""
    bits = width_of(instruction.take_kind())
    targets, sources = map(_list_registers, instruction.operands)
    words = [body.read(source, f"i{bits // len(sources)}") for source in sources]
    word = join(body, words, bits // len(words))
    for target, part in zip(targets, split(body, word, bits // len(targets), len(targets))):
        body.assign(target, part, f"i{bits // len(targets)}")


@rule("cvta")
def convert_address(body: Body, instruction: Instruction) -> None:
    """Shared and local addresses are offsets, all others are what they are."""
    kind, is_back, space = instruction.take_kind(), instruction.take("to"), instruction.take("*")
    value = body.read(instruction.operands[1], "i64")
    bases = {"shared": ("launch", "shared"), "shared::cta": ("launch", "shared"), "local": ("thread", "local")}
    if space in bases:
        value = body.emit(f"{'sub' if is_back else 'add'} i64 {value}, {body.load(*bases[space])}")
    body.assign(instruction.operands[0], value, "i64")


# -- memory --------------------------------------------------------------------------------------------------
def _take_access(instruction: Instruction) -> tuple[int, str, int, str]:
    """(order, space, elements, type) of a load or a store."""
    kind = instruction.take_kind()
    count = int((instruction.take("v2", "v4", "v8") or "v1")[1:])
    instruction.ignore(*_CACHES, *_SCOPES)
    order = _ORDERS.get(instruction.take(*_ORDERS), 0)
    space = (instruction.take(*races.SPACES, "shared::cta", "param*") or "generic").split("::")[0]
    return order, space, count, kind


def _point_to(body: Body, text: str, kinds: int, space: str, size: int) -> str:
    if space != "param":
        return body.access(body.address(text), kinds, space, size)
    name, _, offset = text.strip("[] ").partition("+")
    meaning, parameters = body.find(name), body.function.parameters
    base, start = (meaning.text, 0) if meaning else ("%parameters", 8 * list(parameters).index(name))
    return body.emit(f"getelementptr i8, ptr {base}, i64 {start + int(offset or 0)}")


@rule("ld", "ldu")
def load(body: Body, instruction: Instruction) -> None:
    order, space, count, kind = _take_access(instruction)
    bits = width_of(kind)
    pointer = _point_to(body, instruction.operands[1], READ | order, space, count * bits // 8)
    values = [body.emit(f"p = getelementptr i{bits}, ptr {pointer}, i64 {place}; load i{bits}, ptr {{p}}") for place in range(count)]
    for register, value in zip(_list_registers(instruction.operands[0]), values):
        body.assign(register, value, f"i{bits}", is_signed=kind[0] == "s")


@rule("st")
def store(body: Body, instruction: Instruction) -> None:
    order, space, count, kind = _take_access(instruction)
    bits = width_of(kind)
    pointer = _point_to(body, instruction.operands[0], WRITE | order, space, count * bits // 8)
    for place, operand in enumerate(_list_registers(instruction.operands[1])):
        value = body.read(operand, f"i{bits}")
        body.write(f"store i{bits} {value}, ptr {body.emit(f'getelementptr i{bits}, ptr {pointer}, i64 {place}')}")


@rule("atom", "red")
def update(body: Body, instruction: Instruction) -> None:
    """Blocks and threads take turns, so it is a load, arithmetic and a store."""
    kind = instruction.take_kind()
    instruction.ignore("noftz", *_SCOPES, "L1::*", "L2::*")
    order = _ORDERS.get(instruction.take(*_ORDERS), STRONG)
    space = (instruction.take("global", "shared", "shared::cta") or "generic").split("::")[0]
    operation = instruction.take("add", "min", "max", "and", "or", "xor", *_ATOMIC)
    target, address, *sources = (["_"] if instruction.opcode == "red" else []) + instruction.operands
    bits = f"i{width_of(kind)}"
    words = [body.read(source, bits) for source in sources]
    pointer = body.access(body.address(address), READ | WRITE | order, space, width_of(kind) // 8)
    old = body.emit(f"load {bits}, ptr {pointer}")
    if operation == "exch":
        new = words[0]
    elif operation in _ATOMIC:
        new = body.emit(_ATOMIC[operation], a=old, t=bits, **dict(zip("bc", words)))
    else:
        new = apply(body, operation, kind, [old, *words])
    body.write(f"store {bits} {new}, ptr {pointer}")
    body.assign(target, old, bits)


@rule("cp")
def copy(body: Body, instruction: Instruction) -> None:
    """`cp.async`, at once; waiting for it is nothing. What is not read of the source is zero."""
    instruction.ignore("async", "ca", "cg", "global", "L2::*")
    if instruction.take("commit_group", "wait_group", "wait_all"):
        return
    space = (instruction.take("shared", "shared::cta") or "shared").split("::")[0]
    target, source, size, *count = instruction.operands
    size = int(size)
    count = body.read(count[0], "i64") if count else str(size)
    value = body.emit(
        "v = load {t}, ptr {p}; m = shl i64 {n}, 3; z = zext i64 {m} to i256; o = shl i256 1, {z}; k = sub i256 {o}, 1; "
        "l = trunc i256 {k} to {t}; and {t} {v}, {l}",
        t=f"i{8 * size}", n=count, p=body.access(body.address(source), READ, "global", count))  # fmt: skip
    body.write(f"store i{8 * size} {value}, ptr {body.access(body.address(target), WRITE, space, size)}")


@rule("membar", "fence")
def fence(body: Body, instruction: Instruction) -> None:
    if not instruction.take("cta"):
        body.store("thread", "fenced", 1)
    instruction.ignore("*")


@rule("prefetch", "prefetchu", "nanosleep", "griddepcontrol", "brkpt")
def do_nothing(body: Body, instruction: Instruction) -> None:
    instruction.ignore("*")


# -- jumps and calls -----------------------------------------------------------------------------------------
@rule("bra")
def jump(body: Body, instruction: Instruction) -> None:
    instruction.ignore("uni")
    body.jump_to(instruction.operands[0])


@rule("brx")
def jump_by_index(body: Body, instruction: Instruction) -> None:
    """An index that is not in the table goes anywhere on a GPU, here to the end."""
    instruction.ignore("idx", "uni")
    index, table = body.read(instruction.operands[0], "i32"), body.jump_tables[instruction.operands[1]]
    names = [body.new_name("case") for _ in table]
    cases = " ".join(f'i32 {place}, label %"{name}"' for place, name in enumerate(names))
    body.jump(f"switch i32 {index}, label %finish [{cases}]")
    for name, label in zip(names, table):
        body.write_label(name)
        body.jump_to(label)


@rule("ret", "exit")
def end(body: Body, instruction: Instruction) -> None:
    instruction.ignore("uni")
    if instruction.opcode == "exit" and not body.function.is_kernel:
        raise body.error("exit in a function that is called")
    body.jump("br label %finish")


@rule("trap")
def trap(body: Body, instruction: Instruction) -> None:
    body.access("0", TRAP, "generic", 0)
    body.jump("br label %finish")


@rule("call")
def call(body: Body, instruction: Instruction) -> None:
    instruction.ignore("uni")
    operands = instruction.operands
    returned = _list_registers("{" + operands.pop(0)[1:-1] + "}") if operands[0][0] == "(" else []
    given = _list_registers("{" + operands[1][1:-1] + "}") if len(operands) > 1 else []
    name = operands[0]
    function = body.layout.functions.get(name)
    if function is None or function.is_kernel:
        raise body.error(f"a call of {name}, which is no function of this module")
    pointers = [f"ptr {body.find(each).text}" for each in returned + given]
    body.uses.add(name)
    body.write(f'call void @"{name}"({", ".join(["ptr %thread", "ptr %launch", *pointers])})')
