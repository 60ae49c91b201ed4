"""Price of a European call option (Black and Scholes 1973): log, sqrt, exp and erf of three inputs."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.inputs import make_uniform

RATE, VOLATILITY = 0.02, 0.3


def make_price(api):
    jnp, erf = api.numpy, api.scipy.special.erf

    def price(spot, strike, years):
        spread = VOLATILITY * jnp.sqrt(years)
        d1 = (jnp.log(spot / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / spread
        d2 = d1 - spread
        normal1 = 0.5 * (1 + erf(d1 * 0.5**0.5))
        normal2 = 0.5 * (1 + erf(d2 * 0.5**0.5))
        return spot * normal1 - strike * jnp.exp(-RATE * years) * normal2

    return price


def make_price_loop():
    import numba

    f32 = np.float32
    rate, volatility, half, one, root = f32(RATE), f32(VOLATILITY), f32(0.5), f32(1), f32(0.5**0.5)
    drift = f32(RATE + 0.5 * VOLATILITY**2)

    @numba.njit(parallel=True)
    def price(spot, strike, years):
        out = np.empty_like(spot)
        for i in numba.prange(spot.size):
            spread = volatility * math.sqrt(years[i])
            d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
            normal1 = half * (one + math.erf(d1 * root))
            normal2 = half * (one + math.erf((d1 - spread) * root))
            out[i] = spot[i] * normal1 - strike[i] * math.exp(-rate * years[i]) * normal2
        return out

    return price


def _make_inputs(size: int):
    return (make_uniform(50, 150, size), make_uniform(50, 150, size, seed=1),
            make_uniform(0.1, 2, size, seed=2))  # fmt: skip


ROWS = (Workload("black_scholes 1e6 f32", _make_inputs, make_price, numba=make_price_loop),)
