"""Memory of an emulated device: allocations, and what a wrong address is near to."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jitcore.backends.cuda.emulated.errors import DeviceError
from jitcore.backends.cuda.emulated.races import RANGE, SPACES

_GUARD = 256  # bytes around an allocation
_FAR = 1 << 20  # from there on an address is near to nothing
_KEPT_BYTES = 1 << 26  # of freed memory, so that its addresses are not used again soon


class Allocation(NamedTuple):
    """cells: records of `races`, None without; owner: has the memory."""

    start: int
    size: int
    name: str
    space: str
    cells: np.ndarray | None
    owner: np.ndarray | None = None


def make_ranges(allocations: Iterable[Allocation]) -> np.ndarray:
    """The table that `races` looks addresses up in. The first row is none, so that there always is one."""
    rows = [(start, start + size, 0 if cells is None else cells.ctypes.data, SPACES.index(space))
            for start, size, _, space, cells, _ in allocations]
    return np.array([(0, 0, 0, 0), *sorted(rows)], RANGE)


def make_cells(size: int) -> np.ndarray:
    return np.zeros((-(-size // 4), 3), np.int64)


def allocate_aligned(size: int) -> np.ndarray:
    """Bytes 0xFF, which are NaN and -1."""
    owner = np.full(size + 3 * _GUARD, 0xFF, np.uint8)
    first = _GUARD + -owner.ctypes.data % _GUARD
    return owner[first : first + size]


class Memory:
    def __init__(self, check_races: bool):
        self.check_races = check_races
        self._allocations: dict[int, Allocation] = {}
        self._freed: collections.deque[Allocation] = collections.deque()

    def allocate(self, size: int, name: str = "", space: str = "global") -> int:
        if size < 0:
            raise DeviceError(f"an allocation of {size} bytes")
        owner = allocate_aligned(size)
        start, cells = owner.ctypes.data, make_cells(size) if self.check_races and space == "global" else None
        name = name or f"the allocation of {size} bytes at {start:#x}"
        self._allocations[start] = Allocation(start, size, name, space, cells, owner)
        return start

    def free(self, start: int) -> None:
        if start not in self._allocations:
            raise DeviceError(f"free of {start:#x}, where no allocation begins, {self.describe(start)}")
        self._freed.append(self._allocations.pop(start)._replace(cells=None))
        while sum(each.size for each in list(self._freed)) > _KEPT_BYTES:  # a finaliser may free meanwhile
            self._freed.popleft()

    def list_allocations(self) -> list[Allocation]:
        return list(self._allocations.values())

    def check(self, start: int, size: int) -> None:
        """Raises: DeviceError for a copy that leaves an allocation."""
        if not any(each.start <= start <= each.start + each.size - size for each in self.list_allocations()):
            raise DeviceError(f"copy of {size} bytes at {start:#x}, {self.describe(start, size)}")

    def describe(self, start: int, size: int = 0, others: Iterable[Allocation] = ()) -> str:
        """Where an address is, for a message."""
        for each in list(self._freed):
            if each.start <= start < each.start + each.size:
                return f"byte {start - each.start} of {each.name}, which has been freed"
        near = [(each.start - start, start + size - each.start - each.size, each.name)
                for each in (*self.list_allocations(), *others)]
        before, behind, name = min(near, key=lambda each: max(each[:2]), default=(_FAR, _FAR, ""))
        if max(before, behind) >= _FAR:
            return "far from every allocation"
        if before > 0:
            return f"{before} bytes before {name}"
        return f"{behind} bytes past the end of {name}" if behind > 0 else f"byte {-before} of {name}"
