"""What `jit` returns, and its other uses.

In: functions, options of `jit`, and arrays. Out: the wrapped function; a program as a function for Numba's
nopython code; one function compared on every backend that is there.

Modules:
    comparison    `compare`: one function on every backend that is there.
    numba_export  A compiled program as a function that Numba's nopython code may call.
    wrapper       `JitWrapped`: the callable that `jit` returns.
"""
