"""`+ - * /`, roots, comparisons and conversions round as NumPy and Python round them: no product stays unrounded
on its way into a sum, unless that is asked for."""

import copy
import math
import random

import numpy as np
import pytest

from jitcore import autojit, jit
from jitcore.backends.cpu.machine import host

HAS_FMA = "fma" in host.cpu_features()
RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(2, 1003))
STEPS = RNG.normal(size=40)
#: Statements of random programs; a, b, c: names that are known.
ARRAY_STEPS = """\
{a} + {b}|{a} - {b}|{a} * {b}|{a} * {b} + {c}|{c} - {a} * {b}|{a} * {a} - {b} * {b}|-{a}|np.abs({a})|{a} ** 2
{a} / ({b} * {b} + 1.5)|np.sqrt(np.abs({a}))|np.sqrt({a} * {a} + {b} * {b})|np.minimum({a}, {b})|{a} * 2.5 + 1
np.maximum({a}, {b})|np.where({a} < {b}, {a}, {c})|{a} / 3|1 / ({a} * {a} + 1)|({a} > {b}) * {c} - {a}
{a} * {b} + ({c} * {b}).astype(np.float32)|np.floor({a} * 3).astype(np.int32) * {b} - {c}"""
NUMBER_STEPS = """\
{a} + {b}|{a} - {b}|{a} * {b}|{a} * {b} + {c}|{c} - {a} * {b}|{a} * {a} - {b} * {b}|-{a}|abs({a})|{a} ** 2
{a} / ({b} * {b} + 1.5)|math.sqrt(abs({a}))|math.sqrt({a} * {a} + {b} * {b})|min({a}, {b})|max({a}, {b})
{a} * 2.5 + 1|{a} / 3|1 / ({a} * {a} + 1)|({a} > {b}) * {c} - {a}|{a} if {a} < {b} else {c} * {b} - {a}
int({a} * 3) % 1000 * {b} - {c}"""
COMPLEX_STEPS = """\
{a} + {b}|{a} * {b}|{a} - {b} * {c}|{a} * {a} + {c}|{a} / ({b} * 0.1 + 2.5)|{a}.real * {b}|{a}.conjugate() * {b}
{a} * (1 + 2j)|-{a}|{a} * 2.0 - {c}"""


def make_lines(steps: str, choose: random.Random) -> list[str]:
    names, lines = ["x", "y", "z"], []
    for number in range(choose.randint(3, 9)):
        step = choose.choice(steps.replace("\n", "|").split("|"))
        lines.append(f"v{number} = " + step.format(**{name: choose.choice(names) for name in "abc"}))
        names.append(f"v{number}")
    return lines


def make_function(header: str, lines: list[str], result: str):
    names = {"np": np, "math": math}
    exec("\n    ".join([header, *lines, f"return {result}"]), names)
    return names["f"]


def assert_same_bits(function, arguments, **options) -> None:
    compiled = autojit(function, **options)
    for _ in range(2):
        expected, found = (f(*copy.deepcopy(arguments)) for f in (function, compiled))
        for one, other in zip(expected, found, strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other), strict=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_on_arrays(seed):
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    lines = make_lines(ARRAY_STEPS, choose)
    function = make_function("def f(x, y, z):", lines, f"(v{len(lines) - 1}, {choose.choice('xyz')} * x - v0)")
    shape, dtype = choose.choice([(7,), (1003,), (5, 33)]), choose.choice(["f4", "f8"])
    x, y, z = (rng.normal(size=shape).astype(dtype) for _ in range(3))
    assert_same_bits(function, (x, choose.choice([y, y[..., :1]]), choose.choice([z, 0.3])), strict=True)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_on_numbers_in_loops(seed):
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    lines = make_lines(NUMBER_STEPS, choose)
    last = f"v{len(lines) - 1}"
    body = [*lines, f"s = s * 0.5 + {last}", f"x, y = y * 0.9, {last} / (1.0 + abs({last}))", "z = a[i] * x - z * 0.1"]
    loop = ["s = 0.0", "for i in range(len(a)):", *(f"    {line}" for line in body)]
    function = make_function("def f(x, y, z, a):", loop, "(s, x, y, z)")
    assert_same_bits(function, (*rng.normal(size=3).tolist(), STEPS))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["array", "numbers", "scalars"])
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_complex_numbers(kind, seed):
    """NumPy's loops over arrays of complex numbers may fuse; Python and NumPy's scalars do not."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    lines = make_lines(COMPLEX_STEPS, choose)
    last = f"v{len(lines) - 1}"
    x, y, z = rng.normal(size=(3, 9)) + 1j * rng.normal(size=(3, 9))
    if kind == "array":
        function, arguments = make_function("def f(x, y, z):", lines, f"({last},)"), (x, y, z)
    elif kind == "numbers":
        body = [*lines, f"x = {last} / (abs({last}.real) + 1.0)"]
        function = make_function("def f(x, y, z):", ["for i in range(7):", *(f"    {s}" for s in body)], f"(x, {last})")
        arguments = complex(x[0]), complex(y[0]), complex(z[0])
    else:
        loop = ["for i in range(len(p)):", "    x, y, z = p[i], q[i], r[i - 1]", *(f"    {s}" for s in lines),
                f"    r[i] = {last}"]
        function, arguments = make_function("def f(p, q, r):", loop, "(r,)"), (x, y, z)
    assert_same_bits(function, arguments)


def find_root(a, b, c):
    return np.sqrt(b * b - 4 * a * c)


def find_side(p, q, r):
    return np.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))


def space(a, b, n):
    return np.linspace(a, b, n), np.linspace(a, b, n, endpoint=False)


def test_what_cancels_is_zero():
    equal = autojit(lambda a, b: np.sqrt(a * a - b * b), strict=True)
    assert (equal(A, A.copy()) == 0).all() and (equal(A.astype("f4"), A.astype("f4")) == 0).all()
    b = np.array([2.2, 0.6, 1.4, 3.4])
    assert_same_bits(lambda a, b, c: (find_root(a, b, c),), (np.array([1.1, 0.3, 0.7, 1.7]), b, b / 2))
    points = RNG.normal(size=(2, 500))
    assert_same_bits(lambda p, q, r: (find_side(p, q, r),), (points, points * 3, points * 0.7))
    for a, b in ((0.1, 0.7), (-1.3, 2.9), (1 / 3, 1e6)):
        assert_same_bits(space, (a, b, 11))


#: Functions of NumPy whose formulas are of such operations.
COMPOSED = {
    "interp": lambda x, y: np.interp(x * 1.2, np.sort(y), x),
    "interp of a period": lambda x, y: np.interp(x * 1.2, y, x, period=1.1),
    "gradient": lambda x, y: np.gradient(x),
    "gradient by a step": lambda x, y: np.gradient(x, 0.3),
    "gradient by places": lambda x, y: np.gradient(x, np.sort(y)),
    "cross": lambda x, y: np.cross(x.reshape(-1, 17, 1)[:, :3, 0], y.reshape(-1, 17, 1)[:, :3, 0]),
    "polyval": lambda x, y: np.polyval(y[:6], x),
    "remainder": lambda x, y: np.mod(x, y) + np.fmod(x, y) + x // y,
    "round": lambda x, y: np.round(x, 2) + np.trunc(y * 7) / 7,
    "angle": lambda x, y: np.deg2rad(x) + np.degrees(y),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_functions(name):
    assert_same_bits(lambda x, y: (COMPOSED[name](x, y),), (A.copy(), B.copy()), strict=True)


def test_contraction_is_asked_for():
    def subtract(a, b):
        return a * a - b * b

    assert (autojit(subtract)(A, A.copy()) == 0).all()
    fused = [autojit(subtract, contract=True), autojit(subtract, fastmath=True), jit(subtract)]
    rounded = jit(subtract, compiler_options={"contract": False})
    assert (np.asarray(rounded(A, A.copy())) == 0).all()
    for function in fused:
        assert HAS_FMA == bool(np.any(np.asarray(function(A, A.copy()))))


def walk(x, y, n):
    for _ in range(n):
        x, y = x * x - y * y * 0.3, x * y - 0.1 * x
    return x


def test_loops_that_are_compiled_alone_and_exported_functions_keep_the_options():
    assert autojit(walk)(0.7, 0.4, 30) == walk(0.7, 0.4, 30)
    assert autojit(walk).as_njit(0.7, 0.4, 30)(0.7, 0.4, 30) == walk(0.7, 0.4, 30)


NARROW = A[:50].astype(np.float32)
COUNTS = RNG.integers(0, 9, 50)
WITH_NAN = np.where(A[:40] > 1, np.nan, A[:40])
#: Functions of NumPy that are made of `+ - * /`, a root and comparisons.
SPECIAL = {
    "histogram": (lambda x: (*np.histogram(x), *np.histogram(x, 7, (-1, 1), weights=x * x)), A[:50]),
    "histogram of narrow": (lambda x: (*np.histogram(x, density=True), np.histogram_bin_edges(x, 3)), NARROW),
    "histogram of ints": (lambda x: (*np.histogram(x, 4), *np.histogram(x[:1], 3), *np.histogram(x[:0], 2)), COUNTS),
    "histogram between traced limits": (lambda x: np.histogram(x, 5, (x.min() - 1, x[0] + 9)), A[:50]),
    "histogram of pairs": (lambda x, y: np.histogram2d(x, y, [[-1, 0, 2], 3]), A[:50], B[:50]),
    "quantile": (lambda x: (np.quantile(x, [0.1, 0.77]), np.percentile(x, 31), np.median(x)), A[:51]),
    "quantile of narrow": (lambda x: (np.percentile(x, 30), np.quantile(x, 0.3, method="midpoint")), NARROW),
    "quantile, array of shares": (lambda x, q: (np.quantile(x, q), np.percentile(x, q * 50)), NARROW, A[:3] ** 2 % 1),
    "quantile of rows": (lambda x: (np.percentile(x, [5, 60], axis=0), np.quantile(x, 0.4, axis=1)), A[:60].reshape(6, 10)),
    "quantile without NaN": (lambda x: (np.nanpercentile(x, [12, 50]), np.nanquantile(x, 0.9)), WITH_NAN),
    "quantile beside infinity": (lambda x: (np.quantile(x, 0.5), np.quantile(x, 1.0)), np.array([np.inf, 1.0, -np.inf])),
    "interp": (lambda x, p, f: (np.interp(x, p, f), np.interp(x, p, f, left=7.0)), A[:40], np.sort(B[:9]), A[:9]),
    "interp at equal places": (lambda x, p, f: (np.interp(x, p, f),), np.array([0.0, 1.0, 0.5, np.nan]),
                               np.array([0.0, 1.0, 1.0]), np.array([4.0, 5.0, 6.0])),
    "interp beside infinity": (lambda x, p, f: (np.interp(x, p, f),), np.array([0.0, 0.5, 1.0]),
                               np.array([-np.inf, 0.0, 1.0]), np.array([0.0, 1.0, -np.inf])),
    "power that is a root": (lambda x, p: (x**p, np.power(x, p), x[0] ** p), np.array([-np.inf, -0.0, 2.0, 3.0]), 0.5),
    "least of signed zeros": (lambda x: (min(x), max(x), min(list(x))), np.array([0.0, -0.0, 0.0])),
    "accumulated bools": (lambda x: (np.maximum.accumulate(x > 0), np.minimum.accumulate(x > 0)), A[:9]),
    "window that is not finite": (lambda x: (np.convolve(x, x), np.correlate(x, x, "full")), np.array([0.0, np.inf, 1])),
    "squeezed": (lambda x: (np.squeeze(x) is x, x.squeeze()), A[:4]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SPECIAL)
def test_functions_of_special_operands(name):
    if name == "quantile of narrow" and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("earlier NumPys round a step of quantiles in float32 otherwise")
    function, *arguments = SPECIAL[name]
    assert_same_bits(function, arguments, strict=True)
