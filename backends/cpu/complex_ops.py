"""Complex numbers as LLVM vectors of two: (real, imaginary). Kernels that hold them run one element at a
time."""

from __future__ import annotations

from llvmlite import ir

from jitcore.backends.cpu import mathlib
from jitcore.backends.cpu.lanes import I32, call_intrinsic


def make(b: ir.IRBuilder, re: ir.Value, im: ir.Value) -> ir.Value:
    pair = ir.Constant(ir.VectorType(re.type, 2), ir.Undefined)
    return b.insert_element(b.insert_element(pair, re, I32(0)), im, I32(1))


def real(b, z):
    return b.extract_element(z, I32(0))


def imag(b, z):
    return b.extract_element(z, I32(1))


def _mul(b, x, y):
    a, c, d, e = real(b, x), imag(b, x), real(b, y), imag(b, y)
    return make(b, b.fsub(b.fmul(a, d), b.fmul(c, e)), b.fadd(b.fmul(a, e), b.fmul(c, d)))


def _div(b, x, y):
    """Smith's method: no overflow for large divisors."""
    a, c, d, e = real(b, x), imag(b, x), real(b, y), imag(b, y)
    swap = b.fcmp_ordered("<", _fabs(b, d), _fabs(b, e))
    big, small = b.select(swap, e, d), b.select(swap, d, e)
    ratio = b.fdiv(small, big)
    scale = b.fadd(big, b.fmul(small, ratio))
    one, two = b.select(swap, c, a), b.select(swap, b.fneg(a), c)
    re = b.fdiv(b.fadd(one, b.fmul(b.select(swap, a, c), ratio)), scale)
    im = b.fdiv(b.fsub(two, b.fmul(b.select(swap, b.fneg(c), a), ratio)), scale)
    return make(b, re, im)


def _fabs(b, x):
    return call_intrinsic(b, "fabs", [x])


def _abs(b, z):
    return mathlib.emit(b, "hypot", real(b, z), imag(b, z))


def _exp(b, z):
    size, angle = mathlib.emit(b, "exp", real(b, z)), imag(b, z)
    return make(b, b.fmul(size, mathlib.emit(b, "cos", angle)), b.fmul(size, mathlib.emit(b, "sin", angle)))


def _both(method: str, join: str):
    def emit(b, x, y):
        compare = b.fcmp_ordered if method == "==" else b.fcmp_unordered
        return getattr(b, join)(
            compare(method, real(b, x), real(b, y)), compare(method, imag(b, x), imag(b, y))
        )

    return emit


OPERATIONS = {
    "complex": make, "real": real, "imag": imag, "mul": _mul, "div": _div, "abs": _abs, "exp": _exp,
    "add": lambda b, x, y: b.fadd(x, y), "sub": lambda b, x, y: b.fsub(x, y), "neg": lambda b, z: b.fneg(z),
    "conj": lambda b, z: make(b, real(b, z), b.fneg(imag(b, z))), "square": lambda b, z: _mul(b, z, z),
    "eq": _both("==", "and_"), "ne": _both("!=", "or_"),
}  # fmt: skip
