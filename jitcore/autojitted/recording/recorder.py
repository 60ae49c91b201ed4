"""Recording: one run of the user's function on stand-ins, as a jaxpr with its results and its writes.

In: the function and the specs of its arguments. Out: a `Recording`. The leaves of arguments and captured
variables are the inputs of the jaxpr; its outputs are new arrays and scalars, the arrays that were written,
and the flag that says whether the program met what only plain Python can do.

A call with traced arguments, in a function under `autojit`, or under `jit`, `grad`, `vmap` and so on, becomes
a part of what is being traced (`call_inline`). Under the transformations arrays come in as Arrays and leave
as Arrays.

While tracing, what is printed in another way than by the program raises. When a program that prints gives up,
plain Python runs the call: streams leave out as many writes as the program has made. A program prints nothing
once it has failed, so that this is what plain Python prints up to there.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitcore.numpy  # noqa: F401  gives arrays and tracers their operators
from jitcore import tree_util
from jitcore.array import Array
from jitcore.autojitted.inputs.attributes import Attributes
from jitcore.autojitted.inputs.builder import Builder
from jitcore.autojitted.inputs.captures import Capture, Captures, Namespace
from jitcore.autojitted.inputs.reading import Reader
from jitcore.autojitted.inputs.specs import ArraySpec, ScalarSpec, Spec, TextSpec, order_arguments
from jitcore.autojitted.recording.purity import Callables, EffectGuard
from jitcore.autojitted.recording.results import Effects, ResultWriter
from jitcore.autojitted.tiers.report import Reason, find_loop_reason
from jitcore.core.jaxpr import DebugInfo, ShapedArray, slice_eqns
from jitcore.core.source import SourcePosition, locate_function
from jitcore.core.trace import JaxprTrace, Trace, Tracer, context, eval_trace, open_trace
from jitcore.dispatch.tracing import TracedFunction
from jitcore.lax.control_flow.raise_if import raise_if
from jitcore.numpy_semantics.errors import NeedsIdentity, NeedsRows, not_traceable
from jitcore.numpy_semantics.mode import NumpyMode
from jitcore.numpy_semantics.values.letters import TracedText
from jitcore.numpy_semantics.values.ndarray import NDArray
from jitcore.numpy_semantics.values.number_lists import NeedsMixed
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.storage import C_ORDER, Storage
from jitcore.process.effort import counters, spend
from jitcore.rewriter.functions import resolve, rewrite_function
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.objects import is_a, walk
from jitcore.rewriter.operations.redirects import written
from jitcore.tree_util import tree_structure


class Recording(NamedTuple):
    """Attributes:
    traced: the program.
    places: spec of each place, arguments first.
    captures: the captured variables; their places follow those of the arguments.
    inputs: the place of each input of the program.
    effects: what is returned and what is written, as code.
    unrolled: why loops are none in the program, by file and line.
    failures: what plain Python may raise where the program gives up.
    """

    traced: TracedFunction
    captures: Sequence[Capture]
    places: Sequence[Spec]
    inputs: Sequence[int]
    effects: Effects
    unrolled: dict[tuple[str, int], Reason]
    failures: Sequence[BaseException] = ()


#: Equations on one level: of the function, of a side of a condition, of a loop's body. More come from a loop
#: that Python goes through. And all that are recorded, those of attempts that came to nothing with them: so
#: many take some seconds.
MAX_EQUATIONS, MAX_RECORDED = 6_000, 60_000
#: Steps of recording one.
EQUATION_STEPS = 80


class LimitedTrace(JaxprTrace):
    """A trace as long as a program should be. work: what it has in common with those inside: what was
    recorded."""

    def __init__(self, debug_info: DebugInfo | None = None, parent: Trace | None = None):
        super().__init__(debug_info, parent)
        self.work: list[int] = parent.work if isinstance(parent, LimitedTrace) else [0]

    def record(self, primitive, atoms, out_avals, params):
        self.work[0] += 1
        spend(EQUATION_STEPS)
        if len(self.eqns) >= MAX_EQUATIONS or self.work[0] > MAX_RECORDED:
            raise not_traceable(f"the program has more than {MAX_EQUATIONS} operations: a loop cannot be "
                                "compiled as a loop")
        return super().record(primitive, atoms, out_avals, params)


class AutojitMode(NumpyMode):
    """NumPy's semantics in functions of the user: what they call and read is watched."""

    def __init__(self, session: Session):
        super().__init__()
        self.captures = captures = session.captures
        self._given: dict[int, Any] = {}
        self._has_made = session.builder.has_made
        self.found_unrolled: dict[tuple[str, int], Reason] = {}
        attributes = Attributes(captures, resolve)
        self.read_attribute, self.store_attribute = attributes.read, attributes.store
        self.delete_attribute = attributes.delete
        self._callables = Callables(super().redirects, captures, attributes)

    @property
    def redirects(self) -> Callables:
        return self._callables

    def note_unrolled(self, position: SourcePosition, error: Exception) -> None:
        self.found_unrolled.setdefault((position.file, position.line), find_loop_reason(position, error))

    def make_trace(self, info: DebugInfo, parent: Trace) -> JaxprTrace:
        return LimitedTrace(info, parent)

    def adopt(self, array: np.ndarray) -> NDArray:
        """An array that came up as an operand, whose contents are read in each call."""
        return self.captures.adopt(array)

    def is_given(self, container: Any) -> bool:
        return id(container) in self._given or self._has_made(container)

    def mark_given(self, container: Any) -> None:
        self._given[id(container)] = container

    def refuse_unhooked(self, function: types.FunctionType, reason: str) -> None:
        raise not_traceable(f"{function.__qualname__}() is called, which has {reason}")

    def list_captured(self) -> list:
        namespaces = self.captures.namespaces.values()
        assigned = [value for namespace in namespaces for value in namespace.given.values()]
        cells = [made for _, made, _ in self.captures.cells.values()]
        return [*self.captures.stand_ins, *assigned, *cells]

    def namespace_of(self, function: types.FunctionType) -> Any:
        return self.captures.find_namespace(function.__globals__)


class Session:
    """The state of one recording.

    Attributes:
        storages: place -> the storage of that array.
        initial: place -> the tracer of that leaf.
    """

    def __init__(self, trace: JaxprTrace, reader: Reader):
        self.trace, self.reader = trace, reader
        self.captures = Captures(self.stand_in, EffectGuard(lambda names: isinstance(names, Namespace)))
        self.builder = Builder(self._make_leaf, self.captures.view, self.captures.note_instance)
        self.storages: dict[int, Storage] = {}
        self.initial: dict[int, Tracer] = {}
        self.contents: dict[int, Any] = {}

    def stand_in(self, value: Any, path: tuple) -> tuple[Spec, Any]:
        """(spec, stand-in) of a value that the traced code met."""
        spec = self.reader.read_whole(value, path)
        return spec, self.build(spec)

    def build(self, spec: Spec) -> Any:
        made = spec.build(self.builder)
        for place in range(len(self.contents), len(self.builder.stand_ins)):
            self.contents[place] = copy_contents(self.builder.stand_ins[place])
        return made

    def _make_leaf(self, spec: ArraySpec | ScalarSpec) -> Any:
        place = len(self.builder.places)
        shape = spec.shape if isinstance(spec, ArraySpec) else ()
        order = spec.order if isinstance(spec, ArraySpec) else C_ORDER
        shape = tuple([shape[axis] for axis in order]) if order else shape  # as it lies in memory
        tracer = self.initial[place] = self.trace.new_arg(ShapedArray(shape, spec.dtype))
        if isinstance(spec, ScalarSpec):
            return Number(spec.kind, tracer) if spec.is_number else Scalar(tracer)
        source = None if spec.is_own else place
        storage = Storage(tracer, source, is_c_order=spec.is_dense, is_read_only=not spec.is_writeable)
        storage.has_gaps = not spec.is_dense and order is not None
        storage.trace = self.trace
        storage.is_moved = spec.is_own
        if not spec.is_own:
            self.storages[place] = storage
        return NDArray(storage).transpose(*map(int, np.argsort(order))) if order else NDArray(storage)

    def find_origins(self, error: BaseException) -> list[tuple]:
        """Paths of the traced numbers whose values tracing lacked; all of them where nothing says more."""
        numbers = [place for place, spec in enumerate(self.builder.places)
                   if isinstance(spec, ScalarSpec) and spec.kind in _PYTHON_NUMBERS + (np.bool_,)
                   or isinstance(spec, ScalarSpec) and issubclass(spec.kind, np.integer)]
        numbers += [place + 1 for place, spec in enumerate(self.builder.places) if isinstance(spec, TextSpec)]
        if isinstance(error, NeedsIdentity):
            return []
        needed = self._find_inputs(getattr(error, "handle", None))
        found = numbers if needed is None else [place for place in numbers if place in needed]
        return [self.reader.paths[place] for place in found]

    def find_mixed_lists(self, error: BaseException) -> frozenset[tuple]:
        """Paths of lists of numbers of one type that should be one of several, or `MADE`."""
        if not isinstance(error, NeedsMixed):
            return frozenset()
        found = [self.reader.paths[place - 1] for place, storage in self.storages.items()
                 if storage is error.memory]
        return frozenset(found or [MADE]) - self.reader.mixed

    def _find_inputs(self, handle: Any) -> set[int] | None:
        """The places that a traced number was computed from; None where that is not known."""
        if isinstance(handle, Number) and handle.form is not None:
            raws = [term.raw for term, _ in handle.form.terms]
        elif isinstance(handle, (Number, Scalar, TracedText)):
            raws = [handle.read()]
        else:
            return None
        if not all(isinstance(raw, Tracer) and raw.owner is self.trace for raw in raws):
            return None
        _, needed = slice_eqns(self.trace.eqns, [raw.atom for raw in raws])
        return {place for place, tracer in self.initial.items() if tracer.atom in needed}


#: Stands for the paths of lists that a call makes.
MADE = ()
_PYTHON_NUMBERS = (int, float, complex)


def copy_contents(stand_in: Any) -> Any:
    """What a container holds, or the shape of an array: to see later whether it was changed."""
    if isinstance(stand_in, NDArray):
        return stand_in.shape
    if isinstance(stand_in, Handle):
        return None
    if type(stand_in) in (list, dict):
        return stand_in.copy()
    return dict(vars(stand_in)) if hasattr(stand_in, "__dict__") else None


def record_call(function: types.FunctionType, call: Callable, specs: Sequence[Spec], reader: Reader,
                origins: list[tuple], *, grows: bool = True, prints: bool = True) -> Recording:
    """Runs the function on stand-ins of its arguments.

    Args:
        call: (function, argument stand-ins) -> the result; knows which are positional.
        reader: that made the specs.
        origins: where an exception puts the paths of the numbers whose values it wanted.
        grows: whether lists may be of traced length. prints: see `Mode`.

    Raises: NotTraceable; whatever else the function raises. `has_grown(error)` tells whether there was such a
        list."""
    name, location = locate_function(function)
    info = DebugInfo(name, location, "autojit", None)
    counters.add(traces=1)
    with open_trace(info, LimitedTrace) as trace:
        session = Session(trace, reader)
        mode = AutojitMode(session)
        mode.grows, mode.prints, mode.mixes = grows, prints, MADE in reader.mixed
        previous, current.mode = current.mode, mode
        try:
            with session.captures.effects.watch():
                built = {number: session.build(specs[number]) for number in order_arguments(specs)}
                arguments = [built[number] for number in range(len(specs))]
                try:
                    with refuse_output(mode.refuse), refuse_draws(mode.refuse):
                        result = call(rewrite_function(session.captures.enter_first(function)), arguments)
                finally:
                    session.captures.settle_attributes()
            writer = ResultWriter(session)
            effects = writer.write(result, mode)
        except Exception as error:
            origins[:] = session.find_origins(error)
            error.__dict__["jitcore_mixed"] = session.find_mixed_lists(error)
            error.__dict__["jitcore_has_grown"] = mode.has_grown and not isinstance(error, NeedsRows)
            raise
        finally:
            current.mode = previous
            reader.release()
        jaxpr, consts = trace.close(effects.outputs)
    traced = TracedFunction(jaxpr, consts, tree_structure([0] * len(effects.outputs)), name)
    places, inputs = session.builder.places, tuple(session.initial)
    return Recording(traced, session.captures.found, places, inputs, effects, mode.found_unrolled,
                     mode.failures)


def find_mixed_list(error: Exception) -> frozenset[tuple]:
    """See `Session.find_mixed_lists`."""
    return error.__dict__.get("jitcore_mixed", frozenset())


def has_grown(error: Exception) -> bool:
    """Whether lists had become ones of traced length before a recording failed: without these it may not."""
    return error.__dict__.get("jitcore_has_grown", False)


# -- calls with traced arguments -----------------------------------------------------------------------------
def is_traced_call(values: tuple) -> bool:
    """Whether some argument is traced."""
    if current.mode is None and context.trace is eval_trace:
        return False
    return any(is_a(value, (Tracer, Handle)) for value in walk(values))


def call_inline(owner: Any, values: tuple) -> Any:
    """Runs the function's traced form on these values."""
    if current.mode is not None:
        found = current.mode.redirects.get(owner.function, owner.function)
        return owner.parameters.call(found, values)
    return _call_under_transform(owner, rewrite_function(owner.function), values)


def _call_under_transform(owner: Any, function: Callable, values: tuple) -> Any:
    storages: list[tuple[Storage, Array]] = []

    def enter(leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            return leaf
        if not leaf.shape and leaf.weak_type:
            return Number(leaf.dtype.type(0).item().__class__, leaf)
        if not leaf.shape:
            return Scalar(leaf)
        storage = Storage(leaf)
        storages.append((storage, leaf))
        return NDArray(storage)

    mode = NumpyMode()
    current.mode = mode
    try:
        arguments = [tree_util.tree_map(enter, value) for value in values]
        result = owner.parameters.call(function, arguments)
        found = tree_util.tree_map(lambda leaf: leaf.read() if isinstance(leaf, Handle) else leaf, result)
        if mode.can_fail:
            raise_if(mode.failed, _join_errors(mode.failures))
    finally:
        current.mode = None
    for storage, before in storages:
        if storage.value is not before:
            name = owner.function.__qualname__
            raise not_traceable(f"{name} writes to an array that is traced by a transformation: pass a copy")
    return found


def _join_errors(errors: list[BaseException]) -> BaseException:
    """What is raised where plain Python would raise one of several errors."""
    kinds = {type(error): error for error in errors}
    if len(kinds) == 1:
        return errors[0]
    return RuntimeError("; ".join(dict.fromkeys(f"{type(error).__name__}: {error}" for error in errors)))


# -- output --------------------------------------------------------------------------------------------------
class _Last(threading.local):
    """What the thread's last program that prints has written."""

    counts: Mapping[str, int] = {}


_last = _Last()


def count_writes(run: Callable[..., Any]) -> Callable[..., Any]:
    """A program that notes what it prints."""

    def count_and_run(*values: Any) -> Any:
        before, written.counts = written.counts, Counter()
        try:
            return run(*values)
        finally:
            _last.counts, written.counts = written.counts, before

    return count_and_run


@contextlib.contextmanager
def without_repetition(*, is_limited: bool) -> Iterator[None]:
    """What the thread's last program has printed is left out of what is printed next.

    is_limited: only within; else until so much was printed."""
    skippers = [Skipper(name, count) for name, count in _last.counts.items() if count]
    _last.counts = {}
    try:
        yield
    finally:
        for skipper in skippers if is_limited else ():
            skipper.remove()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Within, this thread prints nothing."""
    skippers = [Skipper(name, math.inf) for name in ("stdout", "stderr")]
    try:
        yield
    finally:
        for skipper in skippers:
            skipper.remove()


@contextlib.contextmanager
def refuse_draws(refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Code that is not traced draws from the generators of `np.random` and `random` while tracing only. Its
    draws are taken back, unless they may be another thread's. refuse: of a reason, the exception."""
    before = _read_generators()
    try:
        yield
    finally:
        drawn = [put for (put, state), (_, now) in zip(before, _read_generators()) if now != state]
        if drawn and threading.active_count() == 1:
            for put, state in before:
                put(pickle.loads(state))
    if drawn:
        raise refuse("a draw by code that is not traced")


def _read_generators() -> list[tuple[Callable[[Any], None], bytes]]:
    """What puts a state back, and the state, of each generator that modules share."""
    found: list[tuple[Callable, Any]] = []
    random = sys.modules.get("random")
    if random is not None:
        found.append((random.setstate, random.getstate()))
    if "numpy.random" in sys.modules:
        found.append((np.random.set_state, np.random.get_state(legacy=False)))
    return [(put, pickle.dumps(state)) for put, state in found]


@contextlib.contextmanager
def refuse_output(refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Within, what this thread prints in another way than as a part of the program raises: it would print
    while tracing only. refuse: of a reason, the exception."""
    guard = _Refuser(refuse)
    try:
        yield
    finally:
        guard.remove()


class Skipper:
    """Takes the place of `sys.stdout` or `sys.stderr` until a number of writes of this thread have been left
    out."""

    def __init__(self, name: str, count: float):
        self._name, self._left, self._stream = name, count, getattr(sys, name)
        self._thread = threading.get_ident()
        if self._stream is not None:
            setattr(sys, name, self)

    def write(self, text: str) -> int:
        if not self._left or threading.get_ident() != self._thread:
            return self._stream.write(text)
        self._left -= 1
        if not self._left:
            self.remove()
        return len(text)

    def remove(self) -> None:
        self._left = 0
        stream = getattr(sys, self._name)
        while isinstance(stream, Skipper) and not stream._left:  # another thread's may lie above
            stream = stream._stream
        setattr(sys, self._name, stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Refuser(Skipper):
    """Raises where a Skipper leaves out."""

    def __init__(self, refuse: Callable[[str], Exception]):
        super().__init__("stdout", math.inf)
        self._refuse = refuse

    def write(self, text: str) -> int:
        if self._left and threading.get_ident() == self._thread:
            raise self._refuse("code that is not a part of the program writes to sys.stdout")
        return self._stream.write(text)
