"""The mathematical functions of the CPU backend against exact values: accuracy, special values, scalars
against vectors.

Each function is compiled once per format and number of lanes and run on samples that reach all its
regimes; the exact values come from mpmath with 200 bits. `test_mathlib_sweeps` goes on from there.
"""
import ctypes
import functools
import math

import llvmlite.ir as ir
import mpmath as mp
import numpy as np
import pytest
import scipy.special

from jitcore.backends.cpu.machine.host import cpu_features
from jitcore.backends.cpu.native.libraries import compile_module
from jitcore.backends.llvm import mathlib
from jitcore.backends.llvm.function import TargetModule
from jitcore.backends.llvm.mathlib import avx512, tables
from jitcore.backends.llvm.mathlib.emitter import emit_call
from jitcore.backends.llvm.mathlib.pieces import PIECES
from jitcore.core.primitive import registry
from tests.backends.llvm.exact_functions import COSTLY, REFERENCE, draw_arguments, draw_samples
from tests.backends.llvm.fitting import fit_pieces, fit_tables

FORMATS = {np.float32: 32, np.float64: 16}
I64 = ir.IntType(64)
EXACT = ("floor", "ceil", "trunc", "round_half_even", "round_half_away", "sign", "copysign", "nextafter",
         "fmod")
APPROXIMATE = tuple(name for name in mathlib.names() if name not in EXACT)


# -- compile and run -----------------------------------------------------------------------------------------

def emit_loop(module, symbol, name, element, lanes):
    """void symbol(n, out, *inputs): out[i] = name(*inputs[i]) for n elements, a multiple of the lanes (0:
    scalar).
    """
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
    result = emit_call(b, mathlib.FUNCTIONS[name].formula, *(b.load(place, align=align) for place in places[1:]))
    b.store(result, places[0], align=align)
    following = b.add(i, I64(lanes or 1))
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, function.args[0]), loop, done)
    b.position_at_end(done)
    b.ret_void()


@functools.cache
def compile_function(name, dtype, lanes, portable=False):
    """(library to keep alive, callable(n, out, *inputs) on addresses). portable: without AVX-512's forms."""
    module, symbol = TargetModule(name, () if portable else cpu_features()), f"run_{name}"
    emit_loop(module, symbol, name, ir.FloatType() if dtype is np.float32 else ir.DoubleType(), lanes)
    library = compile_module(module, name)
    signature = [ctypes.c_int64] + [ctypes.c_void_p] * (mathlib.FUNCTIONS[name].arity + 1)
    return library, ctypes.CFUNCTYPE(None, *signature)(library.address(symbol))


def run(name, *arrays, lanes=None, portable=False):
    """The function of arrays of one dtype, with `lanes` lanes (the default fills two AVX-512 registers)."""
    dtype, size = arrays[0].dtype.type, arrays[0].size
    lanes = FORMATS[dtype] if lanes is None else lanes
    padded = [np.concatenate([a, np.ones(64 + -size % 64, dtype)]) for a in arrays]
    out = np.empty_like(padded[0])
    call = compile_function(name, dtype, lanes, portable)[1]
    call(out.size, out.ctypes.data, *(a.ctypes.data for a in padded))
    return out[:size]


# -- accuracy -----------------------------------------------------------------------------------------------

def measure_ulps(got, exact, dtype):
    """|got - exact| in units in the last place of the exact value; an overflow rightly rounded counts as
    exact.
    """
    info = np.finfo(dtype)
    if math.isinf(got):
        overflows = abs(exact) >= mp.mpf(float(info.max)) * (1 - float(info.eps))
        return 0.0 if overflows and got * exact > 0 else math.inf
    exponent = max(mp.frexp(exact)[1] - 1, int(info.minexp)) if exact else int(info.minexp)
    return float(abs(mp.mpf(got) - exact) * mp.mpf(2) ** (int(info.nmant) - exponent))


def find_worst(name, dtype, arguments, portable=False):
    """(largest error in ulps, arguments there); errors within the function's `absolute` allowance do not
    count.
    """
    row, reference, worst = mathlib.FUNCTIONS[name], REFERENCE[name], (0.0, None)
    allowance = row.absolute * float(np.finfo(dtype).eps)
    with mp.workprec(200):
        results = run(name, *arguments, portable=portable).tolist()
        for *xs, got in zip(*(a.tolist() for a in arguments), results, strict=True):
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


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", APPROXIMATE)
def test_accuracy_without_avx512(name, dtype):
    arguments = draw_arguments(name, dtype, 20 if name in COSTLY else 60)
    row = mathlib.FUNCTIONS[name]
    worst, where = find_worst(name, dtype, arguments, portable=True)
    assert worst <= (row.single if dtype is np.float32 else row.double), where


def test_table_promises_two_ulps_except_where_documented():
    for name, row in mathlib.FUNCTIONS.items():
        if name not in (*COSTLY, "logaddexp"):
            assert max(row.single, row.double) <= 2.0 and row.absolute == 0.0, name
        assert max(row.single, row.double) <= 4.0, name


# -- special values and exact functions ----------------------------------------------------------------------

def compute_rsqrt(x):
    return 1 / np.sqrt(x)


def round_away(x):
    return np.copysign(np.floor(abs(x)) + (abs(x) - np.floor(abs(x)) >= 0.5), x)


def compute_sign(x):
    """Spelled out, as the zero of either sign gives 0.0."""
    return np.where(x > 0, 1, np.where(x < 0, -1, np.where(x == 0, 0, x))).astype(x.dtype)


def lgamma_of_c99(v):
    """Python's lgamma, an infinity where that raises."""
    try:
        return math.lgamma(v)
    except (ValueError, OverflowError):
        return math.inf


PEER = {
    "logistic": scipy.special.expit, "rsqrt": compute_rsqrt,
    "shared_sqrt": np.sqrt, "multiplied_sqrt": np.sqrt, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
    "erf_inv": lambda x: np.copysign(scipy.special.erfinv(x), x),
    "bessel_i1e": lambda x: np.copysign(scipy.special.i1e(x), x),
    "lgamma": np.vectorize(lgamma_of_c99), "pow": np.power,
    "round_half_even": np.round, "round_half_away": round_away,
    "sign": compute_sign,
}


def list_special(dtype):
    """Zeros, infinities, NaN, units, halves, small and large integers, extremes and subnormals of both
    signs.
    """
    info = np.finfo(dtype)
    positive = [0.0, math.inf, 1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 1e6 + 1]
    positive += [2.0 ** (info.nmant + 1) - 1, 2.0 ** (info.nmant + 2)]
    extremes = [info.max, info.tiny, info.smallest_subnormal, np.nextafter(dtype(1), dtype(2)),
                np.nextafter(dtype(1), dtype(0)), np.nextafter(dtype(0.5), dtype(0))]
    values = np.array([*positive, *map(float, extremes)], dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


def call_peer(name, *arrays):
    """The result of NumPy or SciPy in the arrays' own dtype."""
    peer = PEER.get(name) or getattr(np, name, None) or registry[name].impl
    with np.errstate(all="ignore"):
        return peer(*arrays).astype(arrays[0].dtype)


def assert_same_kind(name, got, peer, arrays):
    """NaN, infinities and zeros (with their signs) agree bit for bit; other values agree roughly."""
    absolute = mathlib.FUNCTIONS[name].absolute
    eps, tiny = float(np.finfo(got.dtype).eps), float(np.finfo(got.dtype).tiny)
    for *xs, a, b in zip(*(x.tolist() for x in arrays), got.tolist(), peer.tolist(), strict=True):
        if math.isnan(b) or math.isinf(b) or b == 0:
            same = a == b and math.copysign(1, a) == math.copysign(1, b)
            assert math.isnan(a) if math.isnan(b) else same, (name, xs, a, b)
        else:
            assert abs(a - b) <= 1e3 * eps * abs(b) + (4 * tiny + absolute) * eps, (name, xs, a, b)


def drop_unlike_scipy(name, order, x):
    """Without orders of a million and more, where SciPy gives NaN for zero, and what is dropped of digamma."""
    kept = np.abs(order) < 1e6
    if name == "polygamma":
        kept &= (order != 0) | (x >= 0) | (x == np.round(x))
    return [order[kept], x[kept]]


@pytest.mark.parametrize("portable", (False, True))
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", mathlib.names())
def test_special_values(name, dtype, portable):
    special = list_special(dtype)
    if name == "digamma":
        # SciPy's own error beside the negative integers exceeds this test's tolerance
        special = special[~((special < 0) & (special != np.round(special)))]
    arrays = [special]
    if mathlib.FUNCTIONS[name].arity == 2:
        arrays = [np.repeat(special, special.size), np.tile(special, special.size)]
    if name in ("zeta", "polygamma"):
        arrays = drop_unlike_scipy(name, *arrays)
    assert_same_kind(name, run(name, *arrays, portable=portable), call_peer(name, *arrays), arrays)


@pytest.mark.parametrize("portable", (False, True))
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_results_that_vanish(name, dtype, portable):
    """Where results become subnormal, and then zero, which is not computed."""
    last = -np.log2(np.finfo(dtype).smallest_subnormal.astype(np.float64)) + 1
    exact, factor = (np.exp, np.log(2)) if name == "exp" else (np.exp2, 1.0)
    x = (-factor * np.linspace(last - 30, last + 3, 400)).astype(dtype)
    expected = exact(x.astype(np.longdouble))
    got = run(name, x, portable=portable).astype(np.longdouble)
    bound = 2 * np.maximum(np.finfo(dtype).eps * expected, np.finfo(dtype).smallest_subnormal)
    assert np.all(np.abs(got - expected) <= bound)
    assert not got[expected < 0.4 * np.finfo(dtype).smallest_subnormal].any()


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions(name, dtype):
    x = draw_samples(name, dtype, 500, seed=5)
    arrays = [x] if mathlib.FUNCTIONS[name].arity == 1 else [x, np.random.default_rng(6).permutation(x)]
    np.testing.assert_array_equal(run(name, *arrays), call_peer(name, *arrays))


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", mathlib.names())
def test_scalars_and_vectors_give_the_same_bits(name, dtype):
    arrays = draw_arguments(name, dtype, 100)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    expected = run(name, *arrays, lanes=0)
    for lanes in (2, 8, FORMATS[dtype]):
        got = run(name, *arrays, lanes=lanes)
        both_nan = np.isnan(got) & np.isnan(expected)
        np.testing.assert_array_equal(np.where(both_nan, 0, got.view(unsigned)),
                                      np.where(both_nan, 0, expected.view(unsigned)))


@pytest.mark.parametrize("name", ("sin", "cos", "tan"))
def test_huge_angles(name):
    # 6381956970095103 * 2**797 is the float64 nearest to a multiple of pi/2
    largest = float(np.finfo(np.float64).max)
    hard = [1e22, 2.0 ** 1023, largest, 6381956970095103 * 2.0 ** 797, 2.0 ** 30 + 1, -1e22]
    worst, where = find_worst(name, np.float64, [np.array(hard)])
    assert worst <= 2.0, where
    # and 16367173 * 2**72 the float32
    hard = [float(np.finfo(np.float32).max), 16367173 * 2.0 ** 72, 2.0 ** 16 + 1, 1e22, -1e30]
    worst, where = find_worst(name, np.float32, [np.array(hard, np.float32)])
    assert worst <= 2.0, where


@pytest.mark.parametrize("name, easy, hard", [
    ("sin", 0.5, 1e22), ("lgamma", 2.5, -3.25), ("erf_inv", 0.25, 0.99999), ("ndtri", 0.25, 1e-30),
    ("fmod", 0.5, 1e300)])
def test_one_hard_lane_leaves_the_others_alone(name, easy, hard):
    def call(x):
        return run(name, *[x, np.full(16, 3.0)][:mathlib.FUNCTIONS[name].arity])

    plain, patched = call(np.full(16, easy))[0], call(np.full(16, hard))[0]
    assert plain != patched
    for place in range(16):
        x = np.full(16, easy)
        x[place] = hard
        np.testing.assert_array_equal(call(x), np.where(np.arange(16) == place, patched, plain))


def test_sin_of_1e22_is_the_published_value():
    assert run("sin", np.array([1e22]))[0] == -0.8522008497671888


# -- AVX-512 -------------------------------------------------------------------------------------------------

def take_entry(e, x):
    return avx512.lookup(e, TABLE[:512 // e.bits], e.to_bits(x + e.magic))


def take_entry_of_two(e, x):
    return avx512.lookup(e, TABLE[:1024 // e.bits], e.to_bits(x + e.magic))


def scale_by_floor(e, x):
    return avx512.scale(e, e.const(1.5), x)


TABLE = tuple(float(v) for v in np.random.default_rng(7).integers(-1000, 1000, 32))
INSTRUCTIONS = {
    "lookup": (take_entry, lambda x: np.array(TABLE)[x.astype(int) % (64 // x.itemsize)]),
    "lookup_two": (take_entry_of_two, lambda x: np.array(TABLE)[x.astype(int) % (128 // x.itemsize)]),
    "get_exponent": (avx512.get_exponent, lambda x: np.frexp(x)[1] - 1),
    "get_significand": (avx512.get_significand, lambda x: np.frexp(x)[0] * 2),
    "scale": (scale_by_floor, lambda x: np.ldexp(1.5, np.floor(x).astype(int))),
}


@pytest.mark.skipif("avx512f" not in cpu_features(), reason="the processor has no AVX-512")
@pytest.mark.parametrize("lanes", (0, 2, 4, 8, 16, 32, 64))
@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_of_any_number_of_lanes(monkeypatch, name, dtype, lanes):
    build, reference = INSTRUCTIONS[name]
    monkeypatch.setitem(mathlib.FUNCTIONS, name, mathlib.Function(1, build, 0.0, 0.0))
    x = np.random.default_rng(8).uniform(1, 100, 128).astype(dtype)
    if name.startswith("lookup"):
        x = np.floor(x)
    np.testing.assert_array_equal(run(name, x, lanes=lanes), reference(x).astype(dtype))


@pytest.mark.parametrize("name, bits", PIECES)
def test_pieces_meet(name, bits):
    # on both sides of each step of the index, neighbouring floats give neighbouring values
    dtype = np.float32 if bits == 32 else np.float64
    ends = np.array(fit_pieces.find_ends(fit_pieces.FITS[name], bits)[1:-1], dtype)
    near = (ends[:, None] * (1 + np.arange(-40, 41) * np.finfo(dtype).eps)).astype(dtype)
    worst, where = find_worst(name, dtype, [near.ravel()])
    assert worst <= 1.0, where


def list_steps(name, bits):
    """Where the index of the table behind a function steps."""
    if name == "cbrt":
        return [1 + j / fit_tables.ENTRIES[bits] for j in range(fit_tables.ENTRIES[bits])]
    steps = fit_tables.STEPS[bits]
    return [(j + 0.5) / steps for j in range(int(0.75 * steps), int(1.5 * steps))] + [0.75, 1.5]


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", ("log", "log2", "log10", "log1p", "cbrt", "pow"))
def test_tables_meet(name, dtype):
    # on both sides of each step of the index; for pow with exponents that make results very large or small
    eps = np.finfo(dtype).eps
    ends = np.array(list_steps(name, 32 if dtype is np.float32 else 64))
    x = (ends[:, None] * (1 + np.arange(-20, 21) * eps)).astype(dtype).ravel()
    x = np.concatenate([x * dtype(2.0 ** power) for power in (0, 1, -1, 2, 100)]) - (name == "log1p")
    arguments = [x[x > 0]]
    if name == "pow":
        largest = 80.0 if dtype is np.float32 else 700.0
        arguments.append((largest * np.resize([1, -1], x.size) / np.maximum(abs(np.log(x)), 1e-3)).astype(dtype))
    row = mathlib.FUNCTIONS[name]
    worst, where = find_worst(name, dtype, arguments)
    assert worst <= (row.single if dtype is np.float32 else row.double), where


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.__name__)
def test_logarithms_and_roots_that_are_floats(dtype):
    powers = np.arange(*((-149, 128) if dtype is np.float32 else (-1074, 1024)))
    np.testing.assert_array_equal(run("log2", np.ldexp(dtype(1), powers).astype(dtype)), powers)
    whole = np.arange(1, 200, dtype=dtype)
    np.testing.assert_array_equal(run("cbrt", whole ** 3), whole)
    assert not np.signbit(run("log", np.ones(1, dtype)))[0]


@pytest.mark.parametrize("name, bits", tables.LOGARITHMS)
def test_sums_of_logarithms_are_exact(name, bits):
    # k * log 2 + an entry, for all exponents: no bit below the unit, and room above
    table = tables.LOGARITHMS[name, bits]
    dtype = np.float32 if bits == 32 else np.float64
    for k in (1, 2, 3, fit_tables.LARGEST_EXPONENT[bits], -fit_tables.LARGEST_EXPONENT[bits]):
        for entry in table.logs:
            exact = mp.mpf(k) * mp.mpf(table.unit[0]) + mp.mpf(entry)
            assert mp.mpf(float(dtype(float(exact)))) == exact
    with mp.workprec(200):
        base = fit_tables.BASES[name]
        for inverse, entry in zip(table.inverses, table.logs, strict=True):
            assert abs(mp.log(inverse, base) + entry) < 2.0 ** (-30 if bits == 32 else -69)
        assert abs(mp.log(2, base) - sum(map(mp.mpf, table.unit))) < 2.0 ** (-40 if bits == 32 else -90)


# -- interface, constants ------------------------------------------------------------------------------------

def make_builder():
    module = TargetModule("interface")
    signature = ir.FunctionType(ir.VoidType(), [ir.FloatType(), ir.DoubleType(), I64])
    function = ir.Function(module, signature, "f")
    return ir.IRBuilder(function.append_basic_block("entry")), function.args


def test_emit_defines_each_function_once():
    b, (x, y, _) = make_builder()
    results = [emit_call(b, mathlib.FUNCTIONS["exp"].formula, value) for value in (x, x, y)]
    assert [str(r.type) for r in results] == ["float", "float", "double"]
    defined = [name for name in b.module.globals if name.startswith("jitcore.")]
    assert defined == ["jitcore.exp.f32", "jitcore.exp.f64"]


def test_values_of_two_types_are_refused():
    b, (x, y, _) = make_builder()
    with pytest.raises(TypeError):
        emit_call(b, mathlib.FUNCTIONS["pow"].formula, x, y)


def test_fits_reproduce_the_coefficients():
    from jitcore.backends.llvm.mathlib import coefficients
    from tests.backends.llvm.fitting import fit

    made = {(name, bits) for name, row in fit.FITS.items() for bits in row.terms}
    assert set(coefficients.COEFFICIENTS) == made
    for key in (("exp", 32), ("tanh", 32), ("log_ratio", 64)):
        fitted, error = fit.fit_polynomial(fit.FITS[key[0]], key[1])
        assert tuple(map(float, fitted)) == coefficients.COEFFICIENTS[key]
        assert error < 2.0 ** -26


def test_fits_reproduce_the_pieces():
    assert set(PIECES) == {(name, bits) for name, fit in fit_pieces.FITS.items() for bits in fit.terms}
    fit, pieces = fit_pieces.FITS["tanh"], PIECES["tanh", 32]
    ends = fit_pieces.find_ends(fit, 32)
    for j in (0, 7):
        low, high = ends[j:j + 2]
        center, coefficients, error = fit_pieces.fit_piece(fit.target, low, high, 32, fit.terms[32])
        assert float(center) == pieces.centers[j]
        assert tuple(map(float, coefficients)) == tuple(row[j] for row in pieces.rows)
        assert error < 2.0 ** -25


def test_tables_are_what_their_script_makes():
    text = fit_tables.OUTPUT.read_text()
    assert fit_tables.make_logarithms("log2", 32) in text
    assert fit_tables.make_cube_roots(32) in text
    assert fit_tables.make_roots() in text


# -- square roots by multiplication -------------------------------------------------------------------------

def find_square_root(residue, bits):
    """The odd n with n**2 = residue modulo 2**bits, for a residue of 1 modulo 8: bit by bit."""
    n = 1
    for bit in range(3, bits):
        if (n * n - residue) % (2 << bit):
            n += 1 << (bit - 1)
    return n


def list_hard_squares(most):
    """Numbers from 1 to 4 whose root lies closest to the middle of two floats.

    The middle is n / 2**53 for an odd n, and its square differs from a float only by |n**2 - X 2**bits| / 2**106,
    which is at least 1 and at most `most` for these."""
    found = set()
    for residue in range(1 - 8 * (most // 8), most, 8):
        for bits in (54, 55):  # x from 1 to 2, x from 2 to 4
            root, half = find_square_root(residue, bits), 1 << (bits - 1)
            for n in {(sign * root + step) % (1 << 54) for sign in (1, -1) for step in (0, half)}:
                x, rest = divmod(n * n - residue, 1 << bits)
                if not rest and n > 1 << 53 and 1 << 52 <= x < 1 << 53:
                    found.add(math.ldexp(x, bits - 106))
    return sorted(found)


def test_roots_are_rounded_correctly():
    """Beyond these cases the error of 2**-104 before the last rounding cannot change it."""
    hard = np.array(list_hard_squares(4000))
    assert len(hard) > 1000
    near_one = 1 + np.arange(-200, 200) * 2.0 ** -52
    squares = np.floor(np.random.default_rng(9).uniform(2**25, 2**26, 4000)) ** 2
    x = np.concatenate([hard, near_one, 4 * near_one, squares, np.nextafter(squares, 0), np.nextafter(squares, np.inf)])
    for power in (0, 2, -2, 600, -600, 960, -950, -962, -964, -1020, -1040):
        scaled = np.ldexp(x, power)
        for lanes in (8, 16, 32):
            for name in ("shared_sqrt", "multiplied_sqrt"):
                np.testing.assert_array_equal(run(name, scaled, lanes=lanes), np.sqrt(scaled))


@pytest.mark.parametrize("power", (0, 40, -40, 124, -100, -126))
def test_all_roots_of_float32_are_rounded_correctly(power):
    """Every number of two neighbouring exponents; others differ by a power of four."""
    x = np.arange(1 << 24, dtype=np.uint32)
    x += np.float32(1).view(np.uint32)
    x = np.ldexp(x.view(np.float32), power)
    np.testing.assert_array_equal(run("multiplied_sqrt", x), np.sqrt(x))


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("lanes", (16, 32, 64))
def test_roots_beside_special_numbers(lanes, dtype):
    special = list_special(dtype)
    for value in special:
        x = np.full(128, 2.0, dtype)
        x[3::7] = value
        with np.errstate(invalid="ignore"):
            expected = np.sqrt(x)
        for name in ("shared_sqrt", "multiplied_sqrt"):
            found = run(name, x, lanes=lanes)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(x[x == 0]))
