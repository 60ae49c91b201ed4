"""`python -m benchmarks`."""

import os
import sys

# NumPy and SciPy (and with it JAX and Numba) each bring an OpenBLAS whose threads look for the next call for
# 2**28 cycles, 0.1 s, on the cores that the next peer needs. 2**20 cycles are long enough for all calls of
# one decomposition to find them awake: times are those of the default, and waiting between peers is short.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from benchmarks.command import main  # noqa: E402

sys.exit(main())
