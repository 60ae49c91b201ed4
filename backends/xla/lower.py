"""From a jaxpr to the text of a StableHLO module.

In: a `ClosedJaxpr` without symbolic extents. Out: text. A primitive says what it is in StableHLO by its rule
`hlo`: `hlo(builder, *values, **params) -> value(s)`. Elementwise ones need none: their `lower` serves, and
`hlo` is the name of the operation, where StableHLO has one."""

from __future__ import annotations

from collections.abc import Sequence

from jitcore import dtypes
from jitcore.backends.xla.builder import HloBuilder, HloValue
from jitcore.backends.xla.open_shapes import is_open
from jitcore.backends.xla.scalars import apply_scalar
from jitcore.core.jaxpr import ClosedJaxpr, DropVar, Equation, Literal, sub_jaxprs
from jitcore.core.primitive import Primitive
from jitcore.core.trace import to_numpy


def lower_module(closed_jaxpr: ClosedJaxpr, target: str, name: str = "jitcore",
                 takes_platform: bool = False) -> str:
    """A module whose function `main` computes the outputs of the jaxpr from its inputs, behind the number of
    a platform where it is given one."""
    b = HloBuilder(lower_jaxpr, apply_scalar, target)
    arguments = [b.name_value(aval.shape, aval.dtype) for aval in closed_jaxpr.in_avals]
    outs = lower_jaxpr(b, closed_jaxpr, arguments)
    names, kinds = (", ".join(getattr(out, part) for out in outs) for part in ("name", "type"))
    platform = [b.name_value((), dtypes.int32)] if takes_platform else []
    listed = ", ".join(f"{value.name}: {value.type}" for value in platform + arguments)
    body = "".join(f"    {line}\n" for line in b.lines)
    end = f"    func.return {names} : {kinds}\n" if outs else "    func.return\n"
    return f"module @{name} {{\n  func.func public @main({listed}) -> ({kinds}) {{\n{body}{end}  }}\n}}\n"


def lower_jaxpr(b: HloBuilder, closed_jaxpr: ClosedJaxpr, operands: Sequence[HloValue]) -> list[HloValue]:
    """Writes the equations of a jaxpr. Returns: its outputs."""
    jaxpr = closed_jaxpr.jaxpr
    env = dict(zip(jaxpr.invars, operands))
    for var, const in zip(jaxpr.constvars, closed_jaxpr.consts):
        env[var] = b.constant(to_numpy(const), var.aval.dtype)

    def read(atom) -> HloValue:
        return b.constant(atom.to_numpy()) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns:
        outs = lower_equation(b, eqn, [read(atom) for atom in eqn.invars])
        env.update((var, out) for var, out in zip(eqn.outvars, outs) if not isinstance(var, DropVar))
    return [read(atom) for atom in jaxpr.outvars]


def lower_equation(b: HloBuilder, eqn: Equation, operands: Sequence[HloValue]) -> list[HloValue]:
    primitive = eqn.primitive
    if not is_elementwise(primitive):
        outs = primitive.hlo(b, *operands, **eqn.params)
        return list(outs) if primitive.multiple_results else [outs]
    shape = eqn.outvars[0].aval.shape
    outs = primitive.lower(b, *operands, **eqn.params)
    return [b.broadcast(outs, shape) if outs.shape != shape else outs]


def is_elementwise(primitive: Primitive) -> bool:
    """Whether a primitive works on each element: then its rule of lowering asks for nothing but scalar
    operations, which the builder has."""
    return primitive.traits.get("family") == "elementwise" and primitive.lower is not None


#: Functions that XLA has for TPUs. The formulas of `scalars` need float64 there or, for products without
#: rounding, so many operations that the compiler, which repeats them for each use, does not come to an end.
TPU_FUNCTIONS = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i0e", "bessel_i1e", "cosh", "digamma", "erf",
    "erf_inv", "erfc", "exp2", "lgamma", "log10", "log2", "log_ndtr", "ndtri", "polygamma", "sinh", "tan",
    "zeta"))


def has_rule(eqn: Equation, target: str) -> bool:
    """Whether an equation can be written as StableHLO for a target, with all that it holds."""
    if is_open(eqn):
        return False
    if not callable(eqn.primitive.hlo) and not is_elementwise(eqn.primitive):
        return False
    if target == "tpu" and eqn.primitive.name in TPU_FUNCTIONS:
        return False
    return all(has_rule(inner, target) for jaxpr in sub_jaxprs(eqn.params) for inner in jaxpr.eqns)
