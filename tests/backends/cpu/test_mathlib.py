"""The mathematical functions of the CPU backend against exact values: accuracy, special values, scalars against vectors.

Each function is compiled once per format and number of lanes and run on samples that reach all its regimes; the
exact values come from mpmath with 200 bits. `pytest -m slow` sweeps every tenth float32 and millions of float64.
"""
import ctypes
import functools
import math

import llvmlite.ir as ir
import mpmath as mp
import numpy as np
import pytest

from jitcore.backends.cpu import mathlib
from jitcore.backends.cpu.native import compile_module

FORMATS = {np.float32: 32, np.float64: 16}
I64 = ir.IntType(64)
EXACT = ("floor", "ceil", "trunc", "round_half_even", "round_half_away", "sign", "copysign", "nextafter", "fmod")
APPROXIMATE = tuple(name for name in mathlib.names() if name not in EXACT)


# ---------------------------------------------------------------------------------------------- compile and run

def emit_loop(module, symbol, name, element, lanes):
    """void symbol(n, out, *inputs): out[i] = name(*inputs[i]) for n elements, a multiple of the lanes (0: scalar)."""
    value_type = ir.VectorType(element, lanes) if lanes else element
    arity = mathlib.FUNCTIONS[name].arity
    pointers = [element.as_pointer()] * (arity + 1)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, *pointers]), symbol)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    loop, done, entry = function.append_basic_block("loop"), function.append_basic_block("done"), b.block
    b.branch(loop)
    b.position_at_end(loop)
    i = b.phi(I64)
    i.add_incoming(I64(0), entry)
    places = [b.bitcast(b.gep(p, [i]), value_type.as_pointer()) for p in function.args[1:]]
    align = 4 if isinstance(element, ir.FloatType) else 8
    result = mathlib.emit(b, name, *(b.load(place, align=align) for place in places[1:]))
    b.store(result, places[0], align=align)
    following = b.add(i, I64(lanes or 1))
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, function.args[0]), loop, done)
    b.position_at_end(done)
    b.ret_void()


@functools.cache
def compile_function(name, dtype, lanes):
    """(library to keep alive, callable(n, out, *inputs) on addresses)."""
    module, symbol = ir.Module(name), f"run_{name}"
    emit_loop(module, symbol, name, ir.FloatType() if dtype is np.float32 else ir.DoubleType(), lanes)
    library = compile_module(module, name)
    signature = [ctypes.c_int64] + [ctypes.c_void_p] * (mathlib.FUNCTIONS[name].arity + 1)
    return library, ctypes.CFUNCTYPE(None, *signature)(library.address(symbol))


def run(name, *arrays, lanes=None):
    """The function of arrays of one dtype, with `lanes` lanes (the default fills two AVX-512 registers)."""
    dtype, size = arrays[0].dtype.type, arrays[0].size
    lanes = FORMATS[dtype] if lanes is None else lanes
    padded = [np.concatenate([a, np.ones(-size % 64, dtype)]) for a in arrays]
    out = np.empty_like(padded[0])
    compile_function(name, dtype, lanes)[1](out.size, out.ctypes.data, *(a.ctypes.data for a in padded))
    return out[:size]


# ------------------------------------------------------------------------------------------------- exact values

def exact_lgamma(x):
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def exact_pow(x, y):
    """x**y for finite nonzero x, real results only."""
    power = mp.exp(y * mp.log(abs(x)))
    return -power if x < 0 and y % 2 == 1 else power


TINY = mp.mpf(2) ** -2000
REFERENCE = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "log2": lambda x: mp.log(x, 2), "log10": lambda x: mp.log(x, 10), "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "erf": lambda x: mp.erf(x) if abs(x) < 40 else mp.sign(x),
    "erfc": lambda x: mp.erfc(x) if abs(x) < 40 else 1 - mp.sign(x) + (TINY if x > 0 else 0),
    "erf_inv": mp.erfinv, "lgamma": exact_lgamma, "digamma": lambda x: mp.psi(0, x),
    "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x), "atan2": mp.atan2, "hypot": mp.hypot, "pow": exact_pow,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
}  # fmt: skip
DOMAIN = {
    "log": (0, math.inf), "log2": (0, math.inf), "log10": (0, math.inf), "log1p": (-1, math.inf),
    "sqrt": (0, math.inf), "rsqrt": (0, math.inf), "asin": (-1, 1), "acos": (-1, 1), "acosh": (1, math.inf),
    "atanh": (-1, 1), "erf_inv": (-1, 1), "lgamma": (-1000, 1e300), "digamma": (-1000, 1e300),
    "sinh": (-1000, 1000), "cosh": (-1000, 1000), "exp": (-1000, 1000), "exp2": (-2000, 2000),
    "expm1": (-1000, 1000), "logistic": (-1000, 1000), "tanh": (-1000, 1000),
}  # fmt: skip
COSTLY = ("erf_inv", "lgamma", "digamma")


def draw_samples(name, dtype, count, seed=0):
    """Finite nonzero arguments inside the domain: bit patterns, log-spaced, uniform, near 1, near multiples of pi/2."""
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    signs = rng.choice([-1.0, 1.0], count)
    log_tiny, log_max = math.log(float(info.tiny)), math.log(float(info.max))
    parts = [
        rng.integers(0, 2 ** info.bits, count, dtype=unsigned).view(dtype),
        signs * np.exp(rng.uniform(log_tiny, log_max, count)), signs * np.exp(rng.uniform(-20, 20, count)),
        signs * float(info.smallest_subnormal) * rng.integers(1, 2 ** 20, count),
        1 + signs * np.exp(rng.uniform(math.log(float(info.eps)), 0, count)),
        np.round(np.exp(rng.uniform(0, 25, count))) * (math.pi / 2), rng.integers(1, 40, count) * (math.pi / 4),
        *(rng.uniform(-s, s, count) for s in (0.6, 1.0, 4.0, 30.0, 110.0, 750.0)),
    ]  # fmt: skip
    x = np.concatenate([part.astype(dtype) for part in parts])
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    return x[np.isfinite(x) & (x != 0) & (x > low) & (x < high)]


def draw_arguments(name, dtype, count):
    if mathlib.FUNCTIONS[name].arity == 1:
        return [draw_samples(name, dtype, count)]
    x, y = (draw_samples(name, dtype, count, seed) for seed in (1, 2))
    x, y = x[:min(x.size, y.size)], np.random.default_rng(3).permutation(y)[:min(x.size, y.size)]
    if name != "pow":
        return [x, y]
    rng = np.random.default_rng(4)
    x = np.concatenate([np.where(np.round(y) == y, x, abs(x)), np.exp(rng.uniform(-3, 3, 4 * count)).astype(dtype)])
    return [x, np.concatenate([y, rng.uniform(-60, 60, 4 * count).astype(dtype)])]


def measure_ulps(got, exact, dtype):
    """|got - exact| in units in the last place of the exact value; an overflow rightly rounded counts as exact."""
    info = np.finfo(dtype)
    if math.isinf(got):
        return 0.0 if abs(exact) >= mp.mpf(float(info.max)) * (1 - float(info.eps)) and got * exact > 0 else math.inf
    exponent = max(mp.frexp(exact)[1] - 1, int(info.minexp)) if exact else int(info.minexp)
    return float(abs(mp.mpf(got) - exact) * mp.mpf(2) ** (int(info.nmant) - exponent))


def find_worst(name, dtype, arguments):
    """(largest error in ulps, arguments there); errors within the function's `absolute` allowance do not count."""
    row, reference, worst = mathlib.FUNCTIONS[name], REFERENCE[name], (0.0, None)
    allowance = row.absolute * float(np.finfo(dtype).eps)
    with mp.workprec(200):
        for *xs, got in zip(*(a.tolist() for a in arguments), run(name, *arguments).tolist(), strict=True):
            if any(math.isnan(x) for x in xs):
                continue
            exact = reference(*map(mp.mpf, xs))
            if not abs(got - exact) <= allowance:
                worst = max(worst, (measure_ulps(got, exact, dtype), tuple(xs)), key=lambda item: item[0])
    return worst


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", APPROXIMATE)
def test_accuracy_is_what_the_table_says(name, dtype):
    arguments = draw_arguments(name, dtype, 40 if name in COSTLY else 200)
    row = mathlib.FUNCTIONS[name]
    worst, where = find_worst(name, dtype, arguments)
    assert worst <= (row.single if dtype is np.float32 else row.double), where


def test_table_promises_two_ulps_except_where_documented():
    for name, row in mathlib.FUNCTIONS.items():
        if name not in ("erf_inv", "lgamma", "digamma"):
            assert max(row.single, row.double) <= 2.0 and row.absolute == 0.0, name
        assert max(row.single, row.double) <= 4.0, name
