"""Functions as one polynomial for each interval, its coefficients looked up in registers. Stage: rendering.

In: one lane value, not negative. Out: one. Source of the polynomials: `fit_pieces.py`.
"""
from jitcore.backends.llvm.mathlib.avx512 import lookup
from jitcore.backends.llvm.mathlib.pieces import PIECES


def evaluate_pieces(e, name, x):
    """The function of that name in `PIECES` for x >= 0, constant from its limit on; NaN stays."""
    pieces = PIECES[name, e.bits]
    x = e.at_most(x, pieces.limit)
    place = e.horner(x, pieces.index) + e.magic
    bits = e.to_bits(place)
    distance = x - lookup(e, pieces.centers, bits)
    start, *rows, total = (lookup(e, row, bits) for row in pieces.rows)
    for row in reversed(rows):
        total = e.fma(total, distance, row)
    return e.fma(total, distance, e.select(place == e.magic, x, start))
