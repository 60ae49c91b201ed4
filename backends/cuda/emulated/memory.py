"""Memory of an emulated device: allocations, and what a wrong address is near to."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.races import RANGE, SPACES

__all__ = ["Allocation", "Memory", "make_cells", "make_ranges"]

#: Between allocations, at least; and how far from one an address may be to be said to be near it.
_GUARD = 256
_FAR = 1 << 20
#: Freed memory is kept, so that its addresses are not used again soon.
_KEPT_BYTES = 1 << 26


class Allocation(NamedTuple):
    start: int
    size: int
    name: str
    space: str
    shadow: np.ndarray | None  # cells of `races`
    owner: np.ndarray | None = None  # has the memory


def make_ranges(allocations: list[Allocation]) -> np.ndarray:
    """The table that `races` looks addresses up in."""
    rows = [(0, 0, 0, 0)]
    for start, size, _, space, shadow, _ in sorted(allocations, key=lambda each: each.start):
        rows.append((start, start + size, 0 if shadow is None else shadow.ctypes.data, SPACES.index(space)))
    return np.array(rows, RANGE)


def make_cells(size: int) -> np.ndarray:
    return np.zeros((-(-size // 4), 3), np.int64)


class Memory:
    def __init__(self, check_races: bool):
        self.check_races = check_races
        self.allocations: dict[int, Allocation] = {}
        self._freed: collections.deque[Allocation] = collections.deque()

    def allocate(self, size: int, name: str = "", space: str = "global") -> Allocation:
        """Memory full of bytes 0xFF, which are NaN and -1."""
        if size < 0:
            raise DeviceError(f"an allocation of {size} bytes")
        owner = np.full(size + 3 * _GUARD, 0xFF, np.uint8)
        start = -(-(owner.ctypes.data + _GUARD) // _GUARD) * _GUARD
        cells = make_cells(size) if self.check_races and space == "global" else None
        found = Allocation(start, size, name or f"the allocation of {size} bytes at {start:#x}", space, cells, owner)
        self.allocations[start] = found
        return found

    def free(self, start: int) -> None:
        found = self.allocations.pop(start, None)
        if found is None:
            raise DeviceError(f"free of {start:#x}, where no allocation begins, {self.describe(start, 0)}")
        self._freed.append(found)
        while sum(each.size for each in self._freed) > _KEPT_BYTES:
            self._freed.popleft()

    def check(self, start: int, size: int) -> None:
        """Raises: DeviceError for a copy that leaves its allocation."""
        if size and not any(each.start <= start and start + size <= each.start + each.size for each in self.allocations.values()):
            raise DeviceError(f"copy of {size} bytes at {start:#x}, {self.describe(start, size)}")

    def describe(self, start: int, size: int, others: Iterable[Allocation] = (), is_inside: bool = False) -> str:
        """Where an address is, for a message."""
        for each in self._freed:
            if each.start <= start < each.start + each.size:
                return f"{start - each.start} bytes into {each.name}, which has been freed"
        near = [(max(each.start - start, start - each.start - each.size), each) for each in (*self.allocations.values(), *others)]
        distance, each = min(near, key=lambda pair: pair[0], default=(_FAR, None))
        if distance >= _FAR:
            return "far from every allocation"
        if is_inside:
            return f"byte {start - each.start} of {each.name}"
        if start < each.start:
            return f"{each.start - start} bytes before {each.name}"
        return f"{start + size - each.start - each.size} bytes past the end of {each.name}"
