"""Updates of a window in a new array: what the window leaves is copied by the sweep that writes the window."""

import numpy as np
import pytest

import jitcore
from jitcore.config import config


def update(shape, starts, sizes):
    """The function, and what NumPy makes of it."""
    window = tuple(slice(start, start + size) for start, size in zip(starts, sizes))

    def f(u):
        return u.at[window].set(u[window] * 2 + 1)

    def expected(u):
        out = u.copy()
        out[window] = u[window] * 2 + 1
        return out

    return f, expected


#: (shape, starts, sizes) -> kernels.
WINDOWS = {
    "all sides of a matrix": ((40, 50), (1, 1), (38, 48), 2),
    "all sides of a cube": ((20, 24, 28), (1, 1, 1), (18, 22, 26), 2),
    "wide strips": ((30, 90), (3, 11), (25, 60), 2),
    "rows only": ((30, 90), (3, 0), (25, 90), 2),
    "columns only": ((30, 90), (0, 2), (30, 87), 1),
    "inner dimension full": ((20, 24, 28), (1, 2, 0), (18, 20, 28), 2),
    "middle dimension full": ((20, 24, 28), (2, 0, 1), (17, 24, 25), 2),
    "outer dimension full": ((20, 24, 28), (0, 1, 3), (20, 22, 24), 1),
    "four dimensions": ((9, 10, 11, 12), (1, 1, 1, 1), (7, 8, 9, 10), 2),
    "equal extents": ((20, 20, 20), (1, 1, 1), (18, 18, 18), 2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64", "bool"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, dtype):
    shape, starts, sizes, _ = WINDOWS[name]
    u = (np.random.default_rng(1).normal(size=shape) * 50).astype(dtype)
    f, expected = update(shape, starts, sizes)
    if dtype == "bool":
        window = tuple(slice(start, start + size) for start, size in zip(starts, sizes))
        want = u.copy()
        want[window] = ~u[window]
        f = jitcore.jit(lambda u: u.at[window].set(~u[window]))
        np.testing.assert_array_equal(np.asarray(f(u)), want)
    else:
        np.testing.assert_array_equal(np.asarray(jitcore.jit(f)(u)), expected(u))


@pytest.mark.parametrize("name", WINDOWS)
def test_strips_share_the_windows_sweep(name):
    shape, starts, sizes, kernels = WINDOWS[name]
    f = jitcore.jit(update(shape, starts, sizes)[0])
    f(np.ones(shape, np.float32))
    assert f.inspect("loop program").count("kernel") == kernels


@pytest.mark.machine_code
def test_large_grids_on_any_number_of_threads():
    shape = (70, 80, 90)
    u = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    inner = (slice(1, -1),) * 3

    def step(u):
        around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
        return u.at[inner].set(around - 4 * u[inner])

    results = []
    for count in (1, 2, 5):
        config.update("num_threads", count)
        try:
            results.append(np.asarray(jitcore.jit(step)(u)))
        finally:
            config.update("num_threads", 0)
    wide = u.astype(np.float64)
    around = wide[:-2, 1:-1, 1:-1] + wide[2:, 1:-1, 1:-1] + wide[1:-1, 1:-1, :-2] + wide[1:-1, 1:-1, 2:]
    wide[inner] = around - 4 * u[inner].astype(np.float64)
    np.testing.assert_allclose(results[0], wide, rtol=1e-5, atol=1e-5)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
