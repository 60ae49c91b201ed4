"""einops: rearrangements of Arrays and of traced values."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import Array, AutojitWarning, autojit, grad, jit, vmap

einops = pytest.importorskip("einops", reason="einops is not installed: jitcore[interop]")
import jitcore.einops  # noqa: E402,F401

X = np.arange(24.0).reshape(2, 3, 4)
CASES = {
    "rearrange": lambda x: einops.rearrange(x, "b h w -> (b w) h"),
    "split": lambda x: einops.rearrange(x, "b h (w v) -> b v h w", v=2),
    "reduce": lambda x: einops.reduce(x, "b h w -> b", "mean"),
    "maximum": lambda x: einops.reduce(x, "b h (w v) -> b h w", "max", v=2),
    "repeat": lambda x: einops.repeat(x, "b h w -> b h w c", c=3),
    "einsum": lambda x: einops.einsum(x, x, "b h w, b k w -> b h k"),
    "stack": lambda x: einops.rearrange([x, 2 * x], "n b h w -> b n (h w)"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    f = CASES[name]
    expected = f(X)
    for found in (f(jnp.asarray(X)), jit(f)(X)):
        assert isinstance(found, Array) and found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected)


def test_under_transformations():
    f = lambda x: einops.reduce(einops.rearrange(x, "h w -> w h") ** 2, "w h -> ", "sum")  # noqa: E731
    np.testing.assert_allclose(jit(grad(f))(X[0]), 2 * X[0])
    np.testing.assert_allclose(vmap(f)(X), (X**2).sum((1, 2)))


def test_pack():
    packed, shapes = einops.pack([jnp.asarray(X), jnp.asarray(X[..., 0])], "b *")
    np.testing.assert_array_equal(packed, einops.pack([X, X[..., 0]], "b *")[0])
    np.testing.assert_array_equal(einops.unpack(packed, shapes, "b *")[1], X[..., 0])
    assert einops.parse_shape(jnp.asarray(X), "b _ w") == {"b": 2, "w": 4}


def test_under_autojit():
    """What einops does besides is not known, so that it runs as it is; the warning says so."""

    @autojit
    def f(x):
        return einops.rearrange(np.sin(x), "b h w -> (b w) h") + 1

    with pytest.warns(AutojitWarning, match="einops"):
        found = f(X)
    np.testing.assert_allclose(found, np.sin(X).transpose(0, 2, 1).reshape(8, 3) + 1, rtol=1e-12)


def test_mixed_with_other_libraries():
    """Its own types go where they went."""
    assert isinstance(einops.rearrange(X, "b h w -> h w b"), np.ndarray)
