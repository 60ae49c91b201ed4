"""Exact values of the mathematical functions by mpmath, and arguments that reach all regimes of their formulas."""
import functools
import math

import mpmath as mp
import numpy as np
import scipy.special

from jitcore.backends.llvm import mathlib


def exact_lgamma(x):
    if x > 0:
        return mp.loggamma(x)
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def exact_pow(x, y):
    """x**y for finite nonzero x, real results only."""
    power = mp.exp(y * mp.log(abs(x)))
    return -power if x < 0 and y % 2 == 1 else power


TINY = mp.mpf(2) ** -2000
CORRECTIONS = [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 41)]


def exact_bessel(order, x):
    return mp.besseli(order, x) * mp.exp(-abs(x))


def exact_log_ndtr(x):
    if x > 40:
        return -TINY
    if x < -1e8:
        return -x * x / 2 - mp.log(-x * mp.sqrt(2 * mp.pi))
    return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def exact_zeta(s, q):
    """Euler and Maclaurin's formula behind forty terms: mpmath's own function loses digits where s and q are large."""
    end = q + 40
    total, step = mp.fsum((q + n) ** -s for n in range(40)), s / end
    tail = 1 / (s - 1) + 1 / (2 * end)
    for k, correction in enumerate(CORRECTIONS, 1):
        tail += correction * step / end
        step *= (s + 2 * k - 1) * (s + 2 * k) / end**2
    return total + end ** (1 - s) * tail


def exact_polygamma(m, x):
    return (-1) ** (int(m) + 1) * mp.factorial(m) * exact_zeta(m + 1, x) if m else mp.psi(0, x)


def exact_ndtri(p):
    """Newton's steps from SciPy's value, by logarithms."""
    if p > 0.5:
        return -exact_ndtri(1 - p)
    x = mp.mpf(float(scipy.special.ndtri(float(p))))
    for _ in range(3):
        tail = mp.erfc(-x / mp.sqrt(2)) / 2
        x -= mp.log(tail / p) * tail * mp.exp(x * x / 2) * mp.sqrt(2 * mp.pi)
    return x


REFERENCE = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "log2": lambda x: mp.log(x, 2), "log10": lambda x: mp.log(x, 10),
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "logistic": lambda x: 1 / (1 + mp.exp(-x)),
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "erf": lambda x: mp.erf(x) if abs(x) < 40 else mp.sign(x),
    "erfc": lambda x: mp.erfc(x) if abs(x) < 40 else 1 - mp.sign(x) + (TINY if x > 0 else 0),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x) if x < 1e5 else (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi)),
    "bessel_i0e": functools.partial(exact_bessel, 0), "bessel_i1e": functools.partial(exact_bessel, 1),
    "ndtri": exact_ndtri, "log_ndtr": exact_log_ndtr, "zeta": exact_zeta, "polygamma": exact_polygamma,
    "erf_inv": mp.erfinv, "lgamma": exact_lgamma, "digamma": lambda x: mp.psi(0, x),
    "shared_sqrt": mp.sqrt, "multiplied_sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x), "atan2": mp.atan2, "hypot": mp.hypot,
    "pow": exact_pow,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
}
DOMAIN = {
    "log": (0, math.inf), "log2": (0, math.inf), "log10": (0, math.inf), "log1p": (-1, math.inf),
    "shared_sqrt": (0, math.inf), "multiplied_sqrt": (0, math.inf), "rsqrt": (0, math.inf), "asin": (-1, 1), "acos": (-1, 1), "acosh": (1, math.inf),
    "atanh": (-1, 1), "erf_inv": (-1, 1), "ndtri": (0, 1), "lgamma": (-1000, 1e300), "digamma": (-1000, 1e300),
    "erfcx": (-100, math.inf), "sinh": (-1000, 1000), "cosh": (-1000, 1000), "exp": (-1000, 1000), "exp2": (-2000, 2000),
    "expm1": (-1000, 1000), "logistic": (-1000, 1000), "tanh": (-1000, 1000),
}
COSTLY = ("erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e", "ndtri", "log_ndtr", "zeta", "polygamma")


def draw_samples(name, dtype, count, seed=0):
    """Finite nonzero arguments inside the domain: bit patterns, log-spaced, uniform, near 1, near
    multiples of pi/2.
    """
    rng, info = np.random.default_rng(seed), np.finfo(dtype)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    signs = rng.choice([-1.0, 1.0], count)
    log_tiny, log_max = math.log(float(info.tiny)), math.log(float(info.max))
    parts = [
        rng.integers(0, 2 ** info.bits, count, dtype=unsigned).view(dtype),
        signs * np.exp(rng.uniform(log_tiny, log_max, count)), signs * np.exp(rng.uniform(-20, 20, count)),
        signs * float(info.smallest_subnormal) * rng.integers(1, 2 ** 20, count),
        1 + signs * np.exp(rng.uniform(math.log(float(info.eps)), 0, count)),
        np.round(np.exp(rng.uniform(0, 25, count))) * (math.pi / 2),
        rng.integers(1, 40, count) * (math.pi / 4),
        *(rng.uniform(-s, s, count) for s in (0.6, 1.0, 4.0, 30.0, 110.0, 750.0)),
    ]
    x = np.concatenate([part.astype(dtype) for part in parts])
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    with np.errstate(over="ignore"):
        return x[np.isfinite(x) & (x != 0) & (x > dtype(low)) & (x < dtype(high))]


def draw_orders(name, dtype, count):
    """Orders and arguments of zeta and polygamma, for which powers stay within the format."""
    rng = np.random.default_rng(5)
    s = [1 + 10 ** rng.uniform(-12 if dtype is np.float64 else -5, 2, count), rng.uniform(1.1, 12, count),
         np.round(rng.uniform(2, 40, count))]
    q = [10 ** rng.uniform(-5, 5, count), rng.uniform(0.1, 10, count), rng.uniform(0.5, 70, count)]
    s, q = (np.concatenate(part).astype(dtype) for part in (s, q))
    inside = np.abs(s * np.log10(q)) < (30 if dtype is np.float32 else 250)
    return [np.floor(s[inside]) - 1 if name == "polygamma" else s[inside], q[inside]]


def draw_arguments(name, dtype, count):
    if name in ("zeta", "polygamma"):
        return draw_orders(name, dtype, count)
    if mathlib.FUNCTIONS[name].arity == 1:
        return [draw_samples(name, dtype, count)]
    x, y = (draw_samples(name, dtype, count, seed) for seed in (1, 2))
    x, y = x[:min(x.size, y.size)], np.random.default_rng(3).permutation(y)[:min(x.size, y.size)]
    if name != "pow":
        return [x, y]
    rng = np.random.default_rng(4)
    moderate = np.exp(rng.uniform(-3, 3, 4 * count)).astype(dtype)
    x = np.concatenate([np.where(np.round(y) == y, x, abs(x)), moderate])
    return [x, np.concatenate([y, rng.uniform(-60, 60, 4 * count).astype(dtype)])]
