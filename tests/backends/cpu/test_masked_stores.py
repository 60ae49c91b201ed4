"""Rests of loops write the lanes that they have, and nothing behind them, whatever the elements are."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore.backends.cpu.runtime.launch import write_call

FILL = 0x55


def write_into_guarded(function, *arguments):
    """(outputs, bytes behind them) of a jitted function whose outputs lie in larger arrays."""
    compiled = jitcore.jit(function).lower(*arguments).compile()
    program = next(value for value in vars(compiled).values() if hasattr(value, "executable"))
    plan, code = program.executable._fixed.bind.args
    values = [*program.const_values, *arguments]
    values = values if program.kept is None else [values[place] for place in program.kept]
    guarded = [np.full(output.dtype.itemsize * int(np.prod(output.shape)) + 128, FILL, np.uint8)
               for output in plan.outputs]
    outputs = [one[:-128].view(output.dtype).reshape(output.shape) for one, output in zip(guarded, plan.outputs)]
    write_call(plan, code, range(len(outputs)))(*values, *outputs)
    return outputs, [one[-128:] for one in guarded]


TABLE = tuple(np.linspace(0.08, 0.008, 10))


def look_up(k):
    known = jnp.asarray(TABLE, k.dtype)[jnp.asarray(jnp.floor(jnp.clip(k, 0, 9)), np.int32)]
    return jnp.where(k <= 9, known, 1 / (k + 1))


def accept(x, y, done):
    """Its branches have the mask of the rest in one block and the store in another."""
    k = jnp.floor(x)
    near = look_up(k) + look_up(100 - k) - look_up(k + 5)
    found = (jnp.log(y) <= near + jnp.log(k + 1)) | (y > 0.9)
    return jnp.where(found, k, x), done | found


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [*range(1, 40), 100, 333, 800, 2000, 3001])
def test_nothing_behind_the_last_element_is_written(n, kind):
    rng = np.random.default_rng(n)
    x, y, done = rng.uniform(0, 100, n).astype(kind), rng.uniform(0, 1, n).astype(kind), np.zeros(n, bool)
    for _ in range(2):  # to and fro
        (k, found), behind = write_into_guarded(accept, x, y, done)
        assert all((one == FILL).all() for one in behind)
    expected = jitcore.jit(accept, backend="reference")(x, y, done)
    np.testing.assert_allclose(k, expected[0])
    assert np.array_equal(found, expected[1])


@pytest.mark.parametrize("store", [np.bool_, np.int8, np.int16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("load", [np.int8, np.float32, np.float64])
def test_rests_of_narrow_and_wide_elements(store, load):
    for n in (1, 3, 7, 9, 15, 17, 31, 33, 63, 65, 129):
        x = np.arange(n).astype(load)
        (found,), behind = write_into_guarded(lambda x: jnp.where(x > 5, jnp.sqrt(x), x).astype(store), x)
        assert (behind[0] == FILL).all()
