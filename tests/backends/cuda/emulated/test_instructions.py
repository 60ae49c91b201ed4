"""Each instruction against NumPy, at the corners of its types."""

import ctypes
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.backends.cuda.emulated.programs import evaluate

F2, F4, F8, BF2 = np.float16, np.float32, np.float64, ml_dtypes.bfloat16
LIBM = ctypes.CDLL(None)
INF, NAN = np.inf, np.nan


def list_corners(name):
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        values = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 1 << 15, 0x12345678, 1 << 32,
                  (1 << 32) + 1, 0x123456789ABCDEF0]
        values += [-value for value in values] + [1 << bits - 1, (1 << bits - 1) - 1]
        return np.unique(np.array([value & (1 << bits) - 1 for value in values], f"u{dtype.itemsize}")).view(
            dtype
        )
    values = [
        0.0,
        -0.0,
        0.5,
        1.0,
        1.5,
        2.5,
        -1.0,
        -3.75,
        1e-3,
        127.5,
        255.9,
        300.0,
        6e4,
        7e4,
        INF,
        -INF,
        NAN,
        1 / 3,
    ]
    values += [
        1e-40,
        -1e-40,
        1e10,
        -1e10,
        3e38,
        2147483648.0,
        2147483520.0,
        -2147483648.0,
        1e19,
        -1e19,
        9.3e18,
        4294967296.0,
    ]
    with np.errstate(over="ignore"):
        return np.array(values, dtype)


def cross(*names):
    """All combinations of corners, as flat arrays."""
    corners = [list_corners(name) for name in names]
    return [array.ravel() for array in np.meshgrid(*corners, indexing="ij")]


def assert_equal_bits(got, want):
    """Equal in all bits, but for those of a NaN."""
    want = np.asarray(want).astype(got.dtype)
    words = f"u{got.dtype.itemsize}"
    same = got.view(words) == want.view(words)
    if got.dtype.kind not in "iub":
        same |= np.isnan(got.astype(F8)) & np.isnan(want.astype(F8))
    assert same.all(), [(place, got[place], want[place]) for place in np.flatnonzero(~same)[:5]]


def each(function):
    """A function of Python's integers for arrays."""
    return lambda *arrays: [function(*map(int, row)) for row in zip(*arrays)]


def masked(bits, function):
    return each(lambda *values: function(*values) & (1 << bits) - 1)


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def divide(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


def extract_field(bits, is_signed):
    def extract(a, start, length):
        start, length = start & 255, length & 255
        field = (a >> start if is_signed else (a & (1 << bits) - 1) >> start) & (1 << length) - 1
        if is_signed and length:
            field = signed(field, length)
        return field

    return masked(bits, extract)


def insert_field(bits):
    def insert(a, b, start):
        mask = ((1 << 7) - 1) << (start & 255)
        return b & ~mask | a << (start & 255) & mask

    return masked(bits, insert)


def permute(a, b, selector):
    both, out = a & 0xFFFFFFFF | (b & 0xFFFFFFFF) << 32, 0
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = both >> 8 * (nibble & 7) & 255
        byte = (255 if byte & 128 else 0) if nibble & 8 else byte
        out |= byte << 8 * place
    return out


def dot_bytes(a, b, c):
    return c + sum(signed(a >> 8 * k, 8) * signed(b >> 8 * k, 8) for k in range(4))


def shift(bits, kind, is_signed=False):
    def move(a, n):
        n &= 0xFFFFFFFF
        if kind == "shl":
            return a << n if n < bits else 0
        return a >> min(n, bits) if is_signed else (a & (1 << bits) - 1) >> min(n, bits)

    return masked(bits, move)


def funnel(is_left, is_clamped):
    def move(a, b, n):
        n &= 0xFFFFFFFF
        n = min(n, 32) if is_clamped else n & 31
        both = a & 0xFFFFFFFF | (b & 0xFFFFFFFF) << 32
        return both << n >> 32 if is_left else both >> n

    return masked(32, move)


def high(bits):
    return masked(bits, lambda a, b: a * b >> bits)


_INTEGERS = [
    ("add.s32 d, a, b;", "i4", "i4 i4", lambda a, b: a + b),
    ("add.u64 d, a, b;", "u8", "u8 u8", lambda a, b: a + b),
    ("sub.s16 d, a, b;", "i2", "i2 i2", lambda a, b: a - b),
    ("sub.s64 d, a, -7;", "i8", "i8", lambda a: a + 7),
    ("mul.lo.s32 d, a, b;", "i4", "i4 i4", lambda a, b: a * b),
    ("mul.lo.u64 d, a, b;", "u8", "u8 u8", lambda a, b: a * b),
    ("mul.hi.s32 d, a, b;", "u4", "i4 i4", high(32)),
    ("mul.hi.u32 d, a, b;", "u4", "u4 u4", high(32)),
    ("mul.hi.s64 d, a, b;", "u8", "i8 i8", high(64)),
    ("mul.hi.u64 d, a, b;", "u8", "u8 u8", high(64)),
    ("mul.wide.s32 d, a, b;", "i8", "i4 i4", lambda a, b: a.astype("i8") * b),
    ("mul.wide.u16 d, a, b;", "u4", "u2 u2", lambda a, b: a.astype("u4") * b),
    ("mad.lo.s32 d, a, b, a;", "i4", "i4 i4", lambda a, b: a * b + a),
    ("mad.hi.u32 d, a, b, b;", "u4", "u4 u4", masked(32, lambda a, b: (a * b >> 32) + b)),
    ("mov.u64 w, 77; mad.wide.s32 d, a, b, w;", "i8", "i4 i4", lambda a, b: a.astype("i8") * b + 77),
    ("mul24.lo.s32 d, a, b;", "u4", "i4 i4", masked(32, lambda a, b: signed(a, 24) * signed(b, 24))),
    ("mul24.lo.u32 d, a, b;", "u4", "u4 u4", masked(32, lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF))),
    ("sad.s32 d, a, b, a;", "u4", "i4 i4", masked(32, lambda a, b: abs(a - b) + a)),
    ("sad.u32 d, a, b, a;", "u4", "u4 u4", masked(32, lambda a, b: abs(a - b) + a)),
    ("div.s32 d, a, b;", "u4", "i4 i4", masked(32, divide)),
    ("div.u64 d, a, b;", "u8", "u8 u8", masked(64, divide)),
    ("div.s64 d, a, b;", "u8", "i8 i8", masked(64, divide)),
    ("rem.s32 d, a, b;", "u4", "i4 i4", masked(32, lambda a, b: a - b * divide(a, b) if b else -1)),
    ("rem.u16 d, a, b;", "u2", "u2 u2", masked(16, lambda a, b: a % b if b else -1)),
    ("min.s32 d, a, b;", "i4", "i4 i4", np.minimum),
    ("max.u64 d, a, b;", "u8", "u8 u8", np.maximum),
    ("min.s16x2 d, a, b;", "i4", "i4 i4", lambda a, b: np.minimum(a.view("i2"), b.view("i2")).view("i4")),
    ("add.u16x2 d, a, b;", "i4", "i4 i4", lambda a, b: (a.view("i2") + b.view("i2")).view("i4")),
    ("neg.s32 d, a;", "i4", "i4", np.negative),
    ("abs.s64 d, a;", "i8", "i8", np.abs),
    ("and.b32 d, a, b;", "i4", "i4 i4", np.bitwise_and),
    ("or.b64 d, a, b;", "i8", "i8 i8", np.bitwise_or),
    ("xor.b16 d, a, b;", "i2", "i2 i2", np.bitwise_xor),
    ("not.b64 d, a;", "i8", "i8", np.invert),
    ("cnot.b32 d, a;", "i4", "i4", lambda a: a == 0),
    ("shl.b32 d, a, b;", "u4", "u4 u4", shift(32, "shl")),
    ("shl.b64 d, a, b;", "u8", "u8 u4", shift(64, "shl")),
    ("shl.b16 d, a, b;", "u2", "u2 u4", shift(16, "shl")),
    ("shr.u64 d, a, b;", "u8", "u8 u4", shift(64, "shr")),
    ("shr.s64 d, a, b;", "u8", "i8 u4", shift(64, "shr", True)),
    ("shr.s32 d, a, b;", "u4", "i4 u4", shift(32, "shr", True)),
    ("shr.s16 d, a, 40;", "i2", "i2", lambda a: a >> 15),
    ("shl.b64 d, a, 33;", "u8", "u8", lambda a: a << np.uint64(33)),
    # The amount has 32 bits: its low half counts when a compiler takes it from a register of 64.
    ("cvt.u32.u64 x, b; shl.b64 d, a, x;", "u8", "u8 u8", masked(64, lambda a, n: a << (n & 0xFFFFFFFF) if n & 0xFFFFFFFF < 64 else 0)),
    ("mov.u32 x, 5; shf.l.wrap.b32 d, a, x, b;", "u4", "u4 u4", lambda a, n: funnel(True, False)(a, np.full_like(a, 5), n)),
    ("mov.u32 x, 5; shf.r.wrap.b32 d, a, x, b;", "u4", "u4 u4", lambda a, n: funnel(False, False)(a, np.full_like(a, 5), n)),
    ("mov.u32 x, 5; shf.l.clamp.b32 d, a, x, b;", "u4", "u4 u4", lambda a, n: funnel(True, True)(a, np.full_like(a, 5), n)),
    ("mov.u32 x, 5; shf.r.clamp.b32 d, a, x, b;", "u4", "u4 u4", lambda a, n: funnel(False, True)(a, np.full_like(a, 5), n)),
    ("bfe.u32 d, a, b, c;", "u4", "u4 u4 u4", extract_field(32, False)),
    ("bfe.s32 d, a, b, c;", "u4", "i4 u4 u4", extract_field(32, True)),
    ("bfe.s64 d, a, b, 9;", "u8", "i8 u4", lambda a, b: extract_field(64, True)(a, b, np.full_like(b, 9))),
    ("bfi.b32 d, a, b, c, 7;", "u4", "u4 u4 u4", insert_field(32)),
    ("bfi.b64 d, a, b, c, 7;", "u8", "u8 u8 u4", insert_field(64)),
    ("bfind.u32 d, a;", "i4", "u4", each(lambda a: a.bit_length() - 1)),
    ("bfind.s64 d, a;", "i4", "i8", each(lambda a: (a if a >= 0 else ~a).bit_length() - 1)),
    ("brev.b32 d, a;", "u4", "u4", each(lambda a: int(f"{a:032b}"[::-1], 2))),
    ("brev.b64 d, a;", "u8", "u8", each(lambda a: int(f"{a:064b}"[::-1], 2))),
    ("popc.b64 d, a;", "u4", "u8", each(lambda a: a.bit_count())),
    ("clz.b64 d, a;", "u4", "u8", each(lambda a: 64 - a.bit_length())),
    ("clz.b32 d, a;", "u4", "u4", each(lambda a: 32 - a.bit_length())),
    ("prmt.b32 d, a, b, c;", "u4", "u4 u4 u4", each(permute)),
    ("prmt.b32 d, a, b, 0x1F6A;", "u4", "u4 u4", each(lambda a, b: permute(a, b, 0x1F6A))),
    ("lop3.b32 d, a, b, c, 0x96;", "u4", "u4 u4 u4", lambda a, b, c: a ^ b ^ c),
    ("lop3.b32 d, a, b, c, 0x1E;", "u4", "u4 u4 u4", lambda a, b, c: a ^ (b | c)),
    ("dp4a.s32.s32 d, a, b, a;", "u4", "i4 i4", masked(32, lambda a, b: dot_bytes(a, b, a))),
    ("setp.lt.s32 p, a, b; selp.b32 d, a, b, p;", "i4", "i4 i4", np.minimum),
    ("setp.hi.u64 p, a, b; selp.b32 d, 1, 0, p;", "i4", "u8 u8", np.greater),
    ("setp.ne.s16 p|q, a, b; selp.b32 d, 2, 3, q;", "i4", "i2 i2", lambda a, b: np.where(a == b, 2, 3)),
    ("setp.ge.s32 q, a, 0; setp.lt.or.s32 p, b, a, !q; selp.b32 d, 1, 0, p;", "i4", "i4 i4", lambda a, b: (b < a) | (a < 0)),
    ("setp.ge.s64 q, a, 0; setp.le.and.s64 p, b, a, q; selp.b32 d, 1, 0, p;", "i4", "i8 i8", lambda a, b: (b <= a) & (a >= 0)),
    ("setp.eq.u32 p, a, b; @p bra L; mov.u32 d, 4; bra M; L: mov.u32 d, 9; M: add.u32 d, d, 1;", "i4", "u4 u4", lambda a, b: np.where(a == b, 10, 5)),
    ("mov.u32 d, 1; setp.lt.u32 p, a, b; @!p mov.u32 d, 2;", "i4", "u4 u4", lambda a, b: np.where(a < b, 1, 2)),
    ("mov.b64 {x, y}, a; mov.b64 d, {y, x};", "u8", "u8", each(lambda a: a >> 32 | (a & 0xFFFFFFFF) << 32)),
    ("add.cc.u32 x, a, b; addc.u32 d, 0, 0;", "u4", "u4 u4", each(lambda a, b: a + b >> 32)),
    ("sub.cc.u32 x, a, b; subc.u32 d, 0, 0;", "u4", "u4 u4", masked(32, lambda a, b: -(a < b))),
    ("mad.lo.cc.u32 x, a, b, c; madc.hi.u32 d, a, b, 0;", "u4", "u4 u4 u4", masked(32, lambda a, b, c: (a * b + c) >> 32)),
]


@pytest.mark.parametrize("text, result, operands, expected", _INTEGERS, ids=[row[0] for row in _INTEGERS])
def test_integers(text, result, operands, expected):
    arrays = cross(*operands.split())
    with np.errstate(all="ignore"):
        want = np.array(expected(*arrays), dtype=np.dtype(result))
    assert_equal_bits(evaluate(text, result, *arrays), want)


def call_libm(name, dtype, *arrays):
    function = getattr(LIBM, name)
    kind = ctypes.c_float if dtype == F4 else ctypes.c_double
    function.restype, function.argtypes = kind, [kind] * len(arrays)
    return np.array([function(*row) for row in zip(*arrays)], dtype)


def choose_number(function):
    """The other operand where one is a NaN; -0 is below 0."""

    def choose(a, b):
        swap = (a == 0) & (b == 0)
        sign = np.signbit(a) & np.signbit(b) if function is np.fmax else np.signbit(a) | np.signbit(b)
        return np.where(swap, np.where(sign, -0.0, 0.0).astype(a.dtype), function(a, b))

    return choose


def narrow(dtype):
    """An operation of 16 bits: computed with more, rounded once."""
    return lambda function: lambda *arrays: function(*(array.astype(F8) for array in arrays)).astype(dtype)


HALF = narrow(F2)


def brain(function):
    """As `narrow`, for bfloat16, to which ml_dtypes rounds float64 twice."""

    def compute(*arrays):
        wide = np.asarray(function(*(array.astype(F8) for array in arrays)))
        words = wide.view("u8")
        nearest = (words + np.uint64((1 << 44) - 1) + (words >> np.uint64(45) & np.uint64(1))) & ~np.uint64(
            (1 << 45) - 1
        )
        is_normal = np.isfinite(wide) & (np.abs(wide) >= np.finfo(F4).tiny)
        return np.where(is_normal, nearest.view(F8), wide).astype(BF2)

    return compute


def flush(a):
    return np.where(np.abs(a) < np.finfo(F4).tiny, np.copysign(F4(0), a), a)


_FLOATS = [
    ("add.f32 d, a, b;", "f4", "f4 f4", np.add),
    ("sub.rn.f64 d, a, b;", "f8", "f8 f8", np.subtract),
    ("mul.rn.f32 d, a, b;", "f4", "f4 f4", np.multiply),
    ("div.rn.f32 d, a, b;", "f4", "f4 f4", np.divide),
    ("div.rn.f64 d, a, b;", "f8", "f8 f8", np.divide),
    ("fma.rn.f32 d, a, b, c;", "f4", "f4 f4 f4", lambda *abc: call_libm("fmaf", F4, *abc)),
    ("fma.rn.f64 d, a, b, c;", "f8", "f8 f8 f8", lambda *abc: call_libm("fma", F8, *abc)),
    ("mul.f32 d, a, b; add.f32 d, d, c;", "f4", "f4 f4 f4", lambda a, b, c: a * b + c),
    ("add.ftz.f32 d, a, b;", "f4", "f4 f4", lambda a, b: flush(flush(a) + flush(b))),
    ("mul.sat.f32 d, a, b;", "f4", "f4 f4", lambda a, b: np.nan_to_num(np.clip(a * b, 0, 1)) + 0),
    ("neg.f32 d, a;", "f4", "f4", np.negative),
    ("abs.f64 d, a;", "f8", "f8", np.abs),
    ("sqrt.rn.f32 d, a;", "f4", "f4", np.sqrt),
    ("sqrt.rn.f64 d, a;", "f8", "f8", np.sqrt),
    ("rcp.rn.f32 d, a;", "f4", "f4", lambda a: F4(1) / a),
    ("min.f32 d, a, b;", "f4", "f4 f4", choose_number(np.fmin)),
    ("max.f64 d, a, b;", "f8", "f8 f8", choose_number(np.fmax)),
    ("min.NaN.f32 d, a, b;", "f4", "f4 f4", lambda a, b: np.where(np.isnan(a + b * 0) | np.isnan(a) | np.isnan(b), np.where(np.isnan(a) | np.isnan(b), F4(NAN), choose_number(np.fmin)(a, b)), choose_number(np.fmin)(a, b))),
    ("setp.lt.f64 p, a, b; selp.f64 d, a, b, p;", "f8", "f8 f8", lambda a, b: np.where(a < b, a, b)),
    ("copysign.f32 d, a, b;", "f4", "f4 f4", lambda a, b: np.copysign(b, a)),
    ("setp.lt.f32 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f4 f4", np.less),
    ("setp.neu.f64 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f8 f8", np.not_equal),
    ("setp.ne.f32 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f4 f4", lambda a, b: (a < b) | (a > b)),
    ("setp.geu.f32 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f4 f4", lambda a, b: ~(a < b)),
    ("setp.nan.f32 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f4 f4", lambda a, b: np.isnan(a) | np.isnan(b)),
    ("testp.finite.f32 p, a; selp.b32 d, 1, 0, p;", "i4", "f4", np.isfinite),
    ("testp.subnormal.f32 p, a; selp.b32 d, 1, 0, p;", "i4", "f4", lambda a: (a != 0) & (np.abs(a) < np.finfo(F4).tiny)),
    ("add.f16 d, a, b;", "f2", "f2 f2", HALF(np.add)),
    ("mul.rn.f16 d, a, b;", "f2", "f2 f2", HALF(np.multiply)),
    ("fma.rn.f16 d, a, b, c;", "f2", "f2 f2 f2", HALF(lambda a, b, c: a * b + c)),
    ("neg.f16 d, a;", "f2", "f2", np.negative),
    ("max.f16 d, a, b;", "f2", "f2 f2", choose_number(np.fmax)),
    ("setp.gt.f16 p, a, b; selp.b32 d, 1, 0, p;", "i4", "f2 f2", np.greater),
    ("add.rn.bf16 d, a, b;", "bfloat16", "bfloat16 bfloat16", brain(np.add)),
    ("mul.rn.bf16 d, a, b;", "bfloat16", "bfloat16 bfloat16", brain(np.multiply)),
    ("fma.rn.bf16 d, a, b, c;", "bfloat16", "bfloat16 bfloat16 bfloat16", brain(lambda a, b, c: a * b + c)),
    ("cvt.f32.f16 d, a;", "f4", "f2", lambda a: a.astype(F4)),
    ("cvt.f32.bf16 d, a;", "f4", "bfloat16", lambda a: a.astype(F4)),
    ("cvt.rn.f16.f32 d, a;", "f2", "f4", lambda a: a.astype(F2)),
    ("cvt.rn.bf16.f32 d, a;", "bfloat16", "f4", lambda a: a.astype(BF2)),
    ("cvt.rn.f16.f64 d, a;", "f2", "f8", lambda a: a.astype(F2)),
    ("cvt.rn.f32.f64 d, a;", "f4", "f8", lambda a: a.astype(F4)),
    ("cvt.f64.f32 d, a;", "f8", "f4", lambda a: a.astype(F8)),
    ("cvt.rni.f32.f32 d, a;", "f4", "f4", np.rint),
    ("cvt.rmi.f64.f64 d, a;", "f8", "f8", np.floor),
    ("cvt.rpi.f32.f32 d, a;", "f4", "f4", np.ceil),
    ("cvt.rzi.f32.f32 d, a;", "f4", "f4", np.trunc),
    ("cvt.sat.f32.f32 d, a;", "f4", "f4", lambda a: np.nan_to_num(np.clip(a, 0, 1)) + 0),
    ("cvt.rn.f32.s32 d, a;", "f4", "i4", lambda a: a.astype(F4)),
    ("cvt.rn.f32.u64 d, a;", "f4", "u8", lambda a: a.astype(F4)),
    ("cvt.rn.f64.s64 d, a;", "f8", "i8", lambda a: a.astype(F8)),
    ("cvt.rn.f16.s32 d, a;", "f2", "i4", lambda a: a.astype(F2)),
    ("cvt.rz.f32.f64 d, a;", "f4", "f8", lambda a: toward_zero(a)),
    ("cvt.s64.s32 d, a;", "i8", "i4", lambda a: a.astype("i8")),
    ("cvt.u64.u32 d, a;", "u8", "u4", lambda a: a.astype("u8")),
    ("cvt.s32.s8 d, a;", "i4", "i4", lambda a: a.astype("i1").astype("i4")),
    ("cvt.u16.u64 d, a;", "u2", "u8", lambda a: a.astype("u2")),
    ("cvt.sat.u8.s32 d, a;", "u4", "i4", lambda a: np.clip(a, 0, 255)),
    ("cvt.sat.s16.u32 d, a;", "u4", "u4", lambda a: np.minimum(a, 32767)),
]


def toward_zero(a):
    near = a.astype(F4)
    beyond = np.abs(near.astype(F8)) > np.abs(a)
    return np.where(beyond, np.nextafter(near, F4(0)), near)


@pytest.mark.parametrize("text, result, operands, expected", _FLOATS, ids=[row[0] for row in _FLOATS])
def test_floats(text, result, operands, expected):
    arrays = cross(*operands.split())
    with np.errstate(all="ignore"):
        want = np.asarray(expected(*arrays)).astype(result)
    assert_equal_bits(evaluate(text, result, *arrays), want)


@pytest.mark.parametrize("source, dtype", [("f32", "f4"), ("f64", "f8"), ("f16", "f2")])
@pytest.mark.parametrize("target", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
def test_floats_to_integers(source, dtype, target):
    """They saturate; NaN is 0, but the sign bit alone from f64 and to 64 bits."""
    bits, values = int(target[1:]), list_corners(dtype)
    low, top = (-(1 << bits - 1), (1 << bits - 1) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
    nan = 1 << bits - 1 if source == "f64" or bits == 64 else 0
    want = [nan if np.isnan(v) else top if v > top else low if v < low else int(v) for v in values.astype(F8)]
    want = np.array([value & (1 << 64) - 1 for value in want], "u8")
    register = "u8" if bits == 64 else "u4"
    got = evaluate(f"cvt.rzi.{target}.{source} d, a;", register, values)
    mask = np.array((1 << bits) - 1, "u8")
    assert_equal_bits(got & mask.astype(register), (want & mask).astype(register))


def round_exactly(exact, mode, dtype):
    """A fraction as the next float in a direction."""
    near = dtype(exact)
    toward = {"rm": -INF, "rp": INF, "rz": -INF if exact > 0 else INF}[mode]
    is_beyond = Fraction(float(near)) < exact if toward > 0 else Fraction(float(near)) > exact
    return np.nextafter(near, dtype(toward)) if is_beyond else near


@pytest.mark.parametrize(
    "opcode, function", [("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("fma", None)]
)
@pytest.mark.parametrize("mode", ["rm", "rp", "rz"])
@pytest.mark.parametrize("dtype", [F4, F8])
def test_directed_rounding(opcode, function, mode, dtype):
    a, b = cross(dtype, dtype)
    if opcode == "fma":
        function = lambda a, b, c=Fraction(float(dtype(1 / 3))): a * b + c  # noqa: E731
    is_usual = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0) & (np.abs(a) < 1e18) & (np.abs(b) < 1e18)
    a, b = a[is_usual], b[is_usual]
    exact = [function(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a, b)]
    keeps = [abs(each) > 1e-30 for each in exact]
    a, b, exact = a[keeps], b[keeps], [each for each, keep in zip(exact, keeps) if keep]
    third = ", c" if opcode == "fma" else ""
    operands = [a, b, np.full_like(a, 1 / 3)] if third else [a, b]
    got = evaluate(
        f"{opcode}.{mode}.{'f32' if dtype == F4 else 'f64'} d, a, b{third};", np.dtype(dtype), *operands
    )
    assert_equal_bits(got, np.array([round_exactly(each, mode, dtype) for each in exact]))


@pytest.mark.parametrize("text, function", [("ex2.approx", np.exp2), ("lg2.approx", np.log2), ("sin.approx", np.sin),
                                            ("cos.approx", np.cos), ("tanh.approx", np.tanh),
                                            ("rsqrt.approx", lambda a: 1 / np.sqrt(a))])
def test_approximations_are_accurate(text, function):
    values = np.linspace(0.01, 9, 200, dtype=F4)
    np.testing.assert_allclose(evaluate(f"{text}.f32 d, a;", "f4", values), function(values.astype(F8)), 1e-6)


@pytest.mark.parametrize("kind, dtype", [("f16x2", F2), ("bf16x2", BF2)])
def test_packed_halves(kind, dtype):
    a, b = (np.array(pair, dtype).view("u4") for pair in ([1.5, -2, 0.1, 9], [0.25, 3, 1 / 3, 7]))
    with np.errstate(all="ignore"):
        for opcode, function in (("add.rn", np.add), ("mul.rn", np.multiply), ("max", np.maximum)):
            want = function(a.view(dtype).astype(F4), b.view(dtype).astype(F4)).astype(dtype)
            np.testing.assert_array_equal(evaluate(f"{opcode}.{kind} d, a, b;", "u4", a, b).view(dtype), want)
        got = evaluate(f"setp.lt.{kind} p|q, a, b; selp.b32 x, 1, 0, p; selp.b32 d, 2, x, q;", "u4", a, b)
    assert got.tolist() == [2, 1]
    x, y = np.array([1 / 3, 7e4, -5], F4), np.array([2.5, 1e-3, 0], F4)
    got = evaluate(f"cvt.rn.{kind}.f32 d, a, b;", "u4", x, y).view(dtype).reshape(-1, 2)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, np.stack([y, x], 1).astype(dtype))
