"""Which kernels compute square roots by two units of the processor, and that they round as one does."""

import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.machine import host


def sum_terms(x, count: int):
    """A root beside `count` sums."""
    total = jnp.sqrt(x)
    for number in range(count):
        total = total + number * 0.5
    return total


def sum_distances(points):
    apart = points[:, None] - points[None]
    return jnp.sqrt((apart * apart).sum(-1)).sum()


def invert_distances(points):
    apart = points[:, None] - points[None]
    return (1 / jnp.sqrt((apart * apart).sum(-1) + 1)).sum(1)


# function -> by which functions it computes roots where not by the instruction alone; whether both the units
# that multiply and the one that divides compute some.
KERNELS = {
    "alone": (jnp.sqrt, "shared_sqrt", True),
    "a few sums": (lambda x: sum_terms(x, 4), "shared_sqrt", True),
    "many sums": (lambda x: sum_terms(x, 20), "", False),
    "two roots": (lambda x: sum_terms(x, 6) + sum_terms(x + 1, 4), "shared_sqrt", True),
    "in one register": (lambda x: jnp.sqrt(x) + jnp.exp(x), "", False),
    "beside a division": (lambda x: 2 / (x * jnp.sqrt(x)), "multiplied_sqrt", True),
    "beside a division and sums": (lambda x: 2 / sum_terms(x, 20), "", False),
    "of a sum over three": (lambda x: jnp.sqrt((x.reshape(-1, 3) ** 2).sum(1)), "shared_sqrt", True),
    "of a long sum": (lambda x: jnp.sqrt((x.reshape(20, -1) ** 2).sum(0)), "", False),
    "of float32, divided": (lambda x: 2 / jnp.sqrt(x.astype(jnp.float32)), "multiplied_sqrt", True),
    "summed": (lambda x: jnp.sqrt(x).sum(), "shared_sqrt", True),
    "of pairs": (lambda x: sum_distances(x.reshape(-1, 3)), "multiplied_sqrt", True),
    "of pairs, divided": (lambda x: invert_distances(x.reshape(-1, 3)), "multiplied_sqrt", True),
}


def find_units(text: str) -> list[str]:
    """Which functions of `mathlib` the code calls for roots, in its order."""
    return re.findall(r"call .*jitcore\.(\w*sqrt)\.", text)


def counts_both(text: str) -> bool:
    """Whether the code has both the approximate inverse root and the instruction for roots."""
    return "rsqrt14" in text and "llvm.sqrt" in text


@pytest.mark.skipif("avx512f" not in host.cpu_features(), reason="the processor has no AVX-512")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_by_two_units(name, monkeypatch):
    monkeypatch.setattr(host, "cpu_name", lambda: "sapphirerapids")
    function, wanted, has_both = KERNELS[name]
    compiled = jit(function, backend="cpu")
    compiled(np.ones(1200))
    assert set(find_units(compiled.inspect("kernel"))) == set(wanted.split())
    assert counts_both(compiled.inspect("llvm")) == has_both


# function, dtype -> by which functions Zen computes roots, of four rows side by side or one.
ON_ZEN = {
    "of float32": (jnp.sqrt, "float32", []),
    "of float64": (jnp.sqrt, "float64", ["shared_sqrt"]),
    "divided": (lambda x: 2 / jnp.sqrt(x), "float64", ["shared_sqrt"]),
    "of pairs": (sum_distances, "float32", ["multiplied_sqrt"]),
    "of pairs of float64": (sum_distances, "float64", ["multiplied_sqrt"] * 2),
    "of pairs, divided": (invert_distances, "float32", ["shared_sqrt"]),
}


@pytest.mark.skipif("avx512f" not in host.cpu_features(), reason="the processor has no AVX-512")
@pytest.mark.parametrize("name", ON_ZEN)
def test_kernels_on_zen(name, monkeypatch):
    monkeypatch.setattr(host, "cpu_name", lambda: "znver5")
    function, dtype, wanted = ON_ZEN[name]
    compiled = jit(function, backend="cpu")
    compiled(np.ones((400, 3), dtype))
    assert find_units(compiled.inspect("kernel")) == wanted


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [5, 16, 33, 130])
def test_rows_side_by_side(dtype, count):
    points = np.random.default_rng(count).random((count, 3)).astype(dtype)
    exact = points.astype(np.float64)
    distances = np.sqrt(((exact[:, None] - exact[None]) ** 2).sum(-1))
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(np.asarray(jit(sum_distances)(points)), distances.sum(), rtol=tolerance)
    expected = (1 / np.sqrt(distances**2 + 1)).sum(1)
    np.testing.assert_allclose(np.asarray(jit(invert_distances)(points)), expected, rtol=tolerance)


@pytest.mark.parametrize("size", [1, 7, 16, 17, 100, 4099])
def test_roots_are_those_of_numpy(size):
    rng = np.random.default_rng(size)
    x = np.where(rng.random(size) < 0.1, rng.choice([0.0, np.inf, 1e-310, -0.0], size), rng.random(size))
    np.testing.assert_array_equal(np.asarray(jit(jnp.sqrt)(x)), np.sqrt(x))
    np.testing.assert_array_equal(np.asarray(jit(lambda x: jnp.sqrt(x * 3))(x)), np.sqrt(x * 3))
