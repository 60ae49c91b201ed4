"""What `Array` is to NumPy: operators, methods, dtype promotion and NumPy's dispatch protocols.

In: the class `Array`, and operands of any kind. Out: the behaviour that importing `jitcore.numpy` installs on
it.

Modules:
    dtype_names  Names of the NumPy namespace that are no functions of arrays: scalar types, constants,
                 questions about dtypes.
    methods      Methods and properties of arrays, installed on `Array`: `x.sum()`, `x.T`, `x.at`,
                 `x.astype(...)`.
    operators    Python operators of arrays: `x + y`, `-x`, `x[i]` ..., installed on `Array` for concrete
                 arrays and tracers.
    promotion    Operands of NumPy-style functions: what is accepted, which dtype they meet in, how shapes
                 broadcast.
    protocols    NumPy's own functions on our arrays: `np.sin(x)`, `np.concatenate([x, y])`, `np.add.outer(x,
                 y)`.
"""
