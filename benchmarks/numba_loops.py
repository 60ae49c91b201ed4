"""How the loops that are written by hand for Numba are compiled: IEEE arithmetic, errors as NumPy has them,
machine code kept on disk. Reductions pass `fastmath=True`, without which their loops are not vectorized.
"""

from __future__ import annotations

from functools import partial

import numba

loop = partial(numba.njit, error_model="numpy", cache=True)
parallel_loop = partial(numba.njit, error_model="numpy", cache=True, parallel=True)
