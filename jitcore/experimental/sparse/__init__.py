"""Sparse arrays: `BCOO`, its operations, and `sparsify` for functions of dense arrays.

In: arrays most of whose elements are zero. Out: arrays of entries, and what is computed from them, in
programs that differentiate, batch and compile.

Modules:
    bcoo            `BCOO`, the public form of sparse arrays, and how they are made.
    bcsr            Batches of sparse matrices row by row: `BCSR`, and its functions.
    dynamic_slices  Parts of sparse arrays at places that are known when a program runs: `bcoo_dynamic_slice`,
                    `bcoo_gather`.
    formats         Sparse arrays of a format that is named: without entries, and of ones on a diagonal.
    matrices        Sparse matrices in SciPy's older formats: `COO`, `CSR` and `CSC`, their products, and what
                    makes them.
    operations      Operations on `BCOO` arrays: functions of `jax.experimental.sparse`, by gathers and
                    scatters of entries.
    products        Products of sparse arrays along axes: `bcoo_dot_general` and what `@` means.
    sparsify        Functions of dense arrays, applied to sparse ones (`sparsify`), and derivatives by sparse
                    arguments.
    structure       What a sparse array consists of: entries and their places, with axes of batches in front
                    and dense axes behind.
"""

from jitcore.experimental.sparse.bcoo import BCOO, bcoo_fromdense, random_bcoo
from jitcore.experimental.sparse.bcsr import (BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general,
                                              bcsr_extract, bcsr_fromdense, bcsr_sum_duplicates, bcsr_todense)
from jitcore.experimental.sparse.dynamic_slices import bcoo_dynamic_slice, bcoo_gather
from jitcore.experimental.sparse.formats import empty, eye
from jitcore.experimental.sparse.matrices import (COO, CSC, CSR, coo_fromdense, coo_matmat, coo_matvec,
                                                  coo_todense, csr_fromdense, csr_matmat, csr_matvec,
                                                  csr_todense)
from jitcore.experimental.sparse.operations import (bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_extract,
                                                    bcoo_multiply_dense, bcoo_multiply_sparse,
                                                    bcoo_reduce_sum, bcoo_reshape, bcoo_rev, bcoo_slice,
                                                    bcoo_sort_indices, bcoo_squeeze, bcoo_sum_duplicates,
                                                    bcoo_todense, bcoo_transpose, bcoo_update_layout)
from jitcore.experimental.sparse.products import bcoo_dot_general, bcoo_dot_general_sampled
from jitcore.experimental.sparse.sparsify import (grad, jacfwd, jacobian, jacrev, sparsify, todense,
                                                  value_and_grad)
from jitcore.experimental.sparse.structure import (CuSparseEfficiencyWarning, JAXSparse,
                                                   SparseEfficiencyError, SparseEfficiencyWarning)

__all__ = ["BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse",
           "SparseEfficiencyError", "SparseEfficiencyWarning",
           "bcoo_broadcast_in_dim", "bcoo_concatenate",
           "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_extract",
           "bcoo_fromdense", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum",
           "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze",
           "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout",
           "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense",
           "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense",
           "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad", "jacfwd",
           "jacobian", "jacrev", "random_bcoo", "sparsify", "todense", "value_and_grad"]
