"""The loop program as Python: the text of a function of NumPy arrays, to read, to interpret and to compile.

In: a loop program. Out: `Source` (`writer`), and functions made of it (`running`): as it stands, which checks
each place and needs no compiler, or under `numba.njit`. `executable` makes whole programs of them. Written by
`writer` (control flow, calls), `statements` (of kernels), `expressions`, `operations` and `helpers`.

Modules:
    cuda/        The loop program as functions of `numba.cuda`: files of kernels that people read, and device
                 functions.
    executable   A whole program as one written function.
    expressions  Expressions of the loop program as Python: what has a name, where it gets it, and how the
                 rest is written.
    helpers      Functions that the written ones call where Python has no operator: integers as processors
                 have them, words of 16-bit floats, SciPy's functions.
    operations   The scalar operations of the loop program as Python expressions.
    running      Functions made of written source.
    statements   Statements of kernels as Python: stores, loops, choices, loops until something holds,
                 reductions and scans.
    writer       From the loop program to a function of NumPy arrays, as a person would write it.
"""

from jitcore.backends.python.executable import SourceExecutable
from jitcore.backends.python.running import load_numba, load_python, write_numba
from jitcore.backends.python.writer import Source, write_function

__all__ = ["Source", "SourceExecutable", "load_numba", "load_python", "write_function", "write_numba"]
