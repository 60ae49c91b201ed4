"""Operations of loop programs, counted."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.backends.cuda.target import CudaTarget
from jitcore.schedule import lower_program
from jitcore.schedule.cost import count_flops

X = np.ones((30, 40), np.float32)


def choose(x):
    return lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x * 3 + 1, x)


@pytest.mark.parametrize(("function", "args", "count"), [
    (lambda x: x * 2 + 1, [X], 2 * 1200),
    (lambda x: jnp.where(x > 0, x, 0), [X], 1200),
    (lambda x: x.T[::2], [X], 0),
    (lambda x: x + 1, [np.ones(7, int)], 0),
    (lambda x: x.sum(1), [X], 1200),
    (lambda x: (x * x).sum(), [X], 2 * 1200),
    (lambda x: jnp.cumsum(x, 1), [X], 1200),
    (lambda x: x @ x.T, [X], 2 * 30 * 30 * 40),
    (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 0.5 + 1, x), [X], 20 * 1200),
    (choose, [X], 3 * 1200),
    (lambda x: jnp.sort(x[0]), [X], 0),
])
def test_operations(function, args, count):
    closed = jitcore.jit(function).lower(*args)._program.compiled_jaxpr
    found = count_flops(lower_program(closed, CudaTarget(), ()))
    assert count <= found <= 1.01 * count + 4  # a few of scalars
