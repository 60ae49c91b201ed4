"""The classes that jaxprs consist of, and a jaxpr as a function, by the names of `jax.extend.core`.

In: a closed jaxpr. Out: its parts, whose attributes are JAX's: `eqns`, `invars`, `primitive`, `params`,
`val`.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore.core.jaxpr import ClosedJaxpr, Equation as JaxprEqn, Jaxpr, Literal, Var, eval_jaxpr

__all__ = ["ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Var", "jaxpr_as_fun"]


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list]:
    """The function that a jaxpr is: of flat operands, with a list of results.

    Source: jax.extend.core.jaxpr_as_fun."""
    return lambda *operands: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, operands)
