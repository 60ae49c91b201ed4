"""Backends: what one has to offer, and how the installed ones are found.

In: the name of a backend or platform, or nothing. Out: a `Backend`. Backends come from the table in
`jitcore.backends`, and those of other distributions from the entry-point group of that name, which is read
when one is asked for that the table does not have.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Protocol

import numpy as np

from jitcore.array import DeviceArray, DeviceForm
from jitcore.backends import BACKENDS
from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, ShapedArray
from jitcore.dispatch.call_facts import ArrayFacts, Scalars
from jitcore.errors import BackendNotFoundError, arguments as argument_errors
from jitcore.passes import Pass
from jitcore.process.concurrency import Lock
from jitcore.sharding import Device, Sharding

ENTRY_POINT_GROUP = "jitcore.backends"

#: Names a user may give, and the backends that serve them, best first.
_SERVED_BY = {"gpu": ("gpu", "cuda", "rocm"), "cuda": ("cuda", "gpu"), "cuda:emulated": ("cuda-emulated",)}
#: Those tried, in order, when nobody names one.
_PREFERENCE = ("cpu", "reference")
_CUDA = 'an NVIDIA GPU with its driver, and pip install "jitcore[cuda]"'
_INSTALL = {"gpu": _CUDA, "cuda": _CUDA,
            "tpu": 'where a TPU is, pip install "jitcore[tpu]"; to compile for one without it, '
                   '.lower(...).compile(target="tpu:v5e")',
            "xla": 'pip install "jitcore[xla]"', "cpu": "pip install --force-reinstall jitcore"}


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a backend is told beside the program; part of the key of compiled programs.

    Attributes:
        donated: for each input of the program, whether the executable may write into its memory.
        fastmath: floating point may be reassociated.
        opt_level: of the code generator, 0 to 3; None is the backend's choice.
        parallel: whether kernels may use several threads; None is the backend's choice.
        num_threads: threads of one kernel; None is `config.num_threads`.
        thread_work: multiply-adds that a thread of a kernel gets at least; None is the backend's choice.
        contract: a product may stay unrounded on its way into a sum.
        codegen: what makes code of the loop program: "llvm", explicit-vector IR; "numba", a function that
            people can read, compiled by `numba.njit`; "python", the same function as it stands, slow and
            checked.
        sharding: where the program runs; None is the backend's choice."""

    donated: tuple[bool, ...] = ()
    fastmath: bool = False
    opt_level: int | None = None
    parallel: bool | None = None
    num_threads: int | None = None
    thread_work: int | None = None
    contract: bool = True
    codegen: str = "llvm"
    sharding: Any = None


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A program as native code calls it: `int64 entry(pointers, dims)`.

    Attributes:
        address: of the entry point. Its pointers are those of the inputs, of the outputs, and of the arena
            where that has any bytes; they lie at multiples of an element's size, the arena at one of 64.
        dims: int64; passed by address.
        outputs: (shape, dtype) of each.
        arena_bytes: of memory that the call may use.
        owner: keeps the code loaded."""

    address: int
    dims: Any
    outputs: tuple[tuple[tuple[int, ...], Any], ...]
    arena_bytes: int
    owner: Any


class Executable(Protocol):
    """A compiled program. One serves all concrete shapes that its program's avals admit."""

    #: Kernels or programs that the backend's compiler has translated for this executable so far.
    compiles: int

    def bind(self, in_avals: Sequence[ShapedArray]) -> Callable[..., list[np.ndarray]]:
        """The program for inputs of these concrete shapes: a function of the input ndarrays.

        Inputs are C-contiguous, aligned and of the dtypes of the avals; those not donated are only read.
        Outputs are C-contiguous ndarrays of the avals' dtypes that share no memory with anything but donated
        inputs; one in the memory of such an input is that ndarray. The function may be called by several
        threads at once. This is the hot path."""

    def bind_into(self, in_avals: Sequence[ShapedArray], outputs: Sequence[int],
                  scalars: Scalars | None = None) -> Callable | None:
        """As `bind`; arrays for the outputs with these numbers, C-contiguous and aligned, which share memory
        with nothing else, follow the inputs; and some inputs and outputs are scalars. None where it cannot
        be so. Optional."""

    def native_call(self, in_avals: Sequence[ShapedArray]) -> NativeCall | None:
        """The same for callers in native code; None where there is no such entry point. Optional."""

    def texts(self, arguments: Sequence[str] = ()) -> dict[str, Callable[[], str]]:
        """What makes its stages as text: 'loop program', 'numba', 'kernel', 'llvm', 'assembly', as far as it
        has them. arguments: names of the inputs, as far as they have some."""

    def cost(self) -> dict[str, float]:
        """Estimates: 'flops', 'bytes accessed', 'optimal_seconds', as far as it has them."""

    def find_least_seconds(self) -> float:
        """The time that this machine allows, where it has to be measured for that. Optional."""

    def memory(self) -> dict[str, int]:
        """Bytes: 'argument_size_in_bytes', 'output_...', 'alias_...', 'temp_...', 'generated_code_...', as
        far as it knows them. Optional."""


class Backend(Protocol):
    """name: of the entry point; platform: 'cpu', 'gpu' or 'tpu'. passes: what runs on a jaxpr before the
    backend gets it; all of `passes.PIPELINE` where it has none of its own."""

    name: str
    platform: str
    passes: Sequence[Pass]

    def devices(self) -> list: ...

    def compile(self, closed_jaxpr: ClosedJaxpr, options: CompileOptions) -> Executable:
        """An executable whose inputs are the invars of the jaxpr, which has no constvars."""

    def clear(self) -> None:
        """Forgets code that executables share; those in use keep theirs."""

    def check(self, closed_jaxpr: ClosedJaxpr, arguments: Sequence[str]) -> None:
        """Raises what a program cannot be compiled for, before it is. arguments: names of the inputs, ""
        for those without. Optional."""

    def make_check(self, arrays: Sequence[ArrayFacts], mask: int,
                   codes: Sequence[tuple[FunctionType, CodeType]], state: tuple[ContextVar, list]
                   ) -> Callable[..., int] | None:
        """A fast function of so many values that tells whether each is an ndarray of this dtype object, shape
        and flags, of those in a mask; functions have these codes; and a context variable has the value that
        is the first of a list: 0 where it is not sure, 1, or 2 if it is also sure that no two are the same
        object and that none which is written shares memory with another one. Optional."""

    # -- of backends that compile for machines that are not there; optional ----------------------------------
    #: Names for `compile_for`.
    machines: Sequence[str]

    def compile_for(self, machine: str) -> Backend:
        """A backend that compiles for a machine of this name, and runs nothing. Raises: ValueError for an
        unknown one. A backend with this rule is there for lowering where it has no device."""

    def lower_text(self, closed_jaxpr: ClosedJaxpr) -> str:
        """A program as StableHLO. Asks for no device."""

    def export(self, programs: Mapping[str, Any], *facts: Any) -> Any:
        """What `jax.export` makes of a function. programs: by platform; facts: of `jitcore.export`."""

    def load_exported(self, blob: bytes) -> Any:
        """What `jax.export` wrote."""

    # -- of backends whose arrays lie in memory of their own; optional ---------------------------------------
    def wrap(self, buffer: Any, weak_type: bool) -> DeviceArray:
        """What an executable returned as an Array. Where a backend has this rule, its executables return
        buffers, and take them beside ndarrays."""

    def find_forms(self, avals: Sequence[ShapedArray], sharding: Any) -> list[DeviceForm] | None:
        """The forms of the outputs of a program of this sharding, as far as they are known before it runs."""

    def put(self, value: np.ndarray, sharding: Any, is_immutable: bool = False) -> Any:
        """A buffer with the elements of an ndarray, where a sharding says. is_immutable: nobody writes to it
        later, so that the buffer may be its memory."""

    def wait(self, buffers: Sequence) -> None:
        """Until these results are there. Where a backend has this rule, its programs may read ndarrays where
        they lie after their call has returned. Optional."""

    def adopt(self, value: Any) -> DeviceArray | None:
        """An array in the memory of another library's array, which lies on a device of this backend; None for
        anything else. Optional."""

    # -- of backends whose arrays may lie on several devices; optional ---------------------------------------
    def split(self, array: DeviceArray) -> dict[Device, DeviceArray]:
        """The parts of an array on the devices of this process."""

    def join(self, shape: tuple, sharding: Sharding, parts: Sequence[DeviceArray]) -> DeviceArray:
        """An array of parts that lie where a sharding says."""


@dataclass
class _Tried:
    """What became of the backends that were asked for, by name."""

    made: dict[str, Backend] = field(default_factory=dict)
    loaded: dict[str, Backend] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


_lock = Lock()
_tried = _Tried()


@functools.cache
def _read_entry_points() -> dict[str, Any]:
    """Those of other distributions."""
    from importlib.metadata import entry_points  # which reads mail headers and zip files: 20 ms

    with _lock:
        return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _find_loader(name: str) -> Callable[[], Callable[[], Backend]] | None:
    """What loads the class of a backend; None where there is none of this name."""
    if name in BACKENDS:
        module, _, kind = BACKENDS[name].partition(":")
        return lambda: getattr(importlib.import_module(module), kind)
    point = _read_entry_points().get(name)
    return None if point is None else point.load


def _load_backend(name: str) -> Backend | None:
    """The backend of a name, or None with the reason noted."""
    if name in _tried.loaded:
        return _tried.loaded[name]
    load = _find_loader(name)
    with _lock:
        if name in _tried.loaded or load is None:
            return _tried.loaded.get(name)
        # A backend of a third party may fail in any way; the others must stay usable.
        try:
            backend = _tried.made.get(name)
            if backend is None:
                backend = _tried.made[name] = load()()
            if not backend.devices():
                raise RuntimeError("it found no device")
        except Exception as error:
            _tried.reasons[name] = f"{type(error).__name__}: {error}"
            return None
        _tried.loaded[name] = backend
        return backend


def find_backend(name: str | None = None) -> Backend:
    """The backend of this name or platform; without a name `config.default_backend`, then the best present.

    Several names with commas are tried in turn. Raises: BackendNotFoundError naming those present and what to
    install."""
    name = name or config.default_backend or None
    candidates = _PREFERENCE if name is None else [
        candidate for part in name.split(",") for candidate in _SERVED_BY.get(part, (part,))]
    if config.num_cpu_devices > 1 and name in (None, "cpu"):
        candidates = ("xla",)
    for candidate in candidates:
        backend = _load_backend(candidate)
        if backend is not None:
            return backend
    raise _describe_absence(name or _PREFERENCE[0])


def adopt_array(value: Any) -> Any:
    """Another library's array on a GPU as an Array in the same memory; other values stay as they are."""
    if not any(hasattr(value, name) for name in ("__dlpack_device__", "__cuda_array_interface__")):
        return value
    try:
        backend = find_backend("gpu")
    except BackendNotFoundError:
        return value
    found = backend.adopt(value) if hasattr(backend, "adopt") else None
    return value if found is None else found


def find_lowering(name: str | None = None) -> Backend:
    """As `find_backend`; one that compiles for machines that are not there is found without a device."""
    try:
        return find_backend(name)
    except BackendNotFoundError:
        made = _tried.made.get(name or config.default_backend)
        if made is None or not hasattr(made, "compile_for"):
            raise
        return made


def find_compiler(target: str) -> Backend:
    """What compiles for a target: the name of a backend, or one with a machine, "tpu:v5e".

    Raises: ValueError for an unknown target; BackendNotFoundError."""
    name, _, machine = target.partition(":")
    if not machine:
        return find_backend(name)
    backend = find_lowering(name)
    if not hasattr(backend, "compile_for"):
        reason = f"{name} compiles for no machine but the one that it runs on"
        raise ValueError(f"unknown target {target!r}: {reason}")
    return backend.compile_for(machine)


def preload_backend() -> None:
    """Loads the backend that calls will ask for, so that the first call does not wait for its modules. One
    that is no default by itself may start a runtime, before which processes may have to find each other: it
    waits for a call."""
    if config.default_backend not in ("", *_PREFERENCE) or config.num_cpu_devices > 1:
        return
    with contextlib.suppress(BackendNotFoundError):  # a call says so
        find_backend()


def list_backends() -> tuple[dict[str, Backend], dict[str, str]]:
    """(backends that work, reasons why the others do not), each by name. Loads all of them."""
    for name in (*BACKENDS, *_read_entry_points()):
        _load_backend(name)
    return dict(_tried.loaded), dict(_tried.reasons)


def list_compilers() -> dict[str, Backend]:
    """The backends, of those tried so far, that compile for machines that are not there."""
    return {name: made for name, made in _tried.made.items() if hasattr(made, "compile_for")}


def describe_remedy(name: str) -> str:
    """What to do to get a backend that does not load; "" if nothing is known."""
    return f". To get it: {_INSTALL[name]}" if name in _INSTALL else ""


def clear_backends() -> None:
    """Makes every loaded backend forget what it compiled."""
    for backend in list(_tried.loaded.values()):
        backend.clear()


def _describe_absence(name: str) -> Exception:
    present, reasons = list_backends()
    served = _SERVED_BY.get(name, (name,))
    reason = "; ".join(f"{tried} failed to load: {reasons[tried]}" for tried in served if tried in reasons)
    return argument_errors.backend_not_found_error(name, sorted(present), reason, _INSTALL.get(name, ""))
