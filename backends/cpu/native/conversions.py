"""Conversions of short floats, where the processor has no instruction for them.

In: the name of a library of functions that LLVM calls then. Out: its code: "short floats" is what each
processor can do, "conversions" is made of it where need be.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter


class _Writer(TextWriter):
    """Instructions on the bits of floats."""

    def op(self, name: str, x: Operand, y: Operand) -> str:
        return self.let(f"{name} i32 {x}, {y}")

    def cast(self, value: str, kind: str, to: str, how: str = "bitcast") -> str:
        return self.let(f"{how} {kind} {value} to {to}")

    def give_short(self, bits: str, kind: str) -> None:
        """Ends a function with a short float of these bits."""
        self.do(f"ret {kind} {self.cast(self.cast(bits, 'i32', 'i16', 'trunc'), 'i16', kind)}")


def render(library: str) -> str:
    """The text of the library "short floats" or "conversions"."""
    w = _Writer()
    if library == "short floats":
        _write_to_half(w)
        _write_to_bfloat(w)
        _write_from_half(w)
    else:
        _write_narrowing(w, "__truncdfhf2", "half")
        _write_narrowing(w, "__truncdfbf2", "bfloat")
    return w.text()


# To the nearest, ties to even. A half has 112 less in the exponent than a float and 13 bits less behind it.
# Below the normal ones, an addition of 0.5 rounds to their unit, 2**-24. NaNs are quiet, with the upper bits
# of what they were.
def _write_to_half(w: _Writer) -> None:
    with w.function("half @__truncsfhf2(float %x)", None):
        bits = w.cast("%x", "float", "i32")
        sign, size = w.op("and", w.op("lshr", bits, 16), 32768), w.op("and", bits, 2147483647)
        rebased = w.op("sub", w.intrinsic("umin", "i32", size, 1199570944), 939524096)
        odd = w.op("and", w.op("lshr", rebased, 13), 1)
        normal = w.op("lshr", w.op("add", w.op("add", rebased, 4095), odd), 13)
        shifted = w.let(f"fadd float {w.cast(size, 'i32', 'float')}, 5.000000e-01")
        subnormal = w.op("sub", w.cast(shifted, "float", "i32"), 1056964608)
        number = w.choose(w.compare("ult", size, 947912704, "i32"), subnormal, normal, "i32")
        quiet = w.op("or", w.op("and", w.op("lshr", size, 13), 1023), 32256)
        known = w.choose(w.compare("ugt", size, 2139095040, "i32"), quiet, number, "i32")
        w.give_short(w.op("or", known, sign), "half")


def _write_to_bfloat(w: _Writer) -> None:
    with w.function("bfloat @__truncsfbf2(float %x)", None):
        bits = w.cast("%x", "float", "i32")
        upper = w.op("lshr", bits, 16)
        rounded = w.op("add", w.op("add", bits, 32767), w.op("and", upper, 1))
        is_nan = w.let("fcmp uno float %x, 0.000000e+00")
        w.give_short(w.choose(is_nan, w.op("or", upper, 64), w.op("lshr", rounded, 16), "i32"), "bfloat")


def _write_from_half(w: _Writer) -> None:
    with w.function("float @__extendhfsf2(half %x)", None):
        bits = w.cast(w.cast("%x", "half", "i16"), "i16", "i32", "zext")
        sign, size = w.op("shl", w.op("and", bits, 32768), 16), w.op("and", bits, 32767)
        wide = w.op("shl", size, 13)
        scaled = w.let(f"fmul float {w.cast(wide, 'i32', 'float')}, 0x46F0000000000000")
        infinite = w.op("or", wide, 2139095040)
        is_nan, is_special = (w.compare(kind, size, 31744, "i32") for kind in ("ugt", "uge"))
        special = w.choose(is_nan, w.op("or", infinite, 4194304), infinite, "i32")
        known = w.choose(is_special, special, w.cast(scaled, "float", "i32"), "i32")
        w.do(f"ret float {w.cast(w.op('or', known, sign), 'i32', 'float')}")


# Doubles are rounded to float so that no information is lost for the second rounding: towards zero, with the
# last bit set if anything was cut ("round to odd").
def _write_narrowing(w: _Writer, symbol: str, kind: str) -> None:
    with w.function(f"{kind} @{symbol}(double %x)", None):
        near = w.cast("%x", "double", "float", "fptrunc")
        back, bits = w.cast(near, "float", "double", "fpext"), w.cast(near, "float", "i32")
        is_exact = w.let(f"fcmp ueq double {back}, %x")
        size, near_size = (w.intrinsic("fabs", "double", value) for value in ("%x", back))
        is_above = w.let(f"fcmp ogt double {near_size}, {size}")
        odd = w.op("or", w.op("sub", bits, w.cast(is_above, "i1", "i32", "zext")), 1)
        sticky = w.cast(w.choose(is_exact, bits, odd, "i32"), "i32", "float")
        w.do(f"ret {kind} {w.cast(sticky, 'float', kind, 'fptrunc')}")
