"""NumPy's semantics on traced values: arrays with memory and views, NumPy scalars, Python numbers.

In: `Array`s of a trace. Out: handles (`NDArray`, `Scalar`, `Number`) that act as the ndarray, NumPy scalar or
Python number would: the same values, dtypes, mutation and aliasing. What cannot be done exactly raises
`NotTraceable`; what only the running program can find out is noted in the mode's flag (`NumpyMode.fail`).

Modules:
    dynamic_extents/  Arrays whose extents are traced: `a[i, :j]`, `x[mask]`, `np.zeros(n)`.
    errors            Why code with NumPy's semantics cannot be traced, laid out as all errors are
                      (`jitcore.errors`).
    functions/        NumPy's and SciPy's functions over handles.
    mode              NumPy's semantics in force: a mode of the rewriter, what is called instead of functions,
                      what operators do.
    remedies          What to write instead of a statement that cannot be traced.
    values/           Traced values that act as NumPy's and Python's do: arrays with memory and views,
                      scalars, numbers, lists.
"""

from jitcore.numpy_semantics import mode

mode.install()
