"""Reproduces `coefficients.py`: minimax polynomials by Remez's exchange in 50-digit arithmetic.

In: the table `FITS` below. Out: the file `coefficients.py`. Run it (needs mpmath):
`python -m tests.backends.llvm.fitting.fit [NAME...]`; with names only those fits are made anew. Every fit
minimises max |weight(x) * (target(x) - sum c[j] * x**j)| over its interval. Coefficients are rounded to the format one after the other, from the
lowest power on, and after each rounding the rest is fitted again, so that rounding costs almost nothing.
"""
import sys
import textwrap
from pathlib import Path
from typing import Callable, NamedTuple

import mpmath as mp
import numpy as np

mp.mp.dps = 50
OUTPUT = Path(__file__).parents[4] / "backends/llvm/mathlib/coefficients.py"
HEADER = '''\
"""Coefficients of the minimax polynomials, lowest power first; made by `fit.py`, not edited by hand.

Key: (name of the fit, bits of the format). The comment is the largest weighted error as rounded.
"""
COEFFICIENTS = {
'''


class Fit(NamedTuple):
    """One approximation: `target(x)` on `interval`, error times `weight(x)`, number of terms by format.

    The interval is a pair, or a pair for each format.
    """
    target: Callable
    weight: Callable
    interval: tuple | dict
    terms: dict


def find_exchange(errors, count):
    """`count` grid indices where the error alternates in sign and is locally largest."""
    peaks, start = [], 0
    signs = [e > 0 for e in errors]
    for i in range(1, len(errors) + 1):
        if i == len(errors) or signs[i] != signs[start]:
            peaks.append(max(range(start, i), key=lambda j: abs(errors[j])))
            start = i
    while len(peaks) > count:
        weaker = 0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1
        peaks.pop(weaker)
    return peaks


def measure_errors(solution, values, weights, powers):
    """The weighted error at every grid point."""
    return [w * (v - mp.fdot((c, p[i]) for c, p in zip(solution, powers)))
            for i, (v, w) in enumerate(zip(values, weights))]


def run_remez(values, weights, powers, start):
    """Minimax coefficients for `values` on a grid, `start` if no exchange improves on it.

    powers[j][i] is the j-th basis function at grid point i.
    """
    count, size = len(powers), len(values)
    nodes = [round((size - 1) * k / count) for k in range(count + 1)]
    best, least = start, max(map(abs, measure_errors(start, values, weights, powers)))
    for _ in range(25):
        system, right = mp.matrix(count + 1), mp.matrix(count + 1, 1)
        for row, i in enumerate(nodes):
            for column in range(count):
                system[row, column] = powers[column][i] * weights[i]
            system[row, count] = (-1) ** row
            right[row] = values[i] * weights[i]
        solution = mp.lu_solve(system, right)
        errors = measure_errors(solution[:count], values, weights, powers)
        largest = max(map(abs, errors))
        if largest < least:
            best, least = solution[:count], largest
        nodes = find_exchange(errors, count + 1)
        if len(nodes) < count + 1 or largest <= abs(solution[count]) * mp.mpf("1.01"):
            break
    return best


def round_to(value, bits):
    return mp.mpf(float(np.float32(value))) if bits == 32 else mp.mpf(float(value))


def fit_polynomial(fit, bits):
    """(rounded coefficients, largest weighted error) of one approximation."""
    interval = fit.interval[bits] if isinstance(fit.interval, dict) else fit.interval
    low, high = map(mp.mpf, interval)
    terms = fit.terms[bits]
    size = 30 * terms + 30
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * size)) for i in range(size)]
    values, weights = [fit.target(x) for x in grid], [fit.weight(x) for x in grid]
    powers = [[x ** j for x in grid] for j in range(terms)]
    rounded, rest = [], [mp.mpf(0)] * terms
    while len(rounded) < terms:
        rest = run_remez(values, weights, powers[len(rounded):], rest)
        c, rest = round_to(rest[0], bits), rest[1:]
        values = [v - c * p for v, p in zip(values, powers[len(rounded)])]
        rounded.append(c)
    return rounded, max(abs(v * w) for v, w in zip(values, weights))


def root(z):
    return mp.sqrt(z)


def odd_remainder(function):
    """(function(s) - s) / s**3 as a function of z = s**2, for an odd function with slope one at zero."""
    return lambda z: (function(root(z)) - root(z)) / (z * root(z))


def odd_weight(function):
    """Makes the error of `odd_remainder` relative to the function."""
    return lambda z: z * root(z) / function(root(z))


def scale_erfc(x):
    """exp(x**2) * erfc(x) * (1 + 2 * x)."""
    return mp.exp(x**2) * mp.erfc(x) * (1 + 2 * x)


def remove_stirling(x):
    """lgamma(x) less the leading terms of Stirling's series."""
    return mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2


def invert_erf(w):
    """erf_inv(x) / x where w = -log(1 - x**2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def weigh_near(r):
    """Makes the error of `log_near` relative to the logarithm. Only beside the interval around one is r
    larger than 0.0238, and there the table adds at least 0.0378 (float64) of its sign.
    """
    return r**2 / (abs(mp.log1p(r)) + (mp.mpf("0.0378") if abs(r) > mp.mpf("0.0238") else 0))


def bessel_i0(z):
    """The modified Bessel function of order 0 of z = x**2."""
    return mp.besseli(0, root(z))


def bessel_i1(z):
    """The modified Bessel function of order 1, less a factor of x, of z = x**2."""
    return mp.besseli(1, root(z)) / root(z)


def remove_growth(order):
    """exp(-x) * sqrt(x) times the modified Bessel function of that order, x = 1 / u."""
    return lambda u: mp.besseli(order, 1 / u) * mp.exp(-1 / u) / root(u)


def scale_mills(t):
    """erfc(x / sqrt(2)) / 2 * exp(x**2 / 2) * (x + 4) with t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return mp.erfc(x / ROOT_TWO) / 2 * mp.exp(x**2 / 2) * (x + 4)


def invert_normal(w):
    """ndtri(p) / (p - 1/2) where w = -log(4 p (1 - p))."""
    rest = mp.exp(-w)
    distance = mp.sqrt(1 - rest)
    if w < 3:
        return 2 * ROOT_TWO * mp.erfinv(distance) / distance
    goal = mp.log(rest / (1 + distance) / 2)
    x = mp.sqrt(-2 * goal - mp.log(-2 * goal))
    for _ in range(8):
        tail = mp.erfc(x / ROOT_TWO) / 2
        x += (mp.log(tail) - goal) * tail * mp.exp(x**2 / 2) * mp.sqrt(2 * mp.pi)
    return 2 * x / distance


def scale_quantile(t):
    """invert_normal(w) / sqrt(w + 2) with t = (w - 12) / (w + 12)."""
    w = 12 * (1 + t) / (1 - t)
    return invert_normal(w) / root(w + 2)


def invert(target):
    """Makes an error relative to the target."""
    return lambda x: 1 / target(x)


def fit_quantile_tail(center, low, high, terms):
    """invert_normal(s**2) / (s + 3), s from low to high, by a polynomial in (s - center) / (s + center)."""
    center = mp.mpf(center)

    def target(t):
        s = center * (1 + t) / (1 - t)
        return invert_normal(s**2) / (s + 3)

    ends = tuple((s - center) / (s + center) for s in map(mp.mpf, (low, high)))
    return Fit(target, invert(target), ends, terms)


TAIL_CENTER = mp.mpf("4.27")
DIGAMMA_ZERO = mp.findroot(lambda x: mp.psi(0, x), "1.4616")
LN2_HALF = mp.log(2) / 2 * mp.mpf("1.01")
ROOT_HALF, ROOT_TWO = mp.sqrt(mp.mpf(1) / 2), mp.sqrt(mp.mpf(2))
EIGHTH_TURN = (mp.pi / 4 * mp.mpf("1.005")) ** 2
NEAR_ONE = {32: ("-0.0184", "0.0178"), 64: ("-0.0343", "0.0313")}
ATANH_END = ((ROOT_TWO - 1) / (ROOT_TWO + 1)) ** 2

FITS = {
    # exp(r) = 1 + r + r**2 * P(r)
    "exp": Fit(lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r),
               (-LN2_HALF, LN2_HALF), {32: 5, 64: 10}),
    # 2**r = 1 + r * P(r)
    "exp2": Fit(lambda r: (2**r - 1) / r, lambda r: r / 2**r, ("-0.501", "0.501"), {32: 6, 64: 11}),
    # log(1 + f) = f - f**2 / 2 + f**3 * P(f)
    "log": Fit(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f),
               (ROOT_HALF - 1, ROOT_TWO - 1), {32: 8}),
    # log(1 + r) = r + r**2 * P(r) for the small r that a table of inverses leaves; to other bases
    # r / log(base) + r**2 * P(r)
    **{f"{name}_near": Fit(lambda r, unit=unit: (mp.log1p(r) - r) / r**2 / unit, weigh_near, NEAR_ONE,
                           {32: 3, 64: 9 if name == "log10" else 8})
       for name, unit in (("log", mp.mpf(1)), ("log2", mp.log(2)), ("log10", mp.log(10)))},
    # the same for pow: log(1 + r) = r - r**2 / 2 + r**3 * P(r), and for float32 log2(1 + r) = r * P(r)
    "log_near_rest": Fit(lambda r: (mp.log1p(r) - r + r**2 / 2) / r**3,
                         lambda r: abs(r) * weigh_near(r), NEAR_ONE, {64: 9}),
    "log2_near_single": Fit(lambda r: mp.log1p(r) / r / mp.log(2),
                            lambda r: weigh_near(r) / abs(r), NEAR_ONE, {64: 6}),
    # exp(r) = 1 + r + r**2 * P(r) and 2**r = P(r) within a sixteenth of a power of two
    "exp_near": Fit(lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), ("-0.0217", "0.0217"),
                    {64: 5}),
    "exp2_near_single": Fit(lambda r: 2**r, lambda r: 2**-r, ("-0.03126", "0.03126"), {64: 4}),
    # log((1 + s) / (1 - s)) = 2 * s + s**3 * P(s**2)
    "log_ratio": Fit(lambda z: 2 * (mp.atanh(root(z)) - root(z)) / (z * root(z)),
                     lambda z: z * root(z) / (2 * mp.atanh(root(z))), (0, ATANH_END), {64: 7}),
    # sin(r) = r + r**3 * P(r**2) and cos(r) = 1 - r**2 / 2 + r**4 * P(r**2) to an eighth of a turn
    "sin_eighth": Fit(odd_remainder(mp.sin), odd_weight(mp.sin), (0, EIGHTH_TURN), {32: 3, 64: 6}),
    "cos_eighth": Fit(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2 / mp.cos(root(z)),
                      (0, EIGHTH_TURN), {32: 3, 64: 6}),
    "atan": Fit(odd_remainder(mp.atan), odd_weight(mp.atan), (0, 1), {32: 9, 64: 19}),
    "asin": Fit(odd_remainder(mp.asin), odd_weight(mp.asin), (0, "0.2505"), {32: 6, 64: 13}),
    # the odd and even parts of exp
    "sinh": Fit(odd_remainder(mp.sinh), odd_weight(mp.sinh), (0, LN2_HALF**2), {32: 2, 64: 5}),
    "cosh": Fit(lambda z: (mp.cosh(root(z)) - 1) / z, lambda z: z / mp.cosh(root(z)),
                (0, LN2_HALF**2), {32: 3, 64: 6}),
    "tanh": Fit(odd_remainder(mp.tanh), odd_weight(mp.tanh), (0, "0.3026"), {32: 5, 64: 10}),
    "tanh_near": Fit(odd_remainder(mp.tanh), odd_weight(mp.tanh), (0, "0.0653"), {64: 7}),
    # log2(1 + f) = s * P(s**2), s = f / (2 + f), and 2**r = P(r), for float32's pow in float64
    "log2_ratio": Fit(lambda z: 2 * mp.atanh(root(z)) / (root(z) * mp.log(2)),
                      lambda z: root(z) * mp.log(2) / (2 * mp.atanh(root(z))), (0, ATANH_END), {64: 5}),
    "exp2_single": Fit(lambda r: 2**r, lambda r: 2**-r, ("-0.501", "0.501"), {64: 7}),
    # log((1 + s) / (1 - s)) = 2 * s + 2 / 3 * s**3 + s**5 * P(s**2)
    "log_ratio_rest": Fit(lambda z: (2 * (mp.atanh(root(z)) - root(z)) / (z * root(z)) - mp.mpf(2) / 3) / z,
                          lambda z: z**2, (0, ATANH_END), {64: 7}),
    "inverse_cbrt": Fit(lambda m: 1 / mp.cbrt(m), mp.cbrt, (1, 8), {32: 4}),
    # cbrt(1 + d) = 1 + d * P(d)
    "cbrt_near": Fit(lambda d: ((1 + d) ** (mp.mpf(1) / 3) - 1) / d, abs,
                     {32: ("-0.0219", "0.022"), 64: ("-0.0302", "0.0305")}, {32: 4, 64: 9}),
    # erf(x) = 1 - exp(P(x)) from one on
    "log_erfc": Fit(lambda x: mp.log(mp.erfc(x)), mp.erfc, {32: (1, 4), 64: (1, 6)}, {32: 8, 64: 18}),
    # erfc(x) = exp(-x**2) / (1 + 2 * x) * P((x - 4) / (x + 4)) from 1/2 on
    "erfc": Fit(lambda t: scale_erfc(4 * (1 + t) / (1 - t)), lambda t: 1,
                ("-0.778", "0.7501"), {32: 12, 64: 22}),
    # lgamma(2 + z) = z * P(z), and from 8 on
    # lgamma(x) = (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + P(1 / x**2) / x
    "lgamma": Fit(lambda z: mp.loggamma(2 + z) / z, lambda z: z / mp.loggamma(2 + z),
                  ("-0.75", "0.25"), {64: 19}),
    "stirling": Fit(lambda u: remove_stirling(1 / root(u)) / root(u), root, (0, 1 / mp.mpf(64)), {64: 6}),
    # digamma(x) = (x - DIGAMMA_ZERO) * P(x - 3/2) from 1 to 2, and from 8 on
    # digamma(x) = log(x) - 1 / (2 x) - P(1 / x**2) / x**2
    "digamma": Fit(lambda t: mp.psi(0, mp.mpf(3) / 2 + t) / (mp.mpf(3) / 2 + t - DIGAMMA_ZERO),
                   lambda t: (mp.mpf(3) / 2 + t - DIGAMMA_ZERO) / mp.psi(0, mp.mpf(3) / 2 + t),
                   ("-0.5", "0.5"), {64: 22}),
    "digamma_series": Fit(lambda u: (-mp.log(u) / 2 - root(u) / 2 - mp.psi(0, 1 / root(u))) / u, lambda u: u,
                          (0, 1 / mp.mpf(64)), {64: 6}),
    # erf_inv(x) = x * P(w - 3) with w = -log(1 - x**2) up to 6, x * P(sqrt(w) - c) beyond
    "erf_inv": Fit(lambda t: invert_erf(3 + t), lambda t: 1 / invert_erf(3 + t), (-3, 3), {32: 11, 64: 23}),
    "erf_inv_tail": Fit(lambda t: invert_erf((TAIL_CENTER + t)**2),
                        lambda t: 1 / invert_erf((TAIL_CENTER + t)**2), ("-1.83", "1.83"), {32: 14, 64: 30}),
    # I0(x) = 1 + z * P(z) and I1(x) = x * (1/2 + z * P(z)), z = x**2, to 6 (float32) and 9;
    # P(1 / x) * exp(x) / sqrt(x) beyond
    **{f"bessel_i{order}": Fit(lambda z, f=f, start=start: (f(z) - start) / z, lambda z, f=f: z / f(z),
                               {32: (0, 36), 64: (0, 81)}, {32: 8, 64: 15})
       for order, start, f in ((0, 1, bessel_i0), (1, mp.mpf(1) / 2, bessel_i1))},
    **{f"bessel_i{order}_tail": Fit(remove_growth(order), invert(remove_growth(order)),
                                    {32: (0, "0.1667"), 64: (0, "0.11112")}, {32: 8 - order, 64: 20 + order})
       for order in (0, 1)},
    # the tail probability Q(x) = exp(-x**2 / 2) / (x + 4) * P((x - 4) / (x + 4)) of normal numbers
    "mills_ratio": Fit(scale_mills, invert(scale_mills), (-1, 1), {32: 12, 64: 25}),
    # with w = -log(4 p (1 - p)) ndtri(p) / (p - 1/2) is sqrt(w + 2) * P((w - 12) / (w + 12)) in float32;
    # in float64 P(w - 3) to 6 and then, with s = sqrt(w), (s + 3) * P((s - c) / (s + c))
    "ndtri": Fit(scale_quantile, invert(scale_quantile), (-1, "0.7925"), {32: 18}),
    "ndtri_center": Fit(lambda t: invert_normal(3 + t), invert(lambda t: invert_normal(3 + t)),
                        (-3, 3), {64: 23}),
    "ndtri_tail": fit_quantile_tail("3.625", "2.448", "5.501", {64: 25}),
    "ndtri_far_tail": fit_quantile_tail("12", "5.499", "27.3", {64: 23}),
    # erf(x) = x + x * P(x**2) to one
    "erf": Fit(lambda z: mp.erf(root(z)) / root(z) - 1, lambda z: root(z) / mp.erf(root(z)),
               (0, 1), {32: 7, 64: 12}),
}


def format_entry(key, kind, fields, error):
    """The lines of an entry of a table: numbers and tuples of them, and the error as a comment."""
    text = f"{key}: {kind}({', '.join(map(repr, fields))}),"
    comment = f"  # 2**{float(mp.log(error, 2)):.1f}".replace(" ", "\N{NO-BREAK SPACE}")
    return wrap_numbers(text + comment, "    ").replace("\N{NO-BREAK SPACE}", " ")


def wrap_numbers(text, indent=""):
    return textwrap.fill(text, 110, initial_indent=indent, subsequent_indent=indent + "    ",
                         break_long_words=False, break_on_hyphens=False) + "\n"


def floats(numbers):
    return tuple(map(float, numbers))


def read_entries(output=OUTPUT):
    """The entries of the present output file, as text, by key."""
    entries, key = {}, None
    if output.exists():
        for line in output.read_text().splitlines(keepends=True):
            if line.startswith('    ("'):
                name, bits = line.split("(", 1)[1].split(")", 1)[0].split(",")
                key = name.strip('"'), int(bits)
                entries[key] = ""
            elif line.startswith("}"):
                key = None
            if key:
                entries[key] += line
    return entries


def write_coefficients(names):
    """Make the fits called `names` (all of them if there are none) and write the file."""
    entries = read_entries() if names else {}
    for name in names or FITS:
        for bits in FITS[name].terms:
            coefficients, error = fit_polynomial(FITS[name], bits)
            entries[name, bits] = format_entry(f'("{name}", {bits})', "", floats(coefficients), error)
            print(name, bits, len(coefficients), float(mp.log(error, 2)), flush=True)
    OUTPUT.write_text(HEADER + "".join(entries[key] for key in sorted(entries)) + "}\n")


if __name__ == "__main__":
    write_coefficients(sys.argv[1:])
