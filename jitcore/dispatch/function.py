"""The caches of one jitted function, and what a call does when its signature is new.

In: calls. Out: results. A `JitFunction` is shared by all `jit(fun, ...)` of the same function object and
options; it does not keep the function alive, so that a lambda and what was traced for it go together.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitcore.numpy  # noqa: F401  gives arrays and tracers their operators
from jitcore.array import DeviceArray
from jitcore.config import config
from jitcore.core.jaxpr import aval_of
from jitcore.core.refs import ALIVE
from jitcore.core.source import locate_function
from jitcore.core.trace import Tracer, context, eval_trace, unexpected_tracer_error
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.fast_call import FastCalls
from jitcore.dispatch.inner import bind_inner
from jitcore.dispatch.options import DEFAULT_OPTIONS, ArgumentPlan, JitOptions, plan_arguments
from jitcore.dispatch.placement import (claim_donated, constrain_leaves, delete_donated, find_movable,
                                        place_call, place_program, spread_options, warn_unusable)
from jitcore.dispatch.program import Program
from jitcore.dispatch.references import CapturedRefs, References, find_refs
from jitcore.dispatch.signature import CallSignature, MissLog, read_call, read_value
from jitcore.dispatch.tracing import TracedFunction, abstract_avals, trace_call
from jitcore.events.publishing import compiling, publish
from jitcore.process.concurrency import Lock, cached_attribute, drop_oldest
from jitcore.process.effort import CacheInfo
from jitcore.transforms.batching import list_named_axes
from jitcore.tree_util import tree_leaves


class Entry:
    """How to serve calls of one signature.

    Attributes:
        run: function of the ndarrays of all leaves, giving the output ndarrays.
        finish: makes the result of the output ndarrays.
        single: weak type or form of the result when that is one array and known, else None.
        reused: indices of the leaves whose memory `run` may overwrite; () nearly always.
        slow_calls: calls that came here by the general path.
        backend: whose buffers `run` takes and gives; "" for ndarrays.
        wait: for results, where `run` may read ndarrays, which their owner may change, after it has returned.
    """

    __slots__ = ("run", "finish", "single", "reused", "slow_calls", "backend", "wait")

    def __init__(self, program: Program, call: CallSignature):
        self.run = program.bind(call.avals)
        if call.shardings and (places := find_movable(call, program.sharding)):
            self.run = _move_to_host(self.run, places)
        self.backend = program.backend.name if program.has_buffers else ""
        self.wait = getattr(program.backend, "wait", None)
        self.finish, self.single = program.make_finish()
        self.reused = tuple(i for i, reused in enumerate(program.reused) if reused)
        self.slow_calls = 0

    def call(self, leaves: Sequence[Any], values: list[np.ndarray]) -> Any:
        """The result for these leaves, whose ndarrays are `values`; deletes what was donated and used."""
        if self.reused:
            claim_donated(self.reused, leaves, values)
        outs = self.run(*values)
        if self.wait is not None and any(isinstance(leaf, np.ndarray) for leaf in leaves):
            self.wait(outs)
        if self.reused:
            delete_donated(self.reused, leaves)
        return self.finish(outs)


def _move_to_host(run: Callable, places: Sequence[int]) -> Callable:
    """A program some of whose arguments lie elsewhere, where nobody put them: from the host they may go
    anywhere."""

    def run_moved(*values):
        moved = list(values)
        for place in places:
            moved[place] = np.asarray(moved[place])
        return run(*moved)

    return run_moved


def _is_any(kind: type, args: tuple, kwargs: dict) -> bool:
    return any(isinstance(leaf, kind) for leaf in tree_leaves((args, kwargs)))


class JitFunction:
    """Args: fun, not kept; options.

    Attributes:
        plan: which arguments are static or donated.
        fast: the dispatchers of calls whose form is known.
        misses: the signatures that were new.
        last_program: what was compiled last."""

    def __init__(self, fun: Callable, options: JitOptions, plan: ArgumentPlan | None = None):
        self.options, self.names_devices = options, options.names_devices
        self.plan = plan_arguments(fun, options) if plan is None else plan
        self.misses = MissLog()
        self.fast = FastCalls()
        self._lock = Lock()
        self.clear()

    @cached_attribute
    def _references(self) -> References:
        return References(self.plan, self._make_similar)

    def _make_similar(self, fun: Callable) -> JitFunction:
        made = JitFunction(fun, self.options, self.plan)
        made._note_program = self._note_program  # type: ignore[method-assign]
        return made

    def _note_program(self, program: Program) -> None:
        self.last_program = program

    def clear(self) -> None:
        """Forgets every traced and compiled signature."""
        with self._lock:
            self.fast.clear()
            self.misses.clear()
            self.last_program: Program | None = None
            self._entries: dict[tuple, Entry] = {}
            self._programs: dict[tuple, Program] = {}
            self._inner: dict[tuple, TracedFunction] = {}
            self._captured: dict[tuple, tuple] = {}
            self.__dict__.pop("_references", None)
            self._slow_hits = self._n_misses = self._n_traces = self._n_compiles = 0

    def info(self) -> CacheInfo:
        hits = self.fast.count_hits() + self._slow_hits
        own = CacheInfo(hits, self._n_misses, self._n_traces, self._n_compiles)
        others = self._references.functions if "_references" in self.__dict__ else ()
        return CacheInfo(*map(sum, zip(own, *(one.info() for one in others))))

    # -- a call that the fast path did not serve -------------------------------------------------------------
    def call(self, fun: Callable, on_chunks: Callable | None, args: tuple, kwargs: dict) -> Any:
        """Runs one call. on_chunks: serves those with arrays of Dask. Raises: what reading, tracing,
        compiling or running it raises."""
        if config.disable_jit:
            return fun(*args, **kwargs)
        chunked = getattr(sys.modules.get("dask.array"), "Array", None)
        if chunked is not None and _is_any(chunked, args, kwargs):
            return on_chunks(fun, self, args, kwargs)
        if ALIVE and find_refs(self.plan, args, kwargs):
            return self._references.call(fun, args, kwargs)
        call = read_call(fun, self.plan, args, kwargs)
        captured = self._captured.get((config.trace_key, call.key)) if self._captured else None
        if captured is not None:
            return self._references.call(fun, args, kwargs, captured)
        try:
            return self._call_signature(fun, call, kwargs)
        except CapturedRefs as found:
            captured = self._captured[config.trace_key, call.key] = found.refs
            drop_oldest(self._captured, config.cache_size)
        return self._references.call(fun, args, kwargs, captured)

    def call_on_arrays(self, fun: Callable, args: tuple, kwargs: dict) -> Any:
        """A call without references. Raises: CapturedRefs where the function uses some."""
        return self._call_signature(fun, read_call(fun, self.plan, args, kwargs), kwargs)

    def _call_signature(self, fun: Callable, call: CallSignature, kwargs: dict) -> Any:
        if context.trace is not eval_trace:
            return self._call_inner(fun, call)
        for leaf in call.leaves:
            if isinstance(leaf, Tracer):
                raise unexpected_tracer_error(leaf)
        key = (config.trace_key, call.key)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._add_entry(fun, call, key)
        else:
            self._slow_hits += 1
        entry.slow_calls += 1
        self.fast.learn(call, kwargs, entry)
        return entry.call(call.leaves, read_values(fun, call, entry.backend))

    def _add_entry(self, fun: Callable, call: CallSignature, key: tuple) -> Entry:
        self._note_miss(fun, call)
        with compiling("first call", *locate_function(fun)):
            program = self.make_program(fun, call)
            entry = Entry(program, call)
        with self._lock:
            self._n_compiles += program.take_compiles()
            self._entries[key] = entry
            self._note_program(program)
            drop_oldest(self._entries, config.cache_size)
        return entry

    def _note_miss(self, fun: Callable, call: CallSignature) -> None:
        with self._lock:
            self._n_misses += 1
            self.misses.add(call)
        publish("miss", *locate_function(fun), reason=lambda: self.misses.explain(fun))

    def make_program(self, fun: Callable, call: CallSignature, find: Callable = find_backend) -> Program:
        """The program for this call, traced now unless it is known. find: the backend of a name."""
        avals = abstract_avals(call, self.options.abstracted_axes)
        parts = tuple((aval.shape, aval.dtype, aval.weak_type) for aval in avals)
        if is_placed := self.names_devices or bool(call.shardings):
            backend, sharding = place_call(self.options, fun, call, find)
        else:
            backend, sharding = find(self.options.backend), None
        key = (config.trace_key, call.structure, call.n_args, call.statics, parts, backend.name, sharding)
        program = self._programs.get(key)
        if program is None:
            traced = self._trace(fun, call, avals)
            if is_placed or traced.list_shardings():
                backend, sharding = place_program(self.options, fun, call, traced, backend, sharding)
            program = Program(traced, call.donated, self.options, backend, sharding)
            if any(call.donated):
                warn_unusable(program)
            with self._lock:
                self._n_traces += 1
                self._programs[key] = program
                drop_oldest(self._programs, config.cache_size)
        return program

    def _trace(self, fun: Callable, call: CallSignature, avals: Sequence[Any]) -> TracedFunction:
        """Raises: CapturedRefs."""
        refs: dict | None = {} if ALIVE else None
        traced = trace_call(fun, call, avals, rewrite=self.options.rewrite, refs=refs)
        if refs:
            raise CapturedRefs(list(refs))
        return traced

    # -- a call inside the tracing of another function -------------------------------------------------------
    def _call_inner(self, fun: Callable, call: CallSignature) -> Any:
        varying = [aval_of(leaf).varying for leaf in call.leaves] if context.tracks_varying else ()
        key = (config.trace_key, list_named_axes(), call.key, tuple(varying))
        traced = self._inner.get(key)
        if traced is None:
            self._note_miss(fun, call)
            avals = call.avals
            if varying:
                avals = [aval.update(varying=axes) for aval, axes in zip(avals, varying)]
            traced = self._trace(fun, call, avals)
            with self._lock:
                self._n_traces += 1
                # A captured tracer belongs to the present outer trace alone.
                if not any(isinstance(const, Tracer) for const in traced.consts):
                    self._inner[key] = traced
                    drop_oldest(self._inner, config.cache_size)
        else:
            self._slow_hits += 1
        ins, outs = spread_options(self.options, call, traced)
        leaves = bind_inner(traced, constrain_leaves(call.leaves, ins), inline=self.options.inline)
        return traced.unflatten(constrain_leaves(leaves, outs))


def read_values(fun: Callable, call: CallSignature, backend: str = "") -> list[Any]:
    """The leaves as ndarrays, and as buffers where they are those of a backend that takes its own.

    Raises: OverflowError naming the argument whose Python int is too large."""
    try:
        return [leaf.buffer if isinstance(leaf, DeviceArray) and leaf.sharding.backend == backend
                else read_value(leaf, part[1]) for leaf, part in zip(call.leaves, call.parts)]
    except OverflowError:
        for name, leaf, part in zip(call.name_leaves(fun), call.leaves, call.parts):
            if isinstance(leaf, int) and not np.iinfo(part[1]).min <= leaf <= np.iinfo(part[1]).max:
                raise OverflowError(
                    "An overflow was encountered while parsing an argument to a jitted computation, whose "
                    f"argument path is {name}. Got {type(leaf)} with value {leaf}\n"
                    f"To fix: pass np.int64({leaf}), whose 64 bits are kept, or enable_x64."
                ) from None
        raise


# -- one JitFunction per function object and options ---------------------------------------------------------

_lock = Lock()
_functions: weakref.WeakKeyDictionary[Callable, dict[JitOptions, JitFunction]] = weakref.WeakKeyDictionary()
_all_functions: weakref.WeakSet[JitFunction] = weakref.WeakSet()


def find_function(fun: Callable, options: JitOptions) -> JitFunction:
    """The caches of this function under these options; its own where it cannot be hashed or referred to
    weakly."""
    try:
        of_options = _functions.get(fun)
        known = of_options.get(options) if of_options is not None else None
        shareable = hash(options) is not None
    except TypeError:
        known, shareable = None, False
    if known is not None:
        return known
    function = JitFunction(fun, options)
    with _lock:
        if shareable:
            function = _functions.setdefault(fun, {}).setdefault(options, function)
        _all_functions.add(function)
    return function


def clear_functions() -> None:
    """Empties the caches of every jitted function that is alive."""
    with _lock:
        functions = list(_all_functions)
    for function in functions:
        function.clear()


# -- eager operations on arrays that lie on a device, and those that run on a mesh ---------------------------
def run_on_device(primitive: Any, args: tuple, params: dict) -> Any:
    try:
        fun = _find_application(primitive, tuple(sorted(params.items())))
    except TypeError:  # a parameter that has no hash
        fun = _make_application(primitive, tuple(params.items()))
    return find_function(fun, DEFAULT_OPTIONS).call(fun, None, args, {})


def run_compiled(primitive: Any, args: Sequence, params: dict) -> list:
    """The results of an application that is compiled for itself: its jaxprs are those of one call."""
    fun = _make_application(primitive, tuple(params.items()))
    return find_function(fun, DEFAULT_OPTIONS).call(fun, None, tuple(args), {})


def _make_application(primitive: Any, params: tuple) -> Callable:
    given = dict(params)

    def apply(*operands):
        return primitive.bind(*operands, **given)

    return apply


_find_application = functools.lru_cache(maxsize=2048)(_make_application)
