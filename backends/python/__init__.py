"""The loop program as Python: the text of a function of NumPy arrays, to read, to interpret and to compile.

In: a loop program. Out: `Source` (`writer`), and functions made of it (`running`): as it stands, which checks
each place and needs no compiler, or under `numba.njit`. `executable` makes whole programs of them. Written by
`writer` and `sweeps` (statements), `expressions`, `operations` and `helpers`.
"""

from jitcore.backends.python.executable import SourceExecutable
from jitcore.backends.python.running import load_numba, load_python, write_numba
from jitcore.backends.python.writer import Source, write_function

__all__ = ["Source", "SourceExecutable", "load_numba", "load_python", "write_function", "write_numba"]
