"""Native Fourier transforms: against NumPy in float64 and sums in longdouble; all lengths and layouts, loops,
threads, widths of vectors."""

import gc
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import jitcore.numpy as jnp
from jitcore import ShapeDtypeStruct, config, jit, lax, vmap
from jitcore.backends.cpu.routines.fft import plan
from jitcore.backends.cpu.routines.fft.plan import factorize, find_roots
from jitcore.backends.cpu.runtime import threads

RNG = np.random.default_rng(23)
COMPLEX, REAL = ["complex64", "complex128"], ["float32", "float64"]

# Every butterfly alone, twice and in mixtures; halves of those; long lines that are even and odd.
LENGTHS = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 22, 25, 26, 27, 28, 32, 33, 35, 36, 42, 49, 56,
           60, 64, 77, 91, 100, 121, 128, 135, 144, 169, 210, 256, 315, 343, 512, 625, 729, 1000, 1001, 1024, 2048,
           3003, 4096, 5040, 16384, 20000, 32768, 65536]


def draw(shape, dtype) -> np.ndarray:
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if dtype in COMPLEX else x).astype(dtype)


def widen(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def check(name, x, *, is_native=True, **options) -> np.ndarray:
    """`numpy.fft.<name>` of x; errors grow with the number of passes."""
    function = jit(lambda x: getattr(jnp.fft, name)(x, **options))
    before = x.copy()
    got = np.asarray(function(x))
    np.testing.assert_array_equal(x, before)
    text = function.inspect("loop program")
    assert (" call " not in text and "fft_f" in text) == is_native
    expected = getattr(np.fft, name)(widen(x), **options)
    assert got.shape == expected.shape and got.dtype.itemsize == expected.dtype.itemsize * x.real.itemsize // 8
    bound = (1 + np.log2(max(expected.size, 2))) * np.finfo(x.dtype).eps * np.sqrt(np.mean(abs(expected) ** 2))
    assert np.max(np.abs(got - expected), initial=0) <= 4 * bound
    return got


# -- values -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_lines(dtype, n):
    for batch in ((), (1,), (3,), (17,), (2, 9)):
        if n * np.prod(batch) <= 1 << 17:
            x = draw((*batch, n), dtype)
            check("fft", x)
            check("ifft", x)


@pytest.mark.parametrize("n", [n for n in LENGTHS if n > 2])
@pytest.mark.parametrize("dtype", REAL)
def test_real_lines(dtype, n):
    for batch in ((), (3,), (17,), (2, 9)):
        if n * np.prod(batch) <= 1 << 17:
            check("rfft", draw((*batch, n), dtype))
            check("irfft", draw((*batch, n // 2 + 1), f"complex{16 * np.dtype(dtype).itemsize}"), n=n)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(4, 6), (1, 8), (8, 1), (7, 5), (33, 40), (3, 16, 20), (64, 4096), (2, 1, 3, 12),
                                   (2, 3, 32768), (1500, 18), (100, 3)])
def test_several_axes(dtype, shape):
    x = draw(shape, dtype)
    check("fft2", x)
    check("ifft2", x)
    if len(shape) < 4:
        check("fftn", x)
        check("ifftn", x)
    if shape[-1] > 2:
        check("rfft2", x.real.copy())
        half = draw((*shape[:-1], shape[-1] // 2 + 1), dtype)
        check("irfft2", half, s=shape[-2:])


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_other_axes(axis):
    check("fft", draw((12, 20, 18), "complex64"), axis=axis)
    check("rfft", draw((12, 20, 18), "float64"), axis=axis)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.sampled_from(COMPLEX), st.booleans())
def test_any_shape(shape, dtype, is_inverse):
    lengths = [n for n in shape if n > 1]
    is_native = bool(lengths) and all(factorize(n) for n in lengths)
    check("ifftn" if is_inverse else "fftn", draw(tuple(shape), dtype), is_native=is_native)


@pytest.mark.parametrize("n", [8, 60, 121, 169, 256, 343, 729, 1000, 1024, 2048])
def test_as_accurate_as_sums_in_longdouble_allow(n):
    """Root of mean squares of errors: about that of one rounding for each doubling of the length at most."""
    x, powers = draw((20, n), "complex128"), np.outer(np.arange(n), np.arange(n)) % n
    angles = powers.astype(np.longdouble) * (8 * np.arctan(np.longdouble(1))) / n
    exact = x @ (np.cos(angles) - 1j * np.sin(angles))
    for got in (jit(jnp.fft.fft)(x), jit(jnp.fft.fft)(x[0])):
        error = np.asarray(got) - (exact if got.ndim == 2 else exact[0])
        scale = np.sqrt(np.mean(abs(exact) ** 2))
        assert np.sqrt(np.mean(abs(error) ** 2)) <= (0.4 + 0.1 * np.log2(n)) * np.finfo(float).eps * scale


@pytest.mark.parametrize("n", [3, 8, 12, 35, 1000])
def test_roots_of_unity_are_rounded_once(n):
    import mpmath

    with mpmath.workprec(120):
        exact = [mpmath.expjpi(mpmath.mpf(-2 * k) / n) for k in range(n)]
    expected = np.array([[float(root.real), float(root.imag)] for root in exact])
    np.testing.assert_allclose(find_roots(np.arange(n), n), expected, rtol=3e-16, atol=1e-30)


def test_inverse_gives_back_what_was():
    x = draw((1 << 15,), "complex128")
    there_and_back = jit(lambda x: jnp.fft.ifft(jnp.fft.fft(x)))
    np.testing.assert_allclose(there_and_back(x), x, atol=1e-14)
    y = draw((5, 999), "float64")
    np.testing.assert_allclose(jit(lambda y: jnp.fft.irfft(jnp.fft.rfft(y), 999))(y), y, atol=1e-14)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(20, 16), (6, 4096)])
def test_lines_do_not_touch_each_other(value, shape):
    x = draw(shape, "complex64")
    clean = np.asarray(jit(jnp.fft.fft)(x))
    x[2, 5] = value
    got = np.asarray(jit(jnp.fft.fft)(x))
    assert not np.isfinite(got[2]).any()
    others = [k for k in range(len(x)) if k != 2]
    np.testing.assert_array_equal(got[others], clean[others])


@pytest.mark.parametrize("n", [6, 9, 1 << 15])
def test_imaginary_ends_of_real_spectra_are_ignored(n):
    spectrum = np.fft.rfft(draw((n,), "float64"))
    changed = spectrum.copy()
    changed[0] += 3j
    if n % 2 == 0:
        changed[-1] -= 2j
    inverse = jit(lambda x: jnp.fft.irfft(x, n))
    np.testing.assert_array_equal(inverse(changed), inverse(spectrum))


# -- what has no code of its own -----------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(17,), (3, 38), (17, 8)])
def test_large_prime_factors_go_to_scipy(shape):
    check("fftn", draw(shape, "complex64"), is_native=False)


def test_shortest_and_empty():
    check("rfft", draw((3, 2), "float32"), is_native=False)
    check("fft", draw((3, 1), "complex64"), is_native=False)
    assert jit(jnp.fft.fft)(draw((0, 4), "complex64")).shape == (0, 4)


def test_factors():
    assert factorize(2) == (2,)
    assert factorize(16) == (4, 4)
    assert factorize(128) == (8, 4, 4)
    assert factorize(1 << 19) == (8, 8, 8, 8, 8, 4, 4)
    assert factorize(1001) == (13, 11, 7)
    assert factorize(17) is None
    for n in range(2, 2000):
        assert factorize(n) is None or np.prod(factorize(n)) == n


# -- within programs ------------------------------------------------------------------------------------------
def test_a_loop_with_transforms_is_one_native_step():
    @jit
    def evolve(x):
        return lax.fori_loop(0, 5, lambda i, c: jnp.fft.ifft(jnp.fft.fft(c) * 0.5j) + i, x)

    x = draw((96,), "complex128")
    expected = x
    for i in range(5):
        expected = np.fft.ifft(np.fft.fft(expected) * 0.5j) + i
    np.testing.assert_allclose(evolve(x), expected, rtol=1e-12)
    text = evolve.inspect("loop program")
    assert text.count("native:") == 1 and "call " not in text


def test_new_lengths_compile_nothing():
    function = jit(lambda x: jnp.fft.fft(x) * 2)
    for n in (12, 60, 1000, 4096):
        x = draw((n,), "complex64")
        np.testing.assert_allclose(function(x), np.fft.fft(widen(x)) * 2, rtol=1e-3, atol=1e-3)
    assert function.cache_info().compiles <= 1


def test_symbolic_extents():
    function = jit(jnp.fft.fft, abstracted_axes=({0: "n"},))
    for n in (5, 18, 64):
        x = draw((n, 12), "complex64")
        np.testing.assert_allclose(function(x), np.fft.fft(widen(x)), rtol=1e-4, atol=1e-4)


def test_vmap():
    x = draw((6, 5, 40), "complex128")
    np.testing.assert_allclose(jit(vmap(jnp.fft.fft2))(x), np.fft.fft2(x), rtol=1e-12, atol=1e-12)


def test_programs_keep_their_tables():
    """A compiled function outlives all caches of plans."""
    compiled = jit(jnp.fft.fft).lower(ShapeDtypeStruct((1440,), np.dtype(np.complex128))).compile()
    plan._find_transform.cache_clear()
    plan._list_orders.cache_clear()
    gc.collect()
    filler = [np.full(1440 * 2, np.nan) for _ in range(200)]
    x = draw((1440,), "complex128")
    np.testing.assert_allclose(compiled(x), np.fft.fft(x), rtol=1e-11, atol=1e-11)
    assert len(filler) == 200


# -- threads, processors --------------------------------------------------------------------------------------
@pytest.fixture
def thread_count():
    before = threads.get_num_threads()
    yield threads.set_num_threads
    threads.set_num_threads(before)


@pytest.mark.parametrize("name, shape", [("fft", (1 << 17,)), ("fft2", (300, 256)), ("rfft", (1 << 18,)),
                                         ("fft", (50, 4096)), ("rfft", (900, 243))])
def test_threads_do_not_change_bits(thread_count, name, shape):
    x = draw(shape, "float32" if name == "rfft" else "complex64")
    function, results = jit(getattr(jnp.fft, name)), []
    for count in (1, 2, 5):
        thread_count(count)
        results.append(np.asarray(function(x)))
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_concurrent_calls():
    function = jit(jnp.fft.fft2)
    inputs = [draw((48, 64), "complex64") for _ in range(8)]
    expected = [np.asarray(function(x)) for x in inputs]

    def call_often(k):
        return all(np.array_equal(function(inputs[k]), expected[k]) for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call_often, range(8)))


def test_the_program_is_checked():
    with config.override(check_jaxprs=True):
        check("fft", draw((1 << 14,), "complex64"))


@pytest.mark.parametrize(("cpu", "features"), [("haswell", "+avx2,+fma,+avx,+sse2"), ("nehalem", "+sse2,+sse4.2")])
def test_narrower_vectors(cpu, features):
    code = """
import numpy as np
import jitcore.numpy as jnp
from jitcore import jit
rng = np.random.default_rng(0)
for dtype, tolerance in ((np.complex64, 1e-5), (np.complex128, 1e-13)):
    for shape in ((24,), (5, 35), (3, 4096), (9, 121)):
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        for name, y in (("fft", x), ("ifftn", x), ("rfft", x.real.copy())):
            expected = getattr(np.fft, name)(y.astype(complex) if name != "rfft" else y.astype(float))
            got = jit(getattr(jnp.fft, name))(y)
            assert abs(got - expected).max() <= tolerance * abs(expected).max()
        y = jit(lambda x: jnp.fft.irfft(jnp.fft.rfft(x), x.shape[-1]))(x.real.copy())
        assert abs(y - x.real).max() <= tolerance * 10
"""
    environment = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "JITCORE_CACHE_DIR": ""}
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
