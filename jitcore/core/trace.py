"""Tracing: the current trace of each thread, eager evaluation, and recording into a jaxpr.

In: primitive applications (`Primitive.bind`). Out: values at once (`EvalTrace`) or equations (`JaxprTrace`).
Each thread has one current trace; a transformation makes its own trace current while the user's function
runs. A `JaxprTrace` can be opened and closed independently of any function, and its outputs named at
closing time, so that a caller may look at what two sub-traces computed before it decides what they
return.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from jitcore import dtypes, errors
from jitcore.array import Array, ConcreteArray, DeviceArray, copy_data
from jitcore.config import config
from jitcore.core import pretty, source  # noqa: F401  `pretty` gives jaxprs their text
from jitcore.core.jaxpr import (ClosedJaxpr, DebugInfo, DropVar, Equation, Jaxpr, Literal, ShapedArray, Var,
                                aval_of, find_read, names_mesh, slice_eqns, sub_jaxprs)
from jitcore.core.varying import mark_results
from jitcore.errors import leaks


class Trace:
    """How primitive applications are interpreted while this trace is current.

    Attributes:
        parent: the trace that is current outside; the trace of a transformation hands on to it.
        is_open: whether the code that runs under the trace is still running.
        snapshots: by identity, ndarrays of the caller and the Arrays that hold what they held when they were
            read; None where nothing is recorded."""

    parent: Trace | None = None
    is_open = True

    @property
    def snapshots(self) -> dict | None:
        return None if self.parent is None else self.parent.snapshots

    def process_primitive(self, primitive, args, params):
        raise NotImplementedError

    def process_custom_call(self, call, args) -> list:
        """Applies a function that has derivative rules of its own: a `CustomCall` and its operands."""
        raise NotImplementedError


class EvalTrace(Trace):
    """Runs a primitive at once, nearly always through its NumPy/SciPy implementation."""

    def process_custom_call(self, call, args) -> list:
        return call.run(*args)

    def process_primitive(self, primitive, args, params):
        avals, values, lent = [], [], []
        if primitive.multiple_results or "mesh" in primitive.traits:
            if needs_mesh(primitive, params) and not any(isinstance(arg, Tracer) for arg in args):
                return run_on_device(primitive, args, params)
        for arg in args:
            if isinstance(arg, NOT_HERE):
                if isinstance(arg, Tracer):
                    raise unexpected_tracer_error(arg)
                return run_on_device(primitive, args, params)
            avals.append(aval_of(arg))
            values.append(to_numpy(arg))
            if arg.__class__ is np.ndarray:
                lent.append(arg)
        out_avals = primitive.aval(*avals, **params)
        with np.errstate(all="ignore"):
            outs = primitive.eager(*values, **params)
        if config.debug_nans or config.debug_infs:
            check_values(primitive.name, outs if primitive.multiple_results else [outs])
        if primitive.multiple_results:
            return [wrap_result(out, aval, lent) for out, aval in zip(outs, out_avals)]
        return wrap_result(outs, out_avals, lent)


def needs_mesh(primitive, params: dict) -> bool:
    """Whether an application, or one in its jaxprs, runs on a mesh."""
    return "mesh" in primitive.traits or any(map(names_mesh, sub_jaxprs(params)))


def run_on_device(primitive, args, params):
    """Applies a primitive to arrays of which some lie on a device, or on the devices of a mesh."""
    # An operation on a device is a program of the dispatch layer.
    from jitcore.dispatch.function import run_on_device

    return run_on_device(primitive, args, params)


def run_compiled(primitive, args: Sequence[np.ndarray], params: dict) -> list[np.ndarray]:
    """Applies a primitive with several results to ndarrays, as a program."""
    from jitcore.dispatch.function import run_compiled

    return [to_numpy(out) for out in run_compiled(primitive, [ConcreteArray(arg) for arg in args], params)]


def to_numpy(x) -> np.ndarray:
    """The value of a concrete operand as an ndarray of its canonical dtype."""
    if isinstance(x, ConcreteArray):
        return x.data
    if isinstance(x, dtypes.PYTHON_SCALARS) and not isinstance(x, np.generic):
        return dtypes.scalar_to_numpy(x)
    x = np.asarray(x)
    return x if x.dtype in dtypes.SHORT_NAMES else x.astype(dtypes.canonicalize(x.dtype))


def to_array(x) -> Array:
    """A scalar, ndarray or array as an `Array`, in memory of its own unless it is one."""
    if isinstance(x, Array):
        return x
    aval = aval_of(x)
    return ConcreteArray(np.array(x, aval.dtype, order="C"), aval.weak_type)


def own_ndarray(x: np.ndarray) -> ConcreteArray:
    """A caller's ndarray as an Array in memory of its own: who writes to it later does not change the Array.

    While a program is recorded, there is one copy of what is read many times with the same contents."""
    snapshots = context.trace.snapshots
    if snapshots is None:
        return ConcreteArray(_copy_canonical(x))
    _, found = snapshots.get(id(x), (x, None))
    if found is None or not _has_bits(x, found.data):
        found = ConcreteArray(_copy_canonical(x))
        snapshots[id(x)] = (x, found)  # keeps x, so that its identity stays its own
    return found


def _copy_canonical(x: np.ndarray) -> np.ndarray:
    dtype = dtypes.canonicalize(x.dtype)
    return copy_data(x if x.dtype == dtype else x.astype(dtype))


def _has_bits(x: np.ndarray, copy: np.ndarray) -> bool:
    """Whether an ndarray still holds, bit by bit, what was copied from it."""
    if x.shape != copy.shape or x.dtype != copy.dtype:
        return False
    one, other = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (x, copy))
    if one.size % 8 == 0:
        one, other = one.view(np.uint64), other.view(np.uint64)
    return bool((one == other).all())


def wrap_result(value, aval: ShapedArray, lent: Sequence[np.ndarray] = ()) -> ConcreteArray:
    """An eager result as an Array of the aval's dtype. A value that is not contiguous, or that lies in memory
    of the ndarrays that a caller lent, is copied."""
    value = np.asarray(value)
    if value.dtype != aval.dtype:
        value = value.astype(aval.dtype)
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value).reshape(value.shape)
    if lent and any(np.may_share_memory(value, array) for array in lent):
        value = copy_data(value)
    return ConcreteArray(value, aval.weak_type)


def check_values(name: str, values: Sequence[np.ndarray]) -> None:
    """Raises: FloatingPointError naming what made a NaN, or an infinity, where the flags forbid it."""
    for value in values:
        if dtypes.is_inexact(value.dtype):
            if config.debug_nans and np.isnan(value).any():
                raise FloatingPointError(f"invalid value (nan) encountered in {name}")
            if config.debug_infs and np.isinf(value).any():
                raise FloatingPointError(f"invalid value (inf) encountered in {name}")


class _Context(threading.local):
    """The thread's current trace, and whether values know along which axes of a mesh they vary."""

    tracks_varying = False

    def __init__(self):
        self.trace: Trace = eval_trace


eval_trace = EvalTrace()
context = _Context()


@contextlib.contextmanager
def set_current_trace(trace: Trace):
    previous, context.trace = context.trace, trace
    try:
        yield trace
    finally:
        context.trace = previous


@contextlib.contextmanager
def ensure_compile_time_eval():
    """Evaluates eagerly inside a traced function, for values that do not depend on its arguments."""
    with set_current_trace(eval_trace):
        yield


def _refuse(wanted: str) -> Callable:
    """A method that would need a value."""

    def refuse(self, *args, **kwargs):
        raise concretization_error(self, wanted)

    return refuse


class Tracer(Array):
    """Stands for an array while a function is traced.

    Attributes: `owner` (the trace that made it), `aval`, `atom` (its variable in that trace's jaxpr)."""

    __slots__ = ("owner", "_aval", "atom", "source_info")

    def __init__(self, trace: Trace, aval: ShapedArray, atom=None, source_info=None):
        self.owner, self._aval, self.atom, self.source_info = trace, aval, atom, source_info

    @property
    def aval(self) -> ShapedArray:
        return self._aval

    @property
    def shape(self) -> tuple:
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self._aval.dtype

    @property
    def weak_type(self) -> bool:
        return self._aval.weak_type

    __bool__, __int__, __float__, __complex__, __index__ = map(
        _refuse, ("bool", "int", "float", "complex", "index"))
    __array__, tolist, item, tobytes, __reduce__ = map(
        _refuse, ("array", "tolist", "item", "tobytes", "__reduce__"))

    def block_until_ready(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"Traced<{self._aval!r}>with<{self.owner!r}>"


#: Arrays that an implementation in NumPy does not take.
NOT_HERE = (Tracer, DeviceArray)


class JaxprTrace(Trace):
    """Records equations. Open it with `open_trace`, run code, then `close` it with the outputs.

    Args:
        debug_info: of the traced function, for error messages.
        parent: the trace that is current outside."""

    def __init__(self, debug_info: DebugInfo | None = None, parent: Trace | None = None):
        self.debug_info = debug_info
        self.parent = parent
        self.level = parent.level + 1 if isinstance(parent, JaxprTrace) else 1
        self.invars: list[Var] = []
        self.eqns: list[Equation] = []
        self.is_open = True
        self._consts: dict[int, tuple[Var, object]] = {}  # id(value) -> (constvar, value)
        around = None if parent is None else parent.snapshots
        self._snapshots: dict = {} if around is None else around

    @property
    def snapshots(self) -> dict:
        return self._snapshots

    def __repr__(self) -> str:
        return f"DynamicJaxprTrace(level={self.level}/0)"

    def new_arg(self, aval: ShapedArray) -> Tracer:
        var = Var(aval)
        self.invars.append(var)
        return Tracer(self, aval, var)

    def drop_arg(self, arg: Tracer) -> bool:
        """Takes back an argument that no equation reads. Returns: whether none does."""
        if any(atom is arg.atom for eqn in self.eqns for atom in eqn.invars):
            return False
        self.invars = [var for var in self.invars if var is not arg.atom]
        return True

    def owns(self, value) -> bool:
        """Whether a value was made inside this trace (else it was made before the trace began)."""
        return isinstance(value, Tracer) and value.owner is self

    def atom_of(self, x):
        """The variable or literal that stands for x here; values from outside become constvars."""
        if isinstance(x, Tracer):
            if x.owner is self:
                return x.atom
            self._check_visible(x)
            return self._const_var(x, x.aval)
        if isinstance(x, dtypes.PYTHON_SCALARS) and not isinstance(x, np.generic):
            dtypes.scalar_to_numpy(x)  # raises where a Python int does not fit
            return Literal(x)
        aval = aval_of(x)
        if not aval.shape and not dtypes.is_key(aval.dtype):
            return Literal(to_numpy(x)[()], aval)
        return self._const_var(x if isinstance(x, Array) else own_ndarray(x), aval)

    def _const_var(self, x, aval: ShapedArray) -> Var:
        if id(x) not in self._consts:
            self._consts[id(x)] = (Var(aval), x)
        return self._consts[id(x)][0]

    def _check_visible(self, tracer: Tracer) -> None:
        """Raises: UnexpectedTracerError unless the tracer belongs to an open enclosing trace."""
        outer = self.parent
        while outer is not None:
            if outer is tracer.owner:
                return
            outer = outer.parent
        raise unexpected_tracer_error(tracer)

    def process_primitive(self, primitive, args, params):
        if not self.is_open:
            raise errors.UnexpectedTracerError("an operation was recorded into a trace that has ended")
        atoms = [x.atom if x.__class__ is Tracer and x.owner is self else self.atom_of(x) for x in args]
        out_avals = primitive.aval(*[atom.aval for atom in atoms], **params)
        out_avals = out_avals if primitive.multiple_results else [out_avals]
        if context.tracks_varying:
            out_avals = mark_results(primitive, atoms, out_avals, params)
        outs = self.record(primitive, atoms, out_avals, params)
        return outs if primitive.multiple_results else outs[0]

    def process_custom_call(self, call, args) -> list:
        return call.record(args)

    def record(self, primitive, atoms, out_avals, params) -> list[Tracer]:
        """Appends one equation; returns a tracer per output."""
        info = source.capture_source()
        outs = [Tracer(self, aval, Var(aval), info) for aval in out_avals]
        self.eqns.append(
            Equation(primitive, atoms, [out.atom for out in outs], params, primitive.effects_of(params), info)
        )
        return outs

    def close(self, outs: Sequence) -> tuple[Jaxpr, list]:
        """Ends the trace. Returns the jaxpr and the outside values (arrays or outer tracers) of its
        constvars."""
        out_atoms = [self.atom_of(out) for out in outs]
        self.is_open, self._snapshots = False, {}
        eqns = _drop_unread_outputs(self.eqns, out_atoms)
        constvars = [var for var, _ in self._consts.values()]
        consts = [value for _, value in self._consts.values()]
        self._consts = {}
        return Jaxpr(constvars, self.invars, eqns, out_atoms, debug_info=self.debug_info), consts

    def abandon(self) -> None:
        """Ends the trace without a result (the traced code raised)."""
        self.is_open = False
        self._consts, self._snapshots = {}, {}


def _drop_unread_outputs(eqns: list[Equation], out_atoms) -> list[Equation]:
    read = find_read(eqns, out_atoms)
    for eqn in eqns:
        if not all(var in read for var in eqn.outvars):
            eqn.outvars = [var if var in read else DropVar(var.aval) for var in eqn.outvars]
    return eqns


T = TypeVar("T", bound=JaxprTrace)


@contextlib.contextmanager
def open_trace(debug_info: DebugInfo | None = None, kind: type[T] = JaxprTrace) -> Iterator[T]:
    """A new sub-trace of the current one, made current. The caller closes it with `trace.close(outs)`."""
    trace = kind(debug_info, context.trace)
    with set_current_trace(trace):
        try:
            yield trace
        finally:
            if trace.is_open:
                trace.abandon()


def trace_to_jaxpr(fun: Callable, in_avals: Sequence[ShapedArray], debug_info: DebugInfo | None = None):
    """Runs `fun(*tracers) -> sequence of outputs` and returns (Jaxpr, consts); consts may be outer
    tracers."""
    with open_trace(debug_info) as trace:
        outs = fun(*map(trace.new_arg, in_avals))
        result = trace.close(outs)
    if config.check_tracer_leaks:
        del outs
        check_for_leaks(trace)
    return result


def run_transformed(trace: Trace, fun: Callable, *operands):
    """Runs `fun(*tracers) -> outputs` under the trace of a transformation, which ends with it.

    What the trace's `lift` makes of the operands goes in, what its `lower` makes of the outputs comes out."""
    with set_current_trace(trace):
        try:
            outs = fun(*trace.lift(*operands))
            result = trace.lower(outs)
        finally:
            trace.is_open = False
    if config.check_tracer_leaks:
        del outs
        check_for_leaks(trace)
    return result


def check_for_leaks(trace: Trace) -> None:
    """Raises: LeakedTracerError when a tracer of an ended trace is still referenced somewhere."""
    gc.collect()
    leaked = [referrer for referrer in gc.get_referrers(trace) if isinstance(referrer, Tracer)]
    if leaked:
        where = source.format_snippet(leaked[0].source_info)
        aval_text = leaked[0].aval.long()
        raise leaks.leaked_tracer_error(aval_text, origin_of(trace), where, while_tracing=True)


def close_over_consts(jaxpr: Jaxpr, consts: Sequence) -> tuple[ClosedJaxpr, list]:
    """Turns constvars into leading invars: returns (closed jaxpr without consts, the operands to pass for
    them)."""
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars)), list(consts)


# -- errors -----------------------------------------------------------------------------------------------


def unexpected_tracer_error(tracer: Tracer) -> Exception:
    where = source.format_snippet(tracer.source_info)
    return leaks.leaked_tracer_error(tracer.aval.long(), origin_of(tracer.owner), where)


_CONVERSION_ERRORS = {
    "bool": errors.bool_conversion_error,
    "index": errors.integer_conversion_error,
    "array": errors.array_conversion_error,
    **{name: functools.partial(errors.number_conversion_error, name) for name in ("int", "float", "complex")},
    **{
        name: functools.partial(errors.method_conversion_error, name)
        for name in ("item", "tolist", "tobytes", "__reduce__")
    },
}


def concretization_error(tracer: Tracer, wanted: str) -> Exception:
    """The documented error for using a tracer where Python needs a value (`bool`, `int`, `index`, `array`
    ...)."""
    if not tracer.owner.is_open:
        return unexpected_tracer_error(tracer)
    return _CONVERSION_ERRORS[wanted](tracer.aval.long(), origin_of(tracer.owner, tracer), user_snippet())


def user_snippet() -> list[str]:
    """The user's current line with a caret, for a message."""
    return source.format_snippet(source.capture_source())


def origin_of(trace: Trace, tracer: Tracer | None = None) -> errors.Origin:
    """Which function a trace traces, and which of its arguments the tracer depends on."""
    info = getattr(trace, "debug_info", None)
    if info is None:
        return errors.Origin("function", transform="trace")
    avals = origin_arguments(tracer) if tracer is not None else {}
    origin = errors.Origin(info.fun_name, info.location, info.transform, tuple(avals))
    # An array cannot be static: it is not hashable.
    scalars = tuple(name for name, aval in avals.items() if aval.shape == ())
    return origin._replace(static_names=origin._replace(arg_names=scalars).find_static_names())


def origin_arguments(tracer: Tracer) -> dict[str, ShapedArray]:
    """The traced function's arguments that the value depends on, in their order: names and avals."""
    trace = tracer.owner
    if not isinstance(trace, JaxprTrace) or trace.debug_info is None or not trace.debug_info.arg_names:
        return {}
    _, needed = slice_eqns(trace.eqns, [tracer.atom])
    names = trace.debug_info.arg_names
    return {names[i]: var.aval for i, var in enumerate(trace.invars) if var in needed and names[i]}
