"""Rules of arithmetic: integers, floats, predicates, bits and conversions.

A row of a table says what an instruction is in LLVM: {a} to {d} are its operands, {t} their type, {n} their
bits, {w} the type of twice the width, {s} is s or u, {k} the suffix of float intrinsics. Floats of 16 bits
are computed in float32, their `fma` in float64, and rounded once. Denormal numbers stay, unless `.ftz` says
otherwise; products and sums stay apart; the bits of a NaN are LLVM's; a division by 0 gives all ones.
"""

from __future__ import annotations

from jitcore.backends.cuda.emulated import ptx
from jitcore.backends.cuda.emulated.ptx import Instruction, width_of
from jitcore.backends.cuda.emulated.translate import Body, rule

_WIDE = "x = {ext} {t} {a} to {w}; y = {ext} {t} {b} to {w}; p = mul {w} {x}, {y}"
_HIGH = _WIDE + "; h = lshr {w} {p}, {n}; l = trunc {w} {h} to {t}"
# A divisor for which no processor traps.
_SAFE = "zero = icmp eq {t} {b}, 0; minus = icmp eq {t} {b}, {trap}; bad = or i1 {zero}, {minus}; "
_SAFE += "y = select i1 {bad}, {t} 1, {t} {b}; "
# Amounts have 32 bits, and beyond the width everything is shifted out.
_SHIFT = "m = call i32 @llvm.umin.i32(i32 {b}, i32 {n}); k = zext i32 {m} to i128; "
_SHIFT += "x = {ext} {t} {a} to i128; r = %s i128 {x}, {k}; trunc i128 {r} to {t}"
_FIELD = "f = and i32 {%s}, 255; g = call i32 @llvm.umin.i32(i32 {f}, i32 64); from = zext i32 {g} to i128; "
_FIELD += "h = and i32 {%s}, 255; i = call i32 @llvm.umin.i32(i32 {h}, i32 64); j = zext i32 {i} to i128; "
_FIELD += "one = shl i128 1, {j}; ones = sub i128 {one}, 1; x = {ext} {t} {a} to i128; "
_EXTRACT, _INSERT = _FIELD % ("b", "c"), _FIELD % ("c", "d")
_FUNNEL = "x = zext i32 {a} to i64; y = zext i32 {b} to i64; h = shl i64 {y}, 32; z = or i64 {x}, {h}; "
_WRAP, _CLAMP = "m = and i32 {c}, 31; ", "m = call i32 @llvm.umin.i32(i32 {c}, i32 32); "
_LEFT = "k = zext i32 {m} to i64; u = shl i64 {z}, {k}; v = lshr i64 {u}, 32; trunc i64 {v} to i32"
_RIGHT = "k = zext i32 {m} to i64; v = lshr i64 {z}, {k}; trunc i64 {v} to i32"
_INTEGER = {
    **{name: name + " {t} {a}, {b}" for name in ("add", "sub", "and", "or", "xor")},
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
    "mul24.lo": "x = shl {t} {a}, 8; y = shl {t} {b}, 8; u = {shr} {t} {x}, 8; v = {shr} {t} {y}, 8; "
    "mul {t} {u}, {v}",
    "sad": "m = call {t} @llvm.{s}max.{t}({t} {a}, {t} {b}); "
    "l = call {t} @llvm.{s}min.{t}({t} {a}, {t} {b}); d = sub {t} {m}, {l}; add {t} {d}, {c}",
    "div": _SAFE + "q = {s}div {t} {a}, {y}; o = sub {t} 0, {q}; r = select i1 {minus}, {t} {o}, {t} {q}; "
    "select i1 {zero}, {t} -1, {t} {r}",
    "rem": _SAFE + "q = {s}rem {t} {a}, {y}; select i1 {zero}, {t} -1, {t} {q}",
    "shl": _SHIFT % "shl",
    "shr": _SHIFT % "{shr}",
    "shf.l.wrap": _FUNNEL + _WRAP + _LEFT,
    "shf.r.wrap": _FUNNEL + _WRAP + _RIGHT,
    "shf.l.clamp": _FUNNEL + _CLAMP + _LEFT,
    "shf.r.clamp": _FUNNEL + _CLAMP + _RIGHT,
    "bfe": _EXTRACT + "y = {shr} i128 {x}, {from}; z = and i128 {y}, {ones}; p = lshr i128 {one}, 1; "
    "q = and i128 {p}, {signs}; u = xor i128 {z}, {q}; v = sub i128 {u}, {q}; trunc i128 {v} to {t}",
    "bfi": _INSERT + "y = and i128 {x}, {ones}; z = shl i128 {y}, {from}; m = shl i128 {ones}, {from}; "
    "k = trunc i128 {m} to {t}; l = xor {t} {k}, -1; u = trunc i128 {z} to {t}; v = and {t} {b}, {l}; "
    "or {t} {u}, {v}",
    "selp": "select i1 {c}, {t} {a}, {t} {b}",
    "dp4a": "x = bitcast i32 {a} to <4 x i8>; y = bitcast i32 {b} to <4 x i8>; "
    "u = {ext} <4 x i8> {x} to <4 x i32>; v = {ext} <4 x i8> {y} to <4 x i32>; p = mul <4 x i32> {u}, {v}; "
    "q = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> {p}); add i32 {q}, {c}",
}
#: Operands of other types than the instruction: u 32 bits, p a predicate, w twice the width.
_OPERANDS = {"shl": "tu", "shr": "tu", "bfe": "tuu", "bfi": "ttuu", "selp": "ttp", "mad.wide": "ttw"}
_UNARY = dict(abs="fabs", ex2="exp2", lg2="log2", sqrt="sqrt", sin="sin", cos="cos", tanh="tanh")
_EXTREMES = {"min": "minimum", "max": "maximum"}
#: Of a number and NaN the number. LLVM has operations for it, which version 20 compiles wrongly for AVX-512.
_NUMBERS = ("n = fcmp uno {t} {a}, {a}; x = select i1 {n}, {t} {b}, {t} {a}; "
            "o = fcmp uno {t} {b}, {b}; y = select i1 {o}, {t} {a}, {t} {b}; ")
_FLOAT = {
    **{name: f"f{name} {{t}} {{a}}, {{b}}" for name in ("add", "sub", "mul", "div")},
    **{name: "call {t} @llvm.fma.{k}({t} {a}, {t} {b}, {t} {c})" for name in ("fma", "mad")},
    **{name: f"call {{t}} @llvm.{of}.{{k}}({{t}} {{a}})" for name, of in _UNARY.items()},
    **{f"{name}.NaN": f"call {{t}} @llvm.{of}.{{k}}({{t}} {{a}}, {{t}} {{b}})"
       for name, of in _EXTREMES.items()},
    **{name: f"{_NUMBERS}call {{t}} @llvm.{of}.{{k}}({{t}} {{x}}, {{t}} {{y}})"
       for name, of in _EXTREMES.items()},
    "neg": "fneg {t} {a}",
    "rcp": "fdiv {t} 1.0, {a}",
    "rsqrt": "q = call {t} @llvm.sqrt.{k}({t} {a}); fdiv {t} 1.0, {q}",
    "copysign": "call {t} @llvm.copysign.{k}({t} {b}, {t} {a})",
}
#: Directions of rounding: the argument of LLVM's `set.rounding`, and a name; operations that know them.
_DIRECTIONS = {"rz": (0, "towardzero"), "rp": (2, "upward"), "rm": (3, "downward")}
_DIRECTED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "sqrt": "sqrt", "fma": "fma"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
#: Of floats, and of integers where they have it.
_COMPARISONS = {
    "eq": "oeq eq", "ne": "one ne", "lt": "olt {s}lt", "le": "ole {s}le", "gt": "ogt {s}gt",
    "ge": "oge {s}ge", "lo": "- ult", "ls": "- ule", "hi": "- ugt", "hs": "- uge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}


# -- numbers and their bits ----------------------------------------------------------------------------------
def _is_float(kind: str) -> bool:
    return "f" in kind


def _computed_type(kind: str) -> tuple[str, str]:
    """(LLVM's type, the suffix of its intrinsics) in which floats of a kind are computed."""
    return ("double", "f64") if kind == "f64" else ("float", "f32")


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


def decode(body: Body, bits: str, kind: str, flushes: str | None = None) -> str:
    """The float that bits stand for."""
    if kind == "f16":
        return body.emit(f"h = bitcast i16 {bits} to half; fpext half {{h}} to float")
    if kind == "bf16":
        return body.emit(f"w = zext i16 {bits} to i32; b = shl i32 {{w}}, 16; bitcast i32 {{b}} to float")
    value = body.emit(f"bitcast i{width_of(kind)} {bits} to {_computed_type(kind)[0]}")
    return _flush(body, value) if flushes and kind == "f32" else value


def _encode(body: Body, value: str, have: str, kind: str, direction: str | None = None) -> str:
    """The bits of `kind` of a float of LLVM's type `have`."""
    if have == "float" and kind == "f64":
        value = body.emit(f"fpext float {value} to double")
    elif have == "double" and kind != "f64":
        narrow = value
        if direction in _DIRECTIONS or kind != "f32":
            value = _round(body, "float", "fptrunc.f32.f64", f"double {narrow}", direction or "rz")
        else:
            value = body.emit(f"fptrunc double {narrow} to float")
        if kind != "f32":  # rounded to odd, it can be rounded again to fewer bits as if at once
            odd = "b = bitcast float {v} to i32; w = fpext float {v} to double; i = fcmp une double {w}, "
            odd += "{n}; z = zext i1 {i} to i32; o = or i32 {b}, {z}; bitcast i32 {o} to float"
            value = body.emit(odd, v=value, n=narrow)
    if kind == "f16":
        return body.emit(f"h = fptrunc float {value} to half; bitcast half {{h}} to i16")
    if kind == "bf16":  # to nearest, ties to even, by an addition below the last bit
        near = "b = bitcast float {v} to i32; h = lshr i32 {b}, 16; o = and i32 {h}, 1; "
        near += "c = add i32 {b}, {o}; r = add i32 {c}, 32767; n = fcmp uno float {v}, {v}; "
        near += "w = select i1 {n}, i32 {nan}, i32 {r}; "
        return body.emit(near + "t = lshr i32 {w}, 16; trunc i32 {t} to i16", v=value, nan=0x7FFF0000)
    return body.emit(f"bitcast {_computed_type(kind)[0]} {value} to i{width_of(kind)}")


def _round(body: Body, kind: str, name: str, operands: str, direction: str) -> str:
    """An operation that rounds in a direction."""
    number, word = _DIRECTIONS[direction]
    body.write(f"call void @llvm.set.rounding(i32 {number})")
    operands += f', metadata !"round.{word}", metadata !"fpexcept.ignore"'
    value = body.emit(f"call {kind} @llvm.experimental.constrained.{name}({operands})")
    body.write("call void @llvm.set.rounding(i32 1)")
    return value


def _flush(body: Body, value: str) -> str:
    """`.ftz`: a denormal float32 becomes a zero of its sign."""
    zero = "s = call float @llvm.fabs.f32(float {v}); i = fcmp olt float {s}, 0x3810000000000000; "
    zero += "z = call float @llvm.copysign.f32(float 0.0, float {v}); select i1 {i}, float {z}, float {v}"
    return body.emit(zero, v=value)


def _saturate(body: Body, value: str, have: str, suffix: str) -> str:
    """`.sat` of floats: from 0 to 1, 0 for NaN."""
    clamp = "n = fcmp ogt {t} {v}, 0.0; m = select i1 {n}, {t} {v}, {t} 0.0; "
    return body.emit(clamp + "call {t} @llvm.minimum.{k}({t} {m}, {t} 1.0)", v=value, t=have, k=suffix)


# -- arithmetic ----------------------------------------------------------------------------------------------
def apply(body: Body, key: str, kind: str, words: list[str], direction="", flushes="", saturates="") -> str:
    """A row of the tables, on bits of `kind`; each half of a packed kind by itself."""
    element, have, suffix = kind.removesuffix("x2"), *_computed_type(kind)
    if key not in (_FLOAT if _is_float(kind) else _INTEGER):
        raise body.error(f"{key} of .{kind}")
    if element != kind:
        halves = zip(*[split(body, word, 16, 2) for word in words])
        options = direction, flushes, saturates
        return join(body, [apply(body, key, element, [*half], *options) for half in halves], 16)
    operands = dict(zip("abcd", words))
    if not _is_float(kind):
        bits, is_signed = width_of(kind), kind[0] == "s"
        names = ("s", "sext", "ashr", -1) if is_signed else ("u", "zext", "lshr", 0)
        sizes = {"t": f"i{bits}", "w": f"i{2 * bits}", "n": bits, "last": bits - 1, "signs": -is_signed}
        return body.emit(_INTEGER[key], **operands, **sizes, **dict(zip(("s", "ext", "shr", "trap"), names)))
    values = [decode(body, word, kind, flushes) for word in words]
    if key == "fma" and width_of(kind) == 16:
        have, suffix = "double", "f64"
        values = [body.emit(f"fpext float {each} to double") for each in values]
    if direction in _DIRECTIONS:
        if key not in _DIRECTED or width_of(kind) == 16:
            raise body.error(f"rounding .{direction}")
        typed = ", ".join(f"{have} {value}" for value in values)
        value = _round(body, have, f"{_DIRECTED[key]}.{suffix}", typed, direction)
    else:
        value = body.emit(_FLOAT[key], **dict(zip("abc", values)), t=have, k=suffix)
    value = _saturate(body, value, have, suffix) if saturates else value
    value = _flush(body, value) if flushes and kind == "f32" else value
    return _encode(body, value, have, kind)


@rule(*sorted({key.split(".")[0] for key in (*_INTEGER, *_FLOAT)}), "addc", "subc", "madc")
def compute(body: Body, instruction: Instruction) -> None:
    kind, key = instruction.take_kind(), instruction.opcode
    kind = f"b{width_of(kind)}" if key == "selp" else kind  # floats are chosen by their bits
    target, *sources = instruction.operands
    bits, options, types = width_of(kind), [], "tttt"
    if key == "selp":
        kind = f"b{bits}"
    if _is_float(kind):
        key += ".NaN" if instruction.take("NaN") else ""
        direction = instruction.take("rn", "approx", "full", *_DIRECTIONS)
        options = [direction, instruction.take("ftz"), instruction.take("sat")]
    else:
        if key == "dp4a":
            instruction.take(kind)
        modes = instruction.take("l", "r", "lo", "hi", "wide"), instruction.take("wrap", "clamp")
        key = ".".join([key, *filter(None, modes)])
        types = _OPERANDS.get(key, types)
    kinds = {"t": f"i{bits}", "u": "i32", "p": "i1", "w": f"i{2 * bits}"}
    words = [body.read(source, kinds[of]) for source, of in zip(sources, types)]
    sets_carry = instruction.take("cc")
    if sets_carry or instruction.opcode in ("addc", "subc", "madc"):
        result = _carry(body, key, kind, words, bool(sets_carry))
    elif key in ("shl", "shr") and (ptx.parse_literal(sources[1], 32) or bits) < bits:  # nearly always
        shift = "shl" if key == "shl" else "ashr" if kind[0] == "s" else "lshr"
        result = body.emit(f"{shift} i{bits} {words[0]}, {sources[1]}")
    else:
        result = apply(body, key, kind, words, *options)
    body.assign(target, result, kinds["w" if key.endswith("wide") else "t"])


def _carry(body: Body, key: str, kind: str, words: list[str], sets_carry: bool) -> str:
    """`add.cc`, `addc`, `madc.hi.cc`: the flag is a register that only these see."""
    opcode, _, half = key.partition(".")
    flag, wide = '%"carry.slot"', f"i{width_of(kind) + 8}"
    body.allocas[flag] = "i1"
    if half:
        words = [apply(body, f"mul.{half}", kind, words[:2]), words[2]]
    name = "sub" if opcode.startswith("sub") else "add"
    left, right = (body.resize(word, f"i{width_of(kind)}", wide) for word in words)
    total = body.emit(f"{name} {wide} {left}, {right}")
    if opcode.endswith("c"):
        carry = body.resize(body.emit(f"load i1, ptr {flag}"), "i1", wide)
        total = body.emit(f"{name} {wide} {total}, {carry}")
    if sets_carry:
        carry = body.emit(f"t = lshr {wide} {total}, {width_of(kind)}; trunc {wide} {{t}} to i1")
        body.write(f"store i1 {carry}, ptr {flag}")
    return body.resize(total, wide, f"i{width_of(kind)}")


@rule("lop3")
def look_up_bits(body: Body, instruction: Instruction) -> None:
    """Any function of three bits: the `or` of the cases in which it is one."""
    instruction.take_kind()
    target, *sources, table = instruction.operands
    words, total = [body.read(source, "i32") for source in sources], "0"
    inverted = [body.emit(f"xor i32 {word}, -1") for word in words]
    for case in range(8):
        if int(table, 0) >> case & 1:
            a, b, c = ((words if case >> 2 - place & 1 else inverted)[place] for place in range(3))
            total = body.emit(f"x = and i32 {a}, {b}; y = and i32 {{x}}, {c}; or i32 {total}, {{y}}")
    body.assign(target, total, "i32")


@rule("prmt")
def permute_bytes(body: Body, instruction: Instruction) -> None:
    """Four of the eight bytes of two words, or their signs."""
    instruction.take_kind()
    low, high, selector = (body.read(source, "i32") for source in instruction.operands[1:])
    both, picked = join(body, [low, high], 32), []
    byte = "n = lshr i32 {c}, {place}; i = and i32 {n}, 7; j = shl i32 {i}, 3; k = zext i32 {j} to i64; "
    byte += "w = lshr i64 {both}, {k}; b = trunc i64 {w} to i8; s = ashr i8 {b}, 7; t = and i32 {n}, 8; "
    byte += "p = icmp ne i32 {t}, 0; select i1 {p}, i8 {s}, i8 {b}"
    for place in range(0, 16, 4):
        picked.append(body.emit(byte, c=selector, both=both, place=place))
    body.assign(instruction.operands[0], join(body, picked, 8), "i32")


@rule("setp")
def compare(body: Body, instruction: Instruction) -> None:
    """One predicate and its opposite, or one for each half of a packed kind."""
    kind, tests = instruction.take_kind(), _COMPARISONS[instruction.take(*_COMPARISONS)].split()
    combination, flushes = instruction.take("and", "or", "xor"), instruction.take("ftz")
    targets, *sources = instruction.operands
    element, parts = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    bits = width_of(element)
    operation = f"icmp {tests[-1].format(s='s' if kind[0] == 's' else 'u')} i{bits}"
    words = [split(body, body.read(source, f"i{bits * parts}"), bits, parts) for source in sources[:2]]
    if _is_float(kind):
        words = [[decode(body, part, element, flushes) for part in word] for word in words]
        operation = f"fcmp {tests[0]} {_computed_type(element)[0]}"
    results = [body.emit(f"{operation} {left}, {right}") for left, right in zip(*words)]
    if parts == 1:
        results.append(body.emit(f"xor i1 {results[0]}, true"))
    for predicate, result in zip(targets.split("|"), results):
        if combination:
            result = body.emit(f"{combination} i1 {result}, {body.read(sources[2], 'i1')}")
        body.assign(predicate, result, "i1")


@rule("testp")
def classify(body: Body, instruction: Instruction) -> None:
    kind = instruction.take_kind()
    classes = dict(finite=504, infinite=516, number=1020, notanumber=3, normal=264, subnormal=144)
    bits, (have, suffix) = classes[instruction.take(*classes)], _computed_type(kind)
    value = decode(body, body.read(instruction.operands[1], f"i{width_of(kind)}"), kind)
    result = body.emit(f"call i1 @llvm.is.fpclass.{suffix}({have} {value}, i32 {bits})")
    body.assign(instruction.operands[0], result, "i1")


# -- conversions ---------------------------------------------------------------------------------------------
@rule("cvt")
def convert(body: Body, instruction: Instruction) -> None:
    source, target = instruction.take_kind(), instruction.take_kind()
    register, *operands = instruction.operands
    integral, direction = instruction.take(*_INTEGRAL), instruction.take("rn", *_DIRECTIONS)
    flushes, saturates = instruction.take("ftz"), instruction.take("sat")
    results = []
    for operand in reversed(operands):  # the last one of two goes to the lower half
        word = body.read(operand, f"i{width_of(source)}")
        if _is_float(source):
            value, (have, suffix) = decode(body, word, source, flushes), _computed_type(source)
            if integral:
                value = body.emit(f"call {have} @llvm.{_INTEGRAL[integral]}.{suffix}({have} {value})")
            word = _convert_float(body, value, source, target.removesuffix("x2"), direction, saturates)
        else:
            word = _convert_integer(body, word, source, target, direction, saturates)
        results.append(word)
    bits = width_of(target) // len(results)
    body.assign(register, join(body, results, bits), f"i{width_of(target)}", is_signed=target[0] == "s")


def _convert_float(body: Body, value: str, source: str, target: str, direction, saturates) -> str:
    (have, suffix), bits = _computed_type(source), width_of(target)
    if _is_float(target):
        if direction in _DIRECTIONS and (source, target) != ("f64", "f32"):
            raise body.error(f"rounding .{direction} from .{source} to .{target}")
        value = _saturate(body, value, have, suffix) if saturates else value
        return _encode(body, value, have, target, direction if direction in _DIRECTIONS else None)
    # Of a NaN the manual makes the sign bit alone, from and to 64 bits, and else 0.
    name, nan = f"fpto{'s' if target[0] == 's' else 'u'}i", 1 << bits - 1 if "64" in source + target else 0
    whole = f"r = call i{bits} @llvm.{name}.sat.i{bits}.{suffix}({have} {value}); "
    whole += f"n = fcmp uno {have} {value}, {value}; select i1 {{n}}, i{bits} {nan}, i{bits} {{r}}"
    return body.emit(whole)


def _convert_integer(body: Body, word: str, source: str, target: str, direction, saturates) -> str:
    have, sign = f"i{width_of(source)}", "s" if source[0] == "s" else "u"
    if _is_float(target):
        want, suffix = ("float", "f32") if target == "f32" else ("double", "f64")
        if direction in _DIRECTIONS and target == suffix:
            value = _round(body, want, f"{sign}itofp.{suffix}.{have}", f"{have} {word}", direction)
        else:
            value = body.emit(f"{sign}itofp {have} {word} to {want}")
        return _encode(body, value, want, target)
    if saturates:
        (low, high), (lowest, highest) = _bounds_of(target), _bounds_of(source)
        clamp = f"m = call {{t}} @llvm.{sign}max.{{t}}({{t}} {word}, {{t}} {max(low, lowest)}); "
        clamp += f"call {{t}} @llvm.{sign}min.{{t}}({{t}} {{m}}, {{t}} {min(high, highest)})"
        word = body.emit(clamp, t=have)
    return body.resize(word, have, f"i{width_of(target)}", sign == "s")


def _bounds_of(kind: str) -> tuple[int, int]:
    bits = width_of(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
