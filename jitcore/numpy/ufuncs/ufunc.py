"""The ufunc object: a function of two operands with `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

In: the plain function. Out: a callable with NumPy's ufunc methods, which return new arrays and never write;
`ufunc_methods` installs them.
"""

from __future__ import annotations

import functools
import inspect

from jitcore.core.source import api_boundary


class Ufunc:
    """A broadcasting function of two operands, such as `jnp.add`.

    Args:
        function: `function(x, y, /)`.
        identity: what `reduce` gives for an empty axis; None where there is none."""

    nin, nargs = 2, 3

    def __init__(self, function, identity=None):
        functools.update_wrapper(self, function)
        self.__name__ = self.__qualname__ = function.__name__.rstrip("_")
        self.__signature__ = inspect.signature(function)
        self._function, self.identity = function, identity
        self.nout = 2 if self.__name__ == "divmod" else 1

    @api_boundary
    def __call__(self, x, y, /):
        return self._function(x, y)

    def __reduce__(self):
        return self.__qualname__  # found there by name

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"
