"""Instructions of AVX-512 that formulas ask for: tables in registers, exponent and significand, scaling.

In: `Lanes` of any number, scalars too. Out: `Lanes`. Stage: rendering. The instructions work on registers of
512 bits: fewer lanes stand in the low ones of a register, more are cut into registers. So a scalar takes the
way of its vector and has the same bits. Formulas ask `Emitter.has_avx512` first.
"""
import functools

import llvmlite.ir as ir

from jitcore.backends.llvm.mathlib.emitter import I32, Emitter, Lanes, make_numbers

REGISTER_BITS = 512
NAN_BELOW_ZERO, WITHOUT_SIGN = 2 << 2, 1 << 2
FROM_ONE, AROUND_ONE = 0, 3
CURRENT_ROUNDING = 4


def lookup(e, table, index):
    """table[index] for each lane; only the low bits of the integer `index` count.

    table: numbers for one or two registers (float64: 8 or 16, float32: 16 or 32)."""
    width = REGISTER_BITS // e.bits
    halves = _list_registers(table, e.bits)
    register = halves[0].type
    index_type = ir.VectorType(e.int_element, width)
    if len(halves) == 1:
        name = "permvar.sf.512" if e.bits == 32 else "permvar.df.512"
        kinds = [register, index_type]
    else:
        name = "vpermi2var.ps.512" if e.bits == 32 else "vpermi2var.pd.512"
        kinds = [register, index_type, register]
    function = _declare(e, name, register, kinds)
    parts = _split(e, index.value, width)
    return _join(e, [e.builder.call(function, [halves[0], part, *halves[1:]]) for part in parts])


@functools.cache
def _list_registers(table, bits):
    """A table as constants of one register each; a constant keeps its text."""
    width = REGISTER_BITS // bits
    register = ir.VectorType(ir.FloatType() if bits == 32 else ir.DoubleType(), width)
    return [ir.Constant(register, list(table[i:i + width])) for i in range(0, len(table), width)]


def get_exponent(e, x):
    """The exponent of |x| as a float: floor(log2 |x|), -inf at zero, inf at inf, NaN at NaN."""
    return _call_masked(e, "getexp", [x], [])


def get_significand(e, x, interval=FROM_ONE, sign=NAN_BELOW_ZERO):
    """m with x = m * 2**k for an integer k; 1 at zero and inf, NaN at NaN.

    interval: FROM_ONE, m in [1, 2), or AROUND_ONE, m in [3/4, 3/2). sign: NAN_BELOW_ZERO, or WITHOUT_SIGN
    for the significand of |x|."""
    return _call_masked(e, "getmant", [x], [interval | sign])


def approximate_inverse(e, x):
    """1 / x with a relative error of 2**-14."""
    return _approximate(e, "rcp14", x)


def approximate_inverse_root(e, x):
    """1 / sqrt(x) with a relative error of 2**-14; inf at zero, 0 at inf, NaN below zero."""
    return _approximate(e, "rsqrt14", x)


def split(e, x):
    """The lanes of x in full registers with an emitter of their own; x alone where one register holds it."""
    width = REGISTER_BITS // e.bits
    if e.count <= width:
        return [x]
    emitter = Emitter(e.builder, ir.VectorType(e.element, width))
    return [Lanes(emitter, part) for part in _split(e, x.value, width)]


def join(e, parts):
    """What `split` gave as one value of the emitter's type."""
    return parts[0] if len(parts) == 1 else _join(e, [part.value for part in parts])


def _approximate(e, name, x):
    width = REGISTER_BITS // e.bits
    register, mask = ir.VectorType(e.element, width), ir.IntType(width)
    symbol = f"{name}.p{'s' if e.bits == 32 else 'd'}.512"
    function = _declare(e, symbol, register, [register, register, mask])
    rest = [ir.Constant(register, ir.Undefined), ir.Constant(mask, -1)]
    return _join(e, [e.builder.call(function, [part, *rest]) for part in _split(e, x.value, width)])


def scale(e, p, k):
    """p * 2**floor(k), rounded once; k a float."""
    return _call_masked(e, "scalef", [p, k], [])


def _call_masked(e, name, args, immediates):
    """An instruction with a mask of results and a rounding, both without effect."""
    width = REGISTER_BITS // e.bits
    register = ir.VectorType(e.element, width)
    mask = ir.IntType(width)
    kinds = [register] * len(args) + [I32] * len(immediates) + [register, mask, I32]
    function = _declare(e, f"mask.{name}.p{'s' if e.bits == 32 else 'd'}.512", register, kinds)
    rest = [*(I32(number) for number in immediates), ir.Constant(register, ir.Undefined)]
    rest += [ir.Constant(mask, -1), I32(CURRENT_ROUNDING)]
    parts = zip(*(_split(e, arg.value, width) for arg in args), strict=True)
    return _join(e, [e.builder.call(function, [*part, *rest]) for part in parts])


def _declare(e, name, result, kinds):
    symbol, module = f"llvm.x86.avx512.{name}", e.builder.module
    return module.globals.get(symbol) or ir.Function(module, ir.FunctionType(result, kinds), symbol)


def _split(e, value, width):
    """A value as full registers of `width` lanes."""
    builder = e.builder
    if not e.count:
        empty = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
        return [builder.insert_element(empty, value, I32(0))]
    empty = ir.Constant(value.type, ir.Undefined)
    if e.count == width:
        return [value]
    starts = range(0, e.count, width)
    return [_shuffle(builder, value, empty, range(start, start + width)) for start in starts]


def _join(e, registers):
    """The lanes of registers as one value of the emitter's type."""
    builder = e.builder
    if not e.count:
        return Lanes(e, builder.extract_element(registers[0], I32(0)))
    while len(registers) > 1:
        pairs = zip(registers[::2], registers[1::2], strict=True)
        registers = [_shuffle(builder, a, b, range(2 * a.type.count)) for a, b in pairs]
    value = registers[0]
    if value.type.count == e.count:
        return Lanes(e, value)
    return Lanes(e, _shuffle(builder, value, ir.Constant(value.type, ir.Undefined), range(e.count)))


def _shuffle(builder, a, b, lanes):
    """Lanes of a and b side by side; beyond both, the last one again."""
    last = 2 * a.type.count - 1
    return builder.shuffle_vector(a, b, make_numbers(32, tuple([min(lane, last) for lane in lanes])))
