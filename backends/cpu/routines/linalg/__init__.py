"""Decompositions and solvers of matrices as native routines: our own for small ones, else LAPACK's.

In: an equation of `jitcore.lax.linalg`. Out: a routine; the LLVM text of the functions that it calls.

Modules:
    block_cholesky  Cholesky factors of matrices that fit a core's caches, in one sweep on one thread.
    block_lu        LU factors of matrices that fit a core's caches, with pivots from each column, on one
                    thread.
    block_solve     Triangular systems with right-hand sides in rows, on one thread.
    block_tile      Tiles of matrices in registers: what the blocked factorisations and solvers on one thread
                    are made of.
    lapack_code     Native code around LAPACK: one function for each decomposition and dtype, for batches of
                    matrices.
    lapack_symbols  Where LAPACK is: the addresses of its routines in a library that this process has loaded
                    anyway.
    routine         Routines for the primitives of `jitcore.lax.linalg`: LAPACK's functions, called from
                    native code.
    small_matrices  Factorisations and solvers for matrices so small that calling LAPACK takes longer than the
                    work.
    transpose       Transposed copies of matrices, as a function that routines call.
"""
