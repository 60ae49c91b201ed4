"""Calls whose signature is known: a function specialised for the number of arguments looks up and runs.

In: positional arguments. Out: the result, or `MISS` when the general path has to serve the call. What counts
here is Python's overhead, so the code of a dispatcher is written out for its number of arguments: class
checks, one key, one look-up, the program, one new Array. No lock, no signature binding, no pytree.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import numpy as np

from jitcore import dtypes
from jitcore.array import ConcreteArray
from jitcore.config import config
from jitcore.core.trace import context, eval_trace
from jitcore.dispatch.executables import drop_oldest
from jitcore.dispatch.parameters import ArgumentPlan
from jitcore.dispatch.signature import READABLE_FLAGS, CallSignature

#: What a dispatcher returns for a call that it does not know.
MISS = object()
#: Calls with more positional arguments take the general path, where the flattening no longer dominates.
MAX_ARGUMENTS = 16

_SCALAR_CLASSES = frozenset((*dtypes.PYTHON_SCALARS, *(dtype.type for dtype in dtypes.SUPPORTED)))


class FastCalls:
    """The dispatchers of one function, one for each number of positional arguments that was seen."""

    def __init__(self, plan: ArgumentPlan):
        self._plan = plan
        self._lock = threading.Lock()
        self._tables: dict[int, tuple[dict, Callable[[], int]]] = {}
        #: number of arguments -> dispatcher; always the same dict.
        self.dispatchers: dict[int, Callable] = {}

    def clear(self) -> None:
        with self._lock:
            self.dispatchers.clear()
            self._tables.clear()

    def count_hits(self) -> int:
        return sum(read_hits() for _, read_hits in list(self._tables.values()))

    def learn(self, call: CallSignature, args: tuple, entry) -> None:
        """Serves later calls like this one, if it is flat, positional and donates nothing that is reused."""
        is_flat = call.structure.__class__ is tuple and not call.structure[1]
        if not is_flat or entry.reused or call.n_args != len(args) or call.n_args > MAX_ARGUMENTS:
            return
        key = self._make_key(call, args)
        if key is None:
            return
        with self._lock:
            if call.n_args not in self._tables:
                table = {}
                factory = _make_factory(call.n_args, self._plan.find_static(call.n_args))
                dispatcher, read_hits = factory(table)
                self._tables[call.n_args] = table, read_hits
                self.dispatchers[call.n_args] = dispatcher
            table = self._tables[call.n_args][0]
            scalar_dtypes = tuple(part[1] for part in call.parts)
            table[key] = (entry.run, entry.weak_type, entry.finish, scalar_dtypes)
            drop_oldest(table)

    def _make_key(self, call: CallSignature, args: tuple) -> tuple | None:
        """The key that the dispatcher will build for such a call."""
        parts: list = [config.trace_key]
        statics = {place: (kind, value) for place, kind, value in call.statics}
        leaf_parts = iter(zip(call.leaves, call.parts))
        for place in range(len(args)):
            if place in statics:
                parts += statics[place]
                continue
            leaf, part = next(leaf_parts)
            if leaf.__class__ in _SCALAR_CLASSES:
                parts += (leaf.__class__, None, None)
            elif leaf.__class__ in (ConcreteArray, np.ndarray):
                parts += part
            else:
                return None
        return tuple(parts)


@functools.cache
def _make_factory(n_args: int, statics: tuple[int, ...]) -> Callable:
    """A function that makes dispatchers for this many arguments, given their table."""
    source = _write_factory(n_args, statics)
    names = {"context": context, "eval_trace": eval_trace, "config": config, "MISS": MISS, "array": np.array,
             "ndarray": np.ndarray, "ConcreteArray": ConcreteArray, "new": object.__new__,
             "SCALAR_CLASSES": _SCALAR_CLASSES}  # fmt: skip
    # The name hides the frame from tracebacks, as those of every module of jitcore.
    names["__name__"] = __name__
    exec(compile(source, f"<jitcore dispatcher of {n_args} arguments>", "exec"), names)
    return names["make_dispatcher"]


def _write_factory(n_args: int, statics: tuple[int, ...]) -> str:
    arguments = ", ".join(f"a{i}" for i in range(n_args))
    values = ", ".join(f"v{i}" for i in range(n_args) if i not in statics)
    body, key, scalars, leaf = [], ["config.trace_key"], [], 0
    for i in range(n_args):
        if i in statics:
            key += [f"a{i}.__class__", f"a{i}"]
            continue
        body.append(_READ_ARGUMENT.format(i=i, flags=READABLE_FLAGS))
        key += [f"s{i}", f"t{i}", f"w{i}"]
        scalars.append(f"            if w{i} is None: v{i} = array(a{i}, dtypes[{leaf}])\n")
        leaf += 1
    return _FACTORY.format(
        arguments=arguments, values=values, body="".join(body), key=", ".join(key), scalars="".join(scalars)
    )


_READ_ARGUMENT = """\
            c = a{i}.__class__
            if c is ConcreteArray:
                v{i} = a{i}._data
                s{i}, t{i}, w{i} = v{i}.shape, v{i}.dtype, a{i}._weak_type
            elif c is ndarray:
                if a{i}.flags.num & {flags} != {flags}:
                    return MISS
                v{i} = a{i}
                s{i}, t{i}, w{i} = a{i}.shape, a{i}.dtype, False
            elif c in SCALAR_CLASSES:
                s{i}, t{i}, w{i} = c, None, None
            else:
                return MISS
"""

# The errors caught come from reading: a deleted array has no shape, a static value no hash, and an integer
# may not fit. The general path raises what the user should see.
_FACTORY = """\
def make_dispatcher(table):
    hits = 0

    def dispatch({arguments}):
        nonlocal hits
        if context.trace is not eval_trace:
            return MISS
        try:
{body}            run, weak_type, finish, dtypes = table[{key},]
{scalars}        except (KeyError, AttributeError, TypeError, OverflowError):
            return MISS
        hits += 1
        if weak_type is None:
            return finish(run({values}))
        out, = run({values})
        result = new(ConcreteArray)
        result._data = out
        result._weak_type = weak_type
        return result

    return dispatch, lambda: hits
"""
