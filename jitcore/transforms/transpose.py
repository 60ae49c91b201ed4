"""Reverse mode: transposition of linear jaxprs.

In: a jaxpr that is linear in some inputs, the values of the others, cotangents of its outputs. Out:
cotangents of the linear inputs, in primitives of the current trace.

The rule of a primitive is `rule(primitive, cotangents, operands, **params)`. An operand is a value, or
`Linear` where its cotangent is asked for. A primitive with one result gets its cotangent, one with several a
list in which some may be `Zero`. The rule returns one entry for each operand: a cotangent of its type, a
`Zero`, or None (for operands that are no `Linear`). The rule of a primitive with the trait `takes_masks` may
get and return `Masked` cotangents. Primitives that move elements say in the trait `zeros` where zeros come
from: "made" where elements are left out, "kept" where they are those of the cotangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, ShapedArray, Var, keep_with_jaxpr
from jitcore.core.trace import trace_to_jaxpr
from jitcore.errors import derivatives
from jitcore.transforms.tangents import (Masked, Zero, add_derivatives, instantiate, is_zero, make_sparse,
                                         tangent_aval, unmask)

Flags = Sequence[bool]


class Linear(NamedTuple):
    """An operand in which an application is linear, and whose cotangent is asked for."""

    aval: ShapedArray


def is_linear(operand) -> bool:
    return isinstance(operand, Linear)


def transpose(jaxpr: Jaxpr, consts: Sequence, operands: Sequence, cotangents: Sequence) -> list:
    """The cotangents of a jaxpr's inputs.

    Args:
        operands: one for each input: its value, or `Linear`.
        cotangents: one for each output, some may be `Zero`.

    Returns: for each input a cotangent or `Zero`; None where the operand was a value.
    Raises: NotImplementedError for a primitive that is not linear."""
    values: dict[Var, object] = dict(zip(jaxpr.constvars, consts))
    values.update((var, x) for var, x in zip(jaxpr.invars, operands) if not is_linear(x))

    def read(atom):
        if isinstance(atom, Literal):
            return atom.to_operand()
        return values[atom] if atom in values else Linear(atom.aval)

    linear_eqns = []
    for eqn in jaxpr.eqns:
        args = list(map(read, eqn.invars))
        if any(map(is_linear, args)):
            linear_eqns.append((eqn, args))
            continue
        values.update(zip(eqn.outvars, eqn.primitive.bind_all(*args, **eqn.params)))

    found: dict[Var, object] = {}

    def accumulate(atom, cotangent) -> None:
        if cotangent is None or is_zero(cotangent) or isinstance(atom, Literal) or atom in values:
            return
        found[atom] = add_derivatives(found[atom], cotangent) if atom in found else cotangent

    for atom, cotangent in zip(jaxpr.outvars, cotangents):
        accumulate(atom, cotangent)
    for eqn, args in reversed(linear_eqns):
        given = [found.pop(var, None) for var in eqn.outvars]
        if all(cotangent is None for cotangent in given):
            continue
        given = [Zero(tangent_aval(var.aval)) if cotangent is None else cotangent
                 for var, cotangent in zip(eqn.outvars, given)]
        if eqn.primitive.transpose is None:
            where = source.format_snippet(eqn.source_info)
            raise derivatives.missing_transpose_error(str(eqn.primitive), where=where)
        is_sparse = _makes_sparse(eqn.primitive, given)
        if not eqn.primitive.traits.get("takes_masks"):
            given = list(map(unmask, given))
        one_or_all = given if eqn.primitive.multiple_results else given[0]
        for atom, cotangent in zip(eqn.invars, eqn.primitive.transpose(
                eqn.primitive, one_or_all, args, **eqn.params)):
            is_value = cotangent is not None and not is_zero(cotangent)
            accumulate(atom, make_sparse(cotangent) if is_sparse and is_value else cotangent)
    return [unmask(found.get(var, Zero(tangent_aval(var.aval)))) if is_linear(x) else None
            for var, x in zip(jaxpr.invars, operands)]


def _makes_sparse(primitive, cotangents: Sequence) -> bool:
    zeros = primitive.traits.get("zeros")
    return zeros == "made" or (zeros == "kept" and any(isinstance(ct, Masked) for ct in cotangents))


def leaves_out(jaxpr: Jaxpr) -> bool:
    """Whether some equation of a jaxpr leaves elements out, so that cotangents are zero there."""
    return any(eqn.primitive.traits.get("zeros") == "made" for eqn in jaxpr.eqns)


def is_elementwise(jaxpr: Jaxpr, in_linear: Flags) -> bool:
    """Whether the transposition of a jaxpr maps each element of the cotangents by itself."""
    shapes = {var.aval.shape for var, flag in zip(jaxpr.invars, in_linear) if flag}
    shapes.update(var.aval.shape for eqn in jaxpr.eqns for var in eqn.outvars)
    return len(shapes) == 1 and all(eqn.primitive.partial is None and eqn.primitive.traits.get("takes_masks")
                                    for eqn in jaxpr.eqns)


# -- jaxprs -------------------------------------------------------------------------------------------------
def transpose_jaxpr(closed: ClosedJaxpr, in_linear: Flags, ct_nonzero: Flags,
                    in_wanted: Flags | None = None) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr of a transposition.

    Args:
        in_linear: the inputs whose cotangents are asked for.
        ct_nonzero: the outputs that have a cotangent other than zero.
        in_wanted: inputs (among the linear ones) that shall have a cotangent even if it is zero.

    Returns: (jaxpr, which of the linear inputs have a cotangent). Its inputs are the values of the other
        inputs, then the cotangents that there are; its outputs the cotangents that there are."""
    wanted = (False,) * sum(in_linear) if in_wanted is None else tuple(in_wanted)
    jaxpr, nonzero = _trace_transpose(closed, tuple(in_linear), tuple(ct_nonzero), wanted)
    return jaxpr, list(nonzero)


@keep_with_jaxpr
def _trace_transpose(closed: ClosedJaxpr, in_linear: Flags, ct_nonzero: Flags, wanted: Flags):
    values = [aval for aval, flag in zip(closed.in_avals, in_linear) if not flag]
    ct_avals = [tangent_aval(aval) for aval, flag in zip(closed.out_avals, ct_nonzero) if flag]
    nonzero: list[bool] = []

    def run(*args):
        given, cts = iter(args[: len(values)]), iter(args[len(values) :])
        operands = [Linear(aval) if flag else next(given) for aval, flag in zip(closed.in_avals, in_linear)]
        cotangents = [next(cts) if flag else Zero(tangent_aval(aval))
                      for aval, flag in zip(closed.out_avals, ct_nonzero)]
        found = transpose(closed.jaxpr, closed.consts, operands, cotangents)
        found = [ct for ct, flag in zip(found, in_linear) if flag]
        nonzero.extend(want or not is_zero(ct) for ct, want in zip(found, wanted))
        return [instantiate(ct) for ct, flag in zip(found, nonzero) if flag]

    jaxpr, consts = trace_to_jaxpr(run, [*values, *ct_avals], closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(nonzero)
