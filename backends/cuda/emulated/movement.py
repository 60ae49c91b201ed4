"""Rules of moves, memory, jumps and calls."""

from __future__ import annotations

from jitcore.backends.cuda.emulated.arithmetic import apply, join, split
from jitcore.backends.cuda.emulated.ptx import Instruction, split_operands, width_of
from jitcore.backends.cuda.emulated.races import READ, RELEASE, SPACES, STRONG, TRAP, WRITE
from jitcore.backends.cuda.emulated.translate import Body, rule

_SCOPES = ("cta", "cluster", "gpu", "gl", "sys")
#: Modifiers that change nothing: caches, hints, and that an access is weak.
_HINTS = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "noftz", "L1::*", "L2::*", *_SCOPES)
_STRONG = ("relaxed", "volatile", "acquire", "mmio")
_RELEASE = ("release", "acq_rel", "sc")
_ATOMIC = {
    "exch": "or {t} {b}, 0",
    "inc": "p = icmp uge {t} {a}, {b}; n = add {t} {a}, 1; select i1 {p}, {t} 0, {t} {n}",
    "dec": "z = icmp eq {t} {a}, 0; g = icmp ugt {t} {a}, {b}; p = or i1 {z}, {g}; n = sub {t} {a}, 1; "
    "select i1 {p}, {t} {b}, {t} {n}",
    "cas": "p = icmp eq {t} {a}, {b}; select i1 {p}, {t} {c}, {t} {a}",
}


def _list_parts(operand: str) -> list[str]:
    """The registers of `{%r1, %r2}`, `(%r1)` or `%r1`."""
    return split_operands(operand[1:-1]) if operand[0] in "{(" else [operand]


@rule("mov")
def move(body: Body, instruction: Instruction) -> None:
    """Also between a register and several of a part of its width each."""
    bits = width_of(instruction.take_kind())
    targets, sources = map(_list_parts, instruction.operands)
    word = join(body, [body.read(each, f"i{bits // len(sources)}") for each in sources], bits // len(sources))
    for target, part in zip(targets, split(body, word, bits // len(targets), len(targets))):
        body.assign(target, part, f"i{bits // len(targets)}")


@rule("cvta")
def convert_address(body: Body, instruction: Instruction) -> None:
    """Shared and local addresses are offsets, all others are what they are."""
    instruction.take_kind()
    operation = "sub" if instruction.take("to") else "add"
    value, space = body.read(instruction.operands[1], "i64"), instruction.take("*")
    if space in ("shared", "shared::cta", "local"):
        base = body.load("thread", "local") if space == "local" else body.load("launch", "shared")
        value = body.emit(f"{operation} i64 {value}, {base}")
    body.assign(instruction.operands[0], value, "i64")


# -- memory --------------------------------------------------------------------------------------------------
def _take_place(instruction: Instruction) -> tuple[str, int]:
    """(space, STRONG or RELEASE or neither) of an access."""
    instruction.ignore(*_HINTS)
    space = (instruction.take(*SPACES, "shared::cta", "param*") or "generic").split("::")[0]
    order = STRONG if instruction.take(*_STRONG) else STRONG | RELEASE if instruction.take(*_RELEASE) else 0
    return space, order


def _find_places(body: Body, instruction: Instruction, address: str, kinds: int) -> tuple[list[str], str]:
    """(pointers to the elements, their type) of a load or store."""
    kind, count = instruction.take_kind(), int((instruction.take("v2", "v4", "v8") or "v1")[1:])
    bits, (space, order) = width_of(kind), _take_place(instruction)
    if space == "param":
        name, _, offset = address.strip("[] ").partition("+")
        meaning, parameters = body.find(name), [*body.function.parameters]
        base, start = (meaning.text, 0) if meaning else ("%parameters", 8 * parameters.index(name))
        first = body.emit(f"getelementptr i8, ptr {base}, i64 {start + int(offset or 0)}")
    else:
        first = body.access(body.address(address), kinds | order, space, count * bits // 8)
    return [body.emit(f"getelementptr i{bits}, ptr {first}, i64 {place}") for place in range(count)], kind


@rule("ld", "ldu")
def load(body: Body, instruction: Instruction) -> None:
    targets, address = instruction.operands
    places, kind = _find_places(body, instruction, address, READ)
    values = [body.emit(f"load i{width_of(kind)}, ptr {place}") for place in places]
    for target, value in zip(_list_parts(targets), values):
        body.assign(target, value, f"i{width_of(kind)}", is_signed=kind[0] == "s")


@rule("st")
def store(body: Body, instruction: Instruction) -> None:
    address, sources = instruction.operands
    places, kind = _find_places(body, instruction, address, WRITE)
    for place, source in zip(places, _list_parts(sources)):
        body.write(f"store i{width_of(kind)} {body.read(source, f'i{width_of(kind)}')}, ptr {place}")


@rule("atom", "red")
def update(body: Body, instruction: Instruction) -> None:
    """Threads take turns, so it is a load, arithmetic and a store."""
    kind, (space, order) = instruction.take_kind(), _take_place(instruction)
    operation = instruction.take("add", "min", "max", "and", "or", "xor", *_ATOMIC)
    target, address, *sources = (["_"] if instruction.opcode == "red" else []) + instruction.operands
    bits = f"i{width_of(kind)}"
    words = [body.read(source, bits) for source in sources]
    pointer = body.access(body.address(address), READ | WRITE | STRONG | order, space, width_of(kind) // 8)
    old = body.emit(f"load {bits}, ptr {pointer}")
    if operation in _ATOMIC:
        new = body.emit(_ATOMIC[operation], t=bits, a=old, **dict(zip("bc", words)))
    else:
        new = apply(body, operation, kind, [old, *words])
    body.write(f"store {bits} {new}, ptr {pointer}")
    body.assign(target, old, bits)


@rule("cp")
def copy(body: Body, instruction: Instruction) -> None:
    """`cp.async`, at once; to wait for it is nothing. What is not read of the source is zero."""
    if not instruction.take("commit_group", "wait_group", "wait_all"):
        target, source, size, *count = instruction.operands
        count, kind = body.read(count[0], "i64") if count else size, f"i{8 * int(size)}"
        text = "v = load {t}, ptr {p}; m = shl i64 {n}, 3; z = zext i64 {m} to i256; o = shl i256 1, {z}; "
        text += "k = sub i256 {o}, 1; l = trunc i256 {k} to {t}; and {t} {v}, {l}"
        read = body.access(body.address(source), READ, "global", count)
        value = body.emit(text, t=kind, n=count, p=read)
        written = body.access(body.address(target), WRITE, "shared", int(size))
        body.write(f"store {kind} {value}, ptr {written}")
    instruction.ignore("async", "shared*", "global", *_HINTS)


@rule("membar", "fence")
def fence(body: Body, instruction: Instruction) -> None:
    if not instruction.take("cta"):
        body.store("fenced", 1)
    instruction.ignore("*")


@rule("prefetch", "prefetchu", "nanosleep", "griddepcontrol")
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


@rule("ret", "exit", "trap")
def end(body: Body, instruction: Instruction) -> None:
    instruction.ignore("uni")
    if instruction.opcode == "exit" and not body.function.is_kernel:
        raise body.error("exit in a function that is called")
    if instruction.opcode == "trap":
        body.access("0", TRAP, "generic", 0)
    body.jump("br label %finish")


@rule("call")
def call(body: Body, instruction: Instruction) -> None:
    """Parameters and results are pointers to variables of the space .param."""
    instruction.ignore("uni")
    operands = instruction.operands
    results = _list_parts(operands.pop(0)) if operands[0][0] == "(" else []
    name, given = operands[0], _list_parts(operands[1]) if len(operands) > 1 else []
    function = body.layout.functions.get(name)
    if function is None or function.is_kernel:
        raise body.error(f"a call of {name}, which is no function of this module")
    body.uses.add(name)
    pointers = "".join(f", ptr {body.find(each).text}" for each in results + given)
    body.write(f'call void @"{name}"(ptr %thread, ptr %launch{pointers})')
