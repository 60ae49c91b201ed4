"""Runs the user's Python function once on tracers.

In: a function and the signature of a call. Out: a `TracedFunction`: jaxpr, captured values, structure of the
result. Stage: the entry of the tracing core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitcore import errors, tree_util
from jitcore.array import Array
from jitcore.config import config
from jitcore.core import source
from jitcore.core.aval import ShapedArray, is_array_like
from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr
from jitcore.core.trace import close_over_consts, trace_to_jaxpr
from jitcore.dispatch.counters import counters
from jitcore.dispatch.signature import CallSignature, hide_float0
from jitcore.errors import arguments
from jitcore.process.effort import collect_rarely

#: Structure of a result that is one array, which needs no treedef.
SINGLE = None


class TracedFunction:
    """A traced function.

    Attributes:
        jaxpr: its constvars stand for `consts`, arrays or tracers of an enclosing trace.
        out_structure: treedef of the result, `SINGLE` for one array.
        fun_name: as messages and jaxprs show it.
    """

    __slots__ = ("jaxpr", "consts", "out_structure", "fun_name", "_closed")

    def __init__(self, jaxpr: Jaxpr, consts: list, out_structure: tree_util.PyTreeDef | None, fun_name: str):
        self.jaxpr, self.consts, self.out_structure, self.fun_name = jaxpr, consts, out_structure, fun_name
        self._closed: ClosedJaxpr | None = None

    @property
    def closed(self) -> ClosedJaxpr:
        """The jaxpr with the captured values as leading inputs; one object, which caches may have as key."""
        if self._closed is None:
            self._closed, _ = close_over_consts(self.jaxpr, self.consts)
        return self._closed

    def make_out_tree(self) -> tree_util.PyTreeDef:
        return tree_util.tree_structure(0) if self.out_structure is SINGLE else self.out_structure

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        return leaves[0] if self.out_structure is SINGLE else self.out_structure.unflatten(leaves)


#: Leaves of calls whose names are kept for the texts of programs.
MAX_NAMED = 64


class CallDebugInfo(DebugInfo):
    """Debug information whose argument names are looked up when a message asks for them."""

    __slots__ = ("_fun", "_call", "_names")

    def __init__(self, fun: Callable, call: CallSignature, transform: str):
        self.fun_name, self.location = source.locate_function(fun)
        self.transform = transform
        self._fun, self._call, self._names = fun, call, None

    @property
    def arg_names(self) -> list[str]:
        if self._names is None:
            self._names = self._call.name_leaves(self._fun)
        return self._names

    def freeze(self) -> DebugInfo:
        """The same without function and arguments, so that a cached jaxpr keeps neither alive."""
        names = self.arg_names if len(self._call.avals) <= MAX_NAMED else None
        return DebugInfo(self.fun_name, self.location, self.transform, names)


def trace_call(fun: Callable, call: CallSignature, avals: Sequence[ShapedArray] | None = None, *,
               transform: str = "jit", rewrite: bool = False) -> TracedFunction:
    """Traces `fun` for this call. avals: of the leaves, when they are not those of the call.

    Raises: JitcoreTypeError when the function returns something that is no array; whatever `fun` raises."""
    info = CallDebugInfo(fun, call, transform)
    run = fun
    if rewrite or config.rewrite:
        # It reads bytecode, and is loaded where it is asked for.
        from jitcore.rewriter import rewrite_function

        run = rewrite_function(fun)
    structure: list[tree_util.PyTreeDef | None] = []

    def run_flat(*tracers):
        args, kwargs = call.rebuild(tracers)
        leaves, out_structure = flatten_result(run(*args, **kwargs), info)
        structure.append(out_structure)
        return leaves

    counters.add(traces=1)
    with collect_rarely():
        jaxpr, consts = trace_to_jaxpr(run_flat, call.avals if avals is None else avals, info)
    jaxpr.debug_info = info.freeze()
    return TracedFunction(jaxpr, consts, structure[0], info.fun_name)


def flatten_result(out: Any, info: DebugInfo) -> tuple[list, tree_util.PyTreeDef | None]:
    """Leaves and structure of what a function returned.

    Raises: JitcoreTypeError naming the component that is not an array."""
    if isinstance(out, Array):
        return [out], SINGLE
    leaves, structure = tree_util.tree_flatten(out)
    if not all(map(is_array_like, leaves)):
        out = hide_float0(out)
        leaves, structure = tree_util.tree_flatten(out)
    for position, leaf in enumerate(leaves):
        if not is_array_like(leaf):
            path, _ = tree_util.tree_leaves_with_path(out)[position]
            origin = errors.Origin(info.fun_name, info.location, info.transform)
            raise arguments.result_type_error(origin, str(type(leaf)), tree_util.keystr(path))
    return leaves, structure
