"""The loop program as functions of `numba.cuda`: files of kernels that people read, and device functions.

In: a loop program. Out: text, or a function made of it.

Modules:
    functions  Functions in kernels of Numba: which module has them, and device functions for what none has.
    kernels    Kernels as functions of `numba.cuda`, as a person would write them.
    source     Programs for `numba.cuda`: as files of kernels with a function of the host that launches them,
               and as a device function, which one thread of somebody's kernel calls.
"""

from jitcore.backends.python.cuda.source import File, make_device_function, write_file

__all__ = ["File", "make_device_function", "write_file"]
