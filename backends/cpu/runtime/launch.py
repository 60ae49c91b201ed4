"""Calls of compiled programs from Python: plans, functions that carry them out, and one trampoline for all.

In: what a call of a native program allocates and passes on, from the scheduler or from disk: no compiler is
needed. Out: a function of the input ndarrays. Stage: binding a program to sizes; run time.

Machine code is called by the address of an entry point `int64 entry(i8** buffers, int64* dims)`, the address
of its extents, and the ndarrays whose memory it works on; its status is an int (0: success). The trampoline
is a built-in function of CPython whose body is LLVM code of `trampolines`. It reads each ndarray's data
pointer from the array object itself, which takes a nanosecond where `array.ctypes.data` takes a microsecond.
Whether array objects are laid out as assumed is checked when the trampoline is made; if not, a slower one in
Python takes its place. Beside it, in the same module: functions that know calls again (`make_check`), and
that make small arrays and numbers. Numbers are passed as they are: a float is a buffer, too (see `Scalars`).
Programs of numbers, and of lists that were packed into arrays of ctypes', run in processes that have not
loaded NumPy, which takes longer than many of them: for these `has_arrays` is false.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import marshal
import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from jitcore.backends.cpu import routines  # noqa: F401  provides symbols of native code on whole buffers
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import images, libraries
from jitcore.backends.cpu.native.libraries import NativeProgram, find_program
from jitcore.backends.cpu.native.python_objects import (CELL, CODE_OFFSET, DATA_OFFSET, DTYPE_OFFSET,
                                                        FLAGS_OFFSET, GENERIC, ITEMS_OFFSET, NDARRAY,
                                                        NDIM_OFFSET, SHAPE_OFFSET, SIZE_OFFSET, TRUE,
                                                        TYPE_OFFSET)
from jitcore.backends.cpu.runtime import threads  # noqa: F401  provides symbols of the pool
from jitcore.backends.cpu.runtime.memory import choose_allocator, find_numpy_table, write_arena
from jitcore.dispatch import disk_cache
from jitcore.dispatch.call_facts import ArrayFacts, Scalars
from jitcore.process import lazy, lists

if TYPE_CHECKING:
    import numpy

np = lazy.LazyModule("numpy")  # scripts that do without it need not load it
generated_calls = lazy.LazyModule("jitcore.dispatch.generated_calls")  # which needs NumPy
pickle = lazy.LazyModule("pickle")
list_numbers = lazy.LazyModule("jitcore.backends.cpu.runtime.list_numbers")
trampolines = lazy.LazyModule("jitcore.backends.cpu.runtime.trampolines")
dtypes = lazy.LazyModule("jitcore.dtypes")  # which takes 5 ms to load, and most programs from disk do without

#: Arrays that one call of a native launcher may pass; their table lies on the stack.
MAX_ARRAYS = 4096
#: Arrays of a call whose places are compared with each other.
MAX_COMPARED = 16
#: The status of an entry point that left a Python exception set: it is raised.
RAISED = -(1 << 63)

COUNT_TEXT = f"launch() takes 2 addresses and at most {MAX_ARRAYS} arrays, got %zd arguments"
NULL_TEXT = "launch() got entry address 0"
ARRAY_TEXT = "launch() argument %zd must be a numpy.ndarray, not %R"

_CONTIGUOUS = 3  # flags of an ndarray whose elements lie side by side, in one order or the other
_NEW_ARRAY = 94  # PyArray_NewFromDescr in NumPy's table of functions
_ALLOC = 47  # Py_tp_alloc among the slots of a type
#: Types of Python's numbers; those of them whose objects hold a value; and what native code writes the others
#: to where there is no NumPy, by dtype.
_PLAIN, _HOLDING = frozenset((bool, int, float, complex)), frozenset((float, complex))
_NUMBERS = {"bool": ctypes.c_bool, "int64": ctypes.c_int64}


# -- launchers ----------------------------------------------------------------------------------------------
class Launchers(NamedTuple):
    """Two functions `launch(entry_address, dims_address, *arrays) -> int`.

    Each calls `int64 entry(i8** buffers, int64* dims)` with the data pointers of the arrays, in order, and
    returns its status. Arrays may be of any ndarray subclass, dtype and layout: what the entry point assumes
    about them is the caller's to check, and so is that both addresses are valid. Where the kind is native
    there may be numbers among them: floats, complex numbers and NumPy's scalars are buffers as they lie in
    their objects, of an int or bool the buffer is an int64 for the time of the call.

    Raises: TypeError for fewer than two arguments, an address that is not an int, an argument that is
        neither, or more than MAX_ARRAYS of them where the kind is native; ValueError for entry address 0;
        OverflowError for a large int.

    Attributes:
        holding: keeps the GIL; for programs of a few microseconds.
        releasing: lets other Python threads run meanwhile (10 ns more when none waits).
        kind: "native", or "ctypes" where the object layout is unknown or arrays are many."""

    holding: Callable[..., int]
    releasing: Callable[..., int]
    kind: str


def open_launchers(count: int = 0, has_arrays: bool = True) -> Launchers:
    """The process's launchers of calls with so many arrays; the first call loads them. has_arrays: whether
    these are NumPy's. Cost: 0.4 ms; 15 ms when they must be compiled."""
    with images.link_lock:
        return _make_launchers(count <= MAX_ARRAYS, has_arrays)


@functools.cache
def _make_launchers(has_few: bool, has_arrays: bool) -> Launchers:
    if has_few and layout_is_known() and (not has_arrays or array_layout_is_known()):
        return _make_native_launchers(has_arrays)
    return Launchers(_make_ctypes_launcher(ctypes.PYFUNCTYPE), _make_ctypes_launcher(ctypes.CFUNCTYPE),
                     "ctypes")


def layout_is_known() -> bool:
    """Do objects of this CPython hold what native code reads where it looks?"""
    items, cell, number = [object()], ctypes.c_int64(7), float("1.5")
    read = ctypes.c_void_p.from_address
    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == DATA_OFFSET
        and read(id(layout_is_known) + CODE_OFFSET).value == id(layout_is_known.__code__)
        and read(id(items) + SIZE_OFFSET).value == 1
        and read(read(id(items) + ITEMS_OFFSET).value).value == id(items[0])
        and read(id(cell) + DATA_OFFSET).value == ctypes.addressof(cell)
        and ctypes.c_double.from_address(id(number) + DATA_OFFSET).value == number
    )


def array_layout_is_known() -> bool:
    """The same of NumPy."""
    probe, scalar = np.arange(24.0).reshape(4, 6)[1:3, 2:5], np.int32(7)
    read, read_int = ctypes.c_void_p.from_address, ctypes.c_int.from_address
    return (
        read(id(probe) + TYPE_OFFSET).value == id(np.ndarray)
        and read(id(probe) + DATA_OFFSET).value == probe.ctypes.data
        and read_int(id(probe) + NDIM_OFFSET).value == 2
        and (ctypes.c_int64 * 2).from_address(read(id(probe) + SHAPE_OFFSET).value)[:] == [2, 3]
        and read(id(probe) + DTYPE_OFFSET).value == id(probe.dtype)
        and read_int(id(probe) + FLAGS_OFFSET).value == probe.flags.num
        and read_int(id(scalar) + DATA_OFFSET).value == scalar
    )


@functools.cache
def _open_library(has_arrays: bool) -> libraries.Library:
    """Without arrays, one that links to nothing of NumPy."""
    kind = "arrays" if has_arrays else "numbers"
    return libraries.find_or_compile("launch", kind, lambda: trampolines.TRAMPOLINES[has_arrays])[0]


def _make_table(numbers: Sequence[int]) -> ctypes.Array:
    """What native code reads as int64."""
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _make_builtin(name: str, symbol: str, doc: str, numbers: Sequence[int], has_arrays: bool = True
                  ) -> Callable:
    """A function of the library, with a table of its own."""
    return _open_library(has_arrays).make_builtin(name, symbol, doc, _make_table(numbers))


def make_check(arrays: Sequence[ArrayFacts], mask: int, codes: Sequence[tuple[FunctionType, CodeType]],
               state: tuple[ContextVar, list], has_arrays: bool = True) -> Callable[..., int] | None:
    """As `Backend.make_check` says; None where it would not be native. Its caller keeps what it is given, but
    for the table. Cost: 20 ns and 5 ns an array."""
    if open_launchers(has_arrays=has_arrays).kind != "native":
        return None
    variable, items = state
    are_read = not any(facts.is_written for facts in arrays)
    lie_close = all(facts.flags & _CONTIGUOUS for facts in arrays)
    compares = len(arrays) <= MAX_COMPARED and (are_read or lie_close)
    table = [len(arrays), mask, id(variable), id(items), compares, len(codes)]
    for function, code in codes:
        table += [id(function) + CODE_OFFSET, id(code)]
    for dtype, shape, flags, is_written in arrays:
        nbytes = math.prod(shape) * dtype.itemsize
        usual = np.dtype(dtype.type)  # pickles have others
        table += [id(usual if usual == dtype else dtype), flags, nbytes, is_written, len(shape), *shape]
    return _make_builtin("is_known", "is_known", "is_known(*arrays) -> int", table, has_arrays)


def takes_scalars(plan: CallPlan) -> bool:
    """Whether the function of a plan takes, and may give, `Scalars`."""
    return open_launchers(plan.num_inputs + len(plan.outputs) + 1).kind == "native"


def make_scalar_allocator(kind: type, has_arrays: bool) -> Callable[[], Any]:
    """A function that makes objects of a type that holds a value, which is undefined."""
    get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    table = get_slot(("PyType_GetSlot", ctypes.pythonapi))(kind, _ALLOC), id(kind)
    return _make_builtin("new", "make_scalar", "new() -> number", table, has_arrays)


def make_allocator(shape: tuple[int, ...], dtype: numpy.dtype) -> Callable[[], numpy.ndarray] | None:
    """A function that makes arrays of a shape and dtype, their elements undefined: NumPy's own, in half the
    time of `np.empty`, which has arguments to read. None where it would not be native."""
    numpy_table = find_numpy_table() if open_launchers().kind == "native" else None
    if numpy_table is None:
        return None
    kept = _dtypes.setdefault(dtype, dtype)
    table = numpy_table[_NEW_ARRAY], id(kept), len(shape), *shape
    return _make_builtin("empty", "make_empty", "empty() -> ndarray", table)


#: Those that tables name.
_dtypes: dict[numpy.dtype, numpy.dtype] = {}


def _make_native_launchers(has_arrays: bool) -> Launchers:
    library, parameters = _open_library(has_arrays), "(entry_address, dims_address, *arrays) -> status"
    functions = (library.make_builtin(name, name, name + parameters)
                 for name in ("launch_holding", "launch_releasing"))
    lists.loaders.append(_load_lists)
    return Launchers(*functions, "native")


def _load_lists() -> tuple[Callable[..., int], ...]:
    library, _ = libraries.find_or_compile("lists", "", lambda: list_numbers.LISTS)
    return tuple([library.make_builtin(name, name, f"{name}(list, array, code) -> int")
                  for name in ("pack_rows", "unpack_rows")])


images.provide(NDARRAY, lambda _: id(np.ndarray))
images.provide(GENERIC, lambda _: id(np.generic))
images.provide(CELL, lambda _: id(ctypes.c_int64.__mro__[-2]))
images.provide(TRUE, lambda _: id(True))


def _make_ctypes_launcher(function_type) -> Callable[..., int]:
    """The same function in Python; `function_type` says whether the call keeps the GIL."""
    prototype = function_type(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    entries: dict[int, Callable[..., int]] = {}

    def launch(*arguments):
        count = len(arguments) - 2
        if count < 0:
            raise TypeError(COUNT_TEXT.replace("%zd", str(len(arguments))))
        address, dims_address, *arrays = arguments
        for given in (address, dims_address):
            if not isinstance(given, int):
                raise TypeError(f"launch() takes addresses as int, not {type(given)}")
        if address == 0:
            raise ValueError(NULL_TEXT)
        for position, array in enumerate(arrays, 2):
            if not isinstance(array, np.ndarray):
                raise TypeError(ARRAY_TEXT.replace("%zd", str(position)).replace("%R", repr(type(array))))
        table = (ctypes.c_void_p * max(count, 1))(*(array.ctypes.data for array in arrays))
        entry = entries.get(address) or entries.setdefault(address, prototype(address))
        return entry(table, dims_address)

    return launch


# -- plans --------------------------------------------------------------------------------------------------
Run = Callable[..., list]


class Output(NamedTuple):
    """An output: the number of the input whose memory it takes over, or -1 for an array of its own."""

    source: int
    shape: tuple[int, ...]
    dtype: numpy.dtype


class CallPlan(NamedTuple):
    """What a call allocates and passes on, for inputs of certain shapes.

    dims: what the entry point gets beside arrays. arena_bytes: of temporaries. releases: whether a call lets
    other Python threads run meanwhile. parts: symbols that code finds in tables, opened before a call.
    owners: (number, object) of dims that are addresses: these are the objects' own in each process."""

    num_inputs: int
    outputs: tuple[Output, ...]
    dims: tuple[int, ...]
    arena_bytes: int
    releases: bool
    parts: tuple[str, ...] = ()
    owners: tuple[tuple[int, Any], ...] = ()

    def open_parts(self) -> None:
        for symbol in self.parts:
            images.address_of(symbol)


def find_plan(key: bytes) -> tuple[CallPlan, bytes | None] | None:
    """(a plan, the key of its machine code or None where it has no code), as `store_plan` got them."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return decode_plan(stored)
    except ValueError:  # what was written is not what is read: it will be replaced
        return None


def store_plan(key: bytes, plan: CallPlan, code_key: bytes | None) -> None:
    cache = disk_cache.open_cache()
    if cache is not None:
        cache.add(key, encode_plan(plan, code_key))


def encode_plan(plan: CallPlan, code_key: bytes | None) -> bytes:
    outputs = [(output.source, *map(int, output.shape), output.dtype.name) for output in plan.outputs]
    owners = pickle.dumps(plan.owners) if plan.owners else b""
    numbers = plan.num_inputs, [*map(int, plan.dims)], plan.arena_bytes, bool(plan.releases)
    return marshal.dumps((code_key, *numbers, outputs, plan.parts, owners))


def decode_plan(stored: bytes, has_arrays: bool = True) -> tuple[CallPlan, bytes | None]:
    """has_arrays: whether dtypes are NumPy's, or names. Raises: ValueError for bytes that `encode_plan` did
    not make."""
    find_dtype = _find_dtype if has_arrays else str
    try:
        code_key, num_inputs, dims, arena_bytes, releases, found, parts, pickled = marshal.loads(stored)
        outputs = [Output(source, tuple(shape), find_dtype(name)) for source, *shape, name in found]
        owners = pickle.loads(pickled) if pickled else ()
        for place, owner in owners:
            dims[place] = owner.address
    except Exception as damage:
        raise ValueError(f"the plan of a call is damaged: {damage}") from None
    return CallPlan(num_inputs, tuple(outputs), tuple(dims), arena_bytes, releases, parts, owners), code_key


def _find_dtype(name: str) -> numpy.dtype:
    try:
        return np.dtype(name)
    except TypeError:  # of another package, seldom met
        return next(dtype for dtype in (dtypes.bfloat16, *dtypes.NARROW) if dtype.name == name)


def write_call(plan: CallPlan, compiled: NativeProgram, given_outputs: Sequence[int] = (),
               gives: Sequence[type | None] = (), has_arrays: bool = True) -> Run:
    """The function for a program of one native step, written out for its numbers of inputs and outputs: it
    allocates outputs and arena, and calls. given_outputs: those whose arrays follow the inputs. gives: see
    `Scalars`; the program writes into a number that nobody knows yet, as into an array. has_arrays: whether
    arrays are NumPy's."""
    launchers = open_launchers(plan.num_inputs + len(plan.outputs) + 1, has_arrays)
    dims = _make_table(plan.dims)
    launch = launchers.releasing if plan.releases else launchers.holding
    names = {"launch": launch, "dims": dims, "keep": (compiled, plan.owners), "__name__": __name__}
    inputs = [f"a{k}" for k in range(plan.num_inputs)]
    lines, given, outputs = [], list(inputs), []
    for k, (output, kind) in enumerate(itertools.zip_longest(plan.outputs, gives)):
        name = f"o{k}" if output.source < 0 else inputs[output.source]
        outputs.append(f"{name}{_choose_reading(output, kind, has_arrays)}")
        if output.source >= 0:
            continue
        given.append(name)
        if k not in given_outputs:
            names[f"make{k}"] = _choose_maker(output, kind, has_arrays)
            lines.append(f"o{k} = make{k}()")
    if plan.arena_bytes:
        lines.append(write_arena(plan.arena_bytes, names))
        given.append("arena")
    if compiled.addresses:
        lines.append(f"launch({compiled.addresses[0]}, {ctypes.addressof(dims)}, {', '.join(given)})")
    lines.append(f"return [{', '.join(outputs)}]")
    parameters = ", ".join((*inputs, *(f"o{k}" for k in given_outputs)))
    source = f"def run({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(source, "<jitcore call>", "exec"), names)
    return names["run"]


def _holds(output: Output, kind: type | None, has_arrays: bool) -> bool:
    """Whether the output is written into a number of its type."""
    return output.source < 0 and kind in (generated_calls.HOLDING if has_arrays else _HOLDING)


def _choose_reading(output: Output, kind: type | None, has_arrays: bool) -> str:
    """Code that makes what is asked for of what was written to."""
    if _holds(output, kind, has_arrays):
        return ""
    if not has_arrays:
        return "" if output.shape else ".value"
    return "" if kind is None else "[()]" if issubclass(kind, np.generic) else ".item()"


def _choose_maker(output: Output, kind: type | None, has_arrays: bool) -> Callable[[], Any]:
    """What makes that which is written to."""
    if _holds(output, kind, has_arrays):
        return make_scalar_allocator(kind, has_arrays)
    if not has_arrays:
        return lists.find_cells(output.dtype, output.shape) if output.shape else _NUMBERS[output.dtype]
    make = choose_allocator(math.prod(output.shape) * output.dtype.itemsize)
    own = make_allocator(output.shape, output.dtype) if make is np.empty else None
    return own or partial(make, output.shape, output.dtype)


def store_program(plan: CallPlan, key: bytes | None) -> bytes | None:
    """A program on disk, for `open_program`; None where code is not kept there."""
    identity = host.identify()
    return None if identity is None else identity + encode_plan(plan, key)


def needs_numpy(data: bytes, scalars: Scalars | None) -> bool:
    """Whether a program that was stored, of numbers and of lists that were packed, needs more than these."""
    plan, _ = decode_plan(data[len(host.identify()) :], has_arrays=False)
    takes, gives = scalars or ((), ())
    if plan.arena_bytes or plan.owners or not layout_is_known() or not {*_PLAIN, None}.issuperset(takes):
        return True
    return any(output.source < 0 and kind not in _HOLDING
               and output.dtype not in (lists.CELLS if output.shape else _NUMBERS)
               for output, kind in itertools.zip_longest(plan.outputs, gives))


def open_program(data: bytes, scalars: Scalars | None, has_arrays: bool = True) -> Run:
    """A program on disk, for processes that do without a compiler; and without NumPy, where it has no arrays.

    Raises: LookupError where its machine code is gone, or is for another processor or jitcore."""
    identity = host.identify()
    if identity is None or not data.startswith(identity):
        raise LookupError("a program was compiled for something else")
    plan, key = decode_plan(data[len(identity) :], has_arrays)
    compiled = NativeProgram() if key is None else find_program(key, libraries.DEFAULT_OPT_LEVEL)
    if compiled is None:
        raise LookupError("the machine code of a program is not on disk any more")
    plan.open_parts()
    if scalars is None or not has_arrays or takes_scalars(plan):
        gives = () if scalars is None else scalars.gives
        return write_call(plan, compiled, gives=gives, has_arrays=has_arrays)
    return scalars.convert(write_call(plan, compiled))
