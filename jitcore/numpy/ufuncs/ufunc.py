"""The ufunc object: a function of two operands with `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

In: the plain function. Out: a callable with NumPy's ufunc methods, which return new arrays and never write.
"""

from __future__ import annotations

import functools
import inspect

from jitcore.core.source import api_boundary


class Ufunc:
    """A broadcasting function of two operands, such as `jnp.add`.

    Args:
        function: `function(x, y, /)`.
        identity: what `reduce` gives for an empty axis; None where there is none.
    """

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

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims: bool = False, initial=None, where=None):
        """Folds the function along one axis, several (tuple) or all (None). Same as: `numpy.ufunc.reduce`."""
        from jitcore.numpy.ufuncs import methods

        return methods.reduce_ufunc(self, a, axis, dtype, out, keepdims, initial, where)

    def accumulate(self, a, axis: int = 0, dtype=None, out=None):
        """All partial folds along one axis. Same as: `numpy.ufunc.accumulate`."""
        from jitcore.numpy.ufuncs import methods

        return methods.accumulate_ufunc(self, a, axis, dtype, out)

    def outer(self, a, b, /):
        """The function of every pair: shape a.shape + b.shape. Same as: `numpy.ufunc.outer`."""
        from jitcore.numpy.ufuncs import methods

        return methods.outer_ufunc(self, a, b)

    def at(self, a, indices, b=None, /, *, inplace: bool = True):
        """A copy of a with b applied at the indices, repeated ones too (`inplace` must be False).

        Raises: NotImplementedError for inplace=True: arrays are immutable."""
        from jitcore.numpy.ufuncs import methods

        return methods.update_at(self, a, indices, b, inplace)

    def reduceat(self, a, indices, axis: int = 0, dtype=None, out=None):
        """Folds between successive indices along one axis. Same as: `numpy.ufunc.reduceat`."""
        from jitcore.numpy.ufuncs import methods

        return methods.reduceat_ufunc(self, a, indices, axis, dtype, out)
