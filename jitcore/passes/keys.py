"""Keys: what compiled programs hold in their place.

In: a jaxpr with arrays of keys. Out: the same program with arrays of numbers of as many bits,
`KeyDtype.carrier`: primitives that move elements move these, and those of keys give way to what they are of
the keys' words. Arguments, results and captured values change their types, not their memory: `to_carriers`
and `to_keys` read it as what it is on the other side.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Var, aval_of, sub_jaxprs
from jitcore.dtypes import KeyDtype
from jitcore.lax import bitcast_convert_type, bitwise_and, bitwise_or, complex as complex_, imag, real
from jitcore.lax.random.bit_generator import join_64_bits, split_64_bits
from jitcore.lax.random.keys import stack_words
from jitcore.passes.walk import Transform, Walk, map_inner_jaxprs, rewrite_each_once


def lower_keys(closed_jaxpr: ClosedJaxpr) -> ClosedJaxpr:
    """The program without keys."""
    return rewrite_each_once(closed_jaxpr, _lower_one)


def to_carriers(value: np.ndarray) -> np.ndarray:
    """Keys in memory as what programs take."""
    kind = dtypes.of_ndarray(value.dtype)
    return value.view(kind.carrier) if dtypes.is_key(kind) else value


def to_keys(value: np.ndarray, dtype: KeyDtype) -> np.ndarray:
    """What programs give as keys. Buffers of devices stay: the form of their Array says what they hold."""
    return value.view(dtype.dtype) if isinstance(value, np.ndarray) else value


# -- one jaxpr ----------------------------------------------------------------------------------------------
class _Keys:
    """The keys of one jaxpr.

    Attributes:
        kinds: dtype of the keys that a carrier holds.
        words: of carriers, as far as they are known."""

    def __init__(self, walk: Walk):
        self.walk, self.kinds, self.words = walk, {}, {}

    def carry(self, var: Var) -> Var:
        """The variable in the place of one that may have keys."""
        if not dtypes.is_key(var.aval.dtype):
            return var
        carrier = type(var)(var.aval.carried)
        self.kinds[carrier] = var.aval.dtype
        return carrier

    def take_words(self, carrier: Atom) -> tuple[Atom, ...]:
        if carrier not in self.words:
            self.words[carrier] = tuple(self.walk.spell(split_carrier, [carrier]))
        return self.words[carrier]

    def unwrap(self, atom: Atom) -> Atom:
        """The words of keys in one array; another atom as it is."""
        if atom not in self.kinds:
            return atom
        return self.walk.spell(lambda *words: [stack_words(words)], self.take_words(atom))[0]

    def is_wide(self, atom: Atom) -> bool:
        """Whether keys are held in floats, which do not compare as their bits do."""
        return atom in self.kinds and self.kinds[atom].n_words > 2

    def compare(self, eqn: Equation) -> list[Atom]:
        operands = [word for atom in eqn.invars for word in self.take_words(atom)]

        def run(*words):
            pairs = zip(words[: len(words) // 2], words[len(words) // 2 :])
            combine = bitwise_and if eqn.primitive.name == "eq" else bitwise_or
            return [functools.reduce(combine, [eqn.primitive.bind(*pair) for pair in pairs])]

        return self.walk.spell(run, operands)

    def join(self, words: Sequence[Atom], kind: KeyDtype) -> Atom:
        (carrier,) = self.walk.spell(lambda *parts: [join_carrier(parts)], words)
        self.kinds[carrier], self.words[carrier] = kind, tuple(words)
        return carrier

    def spell(self, eqn: Equation) -> list[Atom]:
        """What a primitive of keys is of their words."""
        kinds = [self.kinds.get(atom) for atom in eqn.invars]
        kind = eqn.params.get("impl") or kinds[0]
        operands, counts = [], []
        for atom, own in zip(eqn.invars, kinds):
            operands += [atom] if own is None else self.take_words(atom)
            counts.append(None if own is None else own.n_words)

        def run(*values):
            given = iter(values)
            arranged = [next(given) if n is None else tuple(next(given) for _ in range(n)) for n in counts]
            out = eqn.primitive.traits["on_words"](kind, *arranged, **eqn.params)
            return out if isinstance(out, tuple) else [out]

        outs = self.walk.spell(run, operands)
        return [self.join(outs, kind)] if dtypes.is_key(eqn.outvars[0].aval.dtype) else outs


def _lower_one(closed_jaxpr: ClosedJaxpr, lower: Transform) -> ClosedJaxpr:
    if not _has_keys(closed_jaxpr.jaxpr):
        return closed_jaxpr
    jaxpr, walk = closed_jaxpr.jaxpr, Walk(closed_jaxpr)
    keys = _Keys(walk)
    invars, constvars = (list(map(keys.carry, variables)) for variables in (jaxpr.invars, jaxpr.constvars))
    walk.replace(jaxpr.invars, invars)
    walk.replace(jaxpr.constvars, constvars)
    walk.constvars = list(constvars)

    def rule(walk: Walk, eqn: Equation) -> list[Atom] | None:
        if "on_words" in eqn.primitive.traits:
            return keys.spell(eqn)
        if eqn.primitive.name in ("eq", "ne") and any(map(keys.is_wide, eqn.invars)):
            return keys.compare(eqn)
        if "takes_words" in eqn.primitive.traits:
            eqn = eqn.replace(invars=list(map(keys.unwrap, eqn.invars)))
        outvars = list(map(keys.carry, eqn.outvars))
        walk.emit(map_inner_jaxprs(eqn.replace(outvars=outvars), lower))
        return outvars

    walk.run(jaxpr.eqns, rule)
    outvars = list(map(walk.read, jaxpr.outvars))
    lowered = Jaxpr(walk.constvars, invars, walk.eqns, outvars, debug_info=jaxpr.debug_info)
    return ClosedJaxpr(lowered, walk.consts)


def _has_keys(jaxpr: Jaxpr) -> bool:
    variables = [*jaxpr.constvars, *jaxpr.invars, *(var for eqn in jaxpr.eqns for var in eqn.outvars)]
    return any(dtypes.is_key(var.aval.dtype) for var in variables) or any(
        _has_keys(inner.jaxpr) for eqn in jaxpr.eqns if eqn.params for inner in sub_jaxprs(eqn.params))


def split_carrier(carrier) -> list:
    """The words of keys, lowest bits first: of 64-bit integers, or of complex numbers, whose parts are their
    bits."""
    if aval_of(carrier).dtype == dtypes.uint64:
        return list(split_64_bits(carrier))
    return [word for part in (real(carrier), imag(carrier))
            for word in split_64_bits(bitcast_convert_type(part, dtypes.uint64))]


def join_carrier(words: Sequence) -> object:
    """The inverse of `split_carrier`."""
    parts = [join_64_bits(*words[i : i + 2]) for i in range(0, len(words), 2)]
    if len(parts) == 1:
        return parts[0]
    return complex_(*(bitcast_convert_type(part, dtypes.float64) for part in parts))
