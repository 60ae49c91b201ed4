"""jaxtyping: shapes and dtypes of Arrays and of traced values, checked at run time."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, jit, vmap

jaxtyping = pytest.importorskip("jaxtyping", reason="jaxtyping is not installed: jitcore[interop]")
from jaxtyping import Complex, Float, Int, Shaped, jaxtyped  # noqa: E402

X = jnp.ones((3, 4))


def test_isinstance():
    assert isinstance(X, Float[Array, "3 4"]) and isinstance(X, Shaped[Array, "n m"])
    assert not isinstance(X, Float[Array, "4 3"]) and not isinstance(X, Int[Array, "3 4"])
    assert not isinstance(np.ones((3, 4)), Float[Array, "3 4"])
    assert isinstance(jnp.asarray(np.ones(2, complex)), Complex[Array, " n"])


def check(f):
    """A checker of annotations, as typeguard and beartype are."""

    def checked(*args):
        for value, kind in zip(args, f.__annotations__.values(), strict=False):
            if not isinstance(value, kind):
                raise TypeError(f"{value} is no {kind}")
        return f(*args)

    checked.__annotations__ = f.__annotations__
    return checked


def test_traced_values():
    seen = []

    @jit
    def product(a: Float[Array, "n m"], b: Float[Array, "m"]) -> Float[Array, "n"]:  # noqa: F722,F821
        seen.append((isinstance(a, Float[Array, "3 4"]), isinstance(a, Float[Array, "3"]), isinstance(b, Float[Array, "4"])))  # noqa: F722,F821
        return a @ b

    np.testing.assert_allclose(product(X, jnp.ones(4)), 4)
    vmap(product)(jnp.ones((2, 3, 4)), jnp.ones((2, 4)))
    assert set(seen) == {(True, False, True)}


def test_dimensions_agree():
    @jaxtyped(typechecker=check)
    def product(a: Float[Array, "n m"], b: Float[Array, "m"]):  # noqa: F722,F821
        return a @ b

    np.testing.assert_allclose(jit(product)(X, jnp.ones(4)), 4)
    with pytest.raises(TypeError, match="Type-check error"):
        jit(product)(X, jnp.ones(5))
