"""Reproduces `pieces.py`: functions as one short polynomial for each of 16 intervals.

In: the table `FITS` below. Out: the file `pieces.py`. Run it (needs mpmath): `python -m
tests.backends.llvm.fitting.fit_pieces [NAME...]`; with names only those are made anew. The interval of x >= 0
is the number that a cubic of x rounds to, which makes intervals short where the function needs it. Each polynomial is the minimax fit of
`fit.py` in x less the interval's center; the center is chosen near the middle so that the function there is
very nearly a float. The first center is zero, where the function is zero; its coefficients are those of the
function less x, so that the slope there, which is near one, keeps what its rounding would lose.
"""
import sys
from pathlib import Path
from typing import Callable, NamedTuple

import mpmath as mp

from tests.backends.llvm.fitting.fit import Fit, fit_polynomial, floats, format_entry, read_entries, round_to

OUTPUT = Path(__file__).parents[4] / "backends/llvm/mathlib/pieces.py"
HEADER = '''\
"""Functions in pieces: the polynomial of each interval; made by `fit_pieces.py`, not edited by hand.

Key: (name, bits of the format). The comment is the largest relative error as rounded.
"""
from typing import NamedTuple


class Pieces(NamedTuple):
    """f(x) for 0 <= x <= limit is the sum over i of rows[i][j] * d**i, and x more where j = 0, where
    d = x - centers[j] and j is what the sum of index[i] * x**i rounds to.
    """
    limit: float
    index: tuple
    centers: tuple
    rows: tuple


PIECES = {
'''
INTERVALS = 16


class PieceFit(NamedTuple):
    """A function on [0, limit], zero at zero. By format: limit, coefficients of the index, terms."""
    target: Callable
    limit: dict
    index: dict
    terms: dict


FITS = {
    "tanh": PieceFit(mp.tanh, {32: 9.1}, {32: (-0.46, 5.126, -0.584, 0.02339)}, {32: 6}),
    "erf": PieceFit(mp.erf, {32: 3.95, 64: 5.95}, {32: (-0.49, 6.944, -0.7627, 0.007115),
                                                   64: (-0.468, 4.52, -0.3445, 0.0058)}, {32: 6, 64: 12}),
}


def find_ends(fit, bits):
    """The places where the index steps, from zero to the limit."""
    ends, limit = [mp.mpf(0)], mp.mpf(fit.limit[bits])
    for step in range(INTERVALS - 1):
        low, high = ends[-1], limit
        for _ in range(80):
            middle = (low + high) / 2
            place = sum(c * middle ** i for i, c in enumerate(fit.index[bits]))
            below = place < step + mp.mpf(1) / 2
            low, high = (middle, high) if below else (low, middle)
        ends.append(low)
    return [*ends, limit]


def choose_center(target, low, high, bits):
    """A float with few bits near the middle whose function value is very nearly a float."""
    spacing = (high - low) * mp.mpf(2) ** (-14 if bits == 64 else -10)
    unit = mp.mpf(2) ** mp.floor(mp.log(spacing, 2))
    middle = mp.nint((low + high) / 2 / unit)

    def miss(x):
        value = target(x)
        return abs(value - round_to(value, bits)) / value

    return min(((middle + step) * unit for step in range(-200, 201)), key=miss)


def fit_piece(target, low, high, bits, terms):
    """(center, coefficients, largest relative error) of one interval."""
    margin = (high - low) * mp.mpf("0.002")
    if low == 0:
        fit = Fit(lambda x: target(x) / x - 1, lambda x: x / target(x), (0, high + margin), {bits: terms - 1})
        coefficients, error = fit_polynomial(fit, bits)
        return mp.mpf(0), [mp.mpf(0), *coefficients], error
    center = choose_center(target, low, high, bits)
    interval = (low - margin - center, high + margin - center)
    fit = Fit(lambda d: target(center + d), lambda d: 1 / target(center + d), interval, {bits: terms})
    return center, *fit_polynomial(fit, bits)


def make_pieces(name, bits):
    """The text of one entry of the file."""
    fit = FITS[name]
    ends = find_ends(fit, bits)
    found = [fit_piece(fit.target, low, high, bits, fit.terms[bits]) for low, high in zip(ends, ends[1:])]
    error = max(error for _, _, error in found)
    columns = zip(*(coefficients for _, coefficients, _ in found))
    print(name, bits, float(mp.log(error, 2)), flush=True)
    centers, rows = floats(center for center, _, _ in found), tuple(map(floats, columns))
    fields = fit.limit[bits], fit.index[bits], centers, rows
    return format_entry(f'("{name}", {bits})', "Pieces", fields, error)


def write_pieces(names):
    """Make the pieces called `names` (all of them if there are none) and write the file."""
    entries = read_entries(OUTPUT) if names else {}
    for name in names or FITS:
        for bits in FITS[name].terms:
            entries[name, bits] = make_pieces(name, bits)
    OUTPUT.write_text(HEADER + "".join(entries[key] for key in sorted(entries)) + "}\n")


if __name__ == "__main__":
    write_pieces(sys.argv[1:])
