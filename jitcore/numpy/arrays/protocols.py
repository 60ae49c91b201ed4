"""NumPy's own functions on our arrays: `np.sin(x)`, `np.concatenate([x, y])`, `np.add.outer(x, y)`.

In: a NumPy function and arguments with an Array among them. Out: with a tracer among them, what the namesake
in `jitcore.numpy` gives; a function without namesake raises. On concrete arrays NumPy runs and gives its own
arrays, which SciPy's C code, for one, asks for. An operator with an ndarray on its left gives an Array, as
one with an Array there does.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from jitcore import dtypes, errors
from jitcore.array import Array
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.numpy.creation import asarray

# Parameters for which NumPy takes a list as an array; called by their own name, functions here refuse it.
_ARRAY_PARAMETERS = frozenset(
    "a a1 a2 a_max a_min append ar1 ar2 arr array ary aweights b condition element fp fweights m max "
    "mask min p prepend q seq_of_zeros test_elements u v values vals w weights where x x1 x2 xp y z".split())

# What Python's binary operators of ndarrays call.
_OPERATORS = frozenset((
    np.add, np.subtract, np.multiply, np.matmul, np.true_divide, np.floor_divide, np.remainder, np.divmod,
    np.power, np.left_shift, np.right_shift, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.less,
    np.less_equal, np.equal, np.not_equal, np.greater, np.greater_equal,
))

# NumPy functions whose namesake here has another name.
_RENAMED = {"ndarray": None, "fix": "trunc", "in1d": "isin", "trapz": "trapezoid", "row_stack": "vstack"}


_namespace: Any = None


@functools.cache
def _namesakes() -> dict:
    """NumPy function -> the function here, for every name that both namespaces have."""
    table = {}
    for theirs, ours in ((np, _namespace), (np.linalg, _namespace.linalg), (np.fft, _namespace.fft)):
        for name in dir(theirs):
            if name in ("core", "matrixlib") or name.startswith("_"):
                continue
            function, namesake = getattr(theirs, name), getattr(ours, _RENAMED.get(name, name) or "", None)
            if callable(function) and callable(namesake) and not isinstance(function, type):
                table[function] = namesake
    return table


def _accept_sequence(x):
    return asarray(x) if x.__class__ in (list, tuple) else x


@functools.cache
def _name_parameters(function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _accept_sequences(namesake, args, kwargs: dict) -> tuple[list, dict]:
    """The arguments, with Arrays for the lists that NumPy takes as arrays."""
    if args and isinstance(args[0], str):  # operands of `einsum`
        return [args[0], *map(_accept_sequence, args[1:])], kwargs
    args = list(args)
    for i, name in enumerate(_name_parameters(namesake)[: len(args)]):
        if name in _ARRAY_PARAMETERS:
            args[i] = _accept_sequence(args[i])
    kwargs = {key: _accept_sequence(value) if key in _ARRAY_PARAMETERS else value
              for key, value in kwargs.items()}
    return args, kwargs


def _name_of(function) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.removeprefix('numpy._core.').removesuffix('._linalg')}.{function.__name__}"


def _find_foreign(args) -> Array | None:
    """The first array that NumPy has no values of: a tracer, or keys."""
    for arg in args:
        if isinstance(arg, Array):
            if isinstance(arg, Tracer) or dtypes.is_key(arg.dtype):
                return arg
        elif isinstance(arg, (list, tuple)):
            found = _find_foreign(arg)
            if found is not None:
                return found
        elif isinstance(arg, dict):
            found = _find_foreign(arg.values())
            if found is not None:
                return found
    return None


def _to_ndarrays(arg):
    if isinstance(arg, Array):
        return np.asarray(arg)
    if isinstance(arg, (list, tuple)) and type(arg) in (list, tuple):
        return type(arg)(map(_to_ndarrays, arg))
    if isinstance(arg, dict):
        return {key: _to_ndarrays(value) for key, value in arg.items()}
    return arg


def _run_in_numpy(function, args, kwargs, name: str):
    """The NumPy function on the data. Raises: TracerArrayConversionError naming it, for a tracer."""
    tracer = _find_foreign((*args, kwargs))
    if isinstance(tracer, Tracer):
        raise errors.array_conversion_error(tracer.aval.long(), origin_of(tracer.owner, tracer),
                                            user_snippet(), function=name)
    return function(*_to_ndarrays(args), **_to_ndarrays(kwargs))


def _is_operator(ufunc, method: str, inputs, kwargs: dict) -> bool:
    """Whether this may be Python's operator, which comes here from an ndarray on its left."""
    is_call = ufunc in _OPERATORS and method == "__call__" and not kwargs
    return is_call and isinstance(inputs[0], (np.ndarray, np.generic))


def apply_ufunc(self, ufunc, method: str, *inputs, **kwargs):
    """`Array.__array_ufunc__`: a NumPy ufunc, or its method, with an Array among its operands."""
    name = f"numpy.{ufunc.__name__}"
    out = kwargs.pop("out", None)
    if out is not None and any(target is not None for target in out):
        return _write_to_out(ufunc, method, inputs, kwargs, out, name)
    if not _is_operator(ufunc, method, inputs, kwargs) and _find_foreign((inputs, kwargs)) is None:
        if method == "at" and isinstance(inputs[0], Array):
            raise argument_errors.item_assignment_error(user_snippet())
        return _run_in_numpy(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, name)
    kwargs = {key: value for key, value in kwargs.items() if not _is_default(key, value)}
    namesake = _namesakes().get(ufunc)
    if namesake is None:
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        return _run_in_numpy(call, inputs, kwargs, name)
    if method in ("__call__", "outer"):
        inputs = tuple(map(_accept_sequence, inputs))
    if method != "__call__":
        if method == "at":
            raise argument_errors.item_assignment_error(user_snippet())
        return getattr(namesake, method)(*inputs, **kwargs)
    return _call_with_options(namesake, ufunc, inputs, kwargs, name)


def _is_default(key: str, value) -> bool:
    return (key, value) in (("casting", "same_kind"), ("order", "K"), ("subok", True)) or (
        key == "where" and value is True) or (key == "dtype" and value is None)


def _call_with_options(namesake, ufunc, inputs, kwargs: dict, name: str):
    """`dtype=` converts the operands first; other options only NumPy knows."""
    dtype = kwargs.pop("dtype", None)
    if not set(kwargs) <= set(inspect.signature(namesake).parameters):
        return _run_in_numpy(ufunc, inputs, {**kwargs, "dtype": dtype}, name)
    if dtype is not None:
        inputs = [asarray(x, dtype) for x in inputs]
    return namesake(*inputs, **kwargs)


def _write_to_out(ufunc, method: str, inputs, kwargs: dict, out: tuple, name: str):
    """`out=`: ndarrays are written by NumPy; Arrays are immutable."""
    if any(isinstance(target, Array) for target in out):
        raise argument_errors.item_assignment_error(user_snippet())
    kwargs["out"] = out if ufunc.nout > 1 or method == "__call__" else out[0]
    return _run_in_numpy(ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs, name)


def apply_function(self, function, types, args, kwargs):
    """`Array.__array_function__`: any other NumPy function with an Array among its arguments."""
    namesake = _namesakes().get(function)
    name = _name_of(function)
    target = kwargs.get("out")
    if isinstance(target, Array):
        raise argument_errors.item_assignment_error(user_snippet())
    if namesake is None or target is not None or _find_foreign((args, kwargs)) is None:
        return _run_in_numpy(function, args, kwargs, name)
    kwargs = {key: value for key, value in kwargs.items() if not (key in ("out", "like") and value is None)}
    args, kwargs = _accept_sequences(namesake, args, kwargs)
    return namesake(*args, **kwargs)


def array_namespace(self, *, api_version: str | None = None):
    """`Array.__array_namespace__`: `jitcore.numpy`, which follows the array API standard of that edition.

    Raises: ValueError for another edition."""
    if api_version not in (None, _namespace.__array_api_version__):
        raise ValueError(f"{api_version=!r} is not the edition that jitcore.numpy follows, "
                         f"{_namespace.__array_api_version__!r}")
    return _namespace


def install_protocols(cls: type[Array], namespace) -> None:
    """Puts NumPy's dispatch hooks on the array class. namespace: `jitcore.numpy`, which has the namesakes."""
    global _namespace
    _namespace = namespace
    cls.__array_ufunc__ = apply_ufunc
    cls.__array_function__ = apply_function
    cls.__array_namespace__ = array_namespace
