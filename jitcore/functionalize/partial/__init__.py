"""Arrays whose extents are traced: `a[i, :j]`, `x[mask]`, `np.zeros(n)`.

In: handles, and indices with traced bounds. Out: `PartialArray`s, which are a plain array, the *frame*,
and which of its elements belong to them. `spans.py`: which elements along an axis. `array.py`: the class.
`align.py`: several operands in one frame, by `moving.py`. `reading.py`, `writing.py`, `listing.py`: items.
`elementwise.py`, `reductions.py`, `products.py`, `shaping.py`, `creation.py`, `selecting.py`, `sets.py`:
functions. `joining.py`: as carries of loops; `packing.py`: as results.
"""

from jitcore.functionalize.partial import (  # noqa: F401  they fill the tables
    creation,
    products,
    selecting,
    sets,
    shaping,
)
from jitcore.functionalize.partial.array import apply_function
from jitcore.functionalize.partial.elementwise import apply_ufunc
from jitcore.functionalize.partial.reading import read_item
from jitcore.functionalize.partial.writing import write_item
from jitcore.functionalize.tables import HOOKS

HOOKS.update(
    apply_ufunc=apply_ufunc, apply_function=apply_function, read_item=read_item, write_item=write_item
)
