"""LLVM types and instructions for scalars and lanes: the vocabulary of the renderer.

In: NumPy dtypes, lane counts, an `ir.IRBuilder`. Out: LLVM types, constants and instructions, which say how
float arithmetic may be rounded. A register holds bool as i1, bfloat16 as its 16 bits, narrow dtypes as bytes,
everything else as LLVM's own type. A complex number is a `Pair` of registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from jitcore import dtypes
from jitcore.backends.llvm.mathlib.emitter import COLD_WEIGHTS, make_constant, make_numbers, name_type
from jitcore.backends.llvm.options import RenderOptions

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
POINTER = I8.as_pointer()
TABLE = POINTER.as_pointer()
SIZES = I64.as_pointer()
# A product may stay unrounded on its way into a sum, where LLVM likes: in code that stands once.
CONTRACT_FLAGS = ("contract",)
# `fastmath`: sums may be reordered, quotients become products; NaN and infinities keep their meaning.
FAST_FLAGS = ("reassoc", "nsz", "arcp", "contract", "afn")

_FLOATS = {dtypes.float16: ir.HalfType(), dtypes.float32: ir.FloatType(), dtypes.float64: ir.DoubleType()}


class FloatBuilder(ir.IRBuilder):
    """An IRBuilder whose float arithmetic is IEEE's, but for what `flags` allow. fuses: whether the formulas
    of complex numbers are made of multiply-adds; fused_complex: those that are in any case. stands_once:
    whether no other code computes the same."""

    def __init__(self, block: ir.Block, options: RenderOptions, stands_once: bool):
        super().__init__(block)
        self.flags: tuple[str, ...] = CONTRACT_FLAGS if options.contract and stands_once else ()
        if options.fastmath:
            self.flags = FAST_FLAGS
        self.fuses = options.contract and not self.flags
        self.fused_complex = options.fused_complex

    def fadd(self, lhs, rhs, name="", flags=()):
        return super().fadd(lhs, rhs, name, flags=self.flags)

    def fadd_rounded(self, lhs, rhs):
        """A sum of what is rounded already."""
        return super().fadd(lhs, rhs)

    def fsub(self, lhs, rhs, name="", flags=()):
        return super().fsub(lhs, rhs, name, flags=self.flags)

    def fmul(self, lhs, rhs, name="", flags=()):
        return super().fmul(lhs, rhs, name, flags=self.flags)

    def fdiv(self, lhs, rhs, name="", flags=()):
        return super().fdiv(lhs, rhs, name, flags=self.flags)


class Pair(NamedTuple):
    """A complex number, or lanes of them: the real and the imaginary parts."""

    re: ir.Value
    im: ir.Value


def map_parts(function: Callable, *values):
    """function(*values), or a `Pair` of its results on both parts of pairs."""
    if isinstance(values[0], Pair):
        return Pair(*map(function, *values))
    return function(*values)


def choose(builder: ir.IRBuilder, condition: ir.Value, x, y):
    """x where the condition holds, else y."""
    return map_parts(lambda x, y: builder.select(condition, x, y), x, y)


def choose_rarely(b: ir.IRBuilder, condition: ir.Value, emit: Callable[[], ir.Value],
                  emit_usual: Callable[[], ir.Value]) -> ir.Value:
    """What `emit` gives where the condition holds, which it seldom does, and else what `emit_usual` gives."""
    cold, usual, after = (b.append_basic_block(name) for name in ("cold", "usual", "after"))
    b.cbranch(condition, cold, usual).set_weights(COLD_WEIGHTS)
    values = []
    for block, make in ((cold, emit), (usual, emit_usual)):
        b.position_at_end(block)
        values.append((make(), b.block))
        b.branch(after)
    b.position_at_end(after)
    merged = b.phi(values[0][0].type)
    for value, block in values:
        merged.add_incoming(value, block)
    return merged


def part_dtype(dtype) -> np.dtype:
    """The dtype of the numbers that registers hold: that of its parts for a complex one."""
    dtype = np.dtype(dtype)
    return dtypes.real_dtype(dtype) if dtype.kind == "c" else dtype


def element_type(dtype) -> ir.Type:
    """The register type of one element, which is no complex number."""
    dtype = np.dtype(dtype)
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    if dtype == dtypes.bool_:
        return I1
    if dtype == dtypes.bfloat16:
        return I16
    return ir.IntType(dtype.itemsize * 8)


def memory_type(dtype) -> ir.Type:
    """The type of one element in memory; a vector of two for a complex number."""
    dtype = np.dtype(dtype)
    if dtype == dtypes.bool_:
        return I8
    return ir.VectorType(_FLOATS[part_dtype(dtype)], 2) if dtype.kind == "c" else element_type(dtype)


def widen(element: ir.Type, lanes: int) -> ir.Type:
    return ir.VectorType(element, lanes) if lanes > 1 else element


def constant(value_type: ir.Type, value) -> ir.Constant:
    """A number as a constant, repeated over the lanes of a vector type."""
    if isinstance(value_type, ir.VectorType):
        return make_constant(value_type, value)
    return ir.Constant(value_type, value)


def element_constant(dtype, value, lanes: int = 1) -> ir.Value | Pair:
    """An element of an array as a constant."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part, value = part_dtype(dtype), dtype.type(value)
        return Pair(element_constant(part, value.real, lanes), element_constant(part, value.imag, lanes))
    if dtype == dtypes.bfloat16:
        value = int(np.asarray(value, dtype).view(np.uint16))
    elif dtypes.is_narrow(dtype):
        value = int(np.asarray(value, dtype).view(np.uint8))
    elif dtypes.is_floating(dtype):
        value = float(value)
    else:
        value = int(value)
    return constant(widen(element_type(dtype), lanes), value)


def call_intrinsic(builder: ir.IRBuilder, name: str, operands: list, result=None, overloads=None) -> ir.Value:
    """Calls `llvm.<name>.<types>`, declared by hand because llvmlite does not mangle vector types."""
    result = operands[0].type if result is None else result
    suffix = ".".join(map(name_type, overloads if overloads is not None else [operands[0].type]))
    return call_function(builder, f"llvm.{name}.{suffix}", result, operands)


def multiply_add(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value, is_negative: bool = False,
                 subtracts: bool = False) -> ir.Value:
    """x * y + z, or with other signs, rounded once where the processor can."""
    x = b.fneg(x) if is_negative else x
    return call_intrinsic(b, "fmuladd", [x, y, b.fneg(z) if subtracts else z])


def count_lanes(b: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """In how many lanes a mask holds, as an i64."""
    bits = b.bitcast(mask, ir.IntType(lane_count(mask)))
    count = call_intrinsic(b, "ctpop", [bits])
    return b.zext(count, I64) if bits.type.width < 64 else count


def call_function(builder: ir.IRBuilder, name: str, result: ir.Type,
                  operands: Sequence[ir.Value]) -> ir.Value:
    """Calls a function that LLVM or somebody else defines, declared at its first call in a module."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [operand.type for operand in operands]), name)
    return builder.call(function, operands)


def splat(builder: ir.IRBuilder, value: ir.Value | Pair, lanes: int) -> ir.Value | Pair:
    """A scalar in every lane."""
    if isinstance(value, Pair):
        return map_parts(lambda part: splat(builder, part, lanes), value)
    if (
        isinstance(value, ir.Constant)
        and not isinstance(value.constant, (list, tuple))
        and value.constant is not ir.Undefined
    ):
        return constant(ir.VectorType(value.type, lanes), value.constant)
    vector_type = ir.VectorType(value.type, lanes)
    single = builder.insert_element(ir.Constant(vector_type, ir.Undefined), value, I32(0))
    return builder.shuffle_vector(single, ir.Constant(vector_type, ir.Undefined),
                                  ir.Constant(ir.VectorType(I32, lanes), None))


def iota(lanes: int) -> ir.Constant:
    return make_numbers(64, tuple(range(lanes)))


def mask_first(b: ir.IRBuilder, count: ir.Value, lanes: int) -> ir.Value:
    """Which lanes are among the first `count`, an int64 that is not negative. Their numbers are compared as
    short integers: one register of them may stand for several registers of elements. But they fill 128 bits:
    of what is shorter LLVM 22 compares whole registers, and masked stores of bytes in another block take what
    is behind the lanes for a part of the mask."""
    width = max(8 if lanes <= 64 else 16, min(64, 128 // lanes))
    numbers, held = make_numbers(width, tuple(range(lanes))), call_intrinsic(b, "smin", [count, I64(lanes)])
    held = held if width == 64 else b.trunc(held, ir.IntType(width))
    return b.icmp_signed("<", numbers, splat(b, held, lanes))


def lane_count(value: ir.Value | Pair) -> int:
    value = value.re if isinstance(value, Pair) else value
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def like(value: ir.Value, element: ir.Type) -> ir.Type:
    """`element` in as many lanes as `value` has."""
    return widen(element, lane_count(value))


def to_words(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Lanes, or one element, as they are moved: numbers of less than 32 bits as integers of 32."""
    kind = _element_of(value)
    if isinstance(kind, ir.HalfType):
        value, kind = b.bitcast(value, like(value, I16)), I16
    is_short = isinstance(kind, ir.IntType) and kind.width < 32
    return b.zext(value, like(value, I32)) if is_short else value


def from_words(b: ir.IRBuilder, words: ir.Value, element: ir.Type) -> ir.Value:
    """Lanes, or one element, as they lie in memory."""
    kind = I16 if isinstance(element, ir.HalfType) else element
    if _element_of(words) != kind:
        words = b.trunc(words, like(words, kind))
    return words if kind == element else b.bitcast(words, like(words, element))


def _element_of(value: ir.Value) -> ir.Type:
    """The type of each lane."""
    return value.type.element if isinstance(value.type, ir.VectorType) else value.type


def shuffle(b: ir.IRBuilder, x: ir.Value, y: ir.Value, places: list[int | None]) -> ir.Value:
    """Lanes of x followed by y at the given places; None: any value (x's own lane, which costs least)."""
    if isinstance(x, Pair):
        return map_parts(lambda x, y: shuffle(b, x, y, places), x, y)
    chosen = tuple([lane % x.type.count if place is None else place for lane, place in enumerate(places)])
    return b.shuffle_vector(x, y, make_numbers(32, chosen))


def join_registers(b: ir.IRBuilder, registers: list) -> ir.Value:
    """One vector of all lanes, in order. Their number is a power of two."""
    while len(registers) > 1:
        width = lane_count(registers[0])
        pairs = zip(registers[::2], registers[1::2])
        registers = [shuffle(b, x, y, list(range(2 * width))) for x, y in pairs]
    return registers[0]


def split_registers(b: ir.IRBuilder, value: ir.Value, width: int) -> list:
    """The vector cut into pieces of `width` lanes."""
    return [shuffle(b, value, value, list(range(start, start + width)))
            for start in range(0, lane_count(value), width)]
