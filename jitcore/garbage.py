"""Python's garbage collector while programs are made.

In: nothing. Out: `collect_rarely`, around tracing and compiling. These make tens of thousands of objects, and
Python, which looks for garbage among the young ones after every few hundred, would go through all the modules
of the process too, again and again: a fifth of a first call.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

#: Objects after which it looks meanwhile.
_YOUNG = 100_000


@contextlib.contextmanager
def collect_rarely() -> Iterator[None]:
    """Within, and in all threads as it is the process's: Python looks for garbage less often, not never.

    What the user has set stays: a collector that is off, thresholds that are higher, others set meanwhile."""
    before = gc.get_threshold()
    if not 0 < before[0] < _YOUNG:
        yield
        return
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _YOUNG:
            gc.set_threshold(*before)
