"""Machine code of matrix products and convolutions: which module defines which symbol.

In: a symbol `jitcore_product_<kind>_<dtype>`, or `jitcore_part_<kind>_<dtype>` of `parts`. Out: the
LLVM text of the module that exports it. Stage: rendering, once per process and symbol. The modules call one
another, so that products and convolutions of a dtype share `multiply` and the tiles.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from jitcore.backends.cpu.machine.tuning import Product
from jitcore.backends.cpu.native.text_writer import TextWriter
from jitcore.backends.cpu.routines.product.parts import choose_tile_shape, split_kind

#: Module of this package and its function, by kind: a product loads what writes its own code.
_WRITERS = {
    "multiply": ("multiply", "write_multiply"),
    "matrices": ("blocking", "write_matrices"),
    "windows": ("convolution_windows", "write_windows"),
    "rows": ("short_rows", "write_rows"),
    "columns": ("columns", "write_columns"),
    "pair": ("two_sided", "write_pair"),
    "chain": ("two_sided", "write_chain"),
}
_PARTS = {
    "pack": ("packing", "write_pack"),
}


def render(symbol: str, tuning: Product) -> str:
    """LLVM text of the module that exports `symbol`."""
    kind, dtype = symbol.split("_")[-2:]
    w, shape = TextWriter(tuning), choose_tile_shape(int(dtype[1:]) // 8)
    if kind.startswith("tile"):
        _find("tile", "write_tile")(w, shape, symbol, *split_kind(kind))
    elif kind in _PARTS:
        _find(*_PARTS[kind])(w, shape, symbol)
    else:
        _find(*_WRITERS[kind])(w, shape)
    return w.text()


def _find(module: str, name: str) -> Callable[..., None]:
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)
