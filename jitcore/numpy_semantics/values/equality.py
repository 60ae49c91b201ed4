"""Which traced values are equal whatever they are, and which the current trace can use.

In: a tracer. Out: the first tracer of its trace that has the same value, as the result of an equal equation
on equal operands (`find_first`). `row[i + 1]` that is read twice is two tracers; extents made of both have to
be known to be equal. A trace can use its own values and those of the traces around it.
"""

from __future__ import annotations

from typing import Any

from jitcore.core.jaxpr import Literal, Var
from jitcore.core.trace import JaxprTrace, Trace, Tracer, context


def is_current(trace: Trace) -> bool:
    """Whether a trace is the current one or around it."""
    found: Trace | None = context.trace
    while found is not None:
        if found is trace:
            return True
        found = found.parent
    return False


def is_visible(value: Any) -> bool:
    """Whether an Array can be used under the current trace."""
    return not isinstance(value, Tracer) or is_current(value.owner)


class _Numbering:
    """Value numbers of one trace, for as many equations as it had when it was asked last.

    Attributes:
        first: the variable with the same value that came first, by variable; tracers: one for each."""

    def __init__(self):
        self.count = 0
        self.first: dict[Var, Var] = {}
        self.tracers: dict[Var, Tracer] = {}
        self._results: dict[Any, list[Var]] = {}
        self._outside: dict[Any, Var] = {}
        self._const_count = 0

    def update(self, trace: JaxprTrace) -> None:
        self._number_consts(trace)
        for eqn in trace.eqns[self.count :]:
            if eqn.effects:
                continue
            avals = tuple(var.aval for var in eqn.outvars)
            key = (eqn.primitive, tuple(map(self._encode, eqn.invars)), avals, _encode_params(eqn.params))
            results = self._results.setdefault(key, eqn.outvars)
            if results is not eqn.outvars:
                self.first.update(zip(eqn.outvars, results))
        self.count = len(trace.eqns)

    def _number_consts(self, trace: JaxprTrace) -> None:
        """Values of an enclosing trace may have come in as several tracers."""
        if len(trace._consts) == self._const_count:
            return
        for var, value in trace._consts.values():
            if isinstance(value, Tracer) and isinstance(value.owner, JaxprTrace):
                outer = find_first(value)
                self.first[var] = self._outside.setdefault((id(outer.owner), outer.atom), var)
        self._const_count = len(trace._consts)

    def _encode(self, atom):
        if isinstance(atom, Literal):
            return atom.to_numpy().tobytes(), atom.aval
        return self.first.get(atom, atom)


def _encode_params(params: dict) -> Any:
    key = tuple(sorted(params.items(), key=lambda item: item[0]))
    try:
        hash(key)
    except TypeError:
        return tuple((name, id(value)) for name, value in key)
    return key


def _number_values(trace: JaxprTrace) -> _Numbering:
    """The value numbers of a trace, which live as long as it does."""
    numbering = trace.__dict__.get("value_numbers")
    if numbering is None:
        numbering = trace.__dict__["value_numbers"] = _Numbering()
    numbering.update(trace)
    return numbering


def find_first(x):
    """The first value known to equal a tracer; anything else is returned as it is."""
    if not isinstance(x, Tracer) or not isinstance(x.owner, JaxprTrace) or not isinstance(x.atom, Var):
        return x
    numbering = _number_values(x.owner)
    first = numbering.first.get(x.atom, x.atom)
    if first not in numbering.tracers:
        is_own = first is x.atom
        numbering.tracers[first] = x if is_own else Tracer(x.owner, x.aval, first, x.source_info)
    return numbering.tracers[first]


def is_equal(one, other) -> bool:
    """Whether two traced values are known to be equal."""
    return one is other or isinstance(one, Tracer) and find_first(one) is find_first(other)
