"""Fourier transforms against JAX."""

import numpy as np
import pytest

from jitcore import lax
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

RNG = np.random.default_rng(8)

CASES = [
    ("fft", "complex64", (3, 4, 5), (5,)),
    ("fft", "complex128", (3, 4, 5), (4, 5)),
    ("fft", "float32", (3, 4), (4,)),
    ("ifft", "complex64", (3, 4, 5), (3, 4, 5)),
    ("rfft", "float32", (3, 4, 5), (4, 5)),
    ("rfft", "float64", (6,), (6,)),
    ("irfft", "complex64", (3, 4), (6,)),
    ("irfft", "complex64", (3, 4), (7,)),
    ("irfft", "complex128", (3, 4), (3, 7)),
]


@pytest.mark.parametrize("kind, dtype, shape, lengths", CASES)
def test_against_jax(kind, dtype, shape, lengths):
    x = random_array(RNG, shape, dtype)
    if kind == "irfft":  # the imaginary parts that a real signal cannot have are ignored in ways that differ
        real = random_array(RNG, (*shape[: -len(lengths)], *lengths), np.zeros(0, dtype).real.dtype)
        x = np.fft.rfftn(real, axes=range(real.ndim - len(lengths), real.ndim)).astype(dtype)
    check_against_jax(lambda x: lax.fft(x, kind, lengths), lambda x: jax_lax.fft(x, kind, lengths), x,
                      tolerance=1e-10 if dtype in ("float64", "complex128") else 1e-4)


def test_empty_batch():
    assert lax.fft(np.zeros((0, 4), np.complex64), "fft", (4,)).shape == (0, 4)


def test_type_by_enum():
    x = random_array(RNG, (4,), "complex64")
    np.testing.assert_array_equal(lax.fft(x, lax.FftType.FFT, (4,)), lax.fft(x, "FFT", (4,)))


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: lax.fft(X, "foo", (4,)), ValueError, "Unknown FFT type 'foo'"),
        (lambda: lax.fft(X, 0, (4,)), TypeError, "Unknown FFT type value 0"),
        (lambda: lax.fft(X + 0j, "fft", (3,)), ValueError, "minor dimensions must be equal to"),
        (lambda: lax.fft(X, "rfft", (1, 3, 4)), ValueError, "at least as many input dimensions"),
        (lambda: lax.fft(X + 0j, "rfft", (4,)), ValueError, "only real valued inputs supported for rfft"),
        (
            lambda: lax.fft(X.astype(np.float16), "rfft", (4,)),
            ValueError,
            "RFFT input must be float32 or float64",
        ),
        (lambda: lax.fft(X + 0j, "irfft", (4,)), ValueError, "minor dimensions"),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
