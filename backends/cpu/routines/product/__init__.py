"""Products of matrices and vectors, and convolutions, as native routines.

In: an equation `dot_general`, `two_sided_dot` or `conv_general_dilated`. Out: a routine; the LLVM text of the
functions that it calls.

Modules:
    blocking             Matrix products on whole operands: blocks of them are packed, and jobs made of the
                         blocks.
    columns              A vector times a matrix whose rows lie along memory, in one sweep over the matrix.
    convolution          The routine for `conv_general_dilated`: convolutions of float32 and float64 as
                         implicit matrix products.
    convolution_windows  Convolutions as matrix products whose operands are not copied: windows are read where
                         the images lie.
    job                  What the functions of a matrix product share: a job in memory, names, and splitting
                         over threads.
    matrices_routine     The routine for `dot_general`: products of matrices of float32 and float64.
    modules              Machine code of matrix products and convolutions: which module defines which symbol.
    multiply             Multiplying in blocks: from a job, the list of its items and tiles to a result, on
                         all threads.
    packing              Packing operands of matrix products: copies in which what a tile reads lies side by
                         side.
    parts                Parts of products' machine code that are compiled when a plan first needs them.
    routine              What a routine of this room is: a function of machine code, and the numbers that it
                         is told.
    row_vectors          Rows of numbers in vectors: what the sweeps over the rows of a matrix are written
                         with.
    short_rows           Short rows of a matrix times a vector, in one sweep over the matrix.
    tile                 The innermost code of matrix products: tiles of the result in registers.
    two_sided            Products of one matrix with vectors on its two sides, in one sweep over the matrix.
    two_sided_routine    The routine for products of a matrix with vectors on its two sides: one sweep over
                         the matrix.
    vector_routine       The routines for products of a matrix and a vector.
"""
