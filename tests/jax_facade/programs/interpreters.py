"""Programs that read jaxprs: run equation by equation, inverted, counted."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core


def interpret(closed, *args):
    """Runs a jaxpr, and notes which primitives it applied."""
    jaxpr, values, seen = closed.jaxpr, {}, []

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    values.update(zip(jaxpr.constvars, closed.consts))
    values.update(zip(jaxpr.invars, args))
    for equation in jaxpr.eqns:
        outs = equation.primitive.bind(*map(read, equation.invars), **equation.params)
        values.update(zip(equation.outvars, outs if equation.primitive.multiple_results else [outs]))
        seen.append(equation.primitive.name)
    return list(map(read, jaxpr.outvars)), seen


def invert(closed, out):
    """The argument for which a chain of functions gives `out`."""
    inverses = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh, lax.neg_p: jnp.negative}
    for equation in reversed(closed.jaxpr.eqns):
        out = inverses[equation.primitive](out)
    return out


chain = jax.make_jaxpr(lambda x: -jnp.exp(jnp.tanh(x)))(1.0)
model = jax.make_jaxpr(lambda x, y: (jnp.sin(x) * y + 2.0, jnp.sum(y)))(1.0, jnp.ones(3))
outs, seen = interpret(model, 0.5, jnp.arange(3.0))

RESULTS = {
    "interpreted": outs,
    "primitives": [name for name in seen if name in ("sin", "mul", "add", "reduce_sum")],
    "inverted": invert(chain, -jnp.exp(jnp.tanh(0.25))),
    "function": core.jaxpr_as_fun(model)(0.5, jnp.arange(3.0)),
    "types": [type(model) is core.ClosedJaxpr, type(model.jaxpr) is core.Jaxpr, len(model.literals)],
}
