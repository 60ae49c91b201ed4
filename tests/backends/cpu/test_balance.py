"""Which kernels compute square roots by two units of the processor, and that they round as one does."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu import cpuinfo


def sum_terms(x, count: int):
    """A root beside `count` sums."""
    total = jnp.sqrt(x)
    for number in range(count):
        total = total + number * 0.5
    return total


# function -> whether the units that multiply have time
KERNELS = {
    "alone": (jnp.sqrt, True),
    "a few sums": (lambda x: sum_terms(x, 4), True),
    "many sums": (lambda x: sum_terms(x, 20), False),
    "two roots": (lambda x: sum_terms(x, 6) + sum_terms(x + 1, 4), True),
    "beside a function": (lambda x: jnp.sqrt(x) + jnp.exp(x), False),
    "of a sum over three": (lambda x: jnp.sqrt((x.reshape(-1, 3) ** 2).sum(1)), True),
    "of a long sum": (lambda x: jnp.sqrt((x.reshape(20, -1) ** 2).sum(0)), False),
    "of float32": (lambda x: jnp.sqrt(x.astype(jnp.float32)), False),
    "summed": (lambda x: jnp.sqrt(x).sum(), True),
}


def counts_both(text: str) -> bool:
    """Whether the code has both the approximate inverse root and the instruction for roots."""
    return "rsqrt14" in text and "llvm.sqrt" in text


@pytest.mark.skipif("avx512f" not in cpuinfo.cpu_features(), reason="the processor has no AVX-512")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_by_two_units(name):
    function, wanted = KERNELS[name]
    compiled = jit(function, backend="cpu")
    compiled(np.ones(1200))
    assert counts_both(compiled.inspect("llvm")) == wanted


@pytest.mark.parametrize("size", [1, 7, 16, 17, 100, 4099])
def test_roots_are_those_of_numpy(size):
    rng = np.random.default_rng(size)
    x = np.where(rng.random(size) < 0.1, rng.choice([0.0, np.inf, 1e-310, -0.0], size), rng.random(size))
    np.testing.assert_array_equal(np.asarray(jit(jnp.sqrt)(x)), np.sqrt(x))
    np.testing.assert_array_equal(np.asarray(jit(lambda x: jnp.sqrt(x * 3))(x)), np.sqrt(x * 3))
