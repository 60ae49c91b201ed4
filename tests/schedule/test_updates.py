"""Where updates (`x.at[i].set(v)`) are made: in the memory of what they update, if nothing reads that later."""

import numpy as np
import pytest

from jitcore import jit, lax
from jitcore import numpy as jnp

X = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
ROWS = np.array([3, 3, 40])


def into_zeros(x, rows):
    return jnp.zeros_like(x).at[rows].add(x[rows]) * 2


def chain(x, rows):
    y = jnp.sin(x).at[rows].set(1.0)
    return jnp.sum(y.at[rows[0]].add(5.0).at[1:3].multiply(3.0), axis=0)


def read_before(x, rows):
    y = jnp.sin(x)
    z = y[::2] * 2
    return y.at[rows].set(0.0)[rows] + z[:3]


def read_after(x, rows):
    y = jnp.sin(x)
    z = y.at[rows].set(0.0)
    return z[rows] + y[rows]


def covering(x, rows):
    return jnp.sum(lax.dynamic_update_slice(jnp.cos(x), x[1:] - x[:-1], (0, 0)))


@pytest.mark.parametrize("function, sweeps", [(into_zeros, 2), (chain, None), (read_before, None),
                                              (read_after, None), (covering, None)])  # fmt: skip
def test_updates_of_temporaries(function, sweeps):
    compiled = jit(function)
    np.testing.assert_allclose(compiled(X, ROWS), function(jnp.asarray(X), ROWS), rtol=1e-6, atol=1e-6)
    if sweeps is not None:  # zeros, the scatter, and the result: no copy between them
        assert compiled.inspect("loop program").count("in range(200)") == sweeps
