"""Complex numbers in lanes: every operation against NumPy in higher precision, special values, memory accesses,
reductions, loops and conversions."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import dtypes, jit, lax, vmap
from jitcore.backends.cpu.machine import host
from jitcore.core.primitive import registry
from jitcore.loopir.complex_math import OPERATIONS

COMPLEX = (np.complex64, np.complex128)
WIDER = {np.complex64: np.complex128, np.complex128: np.clongdouble}
SIZES = (0, 1, 2, 7, 16, 17, 33, 200)
FEWER_SIZES = (7, 33, 200)
# Largest error, relative to the magnitude of the result, in units of the dtype's epsilon.
BOUNDS = {"exp2": 10, "logistic": 40, "atan": 4, "atanh": 5} | dict.fromkeys(("add", "sub", "mul", "neg", "conj"), 1)
UNARY = [name for name, formula in OPERATIONS.items() if formula.__code__.co_argcount == 2]
BINARY = ("add", "sub", "mul", "div", "pow")


def draw(n, dtype, seed=0, low=-3.0, high=1.2):
    """Numbers of magnitudes 10**low to 10**high in all directions."""
    rng = np.random.default_rng(seed)
    return (10.0 ** rng.uniform(low, high, n) * np.exp(1j * rng.uniform(-np.pi, np.pi, n))).astype(dtype)


def run(name, *operands):
    return np.asarray(jit(registry[name].bind, backend="cpu")(*operands))


def assert_near(actual, exact, dtype, bound):
    """Whether |actual - exact| is at most `bound` epsilons of |exact|."""
    error, size = np.abs(actual.astype(exact.dtype) - exact), np.abs(exact)
    assert np.all(error <= bound * np.finfo(dtype).eps * size + np.finfo(dtype).tiny)


def assert_lanes(function):
    """Whether the code compiled last works on several numbers at a time, and nothing calls a library."""
    assert "call " not in function.inspect("loop program")
    assert " x float>" in function.inspect("llvm") or " x double>" in function.inspect("llvm")


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
def test_operation_against_higher_precision(name, dtype):
    function = jit(registry[name].bind, backend="cpu")
    for size in SIZES if dtype is np.complex64 else FEWER_SIZES:
        z = draw(size, dtype, seed=size)
        actual = np.asarray(function(z))
        exact = np.asarray(registry[name].impl(z.astype(WIDER[dtype])))
        assert actual.shape == z.shape and actual.dtype.kind == exact.dtype.kind
        assert_near(actual, exact, dtype, BOUNDS.get(name, 3))
    assert_lanes(function)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operation_against_higher_precision(name, dtype):
    function = jit(registry[name].bind, backend="cpu")
    for size in SIZES:
        # exponents of `pow` are small: its relative error grows with them
        x, y = draw(size, dtype, seed=size), draw(size, dtype, seed=size + 1, high=0.3 if name == "pow" else 1.2)
        exact = np.asarray(registry[name].impl(*(z.astype(WIDER[dtype]) for z in (x, y))))
        assert_near(np.asarray(function(x, y)), exact, dtype, BOUNDS.get(name, 2 if name == "div" else 20))
    assert_lanes(function)


def special_grid(dtype):
    """Every pair of special parts, extreme magnitudes included."""
    facts = np.finfo(dtype)
    tiny, huge, edge = float(facts.tiny) * 4, float(facts.max) / 4, 0.99 * np.log(float(facts.max)) + 10
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, tiny, huge, -huge, edge, -edge]
    grid = np.empty(len(parts) ** 2, dtype)
    grid.real, grid.imag = np.repeat(parts, len(parts)), np.tile(parts, len(parts))
    return grid


# Where this backend differs from NumPy on purpose: infinities that NumPy turns into NaN (expm1, rsqrt), small
# numbers that it loses (log1p), signs that C99 leaves open (sin, sinh), a direction of half a NaN (sign).
DIFFERS = {
    # Besides: the array API standard's values, which eager calls have.
    "expm1": lambda z: (z.imag == 0) | np.isinf(np.exp(z.real)) | np.isinf(z.real) & ~np.isfinite(z.imag),
    "rsqrt": lambda z: z == 0,
    "log1p": lambda z: np.abs(z) < 1e-30,
    "sign": lambda z: np.isnan(z) & np.isinf(z),
    "sin": lambda z: np.isinf(z.imag) & ~np.isfinite(z.real),
    "sinh": lambda z: np.isinf(z.real) & ~np.isfinite(z.imag),
}
if "fma" not in host.cpu_features() and host.list_fused_operations():
    # NumPy's multiply-adds go past an infinity that separate products meet with its opposite.
    DIFFERS["square"] = lambda z: np.isinf(z.real * z.real) & np.isinf(z.imag * z.imag)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_are_numpys(name, dtype):
    z = special_grid(dtype)
    z = z[~DIFFERS[name](z)] if name in DIFFERS else z
    actual, expected = run(name, z), np.asarray(registry[name].impl(z))
    size = np.abs(expected)
    slack = np.where(np.isfinite(size), 64 * np.finfo(dtype).eps * size, 0)
    for part in ("real", "imag"):
        got, want = getattr(actual, part), getattr(expected, part)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        close = np.isclose(got, want, rtol=1e-5 if dtype is np.complex64 else 1e-12, atol=0)
        wrong = ~(same | close | (np.abs(got - want) <= slack))
        assert not wrong.any(), (part, z[wrong], actual[wrong], expected[wrong])


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sinh", "cosh", "tanh", "asin", "acos", "atanh"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_branch_cuts_and_signs_of_zero(name):
    parts = [0.0, -0.0, 2.0, -2.0]
    z = np.array([complex(x, y) for x in parts for y in parts])
    actual, expected = run(name, z), registry[name].impl(z)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.signbit(actual.imag[finite]), np.signbit(expected.imag[finite]))
    np.testing.assert_array_equal(np.signbit(actual.real[finite]), np.signbit(expected.real[finite]))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "ne", "div"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_binary_special_values_are_numpys(name):
    parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
    grid = np.array([complex(x, y) for x in parts for y in parts])
    x, y = np.repeat(grid, len(grid)), np.tile(grid, len(grid))
    np.testing.assert_allclose(run(name, x, y), registry[name].impl(x, y), rtol=1e-15, equal_nan=True)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_division_does_not_overflow(dtype):
    huge = float(np.finfo(dtype).max) / 4
    x = np.array([huge + huge * 1j, huge * 1j, 1 + 1j, 1j / huge], dtype)
    y = np.array([huge + huge * 1j, huge + 0j, huge + huge * 1j, 1j / huge], dtype)
    np.testing.assert_allclose(run("div", x, y), [1, 1j, 1 / huge, 1], rtol=1e-6)


# -- memory -----------------------------------------------------------------------------------------------
ACCESSES = {
    "every second": lambda m, x: x[::2] * 2,
    "every third": lambda m, x: x[1::3] + 1,
    "far apart": lambda m, x: x[::17] * x[::17],
    "reversed": lambda m, x: x[::-1] * 1j,
    "reversed by two": lambda m, x: x[::-2] + x[0],
    "columns": lambda m, x: x[:192].reshape(64, 3)[:, 1] * x[:192].reshape(64, 3)[:, 2],
    "transposed": lambda m, x: x[:200].reshape(10, 20).T + x[:200].reshape(20, 10),
    "neighbours": lambda m, x: x[1:] - x[:-1],
    "gather": lambda m, x: x[m.arange(150) * 7 % 200] + 1,
    "broadcast": lambda m, x: x[:9, None] * x[None, :21],
    "parts": lambda m, x: x.real + x.imag * 2,
    "concatenate": lambda m, x: m.concatenate([x[5:], x.conj()[:9]]) * 2,
    "pad": lambda m, x: m.pad(x, 3) - 1j,
    "where": lambda m, x: m.where(x.real > 0, x, -x),
    "constant": lambda m, x: m.full(x.shape, 1 - 2j, x.dtype),
    "from reals": lambda m, x: 1j * x.real + 2,
}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ACCESSES)
def test_access(name, dtype):
    x, function = draw(211, dtype), ACCESSES[name]
    actual = np.asarray(jit(lambda x: function(jnp, x), backend="cpu")(x))
    expected = function(np, x)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-5 if dtype is np.complex64 else 1e-13)


UPDATES = {
    "set": lambda x, v, i: x.at[3:40].set(v[:37]),
    "add": lambda x, v, i: x.at[3:40].add(v[:37]),
    "strided set": lambda x, v, i: x.at[::3].set(v[:71]),
    "reversed set": lambda x, v, i: x.at[40:3:-1].set(v[:37]),
    "scatter set": lambda x, v, i: x.at[i].set(v[:50]),
    "scatter add": lambda x, v, i: x.at[i % 7].add(v[:50]),
    "scatter mul": lambda x, v, i: x.at[i % 7].multiply(v[:50]),
}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UPDATES)
def test_update(name, dtype):
    x, v, i = draw(211, dtype), draw(211, dtype, seed=1), np.random.default_rng(2).permutation(211)[:50]
    update = UPDATES[name]
    expected = update(jnp.asarray(x.astype(np.complex128)), jnp.asarray(v.astype(np.complex128)), i)
    actual = jit(update, backend="cpu")(x, v, i)
    np.testing.assert_allclose(actual, expected, rtol=1e-5 if dtype is np.complex64 else 1e-13)


# -- reductions ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), 2])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
def test_reduction(name, axis, dtype):
    x = draw(13 * 5 * 18, dtype, low=-0.02, high=0.02).reshape(13, 5, 18)
    reduce = jit(lambda x: getattr(jnp, name)(x, axis=axis), backend="cpu")
    expected = getattr(np, name)(x.astype(np.complex128), axis=axis)
    np.testing.assert_allclose(reduce(x), expected, rtol=2e-4 if dtype is np.complex64 else 1e-12)


@pytest.mark.parametrize("n", [0, 1, 3, 1000, 300_001])
def test_long_reductions(n):
    x = draw(n, np.complex64, low=-1e-6, high=1e-6)
    total, product, energy = jit(lambda x: (x.sum(), x.prod(), (x * x.conj()).real.sum()), backend="cpu")(x)
    wide = x.astype(np.complex128)
    np.testing.assert_allclose(total, wide.sum(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(product, wide.prod(), rtol=n * 1e-6 + 1e-5)
    np.testing.assert_allclose(energy, (np.abs(wide) ** 2).sum(), rtol=1e-5)


def test_sum_is_the_same_for_any_number_of_threads():
    x = draw(300_001, np.complex64)
    sums = [jit(lambda x: x.sum(), backend="cpu", compiler_options=options)(x)
            for options in ({"parallel": False}, {})]
    assert np.asarray(sums[0]) == np.asarray(sums[1])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (7, 40), (40, 7), (2, 100_000)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
def test_cumulative(name, shape, axis, reverse):
    x = draw(np.prod(shape), np.complex128, low=-1e-5, high=1e-5).reshape(shape)
    primitive = registry[name]
    actual = jit(lambda x: primitive.bind(x, axis=axis, reverse=reverse), backend="cpu")(x)
    expected = primitive.impl(x, axis=axis, reverse=reverse)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


# -- loops --------------------------------------------------------------------------------------------------
def julia(m, c, steps, fori):
    def step(_, z):
        return m.where(z.real * z.real + z.imag * z.imag < 4, z * z + c, z)

    return fori(0, steps, step, m.zeros_like(c))


def loop_of_numpy(start, stop, step, z):
    for i in range(start, stop):
        z = step(i, z)
    return z


@pytest.mark.parametrize("n", [1, 37, 3000])
@pytest.mark.parametrize("dtype", COMPLEX)
def test_loop_in_registers(n, dtype):
    c = draw(n, dtype, high=0)
    function = jit(lambda c: julia(jnp, c, 12, lax.fori_loop), backend="cpu")
    expected = julia(np, c, 12, loop_of_numpy)
    np.testing.assert_allclose(function(c), expected, rtol=1e-3 if dtype is np.complex64 else 1e-9)
    assert ("repeat" in function.inspect("loop program")) == (n > 1)
    if n > 1:
        assert_lanes(function)


def test_each_lane_ends_by_itself():
    def count(c):
        def going(state):
            return (state[0] < 60) & (abs(state[1]) < 2)

        return lax.while_loop(going, lambda state: (state[0] + 1, state[1] ** 2 + c), (0, c * 0))[0]

    c = draw(500, np.complex128, high=0.2)
    expected = np.zeros(500, int)
    for k, point in enumerate(c):
        z = 0j
        while expected[k] < 60 and abs(z) < 2:
            z, expected[k] = z * z + point, expected[k] + 1
    assert np.mean(np.asarray(jit(vmap(count), backend="cpu")(c)) == expected) > 0.99


def test_scalar_loop_and_stacked_outputs():
    def turn(z, _):
        z = z * (0.8 + 0.6j)
        return z, z.imag

    end, path = jit(lambda z: lax.scan(turn, z, None, length=50), backend="cpu")(1 + 0j)
    powers = (0.8 + 0.6j) ** np.arange(1, 51)
    np.testing.assert_allclose(end, powers[-1], rtol=1e-5)
    np.testing.assert_allclose(path, powers.imag, rtol=1e-5, atol=1e-5)


def test_branches():
    function = jit(lambda p, z: lax.cond(p, lambda z: z * 1j, lambda z: z.conj(), z), backend="cpu")
    z = draw(20, np.complex64)
    np.testing.assert_array_equal(function(True, z), z * np.complex64(1j))
    np.testing.assert_array_equal(function(False, z), z.conj())


# -- conversions --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("other", [d for d in dtypes.SUPPORTED], ids=lambda d: d.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_conversion_in_lanes(other, dtype):
    z = np.array([0, 1, 1j, -2.5 + 3j, 100 - 1j, complex(-0.0, 0.0), 7] * 5, dtype)
    convert = registry["convert_element_type"]
    for source, target in ((z, other), (z.real.astype(other), np.dtype(dtype))):
        actual = jit(lambda x, to=target: convert.bind(x, new_dtype=to, weak_type=False), backend="cpu")(source)
        expected = convert.impl(source, new_dtype=target, weak_type=False)
        np.testing.assert_array_equal(np.asarray(actual), expected)


@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("other", [np.int64, np.uint64, np.float64])
def test_bits_of_a_number(other, n):
    z = draw(n, np.complex64)
    cast = registry["bitcast_convert_type"]
    bits = jit(lambda z: cast.bind(z, new_dtype=np.dtype(other)), backend="cpu")(z)
    np.testing.assert_array_equal(np.asarray(bits).view(np.int64), z.view(np.int64))
    back = jit(lambda bits: cast.bind(bits, new_dtype=np.dtype(np.complex64)), backend="cpu")(bits)
    np.testing.assert_array_equal(np.asarray(back), z)


def test_new_sizes_compile_nothing():
    function = jit(lambda z: jnp.abs(z * z).sum(), backend="cpu")
    for n in (100, 1000, 777):
        z = draw(n, np.complex64)
        np.testing.assert_allclose(function(z), (np.abs(z) ** 2).sum(), rtol=1e-4)
    # Where vectors are short, long sums are in more registers than short ones.
    assert function.cache_info().compiles <= (2 if host.native_vector_bytes() == 16 else 1)


parts = st.floats(-1e6, 1e6, width=64).map(lambda x: 0.0 if abs(x) < 1e-6 else x)
numbers = st.lists(st.builds(complex, parts, parts), min_size=1, max_size=40)
ARITHMETIC = jit(lambda x, y: (x * y, x / y, jnp.abs(x), jnp.sqrt(x), x.sum()), backend="cpu")


@given(numbers)
@settings(max_examples=40, deadline=None)
def test_arithmetic_of_any_numbers(values):
    x = np.array(values)
    y = x[::-1].copy() + (x[::-1] == 0)
    for actual, expected in zip(ARITHMETIC(x, y), (x * y, x / y, np.abs(x), np.sqrt(x), x.sum())):
        size = np.abs(expected) if np.ndim(expected) else np.abs(x).sum()
        assert np.all(np.abs(np.asarray(actual) - expected) <= 1e-14 * size + 1e-15)
