"""A traced function on its way to an executable.

In: a `TracedFunction`. Out: `Program`, which holds each stage once it is asked for: the optimized jaxpr
without constants (they are inputs, so that programs that differ in captured arrays share one executable), and
executables. These stand in one cache for everything that computes the same, whichever function asked for it;
it is bounded by `config.cache_size`, and thread-safe.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from jitcore import dtypes, passes
from jitcore.array import ConcreteArray, DeviceArray, DeviceForm, find_form
from jitcore.config import config
from jitcore.core.jaxpr import ClosedJaxpr, Literal, ShapedArray, count_primitives, find_read
from jitcore.core.trace import Tracer, check_values, close_over_consts, unexpected_tracer_error
from jitcore.dispatch.backend import Backend, CompileOptions, Executable
from jitcore.dispatch.call_facts import Scalars
from jitcore.dispatch.fast_call import make_rebuilder
from jitcore.dispatch.options import JitOptions
from jitcore.dispatch.signature import read_leaf, read_value
from jitcore.dispatch.tracing import SINGLE, TracedFunction, has_symbolic_shapes
from jitcore.events.publishing import compiling, span
from jitcore.passes.canonical import program_key
from jitcore.passes.keys import to_carriers, to_keys
from jitcore.process.concurrency import Lock, RecentlyUsed, cached_attribute, drop_oldest
from jitcore.process.effort import STEPS_PER_SECOND, counters, spend
from jitcore.sharding import Spread


class SharedExecutable:
    """An executable and its bound forms, one for each tuple of input shapes."""

    def __init__(self, executable: Executable):
        self.executable = executable
        self._lock = Lock()
        self._bound: dict[tuple, tuple[Callable[..., list] | None]] = {}

    def bind(self, in_avals: Sequence[ShapedArray], outputs: tuple[int, ...] = (),
             scalars: Scalars | None = None) -> tuple[Callable[..., list] | None, int]:
        """`Executable.bind`, or `bind_into` where some outputs are given or scalars are passed, done once for
        these shapes. Returns: that; how often this made it compile."""
        key = tuple(aval.shape for aval in in_avals), outputs, scalars
        found = self._bound.get(key)
        if found is not None:
            return *found, 0
        with self._lock:
            found, before = self._bound.get(key), self.executable.compiles
            if found is None:
                found = self._bound[key] = (self._bind(in_avals, outputs, scalars),)
                drop_oldest(self._bound, config.cache_size)
            return *found, self.executable.compiles - before

    def _bind(self, in_avals: Sequence[ShapedArray], outputs: tuple[int, ...], scalars: Scalars | None
              ) -> Callable | None:
        if not outputs and scalars is None:
            return self.executable.bind(in_avals)
        bind_into = getattr(self.executable, "bind_into", None)
        return None if bind_into is None else bind_into(in_avals, outputs, scalars)


class ExecutableCache(RecentlyUsed):
    """Shared executables by key."""

    def __init__(self):
        super().__init__(lambda: config.cache_size)
        self._building: dict[tuple, Lock] = {}

    def find_or_build(self, key: tuple, build: Callable[[], Executable]) -> SharedExecutable:
        """The executable of this key; of several threads that miss it one builds and the others wait."""
        found = self.find(key)
        if found is not None:
            return found
        with self._lock:
            building = self._building.setdefault(key, Lock())
        try:
            with building:
                found = self.find(key)
                if found is None:
                    found = SharedExecutable(build())
                    self.add(key, found)
        finally:
            with self._lock:
                self._building.pop(key, None)
        return found


executables = ExecutableCache()


#: Steps of generating code: whatever the program is, for each of its equations, and more for the first one in
#: a process, for which the compiler is loaded.
_PROGRAM, _EQUATION, _FIRST_PROGRAM = 10_000, 600, 0.14 * STEPS_PER_SECOND


class Program:
    """A traced function and its stages.

    Args:
        traced: its leaves are the invars of `traced.jaxpr`.
        donated: for each leaf, whether the caller gives it away; () when none is.
        options: of `jit`.
        backend: that compiles it.
        sharding: where it runs, if arguments or the user say so.

    Attributes:
        has_buffers: whether its outputs are buffers of the backend, which its inputs may be too."""

    def __init__(self, traced: TracedFunction, donated: tuple[bool, ...], options: JitOptions,
                 backend: Backend, sharding: Any = None):
        self.traced, self.options, self.backend, self.sharding = traced, options, backend, sharding
        self.has_buffers = hasattr(backend, "wrap")
        self.donated = donated or (False,) * len(traced.jaxpr.invars)
        self._lock = Lock()
        # done for this program and not yet taken; none for an executable found in the cache
        self._compiles = 0

    @property
    def origin(self) -> tuple[str, str]:
        """Name and place of the function."""
        info = self.traced.jaxpr.debug_info
        return self.traced.fun_name, "" if info is None else info.location

    @cached_attribute
    def closed_jaxpr(self) -> ClosedJaxpr:
        """The traced jaxpr with its captured values."""
        return ClosedJaxpr(self.traced.jaxpr, self.traced.consts)

    @cached_attribute
    def const_values(self) -> list[np.ndarray]:
        values = []
        for const in self.traced.consts:
            if isinstance(const, Tracer):
                raise unexpected_tracer_error(const)
            is_placed = isinstance(const, DeviceArray) and const.is_committed
            is_there = is_placed and const.sharding.backend == self.backend.name
            values.append(const.buffer if is_there else to_carriers(read_value(const, read_leaf(const)[1])))
        return values

    @cached_attribute
    def optimized(self) -> ClosedJaxpr:
        """After the backend's passes; captured values are its leading inputs. All inputs are still there."""
        closed, _ = close_over_consts(self.traced.jaxpr, self.traced.consts)
        with span("passes", *self.origin):
            return passes.run_pipeline(closed, getattr(self.backend, "passes", None))

    def is_never(self, output: int) -> bool:
        """Whether passes have found that a bool is False in every call."""
        atom = self.optimized.jaxpr.outvars[output]
        return isinstance(atom, Literal) and not atom.value

    def without_output(self, output: int) -> Program:
        """The program without one of several results, which is computed in vain. Passes do not run again."""
        traced, optimized = self.traced, self.optimized
        jaxpr, inner = (jaxpr.replace(outvars=[*jaxpr.outvars[:output], *jaxpr.outvars[output + 1:]])
                        for jaxpr in (traced.jaxpr, optimized.jaxpr))
        traced = TracedFunction(jaxpr, traced.consts, traced.out_structure, traced.fun_name)
        program = Program(traced, self.donated, self.options, self.backend, self.sharding)
        program.__dict__["optimized"] = ClosedJaxpr(inner, optimized.consts)
        return program

    @cached_attribute
    def kept(self) -> tuple[int, ...]:
        """Which inputs (captured values, then leaves) the executable takes: those that are read, in order."""
        jaxpr = self.optimized.jaxpr
        # The sizes of symbolic dimensions are read from the inputs, so that none of them may be missing.
        if self.options.keep_unused or has_symbolic_shapes(jaxpr):
            return tuple(range(len(jaxpr.invars)))
        read = find_read(jaxpr.eqns, jaxpr.outvars)
        return tuple(i for i, var in enumerate(jaxpr.invars) if var in read)

    @property
    def argument_names(self) -> list[str]:
        """Of the executable's inputs; "" for captured values, and for what has none."""
        info = self.traced.jaxpr.debug_info
        names = [*[""] * len(self.traced.consts), *(info.arg_names or ())] if info is not None else []
        return [names[i] or "" if i < len(names) else "" for i in self.kept]

    @cached_attribute
    def compiled_jaxpr(self) -> ClosedJaxpr:
        """What the backend gets."""
        jaxpr = self.optimized.jaxpr
        if len(self.kept) == len(jaxpr.invars):
            return self.optimized
        return ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in self.kept]), [])

    @cached_attribute
    def reused(self) -> tuple[bool, ...]:
        """For each leaf, whether an output of its shape and dtype can take over its memory."""
        free: dict[tuple, int] = {}
        for aval in self.traced.jaxpr.out_avals:
            free[aval.shape, aval.dtype] = free.get((aval.shape, aval.dtype), 0) + 1
        flags, n_consts = [], len(self.traced.consts)
        for i, (given, aval) in enumerate(zip(self.donated, self.traced.jaxpr.in_avals)):
            usable = given and n_consts + i in self.kept and free.get((aval.shape, aval.dtype), 0) > 0
            if usable:
                free[aval.shape, aval.dtype] -= 1
            flags.append(usable)
        return tuple(flags)

    @property
    def unusable(self) -> list[ShapedArray]:
        """Donated leaves that are read, but whose memory no output can take over."""
        n_consts = len(self.traced.consts)
        return [aval for i, aval in enumerate(self.traced.jaxpr.in_avals)
                if self.donated[i] and not self.reused[i] and n_consts + i in self.kept]

    @cached_attribute
    def compile_options(self) -> CompileOptions:
        n_consts = len(self.traced.consts)
        donated = tuple(i >= n_consts and self.reused[i - n_consts] for i in self.kept)
        given = {"codegen": config.codegen, **dict(self.options.compiler_options)}
        sharding = self.sharding
        if isinstance(sharding, Spread) and sharding.ins:
            ins = [None if i < n_consts else sharding.ins[i - n_consts] for i in self.kept]
            sharding = Spread(tuple(ins), sharding.outs)
        return CompileOptions(donated, sharding=sharding, **given)

    @cached_attribute
    def executable(self) -> Executable:
        return self._shared.executable

    @cached_attribute
    def _shared(self) -> SharedExecutable:
        with compiling("build", *self.origin, backend=self.backend.name):
            computed = program_key(self.compiled_jaxpr)
            key = (computed, self.backend.name, self.compile_options, config.check_bounds)
            return executables.find_or_build(key, self._compile)

    def _compile(self) -> Executable:
        is_first = counters.compiles == 0
        count = count_primitives(self.compiled_jaxpr.jaxpr).total()
        spend(_PROGRAM + _EQUATION * count + _FIRST_PROGRAM * is_first)
        self.check()
        executable = self.backend.compile(self.compiled_jaxpr, self.compile_options)
        self._count_compiles(executable.compiles)
        return executable

    def check(self) -> None:
        """Raises what the backend says before it compiles."""
        if hasattr(self.backend, "check"):
            self.backend.check(self.compiled_jaxpr, self.argument_names)

    def _count_compiles(self, number: int) -> None:
        with self._lock:
            self._compiles += number
        counters.add(compiles=number)

    def take_compiles(self) -> int:
        """How often the backend compiled for this program since the last call; each is reported once."""
        with self._lock:
            number, self._compiles = self._compiles, 0
        return number

    def bind(self, avals: Sequence[ShapedArray], targets: Mapping[int, int] = MappingProxyType({}),
             scalars: Scalars | None = None) -> Callable[..., list]:
        """A function of the ndarrays of all leaves, which have these concrete shapes. targets: leaves that
        are made of outputs: where one is not read, the output is written into its memory, if possible.
        scalars: which leaves and outputs are numbers."""
        n_consts = len(self.traced.consts)
        all_avals = [*[var.aval for var in self.traced.jaxpr.constvars], *avals]
        unread = {leaf: output for leaf, output in targets.items() if n_consts + leaf not in self.kept}
        with compiling("bind", *self.origin):
            in_avals = [all_avals[i].carried for i in self.kept]
            for unread, native in ((unread, scalars), ({}, scalars), (unread, None), ({}, None)):
                run, compiles = self._shared.bind(in_avals, tuple(unread.values()), native)
                self._count_compiles(compiles)
                if run is not None:
                    break
        consts = [self.const_values[i] for i in self.kept if i < n_consts]
        taken = [*(i - n_consts for i in self.kept if i >= n_consts), *unread]
        if consts:
            run = partial(run, *consts)
        if taken != list(range(len(avals))):
            run = _select_arguments(run, taken)
        if any(dtypes.is_key(aval.dtype) for aval in (*avals, *self.traced.jaxpr.out_avals)):
            run = _move_keys(run, self.traced.jaxpr.out_avals)
        if config.debug_nans or config.debug_infs:
            run = _check_values(run, self.traced.fun_name)
        return run if native is scalars else scalars.convert(run)

    def bind_to_host(self, avals: Sequence[ShapedArray], targets: Mapping[int, int] = MappingProxyType({}),
                     scalars: Scalars | None = None) -> Callable[..., list]:
        """As `bind`, with ndarrays as outputs wherever the program runs."""
        if not self.has_buffers:
            return self.bind(avals, targets, scalars)
        run = self.bind(avals, targets)
        on_host = lambda *values: [np.array(out) for out in run(*values)]  # noqa: E731
        return on_host if scalars is None else scalars.convert(on_host)

    @cached_attribute
    def weak_types(self) -> tuple[bool, ...]:
        return tuple(aval.weak_type for aval in self.traced.jaxpr.out_avals)

    def make_finish(self) -> tuple[Callable[[Sequence], Any], bool | DeviceForm | None]:
        """A function that makes what the user gets from the outputs; and where that is a single Array, what
        it is made of besides: its weak type, or its form on a device. None where the form is not known."""
        structure, kinds, wrap = self.traced.out_structure, self.weak_types, ConcreteArray
        is_known = True
        if self.has_buffers:
            is_open = has_symbolic_shapes(self.traced.jaxpr)
            forms = None if is_open else self.backend.find_forms(self.traced.jaxpr.out_avals, self.sharding)
            is_known = forms is not None
            kinds, wrap = (forms, DeviceArray) if is_known else (
                self.traced.jaxpr.out_avals, lambda buffer, aval: with_dtype(
                    self.backend.wrap(buffer, aval.weak_type), aval.dtype))
        if structure is not SINGLE:
            return make_rebuilder(structure, kinds, wrap), None
        (kind,) = kinds
        return lambda outs: wrap(outs[0], kind), kind if is_known else None


def _select_arguments(run: Callable, positions: list[int]) -> Callable:
    if len(positions) <= 1:
        return lambda *values: run(*[values[i] for i in positions])
    select = operator.itemgetter(*positions)
    return lambda *values: run(*select(values))


def with_dtype(array: DeviceArray, dtype: Any) -> DeviceArray:
    """An Array of a buffer as one of keys, where this is their dtype."""
    form = array._form
    if not dtypes.is_key(dtype):
        return array
    form = find_form(form.shape, dtype, form.weak_type, form.sharding, form.is_committed)
    return DeviceArray(array.buffer, form)


def _move_keys(run: Callable, out_avals: Sequence[ShapedArray]) -> Callable:
    """A program of what holds keys as one of keys."""
    places = [(i, aval.dtype) for i, aval in enumerate(out_avals) if dtypes.is_key(aval.dtype)]

    def run_on_keys(*values):
        outs = list(run(*map(to_carriers, values)))
        for i, dtype in places:
            outs[i] = to_keys(outs[i], dtype)
        return outs

    return run_on_keys


def _check_values(run: Callable, fun_name: str) -> Callable:
    def run_checked(*values):
        outs = run(*values)
        check_values(fun_name, outs)
        return outs

    return run_checked
