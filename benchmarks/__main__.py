"""`python -m benchmarks`."""

import os
import sys

# NumPy and SciPy (and with it JAX and Numba) each bring an OpenBLAS whose threads wait for the next call by
# spinning. In one process they take each other's cores, for hundreds of milliseconds; so all wait asleep.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

from benchmarks.command import main  # noqa: E402

sys.exit(main())
