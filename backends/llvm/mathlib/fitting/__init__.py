"""Programs that make the coefficients and tables of `mathlib`. Nothing else imports them.

In: functions in mpmath. Out: files of this package's parent.

Modules:
    fit         Reproduces `coefficients.py`: minimax polynomials by Remez's exchange in 50-digit arithmetic.
                Not used at run time.
    fit_pieces  Reproduces `pieces.py`: functions as one short polynomial for each of 16 intervals. Not used
                at run time.
    fit_tables  Reproduces `tables.py`: what formulas look up in registers of AVX-512. Not used at run time.
"""
