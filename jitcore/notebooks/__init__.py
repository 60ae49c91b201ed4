"""Notebooks: `%load_ext jitcore`.

In: the shell of IPython, its cells and variables. Out: magics, and tables and charts as HTML. What programs,
reports and arrays look like in notebooks stands beside their texts: `_repr_html_`, made of `jitcore.hypertext`.

Modules:
    cells     Cells of notebooks whose hot loops and functions are compiled: `%%autojit` in the first line of
              a cell, or `%autojit on` for all that follow.
    magics    What `%load_ext jitcore` adds to a shell: `%autojit`, `%%autojit`, `%jit_timeit`, `%jit_report`.
    summary   `%jit_report`: what became of the decorated functions of a session, and of its autojitted cells.
    timing    `%jit_timeit`: how long an expression of jitted functions takes, at first and later, and what
              that is without jitcore: in NumPy, and under JAX and Numba where these are installed.
    variants  Functions of a session with another library in jitcore's place: NumPy, JAX, or NumPy compiled by
              Numba.
"""
