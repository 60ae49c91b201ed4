"""Sizes as run-time arguments: which extents and strides a kernel knows and which it is told at each call.

In: the sizes (ints, symbolic dimensions) a program's text mentions. Out: slots of the array of sizes that
its entry point receives. Because large sizes are arguments, programs that differ in them only share one
kernel.
"""

from __future__ import annotations

import numpy as np

# Sizes up to this are written into the code: loops over 3 coordinates unroll, strides of 2 fold.
MAX_STATIC_SIZE = 8


def is_static(size) -> bool:
    return isinstance(size, (int, np.integer)) and abs(size) <= MAX_STATIC_SIZE


class SizeTable:
    """Numbers sizes in order of first appearance.

    Code that is found by a program's text gets the sizes that stand in the text; once it is written
    (`close`), a size that does not is an error of the renderer."""

    def __init__(self):
        self.slots: dict = {}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def slot(self, size) -> int:
        if self.is_closed and size not in self.slots:
            raise AssertionError(f"size {size} does not stand in the program's text")
        return self.slots.setdefault(size, len(self.slots))

    def name(self, size) -> str:
        """A size in the canonical text of a program: static sizes as they are, others by slot."""
        return str(size) if is_static(size) else f"n{self.slot(size)}"

    def values(self, environment: dict) -> list[int]:
        """The sizes for one signature. environment: values of the symbolic dimensions by name."""
        from jitcore.core.symbolic import evaluate, is_symbolic

        return [evaluate(size, environment) if is_symbolic(size) else int(size) for size in self.slots]
