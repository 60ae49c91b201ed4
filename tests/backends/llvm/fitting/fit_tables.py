"""Reproduces `tables.py`: what formulas look up in registers of AVX-512.

In: the tables of this file. Out: the file `tables.py`. Run it (needs mpmath): `python -m
tests.backends.llvm.fitting.fit_tables`.

Logarithms: m in [3/4, 3/2) is near j / steps for the integer j that m * steps rounds to; the inverse c of
that place makes f = m c - 1 small, and log m = log(1 + f) - log c. Around one c is one. -log c is a multiple
of a unit that leaves room for the sum with the exponent's part, which is exact so; c is the float whose
logarithm is nearest to one of these. Cube roots: the root of a place of m has half the format's bits, and its
power -3 is very nearly a float.
"""
from pathlib import Path

import mpmath as mp
import numpy as np

from tests.backends.llvm.fitting.fit import floats, format_entry, wrap_numbers

mp.mp.dps = 50
OUTPUT = Path(__file__).parents[4] / "backends/llvm/mathlib/tables.py"
HEADER = '''\
"""What formulas look up in registers of AVX-512; made by `fit_tables.py`, not edited by hand."""
from typing import NamedTuple


class Logarithms(NamedTuple):
    """For m in [3/4, 3/2) and the low bits j of what m * steps rounds to: inverses[j] is near 1 / m,
    logs[j] is -log(inverses[j]), the comment its largest error. `unit` is the logarithm of two in two parts;
    multiples of the first one plus any of `logs` are exact.
    """
    steps: float
    unit: tuple
    inverses: tuple
    logs: tuple


class CubeRoots(NamedTuple):
    """For m in [1, 2) and its leading bits j: inverses[j] is near 1 / m, roots[j] its power -1/3 of half the
    format's bits, the comment the largest error. factors[i] * (1 + rests[i]) is 2**(i / 3) for i = -1, 0, 1;
    factors have half the format's bits.
    """
    inverses: tuple
    roots: tuple
    factors: tuple
    rests: tuple


'''
ROOTS_COMMENT = '''
# float64: 2**(j / 16), what its rounding leaves, and the float whose bits are those of 2**(j / 16) less
# j * 2**48: with n * 2**48 added these are the bits of 2**(n / 16), j being the low bits of n
'''
STEPS = {32: 42, 64: 21}
ENTRIES = {32: 32, 64: 16}
BASES = {"log": mp.e, "log2": mp.mpf(2), "log10": mp.mpf(10)}
# the largest |exponent| that the sum has to hold exactly
LARGEST_EXPONENT = {32: 150, 64: 1075}
# how far inverses may be from where they belong, in intervals
SPREAD = {32: 0.06, 64: 2.0 ** -14}


def round_float(value, bits):
    return float(np.float32(value)) if bits == 32 else float(value)


def find_grid(base, bits):
    """The unit of which all parts of a logarithm are multiples."""
    room = mp.ceil(mp.log(LARGEST_EXPONENT[bits] * mp.log(2, base), 2))
    return mp.mpf(2) ** (room - (24 if bits == 32 else 53))


def choose_place(j, steps):
    """Where the inverse of interval j belongs: its middle; beside one further in, as the logarithm is small
    there and f's rounding error should be, too.
    """
    away = mp.mpf(j - steps) / steps
    return 1 + away * (mp.mpf("0.81") if abs(j - steps) == 1 else 1)


def to_extended(value):
    """A number of mpmath in NumPy's widest format."""
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - high))


def find_inverse(place, base, grid, bits):
    """(c, -log c as a multiple of the grid, error) for a c near 1 / place."""
    if place == 1:
        return 1.0, 0.0, mp.mpf(0)
    middle = int(mp.nint(mp.log(place, base) / grid))
    reach = int(mp.mpf(SPREAD[bits]) / STEPS[bits] / mp.log(base) / grid)
    # those that extended precision finds best, then the best of these
    places = middle + np.arange(-reach, reach + 1, max(1, reach >> 18))
    exact = np.exp(-places.astype(np.longdouble) * to_extended(grid * mp.log(base)))
    rounded = exact.astype(np.float32 if bits == 32 else np.float64)
    few = np.argsort(np.abs(rounded.astype(np.longdouble) - exact))[:1000]
    pairs = [(mp.mpf(float(rounded[i])), int(places[i]) * grid) for i in few]
    c, log = min(pairs, key=lambda pair: abs(mp.log(pair[0], base) + pair[1]))
    return c, log, abs(mp.log(c, base) + log)


def make_logarithms(name, bits):
    """The text of one entry."""
    base, steps = BASES[name], STEPS[bits]
    grid = find_grid(base, bits)
    columns = [(1.0, 0.0, mp.mpf(0))] * ENTRIES[bits]
    for j in range(int(np.rint(0.75 * steps)), int(np.ceil(1.5 * steps - 0.5)) + 1):
        columns[j % ENTRIES[bits]] = find_inverse(choose_place(j, steps), base, grid, bits)
    two = mp.log(2, base)
    major = mp.floor(two / grid) * grid
    minor = round_float(two - major, bits)
    *rows, errors = zip(*columns, strict=True)
    fields = float(steps), (float(major), minor), *map(floats, rows)
    return format_entry(f'("{name}", {bits})', "Logarithms", fields, max(errors))


def find_cube_root(low, high, bits):
    """(c, root) for m in [low, high): a root of about half the format's bits, c = root**-3 nearly a float."""
    unit = mp.mpf(2) ** (-25 if bits == 64 else -12)
    middle, reach = mp.cbrt((low + high) / 2), (high - low) / 3 / 2
    reach = int(reach * mp.mpf(0.001 if bits == 64 else 0.35) / unit)
    roots = [(mp.nint(middle / unit) + step) * unit for step in range(-reach, reach + 1)]
    pairs = [(mp.mpf(round_float(root ** -3, bits)), root) for root in roots]
    return min(pairs, key=lambda pair: abs(pair[0] * pair[1] ** 3 - 1))


def make_cube_roots(bits):
    """The text of the cube roots of one format."""
    count = ENTRIES[bits]
    pairs = [find_cube_root(1 + mp.mpf(j) / count, 1 + mp.mpf(j + 1) / count, bits) for j in range(count)]
    unit = mp.mpf(2) ** (-26 if bits == 64 else -10)
    factors, rests = [mp.mpf(1)] * (count // 2), [mp.mpf(0)] * (count // 2)
    for power in (-1, 1):
        exact = mp.cbrt(mp.mpf(2) ** power)
        factors[power] = mp.nint(exact / unit) * unit
        rests[power] = mp.mpf(round_float(exact / factors[power] - 1, bits))
    rows = (*zip(*pairs, strict=True), factors, rests)
    error = max(abs(c * root ** 3 - 1) for c, root in pairs)
    return format_entry(bits, "CubeRoots", list(map(floats, rows)), error)


def make_roots():
    """The text of the powers of two."""
    powers = [mp.mpf(2) ** (mp.mpf(j) / 16) for j in range(16)]
    heads = np.array([float(power) for power in powers])
    rests = [power - mp.mpf(head) for power, head in zip(powers, heads.tolist(), strict=True)]
    folded = (heads.view(np.int64) - (np.arange(16) << 48)).view(np.float64)
    rows = {"ROOTS": heads, "ROOT_RESTS": rests, "FOLDED_ROOTS": folded}
    return "".join(wrap_numbers(f"{name} = {floats(row)}") for name, row in rows.items())


def write_tables():
    entries = "".join(make_logarithms(name, bits) for name in BASES for bits in STEPS)
    cubes = "CUBE_ROOTS = {\n" + "".join(map(make_cube_roots, ENTRIES)) + "}\n"
    OUTPUT.write_text(HEADER + "LOGARITHMS = {\n" + entries + "}\n" + cubes + ROOTS_COMMENT + make_roots())


if __name__ == "__main__":
    write_tables()
