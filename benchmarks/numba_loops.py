"""How the loops that are written by hand for Numba are compiled: IEEE arithmetic, errors as NumPy has them,
machine code kept on disk. Sums pass `fastmath=REORDER`, without which their loops are not vectorized; all of
`fastmath` would also leave out NaN and infinities and estimate quotients, which no other library here does.
"""

from __future__ import annotations

from functools import partial

import numba

#: Sums may be added in another order, and products fused into them.
REORDER = {"reassoc", "contract", "nsz"}

loop = partial(numba.njit, error_model="numpy", cache=True)
parallel_loop = partial(numba.njit, error_model="numpy", cache=True, parallel=True)
