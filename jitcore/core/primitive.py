"""Primitives: the operations a jaxpr is made of, with every rule of one primitive on one object."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core import trace
from jitcore.core.jaxpr import aval_of, sub_jaxprs

registry: dict[str, Primitive] = {}


class Primitive:
    """An operation and its rules. Built by the family constructors of `lax.define`, one block per primitive.

    Args:
        name: the name in the jaxpr text.
        impl: `impl(*ndarrays, **params) -> ndarray(s)`, the NumPy/SciPy implementation (eager and reference).
        aval: `aval(*avals, **params) -> ShapedArray(s)`; checks operands, raises TypeError/ValueError.
        lower: `lower(builder, *values, **params) -> value(s)` into the loop program; None means that the
            backend calls `impl` as a library routine.
        eager: as `impl`, for an application outside of every trace; `impl` itself unless given.
        jvp, transpose: rules of differentiation; `transforms/jvp.py` and `transforms/transpose.py` explain
            their forms. partial: how jaxprs among the params split; see `transforms/partial_eval.py`.
        batch: rule of `vmap`; `transforms/batching.py` explains its form.
        hlo: name of the StableHLO operation, where there is one.
        multiple_results: whether rules return lists.
        effects: frozenset of `Effect`s of each application, or a function of the params giving it.
        traits: facts of the family, such as `scalar_op` and the `domain` that tests sample; `inline` of
            calls, see `passes/inline.py`; `mesh`, the sharding whose devices an application needs, a function
            of the params; `varying`, see `core.varying`; `zeros` and `takes_masks`, see
            `transforms/transpose.py`. For passes and the scheduler:
            same_elements: results are elements of the first operand.
            walks: operands are read in the order of the result, or placed whole.
            keeps_order: only the shape changes.
            stored_operands: numbers of operands that have to be in memory.
            reads_once(**params): numbers of operands whose elements are read once each.
            in_step: numbers of operands of which a result's element needs the one at its own place only.
            updates_operand: the first operand gives its memory to the result, if nothing else reads it.
            stores_result: results are in memory before the next equation runs.
            control_flow: runs jaxprs among its params.
            on_words: what a primitive of keys is of their words, see `lax/random/keys.py`.
            takes_words: keys among the operands are given as their words.
            is_cheap: a sweep computes it beside reading.
            optional_results: by the param that asks for results behind the first one, how many these are."""

    __slots__ = ("name", "impl", "eager", "aval", "lower", "hlo", "multiple_results", "effects", "traits",
                 "jvp", "transpose", "partial", "batch", "__dict__")

    def __init__(self, name: str, *, impl: Callable, aval: Callable, eager=None, jvp=None, transpose=None,
                 partial=None, batch=None, lower=None, hlo=None, multiple_results: bool = False,
                 effects=frozenset(), **traits):
        if name in registry:
            raise ValueError(f"primitive {name} is defined twice")
        self.name, self.impl, self.aval, self.lower, self.hlo = name, impl, aval, lower, hlo
        self.eager, self.batch = eager or impl, batch
        self.jvp, self.transpose, self.partial = jvp, transpose, partial
        self.multiple_results, self.effects, self.traits = multiple_results, effects, traits
        registry[name] = self

    def bind(self, *args, **params):
        """Applies the primitive under the current trace: runs it now or records an equation."""
        if trace.context.tracks_varying:
            args = mark_operands(self, args, params)
        return trace.context.trace.process_primitive(self, args, params)

    def bind_all(self, *args, **params) -> list:
        """`bind`, whose result is a list also where it is one value."""
        outs = self.bind(*args, **params)
        return list(outs) if self.multiple_results else [outs]

    def __reduce__(self):
        return find_primitive, (self.name, self.impl.__module__)

    def effects_of(self, params) -> frozenset:
        return self.effects(**params) if callable(self.effects) else self.effects

    def __repr__(self) -> str:
        return self.name


def find_primitive(name: str, module: str) -> Primitive:
    """As pickle finds it. module: where it is defined, which may not have been imported."""
    if name not in registry:
        importlib.import_module(module)
    return registry[name]


def mark(x: Any, wanted: frozenset) -> Any:
    """A value as one that varies along these axes too."""
    missing = wanted - aval_of(x).varying
    return registry["pvary"].bind(x, axes=tuple(sorted(missing, key=str))) if missing else x


def mark_operands(primitive, args: Sequence, params: dict) -> Sequence:
    """Operands of one operation: those that vary along fewer axes than others are marked. Constants stay:
    nothing asks for their derivatives. Loops, branches and calls take operands as they are: operations inside
    look at them."""
    if "varying" in primitive.traits or sub_jaxprs(params):
        return args
    found = [x.aval.varying for x in args if isinstance(x, trace.Tracer)]
    if len(found) < 2 or all(varying == found[0] for varying in found):
        return args
    wanted = frozenset().union(*found)
    return [mark(x, wanted) if isinstance(x, trace.Tracer) else x for x in args]


class Effect:
    """Something an equation does besides computing its outputs. Ordered effects keep their order among
    themselves."""

    __slots__ = ("name", "ordered")

    def __init__(self, name: str, ordered: bool):
        self.name, self.ordered = name, ordered

    def __repr__(self) -> str:
        return self.name
