"""Rules of arithmetic: integers, floats, predicates, bits and conversions.

A row of a table says what an instruction is in LLVM: {a} to {d} are its operands, {t} their type, {n} their
bits, {w} the type of twice the width, {s} is s or u, {k} the suffix of float intrinsics. Floats of 16 bits are
computed in float32, their `fma` in float64, and rounded once. Denormal numbers stay, unless `.ftz` says
otherwise; products and sums are not contracted; the bits of a NaN are LLVM's, those of a division by 0 all ones.
"""

from __future__ import annotations

from jitcore.backends.cuda.emulated import ptx
from jitcore.backends.cuda.emulated.ptx import Instruction, width_of
from jitcore.backends.cuda.emulated.translate import Body, rule

__all__ = ["apply", "decode", "join", "split"]

_WIDE = "x = {ext} {t} {a} to {w}; y = {ext} {t} {b} to {w}; p = mul {w} {x}, {y}"
_HIGH = _WIDE + "; h = lshr {w} {p}, {n}; l = trunc {w} {h} to {t}"
_SAFE = (  # a divisor for which x86 does not trap
    "zero = icmp eq {t} {b}, 0; minus = icmp eq {t} {b}, {minus}; bad = or i1 {zero}, {minus}; "
    "y = select i1 {bad}, {t} 1, {t} {b}; "
)
# Amounts have 32 bits, and beyond the width everything is shifted out.
_SHIFT = (
    "m = call i32 @llvm.umin.i32(i32 {b}, i32 {n}); k = zext i32 {m} to i128; x = {ext} {t} {a} to i128; "
    "r = %s i128 {x}, {k}; trunc i128 {r} to {t}"
)
_FIELD = (
    "f = and i32 {%s}, 255; g = call i32 @llvm.umin.i32(i32 {f}, i32 64); from = zext i32 {g} to i128; "
    "h = and i32 {%s}, 255; i = call i32 @llvm.umin.i32(i32 {h}, i32 64); long = zext i32 {i} to i128; "
    "one = shl i128 1, {long}; ones = sub i128 {one}, 1; x = {ext} {t} {a} to i128; "
)
_FUNNEL = "x = zext i32 {a} to i64; y = zext i32 {b} to i64; h = shl i64 {y}, 32; z = or i64 {x}, {h}; "
_WRAP, _CLAMP = "m = and i32 {c}, 31; ", "m = call i32 @llvm.umin.i32(i32 {c}, i32 32); "
_LEFT = "k = zext i32 {m} to i64; u = shl i64 {z}, {k}; v = lshr i64 {u}, 32; trunc i64 {v} to i32"
_RIGHT = "k = zext i32 {m} to i64; v = lshr i64 {z}, {k}; trunc i64 {v} to i32"
_INTEGER = {
    "add": "add {t} {a}, {b}",
    "sub": "sub {t} {a}, {b}",
    "and": "and {t} {a}, {b}",
    "or": "or {t} {a}, {b}",
    "xor": "xor {t} {a}, {b}",
    "not": "xor {t} {a}, -1",
    "cnot": "z = icmp eq {t} {a}, 0; zext i1 {z} to {t}",
    "neg": "sub {t} 0, {a}",
    "abs": "call {t} @llvm.abs.{t}({t} {a}, i1 false)",
    "min": "call {t} @llvm.{s}min.{t}({t} {a}, {t} {b})",
    "max": "call {t} @llvm.{s}max.{t}({t} {a}, {t} {b})",
    "brev": "call {t} @llvm.bitreverse.{t}({t} {a})",
    "popc": "call {t} @llvm.ctpop.{t}({t} {a})",
    "clz": "call {t} @llvm.ctlz.{t}({t} {a}, i1 false)",
    "bfind": "h = ashr {t} {a}, {last}; m = and {t} {h}, {signs}; x = xor {t} {a}, {m}; "
    "z = call {t} @llvm.ctlz.{t}({t} {x}, i1 false); sub {t} {last}, {z}",
    "mul.lo": "mul {t} {a}, {b}",
    "mul.hi": _HIGH,
    "mul.wide": _WIDE,
    "mad.lo": "p = mul {t} {a}, {b}; add {t} {p}, {c}",
    "mad.hi": _HIGH + "; add {t} {l}, {c}",
    "mad.wide": _WIDE + "; add {w} {p}, {c}",
    "mul24.lo": "x = shl i32 {a}, 8; y = shl i32 {b}, 8; u = {shr} i32 {x}, 8; v = {shr} i32 {y}, 8; mul i32 {u}, {v}",
    "sad": "x = call {t} @llvm.{s}max.{t}({t} {a}, {t} {b}); y = call {t} @llvm.{s}min.{t}({t} {a}, {t} {b}); "
    "d = sub {t} {x}, {y}; add {t} {d}, {c}",
    "div": _SAFE + "q = {s}div {t} {a}, {y}; o = sub {t} 0, {q}; r = select i1 {minus}, {t} {o}, {t} {q}; "
    "select i1 {zero}, {t} -1, {t} {r}",
    "rem": _SAFE + "q = {s}rem {t} {a}, {y}; select i1 {zero}, {t} -1, {t} {q}",
    "shl": _SHIFT % "shl",
    "shr": _SHIFT % "{shr}",
    "shf.l.wrap": _FUNNEL + _WRAP + _LEFT,
    "shf.r.wrap": _FUNNEL + _WRAP + _RIGHT,
    "shf.l.clamp": _FUNNEL + _CLAMP + _LEFT,
    "shf.r.clamp": _FUNNEL + _CLAMP + _RIGHT,
    "bfe": _FIELD % ("b", "c") + "y = {shr} i128 {x}, {from}; z = and i128 {y}, {ones}; p = lshr i128 {one}, 1; "
    "q = and i128 {p}, {signs}; u = xor i128 {z}, {q}; v = sub i128 {u}, {q}; trunc i128 {v} to {t}",
    "bfi": _FIELD % ("c", "d") + "y = and i128 {x}, {ones}; z = shl i128 {y}, {from}; m = shl i128 {ones}, {from}; "
    "k = trunc i128 {m} to {t}; l = xor {t} {k}, -1; u = trunc i128 {z} to {t}; v = and {t} {b}, {l}; or {t} {u}, {v}",
    "selp": "select i1 {c}, {t} {a}, {t} {b}",
    "dp4a": "x = bitcast i32 {a} to <4 x i8>; y = bitcast i32 {b} to <4 x i8>; u = {ext} <4 x i8> {x} to <4 x i32>; "
    "v = {ext} <4 x i8> {y} to <4 x i32>; p = mul <4 x i32> {u}, {v}; "
    "q = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> {p}); add i32 {q}, {c}",
}  # fmt: skip
#: Operands of other types than the instruction: u 32 bits, p a predicate, w twice the width.
_OPERANDS = {"shl": "tu", "shr": "tu", "bfe": "tuu", "bfi": "ttuu", "selp": "ttp", "mad.wide": "ttw"}
_UNARY = {"abs": "fabs", "sqrt": "sqrt", "ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh"}
_BINARY = {"min": "minimumnum", "max": "maximumnum", "min.NaN": "minimum", "max.NaN": "maximum"}
_FLOAT = {
    "add": "fadd {t} {a}, {b}",
    "sub": "fsub {t} {a}, {b}",
    "mul": "fmul {t} {a}, {b}",
    "div": "fdiv {t} {a}, {b}",
    "fma": "call {t} @llvm.fma.{k}({t} {a}, {t} {b}, {t} {c})",
    "mad": "call {t} @llvm.fma.{k}({t} {a}, {t} {b}, {t} {c})",
    "neg": "fneg {t} {a}",
    "rcp": "fdiv {t} 1.0, {a}",
    "rsqrt": "q = call {t} @llvm.sqrt.{k}({t} {a}); fdiv {t} 1.0, {q}",
    "copysign": "call {t} @llvm.copysign.{k}({t} {b}, {t} {a})",
    **{name: f"call {{t}} @llvm.{of}.{{k}}({{t}} {{a}})" for name, of in _UNARY.items()},
    **{name: f"call {{t}} @llvm.{of}.{{k}}({{t}} {{a}}, {{t}} {{b}})" for name, of in _BINARY.items()},
}
#: Directions of rounding: the argument of LLVM's `set.rounding`, its name for operations.
_DIRECTIONS = {"rz": (0, "towardzero"), "rp": (2, "upward"), "rm": (3, "downward")}
_DIRECTED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "sqrt": "sqrt", "fma": "fma"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_COMPARISONS = {
    "eq": "oeq eq", "ne": "one ne", "lt": "olt {s}lt", "le": "ole {s}le", "gt": "ogt {s}gt", "ge": "oge {s}ge",
    "lo": "- ult", "ls": "- ule", "hi": "- ugt", "hs": "- uge", "equ": "ueq", "neu": "une", "ltu": "ult",
    "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip
#: Bits of `llvm.is.fpclass`.
_CLASSES = {"finite": 504, "infinite": 516, "number": 1020, "notanumber": 3, "normal": 264, "subnormal": 144}


# -- numbers and their bits ----------------------------------------------------------------------------------
def is_float(kind: str) -> bool:
    return "f" in kind


def computed_type(kind: str) -> str:
    return "double" if kind == "f64" else "float" if is_float(kind) else f"i{width_of(kind)}"


def split(body: Body, word: str, bits: int, parts: int) -> list[str]:
    """An integer as so many of that many bits each, lowest first."""
    kind = f"i{bits * parts}"
    words = [word] + [body.emit(f"lshr {kind} {word}, {bits * place}") for place in range(1, parts)]
    return [body.resize(each, kind, f"i{bits}") for each in words]


def join(body: Body, parts: list[str], bits: int) -> str:
    kind = f"i{bits * len(parts)}"
    total, *rest = (body.resize(part, f"i{bits}", kind) for part in parts)
    for place, part in enumerate(rest, 1):
        total = body.emit(f"p = shl {kind} {part}, {bits * place}; or {kind} {total}, {{p}}")
    return total


def decode(body: Body, bits: str, kind: str) -> str:
    """The float that bits stand for, as `computed_type` says."""
    if kind == "f16":
        return body.emit(f"h = bitcast i16 {bits} to half; fpext half {{h}} to float")
    if kind == "bf16":
        return body.emit(f"w = zext i16 {bits} to i32; b = shl i32 {{w}}, 16; bitcast i32 {{b}} to float")
    return body.emit(f"bitcast i{width_of(kind)} {bits} to {computed_type(kind)}")


def encode(body: Body, value: str, have: str, kind: str, direction: str | None = None) -> str:
    """The bits of `kind` of a float of LLVM's type `have`."""
    if have == "float" and kind == "f64":
        value = body.emit(f"fpext float {value} to double")
    elif have == "double" and kind == "f32":
        value = _narrow(body, value, direction)
    elif have == "double" and kind != "f64":
        # Rounded to odd, it can be rounded again to fewer bits as if at once.
        odd = "b = bitcast float {near} to i32; w = fpext float {near} to double; i = fcmp une double {w}, {value}; "
        odd += "z = zext i1 {i} to i32; o = or i32 {b}, {z}; bitcast i32 {o} to float"
        value = body.emit(odd, near=_narrow(body, value, "rz"), value=value)
    if kind == "f16":
        return body.emit(f"h = fptrunc float {value} to half; bitcast half {{h}} to i16")
    if kind == "bf16":  # to nearest, ties to even, by an addition below the last bit
        nearest = "b = bitcast float {v} to i32; h = lshr i32 {b}, 16; o = and i32 {h}, 1; c = add i32 {b}, 32767; "
        nearest += "r = add i32 {c}, {o}; n = fcmp uno float {v}, {v}; w = select i1 {n}, i32 2147418112, i32 {r}; "
        return body.emit(nearest + "t = lshr i32 {w}, 16; trunc i32 {t} to i16", v=value)
    return body.emit(f"bitcast {computed_type(kind)} {value} to i{width_of(kind)}")


def _narrow(body: Body, value: str, direction: str | None) -> str:
    if direction in _DIRECTIONS:
        return _round(body, "float", "fptrunc.f32.f64", f"double {value}", direction)
    return body.emit(f"fptrunc double {value} to float")


def _round(body: Body, kind: str, name: str, operands: str, direction: str) -> str:
    """An operation under another direction of rounding than to the nearest."""
    number, word = _DIRECTIONS[direction]
    body.write(f"call void @llvm.set.rounding(i32 {number})")
    metadata = f'metadata !"round.{word}", metadata !"fpexcept.ignore"'
    value = body.emit(f"call {kind} @llvm.experimental.constrained.{name}({operands}, {metadata})")
    body.write("call void @llvm.set.rounding(i32 1)")
    return value


def flush(body: Body, value: str) -> str:
    """`.ftz`: a denormal float32 becomes a zero of its sign."""
    zero = "s = call float @llvm.fabs.f32(float {v}); i = fcmp olt float {s}, 0x3810000000000000; "
    zero += "z = call float @llvm.copysign.f32(float 0.0, float {v}); select i1 {i}, float {z}, float {v}"
    return body.emit(zero, v=value)


def saturate(body: Body, value: str, kind: str) -> str:
    """`.sat` of floats: from 0 to 1, 0 for NaN."""
    suffix = "f64" if kind == "double" else "f32"
    for name, bound in (("maximumnum", "0.0"), ("minimumnum", "1.0")):
        value = body.emit(f"call {kind} @llvm.{name}.{suffix}({kind} {value}, {kind} {bound})")
    return value


# -- arithmetic ----------------------------------------------------------------------------------------------
def apply(body: Body, key: str, kind: str, words: list[str], *, direction=None, flushes=None, saturates=None) -> str:
    """A row of the tables, on bits of `kind`; each half of a packed kind by itself."""
    element = kind.removesuffix("x2")
    if key not in (_FLOAT if is_float(kind) else _INTEGER):
        raise body.error(f"{key} of .{kind}")
    if element != kind:
        halves = zip(*[split(body, word, 16, 2) for word in words])
        options = {"direction": direction, "flushes": flushes, "saturates": saturates}
        return join(body, [apply(body, key, element, list(half), **options) for half in halves], 16)
    if not is_float(kind):
        bits, is_signed = width_of(kind), kind[0] == "s"
        facts = {"t": f"i{bits}", "w": f"i{2 * bits}", "n": bits, "last": bits - 1, "signs": -is_signed}
        facts |= dict(zip(("s", "ext", "shr", "minus"), ("s", "sext", "ashr", -1) if is_signed else ("u", "zext", "lshr", 0)))
        return body.emit(_INTEGER[key], **dict(zip("abcd", words)), **facts)
    have = computed_type(kind)
    values = [decode(body, word, kind) for word in words]
    if flushes and kind == "f32":
        values = [flush(body, value) for value in values]
    if key == "fma" and width_of(kind) == 16:
        values, have = [body.emit(f"fpext float {value} to double") for value in values], "double"
    suffix = "f64" if have == "double" else "f32"
    if direction in _DIRECTIONS:
        if key not in _DIRECTED or width_of(kind) == 16:
            raise body.error(f"rounding .{direction}")
        operands = ", ".join(f"{have} {value}" for value in values)
        value = _round(body, have, f"{_DIRECTED[key]}.{suffix}", operands, direction)
    else:
        value = body.emit(_FLOAT[key], **dict(zip("abc", values)), t=have, k=suffix)
    value = saturate(body, value, have) if saturates else value
    value = flush(body, value) if flushes and kind == "f32" else value
    return encode(body, value, have, kind)


@rule(*sorted({key.split(".")[0] for key in (*_INTEGER, *_FLOAT)}), "addc", "subc", "madc")
def compute(body: Body, instruction: Instruction) -> None:
    kind, opcode = instruction.take_kind(), instruction.opcode
    target, *sources = instruction.operands
    bits = width_of(kind)
    if is_float(kind):
        key = f"{opcode}.NaN" if instruction.take("NaN") else opcode
        direction = instruction.take("rn", "approx", "full", *_DIRECTIONS)
        flushes, saturates = instruction.take("ftz"), instruction.take("sat")
        words = [body.read(source, f"i{bits}") for source in sources]
        result = apply(body, key, kind, words, direction=direction, flushes=flushes, saturates=saturates)
        return body.assign(target, result, f"i{bits}")
    if opcode == "dp4a":
        instruction.take(kind)
    sets_carry = instruction.take("cc")
    key = ".".join(filter(None, (opcode, instruction.take("l", "r", "lo", "hi", "wide"), instruction.take("wrap", "clamp"))))
    if sets_carry or opcode in ("addc", "subc", "madc"):
        words = [body.read(source, f"i{bits}") for source in sources]
        return body.assign(target, _carry(body, key, kind, words, bool(sets_carry)), f"i{bits}")
    types = {"t": f"i{bits}", "u": "i32", "p": "i1", "w": f"i{2 * bits}"}
    words = [body.read(source, types[of]) for source, of in zip(sources, _OPERANDS.get(key, "tttt"))]
    amount = ptx.parse_literal(sources[-1], 32) if key in ("shl", "shr") else None
    if amount is not None and amount < bits:  # nearly always
        shift = "shl" if key == "shl" else "ashr" if kind[0] == "s" else "lshr"
        return body.assign(target, body.emit(f"{shift} i{bits} {words[0]}, {amount}"), f"i{bits}")
    body.assign(target, apply(body, key, kind, words), types["w" if key.endswith("wide") else "t"])


def _carry(body: Body, key: str, kind: str, words: list[str], sets_carry: bool) -> str:
    """`add.cc`, `addc`, `madc.hi.cc`: the flag is a register that only these see."""
    opcode, _, half = key.partition(".")
    bits, flag = width_of(kind), '%"carry.slot"'
    body.allocas[flag] = "i1"
    if half:
        words = [apply(body, f"mul.{half}", kind, words[:2]), words[2]]
    name, wide = "sub" if opcode.startswith("sub") else "add", f"i{bits + 8}"
    left, right = (body.resize(word, f"i{bits}", wide) for word in words)
    total = body.emit(f"{name} {wide} {left}, {right}")
    if opcode.endswith("c"):
        total = body.emit(f"f = load i1, ptr {flag}; c = zext i1 {{f}} to {wide}; {name} {wide} {total}, {{c}}")
    if sets_carry:
        body.write(f"store i1 {body.emit(f't = lshr {wide} {total}, {bits}; trunc {wide} {{t}} to i1')}, ptr {flag}")
    return body.resize(total, wide, f"i{bits}")


@rule("lop3")
def look_up_bits(body: Body, instruction: Instruction) -> None:
    """Any function of three bits: the `or` of the cases in which it is one."""
    instruction.take_kind()
    target, *sources, table = instruction.operands
    words = [body.read(source, "i32") for source in sources]
    inverted, total = [body.emit(f"xor i32 {word}, -1") for word in words], "0"
    for case in range(8):
        if int(table, 0) >> case & 1:
            a, b, c = ((words if case >> 2 - place & 1 else inverted)[place] for place in range(3))
            total = body.emit(f"x = and i32 {a}, {b}; y = and i32 {{x}}, {c}; or i32 {total}, {{y}}")
    body.assign(target, total, "i32")


@rule("prmt")
def permute_bytes(body: Body, instruction: Instruction) -> None:
    """Four of the eight bytes of two words, or their signs."""
    instruction.take_kind()
    target, *sources = instruction.operands
    low, high, selector = (body.read(source, "i32") for source in sources)
    both, picked = join(body, [low, high], 32), []
    for place in range(0, 16, 4):
        byte = "n = lshr i32 {c}, {place}; i = and i32 {n}, 7; j = shl i32 {i}, 3; k = zext i32 {j} to i64; "
        byte += "w = lshr i64 {both}, {k}; b = trunc i64 {w} to i8; s = ashr i8 {b}, 7; t = and i32 {n}, 8; "
        byte += "p = icmp ne i32 {t}, 0; select i1 {p}, i8 {s}, i8 {b}"
        picked.append(body.emit(byte, c=selector, both=both, place=place))
    body.assign(target, join(body, picked, 8), "i32")


@rule("setp")
def compare(body: Body, instruction: Instruction) -> None:
    kind, test = instruction.take_kind(), instruction.take(*_COMPARISONS)
    combination, flushes = instruction.take("and", "or", "xor"), instruction.take("ftz")
    (target, _, other), sources = instruction.operands[0].partition("|"), instruction.operands[1:]
    element, parts = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    bits, name = width_of(element), (_COMPARISONS[test].split()[0 if is_float(kind) else -1]).format(s="s" if kind[0] == "s" else "u")
    words = [split(body, body.read(source, f"i{bits * parts}"), bits, parts) for source in sources[:2]]
    results = []
    for left, right in zip(*words):
        if is_float(kind):
            left, right = (decode(body, word, element) for word in (left, right))
            if flushes:
                left, right = flush(body, left), flush(body, right)
        results.append(body.emit(f"{'fcmp' if is_float(kind) else 'icmp'} {name} {computed_type(element)} {left}, {right}"))
    results = results if parts == 2 else [results[0], body.emit(f"xor i1 {results[0]}, true")]
    for predicate, result in zip((target, other), results):
        if combination:
            result = body.emit(f"{combination} i1 {result}, {body.read(sources[2].lstrip('!'), 'i1')}")
        if predicate:
            body.assign(predicate, result, "i1")


@rule("testp")
def classify(body: Body, instruction: Instruction) -> None:
    kind, which = instruction.take_kind(), instruction.take(*_CLASSES)
    value = decode(body, body.read(instruction.operands[1], f"i{width_of(kind)}"), kind)
    result = body.emit(f"call i1 @llvm.is.fpclass.{kind}({computed_type(kind)} {value}, i32 {_CLASSES[which]})")
    body.assign(instruction.operands[0], result, "i1")


# -- conversions ---------------------------------------------------------------------------------------------
@rule("cvt")
def convert(body: Body, instruction: Instruction) -> None:
    source, target = instruction.take_kind(), instruction.take_kind()
    register, *operands = instruction.operands
    integral, direction = instruction.take(*_INTEGRAL), instruction.take("rn", "rna", *_DIRECTIONS)
    flushes, saturates = instruction.take("ftz"), instruction.take("sat")
    results = []
    for operand in reversed(operands):  # the last one of two goes to the lower half
        word = body.read(operand, f"i{width_of(source)}")
        if target == "tf32":  # ten bits of the fraction, ties away from zero
            word = body.emit(f"r = add i32 {word}, 4096; and i32 {{r}}, -8192")
        elif is_float(source):
            word = _convert_float(body, word, source, target.removesuffix("x2"), integral, direction, flushes, saturates)
        else:
            word = _convert_integer(body, word, source, target, direction, saturates)
        results.append(word)
    bits = width_of(target) // len(results)
    body.assign(register, join(body, results, bits), f"i{width_of(target)}", is_signed=target[0] == "s")


def _convert_float(body, word, source, target, integral, direction, flushes, saturates) -> str:
    value, have = decode(body, word, source), computed_type(source)
    suffix, bits = "f64" if source == "f64" else "f32", width_of(target)
    if integral:
        value = body.emit(f"call {have} @llvm.{_INTEGRAL[integral]}.{suffix}({have} {value})")
    if flushes and source == "f32":
        value = flush(body, value)
    if is_float(target):
        if direction in _DIRECTIONS and (source, target) != ("f64", "f32"):
            raise body.error(f"rounding .{direction} from .{source} to .{target}")
        value = saturate(body, value, have) if saturates else value
        return encode(body, value, have, target, direction)
    nan = 1 << bits - 1 if source == "f64" or bits == 64 else 0
    text = "r = call {t} @llvm.fpto{s}i.sat.{t}.{k}({h} {v}); n = fcmp uno {h} {v}, {v}; select i1 {n}, {t} {nan}, {t} {r}"
    return body.emit(text, t=f"i{bits}", s="s" if target[0] == "s" else "u", k=suffix, h=have, v=value, nan=nan)


def _convert_integer(body, word, source, target, direction, saturates) -> str:
    have, is_signed, bits = f"i{width_of(source)}", source[0] == "s", width_of(target)
    if is_float(target):
        want = "float" if target == "f32" else "double"
        name, suffix = "sitofp" if is_signed else "uitofp", "f32" if target == "f32" else "f64"
        if direction in _DIRECTIONS and target in ("f32", "f64"):
            value = _round(body, want, f"{name}.{suffix}.{have}", f"{have} {word}", direction)
        else:
            value = body.emit(f"{name} {have} {word} to {want}")
        return encode(body, value, want, target)
    if saturates:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
        own_low, own_high = (-(1 << int(have[1:]) - 1), (1 << int(have[1:]) - 1) - 1) if is_signed else (0, (1 << int(have[1:])) - 1)
        for name, bound in (("max", max(low, own_low)), ("min", min(high, own_high))):
            word = body.emit(f"call {have} @llvm.{'s' if is_signed else 'u'}{name}.{have}({have} {word}, {have} {bound})")
    return body.resize(word, have, f"i{bits}", is_signed)
