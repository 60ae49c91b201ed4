"""Values, dtypes and weak types of results where they depend on what is known of operands, against JAX."""

import numpy as np
import pytest

import jitcore
from jitcore import jit, numpy as jnp
from tests.jax_answers import ask

# w: weak floats, M: a weak matrix, i: weak integers, s: strong floats.
EXPRESSIONS = """
    w @ w;jnp.dot(w, w);jnp.dot(w, w[0]);jnp.dot(w, s);jnp.dot(w, w, preferred_element_type=jnp.float32);jnp.dot(i, i)
    jnp.vdot(w, w);jnp.inner(w, w);jnp.inner(w, w[0]);jnp.tensordot(M, w, 1);jnp.linalg.vecdot(M, w)
    jnp.einsum("i,i", w, w);jnp.outer(w, w);jnp.kron(w, w);jnp.trace(M)
    jnp.pad(w, 1);jnp.pad(w, 1, constant_values=2.0);jnp.pad(w, 1, mode="edge");jnp.pad(s, 1)
    jnp.diag(w);jnp.diagflat(w);jnp.tril(M);jnp.triu(M);jnp.tril(jnp.ones((2, 2)))
    jnp.interp(1.0, w, w);jnp.interp(s, w, w);jnp.interp(w, w, s);jnp.gradient(w);jnp.gradient(s)
    jnp.int8(5) ** jnp.int32(3);jnp.uint8(3) ** jnp.uint8(250);jnp.int8(2) ** 250;jnp.asarray(3) ** jnp.int8(2)
    jnp.bfloat16(-1) ** 257;jnp.float32(-1) ** (2**24 + 1);jnp.array(True) ** jnp.int8(2);jnp.float16(2) ** jnp.int32(-2)
    jnp.int32(2) ** jnp.int32(-1);jnp.arange(3) ** jnp.arange(3, dtype=jnp.int8);jnp.arange(3) ** np.int8(2)
    jnp.arange(4).at[jnp.array([2, 2])].divide(2);jnp.arange(4).at[jnp.array([2, 2])].power(2)
    lax.fori_loop(jnp.uint8(0), jnp.uint8(3), lambda i, x: x + 100 * i, 0)
    lax.fori_loop(np.int16(1), jnp.int32(3), lambda i, x: i, 0);lax.fori_loop(0, 2, lambda i, x: x + i, jnp.int8(0))
    jnp.hypot(w, w);jnp.hypot(w, 1.0);jnp.hypot(3, 4.0);jnp.hypot(i, i);jnp.hypot(w[0], w[1]);jnp.hypot(w[:0], 1)
    jnp.cross(w, w);jnp.cross(i, i);jnp.cross(w[:2], w);jnp.cross(w[:2], w[:2]);jnp.cross(w, s);jnp.cross(M, w)
    jnp.diagonal(M);jnp.diagonal(M, 1);jnp.diagonal(M[:2]);jnp.diagonal(M[None]);jnp.diag(M);jnp.diag(M, 1);jnp.trace(M, 1)
    jnp.diagonal(s[:, None] > s);jnp.linalg.diagonal(M)
    lax.ragged_dot(M, M[None], jnp.array([3.0]))
""".replace("\n", ";").split(";")
EXPRESSIONS = [text.strip() for text in EXPRESSIONS if text.strip()]


def evaluate(jax, text, wrap=lambda f: f):
    numpy = jax.numpy
    names = {"jnp": numpy, "lax": jax.lax, "np": np}
    w = numpy.arange(3) * 1.5
    names |= {"w": w, "M": numpy.outer(w, w), "i": numpy.full((3,), 2), "s": numpy.ones(3)}
    try:
        return wrap(lambda: eval(text, names))()
    except (TypeError, ValueError) as error:
        return type(error).__name__


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_like_jax(text):
    wanted = ask(lambda jax: evaluate(jax, text))
    for got in (evaluate(jitcore, text), evaluate(jitcore, text, jit)):
        if isinstance(wanted, str):
            assert got == wanted
            continue
        assert (got.dtype, got.shape, got.weak_type) == (wanted.dtype, wanted.shape, wanted.weak_type)
        np.testing.assert_allclose(np.asarray(got, float), np.asarray(wanted, float), rtol=1e-6)


def test_known_exponents_of_64_bits_widen():
    assert (jnp.int32(2) ** np.int64(3)).dtype == np.int64
