"""What a region leaves of its base: the strips around a window.

In: the base of an update and the window that is about to be written. Out: regions that copy the rest of the
base, so that an element is moved once and not first copied and then overwritten.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.loopir.builder import Builder
from jitcore.loopir.index import ZERO, Axis, Dynamic, Index
from jitcore.loopir.values import ROOTS, Region, Value
from jitcore.schedule.uses import covers_most


def copy_around(builder: Builder, base: Value, region: Region) -> list[Region] | None:
    """Regions of `base` outside of a window, one for each dimension that the window does not fill; None where
    the region is no window, or so small that copying the whole base is as good."""
    if isinstance(base, ROOTS) or region.mask is not None or region.combine is not None:
        return None
    extents, sizes = base.shape, region.value.shape
    starts = region.place(tuple(ZERO for _ in extents))
    index = tuple(map(Index.of, map(Axis, sizes)))
    is_window = region.place(index) == tuple(i + start for i, start in zip(index, starts))
    if not is_window or not covers_most(extents, sizes):
        return None
    rest = []
    for d, (extent, size) in enumerate(zip(extents, sizes)):
        if extent == size:
            continue
        shape = (*sizes[:d], extent - size, *extents[d + 1 :])

        def place(index, d=d, size=size):
            inside = tuple(i + start for i, start in zip(index[:d], starts[:d]))
            return (*inside, _jump(builder, index[d], starts[d], size), *index[d + 1 :])

        rest.append(Region(builder.view(base, shape, place), place))
    return rest


def _jump(builder: Builder, index: Index, start: Index, size) -> Index:
    """The index itself before the window's start, and moved past its end from there on."""
    g = builder.graph
    here = g.index(index)
    is_past = g.op("ge", here, g.index(start), dtype=dtypes.bool_)
    moved = g.op("select", is_past, g.index(index + size), here, dtype=here.dtype)
    return Index.of(Dynamic(moved))
