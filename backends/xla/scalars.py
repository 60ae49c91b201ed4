"""Scalar operations of arrays: what StableHLO has no operation for, as formulas.

In: the name of a scalar operation of the loop program and values. Out: a value. Real functions are those of
the CPU backend's math library, complex ones the formulas of `loopir.complex_math`: each is written once, over
an arithmetic that a backend provides, and here that arithmetic is StableHLO. float16 and bfloat16 are
computed in float32.

StableHLO has no fused multiply-add, but XLA's CPU client makes them of products that one sum reads. Where a
formula asks for what a product has lost, float32 goes through float64, or the product is split into exact
parts (Dekker, "A floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import llvmlite.ir as ir
import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.backends.llvm.mathlib import FUNCTIONS, zeta
from jitcore.backends.llvm.mathlib.emitter import Emitter, Lanes, load_formula
from jitcore.backends.xla.builder import HloBuilder, HloValue
from jitcore.core.primitive import registry
from jitcore.loopir.complex_math import OPERATIONS, Complex, Real, Reals

_COMPARISONS = {"<": "LT", "<=": "LE", ">": "GT", ">=": "GE", "==": "EQ", "!=": "NE"}
#: By the name of the scalar operation: that of StableHLO, as the primitives name it.
_NAMES = {primitive.traits["scalar_op"]: primitive.hlo for primitive in registry.values()
          if isinstance(primitive.hlo, str) and "scalar_op" in primitive.traits
          and primitive.hlo != "compare"}
_PREDICATES = frozenset(("is_finite", "signbit", "lt", "le", "gt", "ge", "eq", "ne"))
#: Operations on complex numbers that StableHLO's do as NumPy does.
_EXACT_OF_COMPLEX = frozenset(("add", "sub", "neg", "real", "imag", "complex", "eq", "ne"))


def apply_scalar(b: HloBuilder, name: str, *values: HloValue) -> HloValue:
    """A scalar operation on each element; scalars among the values are repeated.

    Raises: KeyError for a name that there is no formula for."""
    values = tuple(b.match(*values))
    dtype = values[0].dtype
    if dtypes.is_half(dtype) and name not in ("neg", "abs", "signbit"):
        wide = apply_scalar(b, name, *(b.convert(value, dtypes.float32) for value in values))
        return wide if wide.dtype == dtypes.bool_ else b.convert(wide, dtype)
    if dtypes.is_complex(dtype) or name == "complex":
        return _apply_complex(b, name, values)
    return _apply_real(b, name, values)


def _apply_real(b: HloBuilder, name: str, values: tuple[HloValue, ...]) -> HloValue:
    x, dtype = values[0], values[0].dtype
    if name.upper() in _COMPARISONS.values():
        return b.compare(name.upper(), *values)
    if name == "square":
        return b.op("multiply", x, x)
    if name == "conj":
        return x
    if dtypes.kind_of(dtype) in "ub":
        if name == "abs":
            return x
        if name == "sign":
            return b.convert(b.compare("NE", x, b.full(0, x.shape, dtype)), dtype)
        name = "shift_right_logical" if name == "shift_right_arithmetic" else name
    if name == "sign":  # of both zeros 0.0, as in NumPy
        zero = b.full(0, x.shape, dtype)
        return b.choose(b.compare("EQ", x, zero), zero, b.op("sign", x))
    if name == "trunc":
        return b.choose(b.compare("LT", x, b.full(0, x.shape, dtype)), b.op("ceil", x), b.op("floor", x))
    if name == "signbit":
        bits = b.op("bitcast_convert", x, dtype=np.dtype(f"i{dtype.itemsize}"))
        return b.compare("LT", bits, b.full(0, x.shape, bits.dtype))
    if name == "logaddexp" and b.target == "tpu":
        return _add_in_logarithms(b, *values)
    if name in _NAMES:
        return b.op(_NAMES[name], *values, dtype=dtypes.bool_ if name in _PREDICATES else None)
    function = FUNCTIONS[name]
    emitter = HloEmitter(_Instructions(b, x.shape), _FLOATS[dtype])
    return emitter.builder.read(load_formula(function.formula)(emitter, *map(emitter.take, values)).value)


def _add_in_logarithms(b: HloBuilder, x: HloValue, y: HloValue) -> HloValue:
    """log(exp(x) + exp(y)): the larger one and log1p of a quotient; equal infinities differ by 0."""
    distance = b.choose(b.compare("EQ", x, y), b.full(0, x.shape, x.dtype), b.op("subtract", x, y))
    quotient = b.op("exponential", b.op("negate", b.op("abs", distance)))
    return b.op("add", b.op("maximum", x, y), b.op("log_plus_one", quotient))


# -- complex numbers ----------------------------------------------------------------------------------------
class _HloReals(Reals):
    """Real arithmetic of arrays of one shape."""

    def __init__(self, b: HloBuilder, shape: tuple[int, ...], dtype):
        super().__init__(dtype)
        self.b, self.shape = b, shape

    def apply(self, name, operand_dtype, result_dtype, operands):
        known = [operand if isinstance(operand, HloValue) else None for operand in operands]
        if name == "select":
            which, *cases = operands
            return self.b.choose(which, *(self._take(case, result_dtype) for case in cases))
        return apply_scalar(self.b, name, *(value or self._take(operand, operand_dtype)
                                            for value, operand in zip(known, operands)))

    def _take(self, operand: Any, dtype) -> HloValue:
        return operand if isinstance(operand, HloValue) else self.b.full(operand, self.shape, dtype)


def _apply_complex(b: HloBuilder, name: str, values: tuple[HloValue, ...]) -> HloValue:
    if name in _EXACT_OF_COMPLEX:
        if name in ("eq", "ne"):
            return b.compare(name.upper(), *values)
        kinds = {"complex": dtypes.complex_dtype, "real": dtypes.real_dtype, "imag": dtypes.real_dtype}
        dtype = kinds[name](values[0].dtype) if name in kinds else None
        return b.op(_NAMES.get(name, name), *values, dtype=dtype)
    part = dtypes.real_dtype(values[0].dtype)
    reals = _HloReals(b, values[0].shape, part)
    numbers = [Complex(*(Real(reals, b.op(side, value, dtype=part), part) for side in ("real", "imag")))
               for value in values]
    found = OPERATIONS[name](reals, *numbers)
    if isinstance(found, Complex):
        re, im = (reals._take(x.value if isinstance(x, Real) else x, part) for x in found)
        return b.op("complex", re, im, dtype=values[0].dtype)
    return found.value


# -- real functions -----------------------------------------------------------------------------------------
_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_FLOATS = {dtypes.float32: _FLOAT, dtypes.float64: _DOUBLE}
#: Units in the last place of numbers that are added to round to them.
_LEAST_UNIT, _MOST_UNIT = 2.0**-8, 2.0**8
_SPLITTERS = {dtypes.float32: 2.0**12 + 1, dtypes.float64: 2.0**27 + 1}
_INTRINSICS = {"fabs": "abs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil",
               "roundeven": "round_nearest_even",
               "round": "round_nearest_afz"}


def _to_dtype(kind: ir.Type) -> np.dtype:
    """The dtype of an LLVM type."""
    if isinstance(kind, ir.IntType):
        return dtypes.bool_ if kind.width == 1 else np.dtype(f"i{kind.width // 8}")
    return dtypes.float32 if kind == _FLOAT else dtypes.float64


class _Register:
    """A value with the LLVM type of its elements, and whether it is a product, or minus one."""

    __slots__ = ("value", "type", "is_product", "is_minus_product")

    def __init__(self, value: HloValue, kind: ir.Type, operation: str = "", of_product: bool = False):
        self.value, self.type = value, kind
        self.is_product, self.is_minus_product = operation == "multiply", operation == "negate" and of_product


class _Symbols:
    """What formulas ask an LLVM module for: functions of the math library, and a table."""

    def get(self, symbol: str) -> SimpleNamespace:
        return SimpleNamespace(name=symbol.split(".")[1])


class _Instructions:
    """The instructions of an `ir.IRBuilder` that formulas use, of arrays of one shape."""

    def __init__(self, b: HloBuilder, shape: tuple[int, ...]):
        self.b, self.shape, self.module = b, shape, SimpleNamespace(globals=_Symbols())

    def read(self, operand: Any) -> HloValue:
        """A register, or a constant of LLVM's."""
        if isinstance(operand, _Register):
            return operand.value
        return self.b.full(operand.constant, self.shape, _to_dtype(operand.type))

    def emit(self, name: str, *operands: Any, kind: ir.Type | None = None) -> _Register:
        kind = operands[0].type if kind is None else kind
        values = map(self.read, operands)
        of_product = getattr(operands[0], "is_product", False)
        return _Register(self.b.op(name, *values, dtype=_to_dtype(kind)), kind, name, of_product)

    def fadd(self, x: Any, y: Any) -> _Register:
        """XLA takes (x + c) - c for x. Where a large c is added to round x, that is done first."""
        if isinstance(y, ir.Constant) and isinstance(x, _Register):
            unit = float(np.spacing(np.asarray(abs(y.constant), _to_dtype(y.type))))
            if _LEAST_UNIT <= unit < _MOST_UNIT:
                scaled = x if unit == 1 else self.emit("multiply", x, ir.Constant(x.type, 1 / unit))
                x = self.emit("round_nearest_even", scaled)
                x = x if unit == 1 else self.emit("multiply", x, ir.Constant(x.type, unit))
        return self.emit("add", x, y)

    def _compare(self, sign: str, x: Any, y: Any, unsigned: bool = False) -> _Register:
        values = [self.read(operand) for operand in (x, y)]
        if unsigned:
            kind = np.dtype(f"u{values[0].dtype.itemsize}")
            values = [self.b.op("bitcast_convert", value, dtype=kind) for value in values]
        return _Register(self.b.compare(_COMPARISONS[sign], *values), ir.IntType(1))

    icmp_signed = fcmp_ordered = fcmp_unordered = _compare
    icmp_unsigned = functools.partialmethod(_compare, unsigned=True)

    def select(self, which: Any, x: Any, y: Any) -> _Register:
        return _Register(self.b.choose(*map(self.read, (which, x, y))), x.type)

    def bitcast(self, x: Any, kind: ir.Type) -> _Register:
        return self.emit("bitcast_convert", x, kind=kind)

    def _convert(self, x: Any, kind: ir.Type) -> _Register:
        return _Register(self.b.convert(self.read(x), _to_dtype(kind)), kind)

    sitofp = fptosi = fpext = fptrunc = _convert

    def call(self, function: SimpleNamespace, arguments) -> Any:
        emitter = HloEmitter(self, arguments[0].type)
        return load_formula(FUNCTIONS[function.name].formula)(emitter, *map(emitter.lanes, arguments)).value


_OPERATIONS = {"fsub": "subtract", "fmul": "multiply", "fdiv": "divide", "fneg": "negate", "add": "add",
               "sub": "subtract", "mul": "multiply", "sdiv": "divide", "neg": "negate", "and_": "and",
               "or_": "or", "xor": "xor", "not_": "not", "shl": "shift_left",
               "ashr": "shift_right_arithmetic", "lshr": "shift_right_logical"}
for _name, _operation in _OPERATIONS.items():
    setattr(_Instructions, _name, functools.partialmethod(_Instructions.emit, _operation))


class HloEmitter(Emitter):
    """The math library's emitter over StableHLO. Rare arguments have no branch: both ways are computed."""

    has_avx512 = False

    def take(self, value: HloValue) -> Lanes:
        return Lanes(self, _Register(value, self.type))

    def intrinsic(self, name, *args):
        if name == "fma":
            return self.fma(*args)
        if name == "trunc":
            return self.select(args[0] < 0.0, self.intrinsic("ceil", *args), self.intrinsic("floor", *args))
        if name == "copysign":
            magnitude, sign = (self.to_bits(arg) for arg in args)
            return self.to_float((magnitude & ~self.int_const(self.sign_bit)) | (sign & self.sign_bit))
        if name in ("smax", "smin"):
            return Lanes(self, self.builder.emit({"smax": "maximum", "smin": "minimum"}[name],
                                                 args[0].value, args[0].coerce(args[1])))
        return Lanes(self, self.builder.emit(_INTRINSICS[name], args[0].value))

    def fma(self, a, b, c):
        """XLA's CPU client fuses a product with the sum that alone reads it. Where the sum is what a product
        has lost, it is read twice."""
        a, b, c = map(self.as_lanes, (a, b, c))
        if self.builder.b.target == "tpu" or not getattr(c.value, "is_minus_product", False):
            return a * b + c  # on TPUs products are rounded: see `lower.TPU_FUNCTIONS`
        if self.element == _FLOAT:
            a, b, c = map(self.widen, (a, b, c))
            return self.narrow(a * b + c)
        product, rest = self._split_product(a, b)
        total = product + c
        part = total - product
        low = ((product - (total - part)) + (c - part)) + rest
        return self.select(low - low == 0.0, total + low, total)  # what overflows on the way has no rest

    def _split_product(self, a, b):
        """(p, q): p + q = a * b, where the parts of the factors do not overflow."""
        product = a * b
        (a, a_low), (b, b_low) = map(self._split, (a, b))
        return product, a_low * b_low - (((product - a * b) - a_low * b) - a * b_low)

    def _split(self, x):
        """x as a sum of two numbers of half its digits."""
        high = x * _SPLITTERS[_to_dtype(self.element)]
        high = high - (high - x)
        return high, x - high

    def widen(self, x):
        wide = HloEmitter(self.builder, _DOUBLE)
        return Lanes(wide, self.builder.fpext(x.value, wide.type))

    def call(self, build, *args, cold=False):
        return build(self, *args)

    def patch(self, hard, fast, build, *args):
        return self.replace(hard, fast, lambda: build(self, *args))

    def replace(self, hard, fast, emit):
        return self.select(hard, emit(), fast)

    def accumulate(self, count, build_term):
        total = self.const(0.0)
        for n in reversed(range(count)):
            total = total + build_term(self.const(float(n)))
        return total

    def load(self, table, place):
        """The factorial of a place."""
        factorials = np.cumprod([1.0, *range(1, zeta.LARGEST_ORDER + 1)]).astype(_to_dtype(self.element))
        b = self.builder.b
        return self.take(b.apply(_take, b.constant(factorials), self.builder.read(place.value))[0])


def _take(table: Any, places: Any) -> Any:
    return jnp.take(table, places, mode="clip")
