"""Arrays whose extents are traced: `a[i, :j]`, `x[mask]`, `np.zeros(n)`.

In: handles, and indices with traced bounds. Out: `PaddedArray`s, which are a plain array, the *frame*,
and which of its elements belong to them. `spans.py`: which elements along an axis. `array.py`: the class.
`align.py`: several operands in one frame, by `moving.py`. `items.py`: items, by `reading.py`.
`elementwise.py`, `reductions.py`, `products.py`, `shaping.py`, `creation.py`, `selecting.py`,
`sets.py`: functions; NumPy's functions that are made of these run through their source.
`joining.py`: as carries of loops and as results.

Modules:
    align        Several operands in one frame, so that an operation on the frames is the operation on the
                 arrays.
    array        The class of arrays whose extents are traced.
    creation     Arrays that are made with traced extents: `np.zeros(n)`, `np.arange(n)`.
    elementwise  Functions of each element by itself: of the frames, where the operands have the same places.
    extents      Extents and places: ints, or Numbers whose forms and bounds say what is known of them.
    items        Items of arrays where extents are traced, as Python asks for them and stores them.
    joining      Arrays of several extents as one value: what a loop carries whose body makes an array
                 shorter, and what a program returns.
    moving       Elements at their places in another frame.
    products     Products of padded arrays: elementwise products and sums, so that the compiler sees the
                 bounds of the loops.
    reading      Views of arrays where extents are traced: of padded arrays, and by slices and masks that make
                 padded ones.
    reductions   Reductions of padded arrays: what is outside becomes the identity, or is left out of the
                 count.
    selecting    Functions whose results have as many elements as are found: `np.nonzero`, `np.extract`;
                 concatenation.
    sets         Sets of elements: `np.unique` with what it tells besides the elements, `np.intersect1d` and
                 its like.
    shaping      Padded arrays with other axes or in another order.
    spans        Which elements along an axis of a frame belong to a padded array.
"""

from jitcore.numpy_semantics.dynamic_extents import creation, products, selecting, sets, shaping  # noqa: F401
from jitcore.numpy_semantics.dynamic_extents.array import PaddedArray, apply_function
from jitcore.numpy_semantics.dynamic_extents.elementwise import apply_ufunc
from jitcore.numpy_semantics.dynamic_extents.items import read_item, write_item
from jitcore.numpy_semantics.dynamic_extents.joining import join_structures
from jitcore.numpy_semantics.dynamic_extents.reading import compact_array
from jitcore.numpy_semantics.functions.tables import HOOKS

PaddedArray.__getitem__, PaddedArray.__setitem__ = read_item, write_item
PaddedArray.join_structure, PaddedArray.settle = join_structures, compact_array
HOOKS.update(read_item=read_item, write_item=write_item)
HOOKS.update(apply_ufunc=apply_ufunc, apply_function=apply_function)
