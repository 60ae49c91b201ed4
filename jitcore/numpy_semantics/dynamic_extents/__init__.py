"""Arrays whose extents are traced: `a[i, :j]`, `x[mask]`, `np.zeros(n)`.

In: handles, and indices with traced bounds. Out: `PartialArray`s, which are a plain array, the *frame*,
and which of its elements belong to them. `spans.py`: which elements along an axis. `array.py`: the class.
`align.py`: several operands in one frame, by `moving.py`. `reading.py`, `writing.py`, `listing.py`: items.
`elementwise.py`, `reductions.py`, `products.py`, `shaping.py`, `creation.py`, `selecting.py`, `sets.py`:
functions. `joining.py`: as carries of loops; `packing.py`: as results.

Modules:
    align        Several operands in one frame, so that an operation on the frames is the operation on the
                 arrays.
    array        The class of arrays whose extents are traced.
    creation     Arrays that are made with traced extents: `np.zeros(n)`, `np.arange(n)`.
    elementwise  Ufuncs of partial arrays: of the frames, where the operands have the same places.
    extents      Extents and places: ints, or Numbers whose forms and bounds say what is known of them.
    joining      Arrays of several extents as one value: what a loop carries whose body makes an array
                 shorter.
    listing      Elements that integer arrays list, where the arrays or the axes have traced extents:
                 `x[cols]`, `x[i, rows] = v`.
    moving       Elements at their places in another frame.
    packing      Partial arrays as a program returns them.
    products     Products of partial arrays: elementwise products and sums, so that the compiler sees the
                 bounds of the loops.
    reading      Items of arrays where extents are traced: of partial arrays, and slices and masks that make
                 partial ones.
    reductions   Reductions of partial arrays: what is outside becomes the identity, or is left out of the
                 count.
    selecting    Functions whose results have as many elements as are found: `np.nonzero`, `np.extract`;
                 concatenation.
    sets         Sets of elements: `np.unique` with what it tells besides the elements, `np.intersect1d` and
                 its like.
    shaping      Partial arrays with other axes or in another order.
    spans        Which elements along an axis of a frame belong to a partial array.
    writing      Stores into arrays where extents are traced.
"""

from jitcore.numpy_semantics.dynamic_extents import creation, products, selecting, sets, shaping  # noqa: F401
from jitcore.numpy_semantics.dynamic_extents.array import apply_function
from jitcore.numpy_semantics.dynamic_extents.elementwise import apply_ufunc
from jitcore.numpy_semantics.dynamic_extents.reading import read_item
from jitcore.numpy_semantics.dynamic_extents.writing import write_item
from jitcore.numpy_semantics.functions.tables import HOOKS

HOOKS.update(
    apply_ufunc=apply_ufunc, apply_function=apply_function, read_item=read_item, write_item=write_item
)
