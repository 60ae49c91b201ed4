"""Traced values that act as NumPy's and Python's do: arrays with memory and views, scalars, numbers, lists.

In: `Array`s of a trace. Out: handles with the values, dtypes, mutation and aliasing of the plain ones.

Modules:
    arithmetic    Python's arithmetic on traced numbers.
    conversions   Python's own functions on handles: `float(x)`, `isinstance(x, float)`, `min(x, y)`,
                  `sorted(x)`.
    equality      Which traced values are equal whatever they are, and which the current trace can use.
    items         Items of arrays: `x[index]` and `x[index] = value`.
    iterating     Python's `map` and `filter`, and `min` and `max` of iterables, as loops that can be those of
                  a program.
    letters       Texts that a program reads letter by letter: strs of the caller's as arrays of code points.
    lists         Lists whose length or elements a traced loop decides.
    mixed         Numbers whose type depends on the way that was taken: `0` on one side of a condition, `x[i]`
                  on the other, or None.
    ndarray       Arrays with NumPy's semantics: mutable, with views that share memory.
    number_lists  Lists of the caller's that hold numbers, or rows of numbers: arrays that act as lists.
    numbers       Python numbers whose value is traced: bool, int (64 bits), float, complex.
    object_lists  Lists of the caller's that hold objects of one class: a structure of arrays that acts as a
                  list.
    operators     Python's operators of arrays and NumPy scalars: each is a ufunc.
    promotion     Operands of NumPy's functions: what they are to promotion, and their values in a dtype.
    scalars       NumPy scalars whose value is traced: what elements and full reductions of arrays are.
    sequences     Arrays of nested sequences with traced elements: what `np.array` makes of lists of numbers.
    storage       Storages: the memory of arrays, which several views may share.
    views         Views: how an array lies in its storage.
"""
