"""`vectorize` and `apply_along_axis`: functions of elements or slices on whole arrays, by `vmap`.

In: a function of small arrays and, in the notation of NumPy's generalised ufuncs, which axes it takes. Out: a
function whose other axes broadcast.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from jitcore import lax
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.define import canonicalize_axis
from jitcore.numpy.arrays.promotion import broadcast_shapes
from jitcore.numpy.creation import asarray
from jitcore.numpy.shaping import moveaxis
from jitcore.numpy.ufuncs.arithmetic import Ufunc
from jitcore.transforms.vmap import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "frompyfunc", "vectorize"]

CoreDims = tuple[str, ...]

_NAMES = r"\((\w+(,\w+)*)?\)"
_SIGNATURE = re.compile(rf"({_NAMES}(,{_NAMES})*)?->{_NAMES}(,{_NAMES})*")


class _Signature(NamedTuple):
    """Names of the axes that the function takes of each argument and gives in each result (None: not said).

    context: what was asked for, for messages."""

    inputs: tuple[CoreDims, ...]
    outputs: tuple[CoreDims, ...] | None
    context: str


def _parse_dims(text: str) -> tuple[CoreDims, ...]:
    return tuple(tuple(filter(None, names.split(","))) for names in re.findall(r"\(([^)]*)\)", text))


def _read_signature(signature: str | None, count: int, context: str) -> _Signature:
    """Raises: ValueError for text that is no signature; TypeError when it has not `count` arguments."""
    if signature is None:
        return _Signature(((),) * count, None, context)
    if not _SIGNATURE.fullmatch(signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    inputs, outputs = map(_parse_dims, signature.split("->"))
    if len(inputs) != count:
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {count} {context}")
    return _Signature(inputs, outputs, context)


def _note_sizes(sizes: dict[str, Any], shape: tuple, names: CoreDims, context: str) -> None:
    """Learns the extents of named axes. Raises: ValueError where one is known to be another."""
    for name, extent in zip(names, shape):
        if sizes.setdefault(name, extent) != extent:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {extent} vs {sizes[name]} {context}")


def vectorize(pyfunc: Callable, *, excluded: Collection = frozenset(),
              signature: str | None = None) -> Callable:
    """A function that applies pyfunc to each element, or to slices, of arrays that broadcast.

    Same as: numpy.vectorize, but compiled by `vmap` instead of called for each element.

    Args:
        pyfunc: function of arrays; without a signature of scalars, giving scalars or a pytree of them.
        excluded: positions and names of arguments that are handed to pyfunc as they are.
        signature: axes that pyfunc takes and gives, such as "(n,m),(m)->(n)"; the others broadcast.

    Raises: TypeError and ValueError for a signature that is malformed, or that arguments or results do not
        fit."""
    if not all(isinstance(entry, (int, str)) for entry in excluded):
        raise TypeError("jitcore.numpy.vectorize can only exclude integer or string arguments, "
                        f"but excluded={excluded!r}")
    if any(isinstance(entry, int) and entry < 0 for entry in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    context = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"

    @functools.wraps(pyfunc)
    def call(*args, **kwargs):
        positions = [i for i in range(len(args)) if i not in excluded]
        dims = _read_signature(signature, len(positions), context)
        missing = {k for k, i in enumerate(positions) if args[i] is None}
        if any(dims.inputs[k] for k in missing):
            raise ValueError(f"Cannot pass None at locations {missing} with {signature=}")
        dims = dims._replace(inputs=tuple(names for k, names in enumerate(dims.inputs) if k not in missing))
        mapped = [i for i in positions if args[i] is not None]
        fixed = {name: value for name, value in kwargs.items() if name in excluded}

        def function(*elements):
            values = dict(zip(mapped, elements))
            return pyfunc(*[values.get(i, arg) for i, arg in enumerate(args)], **fixed)

        return _call_vectorized(function, [asarray(args[i]) for i in mapped], dims)

    return call


def _call_vectorized(function: Callable, operands: Sequence[Array], dims: _Signature):
    sizes: dict[str, Any] = {}
    for x, names in zip(operands, dims.inputs):
        if x.ndim < len(names):
            raise ValueError(f"input with shape {x.shape} does not have enough dimensions for all core "
                             f"dimensions {names} {dims.context}")
        _note_sizes(sizes, x.shape[x.ndim - len(names) :], names, dims.context)
    loops = [x.shape[: x.ndim - len(names)] for x, names in zip(operands, dims.inputs)]
    joint = broadcast_shapes(*loops)
    filled = [(1,) * (len(joint) - len(loop)) + loop for loop in loops]
    mapped = _check_results(function, sizes, dims)
    for dim in reversed(range(len(joint))):  # the last axis is the innermost one
        # What has one element along an axis is the same for all elements there.
        axes = tuple(None if loop[dim] == 1 else 0 for loop in filled)
        mapped = vmap(mapped, axes, axis_size=joint[dim])
    squeezed = [lax.squeeze(x, [dim for dim, extent in enumerate(loop) if extent == 1])
                for x, loop in zip(operands, loops)]
    return mapped(*squeezed)


def _check_results(function: Callable, sizes: dict[str, Any], dims: _Signature) -> Callable:
    """function, raising where its results are not what the signature says."""
    if dims.outputs is None:
        return function

    def checked(*elements):
        result = function(*elements)
        outs = result if isinstance(result, tuple) else (result,)
        if len(dims.outputs) > 1 and not isinstance(result, tuple):
            raise TypeError("output must be a tuple when multiple outputs are expected, "
                            f"got: {result!r}\n{dims.context}")
        if len(outs) != len(dims.outputs):
            raise TypeError(f"wrong number of output arguments: expected {len(dims.outputs)}, "
                            f"got {len(outs)} {dims.context}")
        for out, names in zip(outs, dims.outputs):
            shape = aval_of(out).shape
            if len(shape) != len(names):
                raise ValueError(
                    f"output shape {shape} does not match core dimensions {names} {dims.context}")
            _note_sizes(sizes, shape, names, dims.context)
        return result

    return checked


def apply_along_axis(func1d: Callable, axis: int, arr, *args, **kwargs) -> Array:
    """func1d of each slice of arr along an axis; what it returns stands in place of that axis.

    Args:
        func1d: function of a vector (and args, kwargs), giving an array.
    Same as: numpy.apply_along_axis."""
    arr = asarray(arr)
    axis = canonicalize_axis(axis, arr.ndim)
    mapped = lambda x: func1d(x, *args, **kwargs)  # noqa: E731
    for _ in range(arr.ndim - 1):
        mapped = vmap(mapped)
    out = asarray(mapped(moveaxis(arr, axis, -1)))
    added = out.ndim - (arr.ndim - 1)
    return moveaxis(out, tuple(range(arr.ndim - 1, out.ndim)), tuple(range(axis, axis + added)))


def apply_over_axes(func: Callable, a, axes: int | Sequence[int]) -> Array:
    """`func(a, axis)` for one axis after the other; an axis that it drops is put back with extent 1.

    Args:
        func: of an array and an axis, which keeps or drops it. a: array. axes: an axis or several.

    Returns: array of the rank of a. Raises: ValueError for a result of another rank.
    Example: `apply_over_axes(jnp.sum, jnp.ones((2, 3)), (0, 1))` is `[[6]]`. Source:
    numpy.apply_over_axes."""
    a = asarray(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        axis = canonicalize_axis(axis, a.ndim)
        found = func(a, axis)
        if found.ndim not in (a.ndim, a.ndim - 1):
            raise ValueError("function is not returning an array of the correct shape")
        a = found if found.ndim == a.ndim else lax.expand_dims(found, (axis,))
    return a


class PythonUfunc(Ufunc):
    """What `frompyfunc` gives."""

    def __init__(self, function: Callable, nin: int, nout: int, identity: Any = None):
        super().__init__(function, identity)
        # none of the names that have primitives
        self.__name__ = self.__qualname__ = f"frompyfunc({self.__name__})"
        self.nin, self.nout = nin, nout
        self._vectorized = vectorize(function)

    def __call__(self, *args):
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} positional arguments, {len(args)} were given")
        return self._vectorized(*args)

    def _key(self) -> tuple:
        return self._function, self.nin, self.nout, self.identity

    def __eq__(self, other) -> bool:
        return isinstance(other, PythonUfunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self):
        return PythonUfunc, (self._function, self.nin, self.nout, self.identity)


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> PythonUfunc:
    """A function of numbers as one of arrays that broadcasts, with `reduce`, `accumulate`, `outer` and `at`.

    Args:
        func: of nin scalars, which gives nout of them and can be traced. identity: what `reduce` gives for an
            empty axis.

    Returns: a ufunc. Raises: ValueError for a negative nin or nout.
    Example: `frompyfunc(lambda x, y: x + 2 * y, 2, 1).reduce(jnp.arange(5))` is 20. Source: numpy.frompyfunc,
    jax.numpy.frompyfunc."""
    if nin < 0 or nout < 0:
        raise ValueError(f"frompyfunc needs non-negative nin and nout, got {nin} and {nout}")
    return PythonUfunc(func, nin, nout, identity)
