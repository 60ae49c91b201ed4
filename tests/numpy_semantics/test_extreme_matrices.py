"""Decompositions of matrices that LAPACK does not converge for, or scales: NumPy's errors and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import autojit

MATRIX = np.random.default_rng(0).standard_normal((4, 4))
VECTOR = np.arange(4.0)


def put(value):
    made = MATRIX.copy()
    made[0, 1] = value
    return made


MATRICES = {
    "nan": put(np.nan), "inf": put(np.inf), "-inf": put(-np.inf), "all nan": MATRIX * np.nan, "zeros": MATRIX * 0,
    "huge": MATRIX * 1e300, "tiny": MATRIX * 1e-310, "singular": np.outer(VECTOR, VECTOR), "floats": MATRIX.astype("f4"),
    "huge floats": (MATRIX * 1e30).astype("f4"), "ints": (MATRIX * 9).astype(int), "plain": MATRIX,
}
FUNCTIONS = {
    "svd": lambda x: np.linalg.svd(x)[1], "svdvals": lambda x: np.linalg.svdvals(x),
    "eigh": lambda x: np.linalg.eigh(x + x.T)[0], "eigvalsh": lambda x: np.linalg.eigvalsh(x + x.T),
    "eig": lambda x: np.linalg.eig(x + x.T)[0], "eigvals": lambda x: np.linalg.eigvals(x + x.T),
    "pinv": lambda x: np.linalg.pinv(x), "rank": lambda x: np.linalg.matrix_rank(x), "cond": lambda x: np.linalg.cond(x),
    "cond 1": lambda x: np.linalg.cond(x, 1), "norm 2": lambda x: np.linalg.norm(x, 2),
    "nuclear norm": lambda x: np.linalg.norm(x, "nuc"), "norms of rows": lambda x: np.linalg.norm(x, 2, axis=1),
    "lstsq": lambda x: np.linalg.lstsq(x, VECTOR, rcond=None)[0], "slogdet": lambda x: np.linalg.slogdet(x),
    "tensorsolve": lambda x: np.linalg.tensorsolve(x, VECTOR), "solve": lambda x: np.linalg.solve(x, VECTOR),
    "nanargmin": lambda x: np.nanargmin(x, 1), "nanargmax": lambda x: np.nanargmax(x),
}


def run(function, x):
    with np.errstate(all="ignore"):
        try:
            return function(x), None
        except Exception as error:
            return None, (type(error), str(error))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_matrices(name):
    for kind, x in MATRICES.items():
        (expected, error), (found, own) = run(FUNCTIONS[name], x), run(autojit(FUNCTIONS[name]), x.copy())
        assert own == error, kind
        if error is None:
            parts = zip(*(one if isinstance(one, tuple) else (one,) for one in (expected, found)), strict=True)
            for one, other in parts:
                assert np.asarray(one).dtype == np.asarray(other).dtype
                rtol = 1e-4 if x.dtype == np.float32 else 1e-8
                np.testing.assert_allclose(other, one, rtol, rtol * np.abs(one).max(initial=0, where=np.isfinite(one)))
