"""NVIDIA's libraries: cuBLAS, cuSOLVER and cuFFT, by bindings that somebody has installed.

In: the runtime of a GPU. Out: which libraries there are; `Routine`s, primitives that one of them computes.
None is asked for on a device in software, none is required: what has no library runs on the host.

A routine's work goes to the runtime's stream and is not waited for. Memory to work in is the runtime's, but
for what cuBLAS has for itself.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from jitcore.backends.cuda.runtime.driver import CudaError
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.primitive import Primitive, registry
from jitcore.errors import build_error
from jitcore.process.concurrency import Lock

#: Modules of each library's functions, in the order in which they are asked for. CuPy has no function for the
#: memory that a Fourier transform works in.
BINDINGS = {
    "cublas": ("nvmath.bindings.cublas", "cupy_backends.cuda.libs.cublas"),
    "cusolver": ("nvmath.bindings.cusolverDn", "cupy_backends.cuda.libs.cusolver"),
    "cufft": ("nvmath.bindings.cufft",),
}
#: cublasMath_t: sums of halves are never in half precision, and nothing is TF32 that does not ask for it.
_MATH_MODE = 16
#: cufftType_t, by the name of the function.
_TRANSFORMS = {"c2c": 41, "r2c": 42, "c2r": 44, "z2z": 105, "d2z": 106, "z2d": 108}
#: Plans of Fourier transforms that are kept.
MAX_PLANS = 32


class Bindings(NamedTuple):
    """The functions of a library. handle: what they get first; None where they get none. enter: makes the
    context in which they use the runtime's stream."""

    package: str
    module: Any
    handle: int | None
    enter: Callable[[], AbstractContextManager] = contextlib.nullcontext


class _Stream(NamedTuple):
    """A stream as other packages take it."""

    handle: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


class Libraries:
    """Those of one GPU, started when they are first asked for."""

    def __init__(self, runtime: Any):
        self.runtime, self._lock = runtime, Lock()
        self._found: dict[str, Bindings | None] = {}
        self.problems: dict[str, str] = {}
        self.find_plan = functools.lru_cache(MAX_PLANS)(functools.partial(Plan, self))

    def find(self, library: str) -> Bindings | None:
        with self._lock:
            if library not in self._found:
                found = (self._try_to_open(library, name) for name in BINDINGS[library])
                self._found[library] = next((one for one in found if one is not None), None)
            return self._found[library]

    def _try_to_open(self, library: str, name: str) -> Bindings | None:
        package = name.partition(".")[0].removesuffix("_backends")
        try:
            return self.runtime.within(self._open, library, name, package)
        except Exception as error:  # whatever they raise, the host can do the work
            if not isinstance(error, ModuleNotFoundError) or error.name != package:
                self.problems[library] = f"{package} does not start it: {error}"
            return None

    def _open(self, library: str, name: str, package: str) -> Bindings:
        importlib.import_module(package)
        with contextlib.suppress(Exception):  # knows where a library lies that pip has installed
            importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib(library)
        module = importlib.import_module(name)
        if library == "cufft":
            module.get_version()
            return Bindings(package, module, None)
        found = Bindings(package, module, module.create())
        if package == "cupy":  # each of its functions goes to the stream that is CuPy's current one
            streams = importlib.import_module("cupy").cuda
            stream = (streams.Stream.from_external(_Stream(self.runtime.stream))
                      if hasattr(streams.Stream, "from_external")
                      else streams.ExternalStream(self.runtime.stream))  # before CuPy 14
            found = found._replace(enter=lambda: stream)
        self._apply(found, "setStream", self.runtime.stream)
        if library == "cublas":
            self._apply(found, "setMathMode", _MATH_MODE)
        return found

    def _apply(self, bindings: Bindings, name: str, *arguments: Any) -> Any:
        """name: C's, without the library's; nvmath-python writes it in small letters."""
        name = re.sub("[A-Z]", r"_\g<0>", name).lower() if bindings.package == "nvmath" else name
        first = () if bindings.handle is None else (bindings.handle,)
        with bindings.enter():
            return getattr(bindings.module, name)(*first, *arguments)

    def call(self, library: str, name: str, *arguments: Any) -> Any:
        """What a function of a library gives. Raises: CudaError."""
        try:
            return self.runtime.within(self._apply, self._found[library], name, *arguments)
        except CudaError:
            raise
        except Exception as error:
            raise build_error(CudaError, f"{name} of {library} failed: {error}") from error

    def run(self, routine: Routine, inputs: Sequence[int], outputs: Sequence[int], params: dict) -> None:
        """Gives a routine's work to the stream; the handles' and the plans' states are one thread's."""
        with self._lock:
            routine.run(self, *inputs, *outputs, **{k: v for k, v in params.items() if k != "outs"})

    def describe(self) -> str:
        """For people: which library is used by whose bindings."""
        words = []
        for library in BINDINGS:
            found, reason = self.find(library), self.problems.get(library, "not installed")
            words.append(f"{library}: " + (f"by {found.package}" if found else f"not used ({reason})"))
        return "; ".join(words)


class Plan:
    """Of Fourier transforms over all axes of `count` arrays that follow one another. function: its name."""

    def __init__(self, libraries: Libraries, function: str, lengths: tuple[int, ...], count: int):
        self.libraries, self.handle = libraries, None
        self.handle = libraries.call("cufft", "create")
        libraries.call("cufft", "set_auto_allocation", self.handle, 0)
        half = math.prod(lengths[:-1]) * (lengths[-1] // 2 + 1)
        before, after = (half if kind in "cz" and function not in ("c2c", "z2z") else math.prod(lengths)
                         for kind in (function[0], function[-1]))
        # 0 instead of the extents of memory: arrays are C-contiguous
        self.nbytes = libraries.call("cufft", "make_plan_many64", self.handle, len(lengths), list(lengths),
                                     0, 1, before, 0, 1, after, _TRANSFORMS[function], count)
        libraries.call("cufft", "set_stream", self.handle, libraries.runtime.stream)

    def __del__(self):
        if self.handle is not None:
            self.libraries.runtime.quietly(self.libraries.runtime.synchronize)  # it may still run
            self.libraries.runtime.quietly(self.libraries.call, "cufft", "destroy", self.handle)


class Routine(Primitive):
    """What a function of a library computes of whole arrays. Its params tell the outputs, as (shape, dtype),
    and what `run(libraries, *inputs, *outputs, **params)` needs.

    It is no primitive of the language: programs have it from the backend alone, just before lowering."""

    def __init__(self, name: str, run: Callable):
        super().__init__(name, impl=self._refuse, aval=_find_avals, multiple_results=True)
        del registry[name]
        self.run = run

    def _refuse(self, *values: Any, **params: Any) -> Any:
        raise NotImplementedError(f"{self.name} runs on GPUs alone")


def _find_avals(*avals: ShapedArray, outs: Sequence[tuple], **params: Any) -> list[ShapedArray]:
    return [ShapedArray(shape, dtype) for shape, dtype in outs]
