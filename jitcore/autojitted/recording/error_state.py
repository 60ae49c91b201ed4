"""NumPy's floating-point error state: whether a call may be silent about what it divides by zero.

In: the state around a call, which `np.errstate` and `np.seterr` set. Out: whether compiled code, which
computes inf and nan without a word, may serve it: not where errors raise, are printed or call a function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

try:
    from numpy._core._ufunc_config import _extobj_contextvar

    read_state: Callable = _extobj_contextvar.get
except ImportError:  # another NumPy keeps it elsewhere
    read_state = np.geterr

#: The state that was found to be silent last; states never change, `np.seterr` makes new ones.
silent: list = [None]


def is_silent() -> bool:
    """Whether errors are ignored or give warnings; looks at the state again."""
    if set(np.geterr().values()) <= {"ignore", "warn"}:
        silent[0] = read_state()
        return True
    return False
