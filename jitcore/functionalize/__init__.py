"""NumPy's semantics on traced values: arrays with memory and views, NumPy scalars, Python numbers.

In: `Array`s of a trace. Out: handles (`NDArray`, `Scalar`, `Number`) that act as the ndarray, NumPy scalar or
Python number would: the same values, dtypes, mutation and aliasing. What cannot be done exactly raises
`NotTraceable`; what only the running program can find out is noted in the mode's flag (`NumpyMode.fail`).
"""
