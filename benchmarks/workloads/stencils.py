"""Neighbours of each element: relaxation in two and three dimensions, convolutions."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, parallel_loop
from benchmarks.programs import make_jacobi
from benchmarks.workload import DTYPES, Workload

STEPS = 100
TAPS = 31
CHANNELS, FILTERS = 16, 32


@parallel_loop
def run_jacobi(u):
    quarter = u.dtype.type(0.25)
    now, new = u.copy(), u.copy()
    for _ in range(STEPS):
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = quarter * (now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1])
        now, new = new, now
    return now


def relax_numpy(u):
    u = u.copy()
    for _ in range(STEPS):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u


def make_laplacian(api) -> Callable:
    """Seven points: a step of diffusion in three dimensions."""

    def step(u):
        inner = u[1:-1, 1:-1, 1:-1]
        neighbours = (u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
                      + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:])
        return u.at[1:-1, 1:-1, 1:-1].set(inner + 0.1 * (neighbours - 6 * inner))

    return step


def diffuse_numpy(u):
    out = u.copy()
    inner = u[1:-1, 1:-1, 1:-1]
    neighbours = (u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
                  + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:])
    out[1:-1, 1:-1, 1:-1] = inner + 0.1 * (neighbours - 6 * inner)
    return out


@parallel_loop
def run_diffusion(u):
    out = np.empty_like(u)
    tenth, six = u.dtype.type(0.1), u.dtype.type(6)
    out[0], out[-1] = u[0], u[-1]
    for i in numba.prange(1, u.shape[0] - 1):
        out[i, 0], out[i, -1] = u[i, 0], u[i, -1]
        for j in range(1, u.shape[1] - 1):
            out[i, j, 0], out[i, j, -1] = u[i, j, 0], u[i, j, -1]
            for k in range(1, u.shape[2] - 1):
                neighbours = (u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
                              + u[i, j, k - 1] + u[i, j, k + 1])
                out[i, j, k] = u[i, j, k] + tenth * (neighbours - six * u[i, j, k])
    return out


@parallel_loop(fastmath=REORDER)
def convolve_vector(x, kernel):
    out = np.zeros_like(x)
    half = kernel.size // 2
    for i in numba.prange(x.size):
        total = x.dtype.type(0)
        for k in range(max(0, i + half + 1 - x.size), min(kernel.size, i + half + 1)):
            total += kernel[k] * x[i + half - k]
        out[i] = total
    return out


def make_convolution(api) -> Callable:
    def convolve(images, kernel):
        return api.lax.conv_general_dilated(images, kernel, (1, 1), "SAME",
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return convolve


def convolve_numpy(images, kernel):
    """As one matrix product of all 3x3 neighbourhoods."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.tensordot(windows, kernel, axes=((3, 4, 5), (2, 0, 1)))


@parallel_loop(fastmath=REORDER)
def convolve_images(images, kernel):
    count, height, width, channels = images.shape
    out = np.zeros((count, height, width, kernel.shape[3]), images.dtype)
    for line in numba.prange(count * height):
        n, y = line // height, line % height
        for dy in range(max(0, 1 - y), min(3, height + 1 - y)):
            for x in range(width):
                target = out[n, y, x]
                for dx in range(max(0, 1 - x), min(3, width + 1 - x)):
                    for c in range(channels):
                        value = images[n, y + dy - 1, x + dx - 1, c]
                        for f in range(kernel.shape[3]):
                            target[f] += value * kernel[dy, dx, c, f]
    return out


def _make_grid_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    return (
        Workload(f"Jacobi {STEPS} steps 1000x1000 {name}",
                 lambda side: (make_normal(side, side, dtype=dtype),), lambda api: make_jacobi(api, STEPS),
                 size=1000, tiny=20, numpy=relax_numpy, numba=run_jacobi,
                 bytes_moved=lambda u: 2 * STEPS * u.nbytes),
        Workload(f"7-point step 128^3 {name}", lambda side: (make_normal(side, side, side, dtype=dtype),),
                 make_laplacian, size=128, tiny=10, numpy=diffuse_numpy, numba=run_diffusion,
                 bytes_moved=lambda u: 2 * u.nbytes),
    )


def _make_images(side: int) -> tuple:
    return make_normal(8, side, side, CHANNELS), make_normal(3, 3, CHANNELS, FILTERS, seed=1)


ROWS = (
    *(row for name, dtype in DTYPES.items() for row in _make_grid_rows(name, dtype)),
    Workload(f"conv1d 1e6, {TAPS} taps f32", lambda size: (make_normal(size), make_normal(TAPS, seed=1)),
             lambda api: lambda x, kernel: api.numpy.convolve(x, kernel, mode="same"), numba=convolve_vector,
             flops=lambda x, kernel: 2.0 * x.size * kernel.size),
    Workload("conv2d 3x3, 8x64x64x16 to 32 f32", _make_images, make_convolution, size=64, tiny=8,
             numpy=convolve_numpy, numba=convolve_images,
             flops=lambda images, kernel: 18.0 * images.size * FILTERS),
)
