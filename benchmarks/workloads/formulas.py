"""Long formulas of each element: an option's price, a chain of a hundred steps, the density of sea water."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np
from numba.extending import register_jitable

from benchmarks.inputs import make_normal, make_uniform
from benchmarks.numba_loops import parallel_loop
from benchmarks.programs import RATE, VOLATILITY, make_chain, make_price
from benchmarks.workload import DTYPES, Workload

LENGTH = 100


@parallel_loop
def run_price(spot, strike, years):
    real = spot.dtype.type
    rate, volatility, half, one, root = real(RATE), real(VOLATILITY), real(0.5), real(1), real(0.5**0.5)
    drift = real(RATE + 0.5 * VOLATILITY**2)
    out = np.empty_like(spot)
    for i in numba.prange(spot.size):
        spread = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
        normal1 = half * (one + math.erf(d1 * root))
        normal2 = half * (one + math.erf((d1 - spread) * root))
        out[i] = spot[i] * normal1 - strike[i] * math.exp(-rate * years[i]) * normal2
    return out


def _make_options(size: int, dtype: str) -> tuple:
    return (make_uniform(50, 150, size, dtype=dtype), make_uniform(50, 150, size, dtype=dtype, seed=1),
            make_uniform(0.1, 2, size, dtype=dtype, seed=2))


def _make_price_row(name: str, dtype: str) -> Workload:
    return Workload(f"black_scholes 1e6 {name}", lambda size: _make_options(size, dtype), make_price,
                    numba=run_price, bytes_moved=lambda spot, strike, years: 4 * spot.nbytes)


@parallel_loop
def run_chain(x):
    real = x.dtype.type
    factor, offset = real(1.01), real(0.1)
    out = np.empty_like(x)
    for i in numba.prange(x.size):
        value = x[i]
        for _ in range(LENGTH):
            value = math.sin(value) * factor + offset
        out[i] = value
    return out


def _make_chain_row(name: str, dtype: str, size: int) -> Workload:
    # the chain is not contracting everywhere: rounding errors grow on the way
    return Workload(f"chain of {LENGTH} sin(x)*1.01+0.1, {size:.0e} {name}".replace("e+0", "e"),
                    lambda n: (make_normal(n, dtype=dtype),), lambda api: make_chain(api, LENGTH), size=size,
                    tiny=100, numba=run_chain, tolerance={"f32": 1e-4, "f64": 1e-11}[name])


# Equation of state of sea water EOS-80 (UNESCO technical papers in marine science 44, 1983): polynomials of
# the temperature, lowest power first, by the powers of salinity and pressure that they multiply.
DENSITY = (
    (999.842594, 6.793952e-2, -9.095290e-3, 1.001685e-4, -1.120083e-6, 6.536332e-9),
    (0.824493, -4.0899e-3, 7.6438e-5, -8.2467e-7, 5.3875e-9),
    (-5.72466e-3, 1.0227e-4, -1.6546e-6),
    (4.8314e-4,),
)
BULK = (
    (19652.21, 148.4206, -2.327105, 1.360477e-2, -5.155288e-5),
    (54.6746, -0.603459, 1.09987e-2, -6.1670e-5),
    (7.944e-2, 1.6483e-2, -5.3009e-4),
    (3.239908, 1.43713e-3, 1.16092e-4, -5.77905e-7),
    (2.2838e-3, -1.0981e-5, -1.6078e-6),
    (1.91075e-4,),
    (8.50935e-5, -6.12293e-6, 5.2787e-8),
    (-9.9348e-7, 2.0816e-8, 9.1697e-10),
)


@register_jitable
def evaluate_polynomial(coefficients, t, real):
    value = real(coefficients[-1])
    for power in range(len(coefficients) - 2, -1, -1):
        value = value * t + real(coefficients[power])
    return value


@register_jitable
def evaluate_density(s, root, t, p, real):
    """Density in kg/m^3 of salinity s (its square root is given too), temperature t in degrees Celsius, and
    pressure p in bar. `real` makes a constant."""
    surface = evaluate_polynomial(DENSITY[0], t, real) + s * (
        evaluate_polynomial(DENSITY[1], t, real)
        + root * evaluate_polynomial(DENSITY[2], t, real)
        + s * evaluate_polynomial(DENSITY[3], t, real)
    )
    constant = evaluate_polynomial(BULK[0], t, real) + s * (
        evaluate_polynomial(BULK[1], t, real) + root * evaluate_polynomial(BULK[2], t, real)
    )
    linear = evaluate_polynomial(BULK[3], t, real) + s * (
        evaluate_polynomial(BULK[4], t, real) + root * evaluate_polynomial(BULK[5], t, real)
    )
    square = evaluate_polynomial(BULK[6], t, real) + s * evaluate_polynomial(BULK[7], t, real)
    return surface / (real(1) - p / (constant + p * (linear + p * square)))


def make_density(api) -> Callable:
    return lambda s, t, p: evaluate_density(s, api.numpy.sqrt(s), t, p, float)


@parallel_loop
def run_density(s, t, p):
    out = np.empty_like(s)
    for i in numba.prange(s.size):
        out[i] = evaluate_density(s[i], math.sqrt(s[i]), t[i], p[i], s.dtype.type)
    return out


def _make_density_row(name: str, dtype: str) -> Workload:
    def make_inputs(size):
        return (make_uniform(30, 40, size, dtype=dtype), make_uniform(0, 30, size, dtype=dtype, seed=1),
                make_uniform(0, 1000, size, dtype=dtype, seed=2))

    return Workload(f"sea water density, 41 terms, 1e6 {name}", make_inputs, make_density, numba=run_density,
                    bytes_moved=lambda s, t, p: 4 * s.nbytes)


ROWS = (
    *(_make_price_row(name, dtype) for name, dtype in DTYPES.items()),
    *(_make_chain_row(name, dtype, size) for size in (10_000, 1_000_000) for name, dtype in DTYPES.items()),
    *(_make_density_row(name, dtype) for name, dtype in DTYPES.items()),
)
