"""Conversions of short floats, where the processor has no instruction for them.

In: the name of a library of functions that LLVM calls then. Out: its code: "short floats" is what each
processor can do, "conversions" is made of it where need be.
"""

from __future__ import annotations

# To the nearest, ties to even. A half has 112 less in the exponent than a float and 13 bits less behind it.
# Below the normal ones, an addition of 0.5 rounds to their unit, 2**-24. NaNs are quiet, with the upper bits
# of what they were.
_SHORT = """
define half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %sign = and i32 %upper, 32768
  %size = and i32 %bits, 2147483647
  %least = call i32 @llvm.umin.i32(i32 %size, i32 1199570944)
  %rebased = sub i32 %least, 939524096
  %last = lshr i32 %rebased, 13
  %odd = and i32 %last, 1
  %up = add i32 %rebased, 4095
  %rounded = add i32 %up, %odd
  %normal = lshr i32 %rounded, 13
  %tiny = bitcast i32 %size to float
  %shifted = fadd float %tiny, 5.000000e-01
  %shifted.bits = bitcast float %shifted to i32
  %subnormal = sub i32 %shifted.bits, 1056964608
  %is_subnormal = icmp ult i32 %size, 947912704
  %number = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %payload = lshr i32 %size, 13
  %payload.10 = and i32 %payload, 1023
  %quiet = or i32 %payload.10, 32256
  %is_nan = icmp ugt i32 %size, 2139095040
  %known = select i1 %is_nan, i32 %quiet, i32 %number
  %signed = or i32 %known, %sign
  %short = trunc i32 %signed to i16
  %half = bitcast i16 %short to half
  ret half %half
}

define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %up = add i32 %bits, 32767
  %rounded = add i32 %up, %odd
  %number = lshr i32 %rounded, 16
  %quiet = or i32 %upper, 64
  %is_nan = fcmp uno float %x, 0.000000e+00
  %known = select i1 %is_nan, i32 %quiet, i32 %number
  %short = trunc i32 %known to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

define float @__extendhfsf2(half %x) {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %sign = and i32 %bits, 32768
  %sign.32 = shl i32 %sign, 16
  %size = and i32 %bits, 32767
  %wide = shl i32 %size, 13
  %small = bitcast i32 %wide to float
  %scaled = fmul float %small, 0x46F0000000000000
  %number = bitcast float %scaled to i32
  %infinite = or i32 %wide, 2139095040
  %quiet = or i32 %infinite, 4194304
  %is_nan = icmp ugt i32 %size, 31744
  %special = select i1 %is_nan, i32 %quiet, i32 %infinite
  %is_special = icmp uge i32 %size, 31744
  %known = select i1 %is_special, i32 %special, i32 %number
  %signed = or i32 %known, %sign.32
  %result = bitcast i32 %signed to float
  ret float %result
}

declare i32 @llvm.umin.i32(i32, i32)
"""

# Doubles are rounded to float so that no information is lost for the second rounding: towards zero, with the
# last bit set if anything was cut ("round to odd").
_NARROWING = """
define $FORMAT @$SYMBOL(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %is_exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %magnitude = call double @llvm.fabs.f64(double %x)
  %near_magnitude = call double @llvm.fabs.f64(double %back)
  %is_above = fcmp ogt double %near_magnitude, %magnitude
  %excess = zext i1 %is_above to i32
  %cut = sub i32 %bits, %excess
  %odd = or i32 %cut, 1
  %chosen = select i1 %is_exact, i32 %bits, i32 %odd
  %sticky = bitcast i32 %chosen to float
  %result = fptrunc float %sticky to $FORMAT
  ret $FORMAT %result
}
"""


def render(library: str) -> str:
    """The text of the library "short floats" or "conversions"."""
    if library == "short floats":
        return _SHORT
    formats = {"__truncdfhf2": "half", "__truncdfbf2": "bfloat"}
    texts = (_NARROWING.replace("$SYMBOL", symbol).replace("$FORMAT", formats[symbol]) for symbol in formats)
    return "declare double @llvm.fabs.f64(double)\n" + "".join(texts)
