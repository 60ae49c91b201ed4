"""Runs a function under NumPy's semantics: traced with handles, then its jaxpr on ndarrays."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.core.trace import open_trace
from jitcore.numpy_semantics.dynamic_extents.joining import pack, unpack
from jitcore.numpy_semantics.mode import NumpyMode
from jitcore.numpy_semantics.values.mixed import Mixed, make_conversion
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import NUMBER_DTYPES, Number
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.storage import Storage
from jitcore.rewriter.functions import rewrite_function
from jitcore.rewriter.handles import Handle, current


@contextlib.contextmanager
def numpy_mode() -> Iterator[NumpyMode]:
    """The mode while code is traced; the current trace is that of the program."""
    previous, current.mode = current.mode, NumpyMode()
    try:
        yield current.mode
    finally:
        current.mode = previous


class Static:
    """An argument that is not traced."""

    def __init__(self, value: Any):
        self.value = value


class Deoptimized(Exception):
    """The program says that Python has to run the call."""


class _Arguments:
    """Handles for the arguments of a call: one handle for one array."""

    def __init__(self, trace):
        self.trace, self.values, self.arrays = trace, [], {}

    def _new(self, value, dtype):
        self.values.append(np.asarray(value, dtype))
        return self.trace.new_arg(ShapedArray(np.shape(value), dtype))

    def wrap(self, x: Any) -> Any:
        if isinstance(x, Static):
            return x.value
        if isinstance(x, np.ndarray):
            if id(x) not in self.arrays:
                is_c_order = x.flags.c_contiguous
                storage = Storage(self._new(x, x.dtype), x, is_c_order=is_c_order)
                self.arrays[id(x)] = x, NDArray(storage)
            return self.arrays[id(x)][1]
        if isinstance(x, np.generic):
            return Scalar(self._new(x, x.dtype))
        if type(x) in NUMBER_DTYPES:
            return Number(type(x), self._new(x, NUMBER_DTYPES[type(x)]))
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.wrap, x))
        return x


def trace_call(function, args, rewrite: bool = True):
    """(jaxpr, its arguments, structure of the result, arguments, mode)."""
    with open_trace() as trace, numpy_mode() as mode:
        arguments = _Arguments(trace)
        handles = [arguments.wrap(x) for x in args]
        result = (rewrite_function(function) if rewrite else function)(*handles)
        found: list = []
        template = _take_apart(result, found)
        storages = [array.storage for _, array in arguments.arrays.values()]
        outs = [handle.read() for handle in found] + [storage.value for storage in storages] + [mode.failed]
        jaxpr, consts = trace.close(outs)
    closed = ClosedJaxpr(jaxpr, [np.asarray(c.data) if hasattr(c, "data") else c for c in consts])
    return closed, arguments.values, (template, found), storages, mode


class _Packed:
    """Where a returned array of traced extents and its extents are among the outputs."""

    def __init__(self, array, found: list):
        values, extents = pack(array)
        self.places = []
        for handle in (new_array(values), *extents):
            self.places.append(len(found) if isinstance(handle, Handle) else handle)
            if isinstance(handle, Handle):
                found.append(handle)
        self.is_traced = [isinstance(handle, Handle) for handle in extents]

    def read(self, outs: list) -> np.ndarray:
        first, *rest = self.places
        extents = [outs[place] if traced else place for place, traced in zip(rest, self.is_traced)]
        return unpack(outs[first], tuple(extents))


class _Converted:
    """Where a number of several types and its tag are among the outputs."""

    def __init__(self, number, found: list):
        parts = number.children()
        self.places, self.kinds = range(len(found), len(found) + len(parts)), number.kinds
        found += map(Scalar, parts)

    def read(self, outs: list) -> Any:
        return make_conversion(self.kinds)(*[outs[place] for place in self.places])


def _take_apart(value: Any, found: list) -> Any:
    if getattr(value, "is_padded", False):
        return _Packed(value, found)
    if type(value) is Mixed:
        return _Converted(value, found)
    if isinstance(value, Handle):
        found.append(value)
        return len(found) - 1, value
    if isinstance(value, (list, tuple)):
        return type(value)(_take_apart(item, found) for item in value)
    return value


def _put_together(template: Any, outs: list) -> Any:
    if isinstance(template, (_Packed, _Converted)):
        return template.read(outs)
    if isinstance(template, tuple) and len(template) == 2 and isinstance(template[1], Handle):
        place, handle = template
        if isinstance(handle, Number):
            return handle.python_type(outs[place][()])
        return outs[place][()] if isinstance(handle, Scalar) else np.array(outs[place])
    if isinstance(template, (list, tuple)):
        return type(template)(_put_together(item, outs) for item in template)
    return template


def run_traced(function, args, rewrite: bool = True) -> tuple[Any, list[np.ndarray]]:
    """(result, contents of the array arguments behind the call). Raises: Deoptimized; what tracing raises."""
    closed, values, (template, found), storages, _ = trace_call(function, args, rewrite)
    outs = run_jaxpr_numpy(closed, values)
    if outs[-1]:
        raise Deoptimized
    return _put_together(template, outs), outs[len(found) : -1]


def check(function, *args, rtol: float = 1e-12, rewrite: bool = True) -> Any:
    """Compares a traced run with a plain one: values, dtypes, kinds of the results, mutated arguments."""
    plain_args = copy.deepcopy(list(args))  # one array stays one array
    with np.errstate(all="ignore"):
        expected = function(*[x.value if isinstance(x, Static) else x for x in plain_args])
    result, mutated = run_traced(function, args, rewrite)
    assert_same(result, expected, rtol)
    for found, wanted in zip(mutated, _list_arrays(plain_args)):
        assert_same(found, wanted, rtol)
    return expected


def _list_arrays(values) -> list:
    found: dict[int, np.ndarray] = {}
    for x in values:
        for array in (
            [x] if isinstance(x, np.ndarray) else _list_arrays(x) if isinstance(x, (list, tuple)) else []
        ):
            found.setdefault(id(array), array)
    return list(found.values())


def assert_same(found: Any, expected: Any, rtol: float) -> None:
    assert type(found) is type(expected), f"{type(found)} instead of {type(expected)}"
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other, rtol)
        return
    if isinstance(expected, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
        assert found.shape == expected.shape, f"{found.shape} instead of {expected.shape}"
    if isinstance(expected, (np.ndarray, np.generic, float, complex)):
        narrow = isinstance(expected, (np.ndarray, np.generic)) and expected.dtype in (
            np.float32,
            np.complex64,
        )
        half = isinstance(expected, (np.ndarray, np.generic)) and expected.dtype == np.float16
        rtol = max(rtol, 3e-3 if half else 3e-6 if narrow else 0)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    else:
        assert found == expected


def check_error(function, *args) -> None:
    """Both runs raise an error of one type, while tracing or when the program runs."""
    try:
        with np.errstate(all="ignore"):
            function(*[x.value if isinstance(x, Static) else copy.deepcopy(x) for x in args])
    except Exception as error:
        expected = error
    else:
        raise AssertionError("plain Python raises nothing")
    try:
        run_traced(function, args)
    except Deoptimized:
        return
    except Exception as error:
        assert (
            isinstance(error, type(expected).__mro__[0]) or type(error).__name__ == type(expected).__name__
        ), error
        return
    raise AssertionError(f"nothing is raised instead of {expected!r}")
