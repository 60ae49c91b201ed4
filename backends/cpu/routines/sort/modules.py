"""Machine code of the sorting family: which module defines a symbol.

In: a symbol `jitcore_sort_<what>_<dtype or size>`. Out: LLVM text. Stage: rendering of routines.
"""

from __future__ import annotations

from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.routines.sort.moves import TRANSPOSE_PREFIX, render_transpose
from jitcore.backends.cpu.routines.sort.order import (ORDER_PREFIX, REFINE_PREFIX, TAKE_PREFIX, render_order,
                                                      render_take)
from jitcore.backends.cpu.routines.sort.quicksort import SYMBOL_PREFIX, render_engine
from jitcore.backends.cpu.routines.sort.rows import VALUES_PREFIX, render_values
from jitcore.backends.cpu.routines.sort.top_k import TOP_PREFIX, render_top

_RENDERERS = {
    SYMBOL_PREFIX: render_engine,
    VALUES_PREFIX: render_values,
    ORDER_PREFIX: render_order,
    REFINE_PREFIX: render_order,
    TAKE_PREFIX: render_take,
    TRANSPOSE_PREFIX: render_transpose,
    TOP_PREFIX: render_top,
}


def render(symbol: str, tuning: Sort) -> str:
    """LLVM text of the module that exports `symbol`."""
    render_one = next(function for prefix, function in _RENDERERS.items() if symbol.startswith(prefix))
    return render_one(symbol, tuning)
