"""Machine code of matrix products and convolutions: which module defines which symbol.

In: a symbol `jitcore_product_<kind>_<dtype>`. Out: the LLVM text of the module that exports it. Stage:
rendering, once per process and symbol. The modules call one another, so that products and convolutions of a
dtype share the large one, `multiply`.
"""

from __future__ import annotations

from jitcore.backends.cpu.routines.llvm_text import TextWriter
from jitcore.backends.cpu.routines.product_matrices_code import write_matrices
from jitcore.backends.cpu.routines.product_multiply_code import write_multiply
from jitcore.backends.cpu.routines.product_pack_code import write_pack
from jitcore.backends.cpu.routines.product_rows_code import write_rows
from jitcore.backends.cpu.routines.product_sweep_code import write_chain, write_pair
from jitcore.backends.cpu.routines.product_tile_code import choose_tile_shape
from jitcore.backends.cpu.routines.product_windows_code import write_windows

__all__ = ["render"]

_WRITERS = {
    "pack": write_pack,
    "multiply": write_multiply,
    "matrices": write_matrices,
    "windows": write_windows,
    "rows": write_rows,
    "pair": write_pair,
    "chain": write_chain,
}


def render(symbol: str) -> str:
    """LLVM text of the module that exports `symbol`."""
    kind, dtype = symbol.removeprefix("jitcore_product_").split("_")
    w = TextWriter()
    _WRITERS[kind](w, choose_tile_shape(int(dtype[1:]) // 8))
    return w.text()
