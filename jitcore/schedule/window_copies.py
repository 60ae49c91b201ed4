"""What a region leaves of its base: the strips around a window.

In: the base of an update and the window that is about to be written. Out: regions that copy the rest of the
base, so that an element is moved once and not first copied and then overwritten; and their kernels, in one
sweep with the window's where they walk through the same rows.
"""

from __future__ import annotations

from jitcore import dtypes
from jitcore.lax.indexing.windows import Window
from jitcore.loopir.builder import Builder, is_few
from jitcore.loopir.expr import Graph
from jitcore.loopir.index import Dynamic, Index
from jitcore.loopir.program import Kernel, Loop, Store
from jitcore.loopir.traversal import flatten
from jitcore.loopir.values import ROOTS, Region, Value
from jitcore.schedule.unrolling import Rewrite


def copy_around(builder: Builder, base: Value, region: Region) -> list[Region] | None:
    """Regions of `base` outside of a window, one for each dimension that the window does not fill; None where
    the region is no window, or so small that copying the whole base is as good."""
    extents, sizes, starts = base.shape, region.value.shape, region.find_start()
    if isinstance(base, ROOTS) or starts is None or not Window(starts, sizes, extents).covers_most:
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


def join_kernels(graph: Graph, kernels: list[Kernel]) -> list[Kernel]:
    """The kernels of strips and, as the last one, of the window between them; of those that walk through the
    window's rows, one: what a row's lines hold is then written while they are in the cache. No two of the
    kernels write or read what another one writes."""
    *strips, window = kernels
    vectors = {kernel.vector for kernel in kernels}
    joined = [strip for strip in strips if _is_plain(strip) and _is_plain(window)
              and _walk_alike(strip.body[0], window.body[0], vectors)]
    if not joined:
        return kernels
    loop, others = window.body[0], []
    for strip in joined:
        loop = _join_loops(graph, loop, strip.body[0], vectors)
        others += [strip.vector] if strip.vector is not None else []
    whole = Kernel([loop], window.vector, window.parallel, window.grain, others=tuple(others))
    return [*(strip for strip in strips if strip not in joined), whole]


def _is_plain(kernel: Kernel) -> bool:
    """Whether a kernel is loops around stores that may be split over threads as they are."""
    is_loop = len(kernel.body) == 1 and isinstance(kernel.body[0], Loop)
    return is_loop and kernel.parallel and kernel.tile is None and not kernel.far


def _walk_alike(first, second, vectors: set) -> bool:
    """Whether two loops write the same rows in the same iterations."""
    if not (isinstance(first, Loop) and isinstance(second, Loop)) or {first.axis, second.axis} & vectors:
        return False
    if first.bounds or second.bounds:
        return False
    strides = {store.offset.coefficient(loop.axis) for loop in (first, second)
               for s in flatten([loop]) for store in s.stores}
    return first.axis.extent == second.axis.extent and len(strides) == 1 and not strides & {None, 0}


def _join_loops(graph: Graph, window: Loop, strip: Loop, vectors: set) -> Loop:
    """The window's loop with the strip's statements in its body, or in that of a loop inside."""
    (inner,) = Rewrite(graph, {strip.axis: window.axis}).statement(strip).body
    body = list(window.body)
    for place, statement in enumerate(body):
        if _walk_alike(statement, inner, vectors):
            body[place] = _join_loops(graph, statement, inner, vectors)
            return Loop(window.axis, body)
    is_short = isinstance(inner, Loop) and is_few([inner.axis.extent])
    if is_short and all(isinstance(s, Store) for s in inner.body):
        for position in range(inner.axis.extent):
            rewrite = Rewrite(graph, {}, {inner.axis: position})
            body += map(rewrite.statement, inner.body)
    else:
        body.append(inner)
    return Loop(window.axis, body)
