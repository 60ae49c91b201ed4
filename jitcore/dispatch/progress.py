"""A line for people who wait: which function is being compiled, once that takes long.

In: the name of the function, around the work. Out: one line on standard error when it takes more than two
seconds. `config.announce_compiles` turns it off. Stage: around compilation.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from jitcore.config import config

__all__ = ["announce_slow"]

PATIENCE = 2.0  # seconds


@contextlib.contextmanager
def announce_slow(name: str) -> Iterator[None]:
    """Says so when the block, which compiles the function `name`, is not done in time. Cost: 30 us."""
    if not config.announce_compiles:
        yield
        return
    timer = threading.Timer(PATIENCE, _print_line, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _print_line(name: str) -> None:
    if sys.stderr is not None:  # a program with windows only has none
        print(f"jitcore: compiling {name} for {PATIENCE:g} s ...", file=sys.stderr, flush=True)
