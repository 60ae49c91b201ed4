"""The scalar operations of the loop program as Python expressions.

In: an operation's name, the dtypes of operands and result, the operands as `Text`. Out: `Text`, which means
the same on NumPy's scalars and under `numba.njit`, whose integers widen by themselves: results narrower than
64 bits are cast. 16-bit floats are float32 in registers and uint16 words in memory. What Python cannot say in
an expression is a call of a `helpers` function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.primitive import registry

#: Binding strengths of expressions, weakest first.
TERNARY, OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(
    14)


class Text(NamedTuple):
    """An expression. level: its binding strength. is_whole: whether it is a Python int, which has no
    width."""

    text: str
    level: int = ATOM
    is_whole: bool = False

    def at(self, level: int) -> str:
        """The text as an operand that binds at least so strongly."""
        return self.text if self.level >= level else f"({self.text})"


def type_name(dtype) -> str:
    """The type of a scalar in registers."""
    if dtypes.is_half(dtype):
        return "np.float32"
    if dtypes.is_narrow(np.dtype(dtype)):
        return "np.uint8"
    return "np.bool_" if dtype == dtypes.bool_ else f"np.{np.dtype(dtype).name}"


def word_name(dtype) -> str:
    """The type of an element in memory."""
    return "np.uint16" if dtypes.is_half(dtype) else type_name(dtype)


def is_number(kind: str) -> Callable[[object], bool]:
    return lambda dtype: dtypes.kind_of(dtype) in kind


_INFIX = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"and": ("&", BIT_AND), "or": ("|", BIT_OR), "xor": ("^", BIT_XOR)}
_LOGIC = {"and": ("and", AND), "mul": ("and", AND), "min": ("and", AND), "or": ("or", OR), "add": ("or", OR),
          "max": ("or", OR), "xor": ("!=", COMPARISON)}
#: Functions of floats that NumPy has, and Numba under NumPy's names.
_NUMPY = {name: f"np.{name}" for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt sqrt floor ceil trunc copysign "
    "nextafter logaddexp signbit sign conj").split()} | {
    "asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "atan2": "np.arctan2",
    "asinh": "np.arcsinh", "acosh": "np.arccosh", "atanh": "np.arctanh", "round_half_even": "np.rint",
    "is_finite": "np.isfinite", "rem": "np.fmod", "max": "np.maximum", "min": "np.minimum"}
NUMPY = {"f": _NUMPY, "c": _NUMPY}
_MATH = ("erf", "erfc", "lgamma")
#: Functions of SciPy, which Numba does not compile: it calls Python for each number. Names of their helpers
#: begin with `special_`: Numba asks all modules for such a name, and some of SciPy's warn when asked.
SPECIAL = {primitive.traits["scalar_op"]: primitive.traits["scipy"] for primitive in registry.values()
           if "scipy" in primitive.traits and primitive.lower and primitive.name not in (*_MATH, "logistic")}


class Operations:
    """Writes operations, and notes what they need: helper(name), a function of `helpers`; constant(value,
    dtype), a number. functions: by kind of dtype, "f" or "c", and operation, those whose results are as wide
    as operands are."""

    def __init__(self, helper: Callable[[str], str], constant: Callable[..., Text],
                 functions: Mapping[str, Mapping[str, str]]):
        self._helper, self._constant, self._functions = helper, constant, functions

    def write(self, op: str, dtype, operand_dtypes: Sequence, args: Sequence[Text],
              numbers: Sequence) -> Text:
        """dtype: of the result. numbers: the operands' values, None where they are no literals."""
        operand, kind = operand_dtypes[0], dtypes.kind_of(operand_dtypes[0])
        if op == "select":
            return Text(f"{args[1].at(OR)} if {args[0].at(OR)} else {args[2].at(TERNARY)}", TERNARY)
        if op == "convert":
            return self.convert(args[0], operand, dtype)
        if op == "cast":
            limits = np.iinfo(dtype)
            return self._typed(dtype, f"{self._helper('cast')}({args[0].text}, {limits.min})")
        if op == "bitcast":
            return self._bitcast(args[0], operand, dtype)
        if op in _COMPARISONS:
            return Text(f"{args[0].at(BIT_OR)} {_COMPARISONS[op]} {args[1].at(BIT_OR)}", COMPARISON)
        if kind == "b":
            return self._logic(op, args)
        if op == "neg":
            return self._narrow(dtype, Text(f"-{args[0].at(UNARY)}", UNARY))
        if op == "abs":
            return self._narrow(dtype, Text(f"abs({args[0].text})"))
        if op == "square":
            return self._narrow(dtype, Text(f"{args[0].at(PRODUCT)} * {args[0].at(UNARY)}", PRODUCT))
        if kind in "iu":
            return self._integer(op, np.dtype(dtype), args, numbers)
        return self._float(op, dtype, args, self._functions[kind])

    def _logic(self, op: str, args: Sequence[Text]) -> Text:
        if op == "not":
            return Text(f"not {args[0].at(COMPARISON)}", NOT)
        sign, level = _LOGIC[op]
        return Text(f"{args[0].at(level + (level == COMPARISON))} {sign} {args[1].at(level + 1)}", level)

    def _infix(self, sign: str, level: int, args: Sequence[Text]) -> Text:
        return Text(f"{args[0].at(level)} {sign} {args[1].at(level + 1)}", level)

    # -- floats, complex numbers --------------------------------------------------------------------------
    def _float(self, op: str, dtype, args: Sequence[Text], functions: Mapping[str, str]) -> Text:
        if op in _INFIX:
            return self._infix(*_INFIX[op], args)
        if op == "pow":
            return Text(f"{args[0].at(ATOM)} ** {args[1].at(ATOM)}", POWER)
        if op in ("real", "imag"):
            return Text(f"{args[0].at(ATOM)}.{op}")
        if op == "complex":
            return self._typed(dtype, f"complex({args[0].text}, {args[1].text})")
        if op in ("rsqrt", "logistic", "reciprocal"):
            one = self._constant(1, dtype).text
            divisor = {"rsqrt": f"{functions['sqrt']}({args[0].text})", "reciprocal": args[0].at(UNARY),
                       "logistic": f"({one} + {functions['exp']}(-{args[0].at(UNARY)}))"}[op]
            return Text(f"{one} / {divisor}", PRODUCT)
        texts = ", ".join(arg.text for arg in args)
        if op in functions:
            return Text(f"{functions[op]}({texts})")
        if op in _MATH:
            return self._typed(dtype, f"math.{op}({texts})")
        kind = "special_" if op in SPECIAL else "complex_" if dtypes.kind_of(dtype) == "c" else ""
        return self._typed(dtype, f"{self._helper(f'{kind}{op}')}({texts})")

    # -- integers -------------------------------------------------------------------------------------------
    def _integer(self, op: str, dtype: np.dtype, args: Sequence[Text], numbers: Sequence) -> Text:
        width, texts = 8 * dtype.itemsize, [arg.text for arg in args]
        if all(arg.is_whole for arg in args):  # no Python int wraps around
            args = [Text(f"np.int64({args[0].text})"), *args[1:]]
        if op in ("add", "sub", "mul"):
            return self._narrow(dtype, self._infix(*_INFIX[op], args))
        if op in _BITS:
            return self._narrow(dtype, self._infix(*_BITS[op], args))
        if op == "not":
            return self._narrow(dtype, Text(f"~{args[0].at(UNARY)}", UNARY))
        if op in ("max", "min"):
            return Text(f"{op}({', '.join(texts)})")
        if op in ("div", "rem"):
            name = {"div": "divide", "rem": "remainder"}[op] + "_unsigned" * (dtype.kind == "u")
            name = self._helper(name)
            return self._typed(dtype, f"{name}({args[0].text}, {texts[1]})")
        if op == "sign":
            if dtype.kind == "u":
                return self._typed(dtype, f"{args[0].at(BIT_OR)} != 0")
            return self._typed(dtype, f"{self._functions['f'].get(op) or self._helper(op)}({texts[0]})")
        if op in ("population_count", "clz"):
            name = self._helper({"population_count": "count_ones", "clz": "count_leading_zeros"}[op])
            return self._typed(dtype, f"{name}({texts[0]}, {width})")
        if op == "shift_right_logical" and dtype.kind == "i":
            args = [Text(f"np.uint{width}({text})") for text in texts]
        is_inside = numbers[1] is not None and 0 <= int(numbers[1]) < width
        sign = "<<" if op == "shift_left" else ">>"
        if is_inside:
            return self._typed(dtype, self._infix(sign, SHIFT, args).text)
        is_signed = op == "shift_right_arithmetic" and dtype.kind == "i"
        name = self._helper(
            "shift_right_signed" if is_signed else "shift_left" if sign == "<<" else "shift_right")
        return self._typed(dtype, f"{name}({args[0].text}, {args[1].text}, {width})")

    def _typed(self, dtype, text: str) -> Text:
        return Text(f"{type_name(dtype)}({text})")

    def _narrow(self, dtype, text: Text) -> Text:
        """Numba computes in 64 bits; this is the result in its own."""
        is_narrow = dtypes.kind_of(dtype) in "iu" and np.dtype(dtype).itemsize < 8
        return self._typed(dtype, text.text) if is_narrow else text

    # -- conversions -----------------------------------------------------------------------------------------
    def convert(self, x: Text, source, target) -> Text:
        if source == target:
            return x
        if dtypes.is_half(target):
            return self.from_word(Text(self.to_word(self.convert(x, source, dtypes.float32), target)), target)
        if dtypes.is_half(source) and target == dtypes.float32:
            return x
        from_kind, to_kind = dtypes.kind_of(source), dtypes.kind_of(target)
        if to_kind == "b":
            return Text(f"{x.at(BIT_OR)} != 0", COMPARISON)
        if from_kind == "c" and to_kind != "c":
            x, from_kind = Text(f"{x.at(ATOM)}.real"), "f"
        if from_kind == "f" and to_kind in "iu":
            limits = np.iinfo(target)
            name = self._helper("saturate" if target != dtypes.uint64 else "saturate_uint64")
            bounds = f", {limits.min}, {limits.max}" if target != dtypes.uint64 else ""
            return self._typed(target, f"{name}({x.text}{bounds})")
        is_short = to_kind in "iu" and target not in (dtypes.int64, dtypes.int32)
        text = (
            f"np.int64({x.text})" if x.is_whole and is_short else x.text
        )  # a Python int would not wrap around
        return self._typed(target, text)

    def from_word(self, x: Text, dtype) -> Text:
        """A 16-bit float in memory as a float32."""
        return Text(f"{self._helper(f'from_{np.dtype(dtype).name}')}({x.text})")

    def to_word(self, x: Text, dtype) -> str:
        return f"{self._helper(f'to_{np.dtype(dtype).name}')}({x.text})"

    def _bitcast(self, x: Text, source, target) -> Text:
        if dtypes.bool_ in (source, target):
            return self.convert(x, source, target)
        if dtypes.is_half(source):
            x, source = Text(self.to_word(x, source)), dtypes.uint16
        if dtypes.is_half(target):
            return self.from_word(self._typed(dtypes.uint16, x.text), target)
        return Text(f"{type_name(source)}({x.text}).view({type_name(target)})")
