"""Window reductions with random geometry against JAX."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import lax
from jitcore.lax import window
from tests.jax_answers import jax
from tests.lax.oracle import check_against_jax, random_array

jax_lax = jax.lax

FOLDS = {"add": (0, lax.add, jax_lax.add), "max": ("lowest", lax.max, jax_lax.max),
         "min": ("highest", lax.min, jax_lax.min)}


def identity_of(initial, dtype):
    if initial == 0:
        return dtype.type(0)
    if dtype.kind == "i":
        return np.iinfo(dtype).min if initial == "lowest" else np.iinfo(dtype).max
    return dtype.type(-np.inf if initial == "lowest" else np.inf)


def random_geometry(rng, ndim: int) -> dict:
    def draw(low, high):
        return tuple(int(value) for value in rng.integers(low, high, ndim))

    padding = str(rng.choice(["SAME", "VALID", "SAME_LOWER"]))
    if rng.random() < 0.5:
        padding = tuple(zip(draw(-1, 3), draw(0, 3)))
    return {"window_dimensions": draw(1, 4), "window_strides": draw(1, 4), "padding": padding,
            "base_dilation": draw(1, 3), "window_dilation": draw(1, 3)}


@settings(max_examples=25, deadline=None, derandomize=True)  # XLA ends the process at some geometries
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(list(FOLDS)), st.sampled_from(["int32", "float32", "float16"])
)
def test_against_jax(seed, fold, dtype):
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 4))
    x = random_array(rng, tuple(rng.integers(1, 7, ndim)), dtype)
    geometry = random_geometry(rng, ndim)
    initial, ours, theirs = FOLDS[fold]
    initial = identity_of(initial, x.dtype)
    check_against_jax(
        lambda x: window.reduce_window(x, initial, ours, **geometry),
        lambda x: jax_lax.reduce_window(x, initial, theirs, **geometry),
        x,
        tolerance=1e-2 if dtype == "float16" else None,
    )


def test_initial_value_that_is_no_identity():
    x = np.ones((4,), np.float32)
    assert window.reduce_window(x, 10.0, lax.add, (2,)).tolist() == [12, 12, 12]


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", "same"])
def test_padtype_to_pads(padding):
    shapes = ((8, 7, 3), (3, 2, 5), (2, 3, 1))
    assert window.padtype_to_pads(*shapes, padding) == jax_lax.padtype_to_pads(*shapes, padding)


X = np.ones((2, 3, 8), np.float32)


@pytest.mark.parametrize("arguments, kind, text", [
    (((1, 1, 2), (1, 1), "VALID"), TypeError, "inconsistent window_strides and window_dimensions"),
    (((1, 1, 0), (1, 1, 1), "VALID"), TypeError, "must have every element be strictly positive"),
    (((1, 1, 2), (1, 1, 1), "FOO"), RuntimeError, "Unrecognized padding type"),
])
def test_errors(arguments, kind, text):
    with pytest.raises(kind, match=text):
        window.reduce_window(X, 0.0, lax.add, *arguments)


def test_another_computation():
    found = window.reduce_window(X, 1.0, lax.mul, (1, 1, 2))
    np.testing.assert_allclose(found, np.asarray(X)[..., :-1] * np.asarray(X)[..., 1:], rtol=1e-6)
