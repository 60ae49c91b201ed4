"""What `jit` takes and gives, stages, batches and shapes, calls of Python."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import jit, make_jaxpr, vmap
from jax.experimental import io_callback

traces, seen = [], []


@partial(jit, static_argnames="n")
def powers(x, n):
    traces.append(n)
    return jnp.stack([x**k for k in range(n)])


@jit
def with_callback(x):
    y = jax.pure_callback(lambda v: np.asarray(v) ** 2, jax.ShapeDtypeStruct.like(x), x, vmap_method="sequential")
    return y + 1


@jit
def with_log(x):
    io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
    return 2 * x


def failing(x):
    if x > 0:
        return x
    return -x


def name_error(function, *args):
    try:
        function(*args)
    except jax.errors.ConcretizationTypeError as error:
        return isinstance(error, TypeError)
    return None


x = jnp.array([1.0, 2.0, 3.0])
lowered = jit(lambda a, b: a @ b).lower(jax.ShapeDtypeStruct((2, 3), jnp.float32), x)

RESULTS = {
    "powers": (powers(x, n=3), powers(2 * x, n=3), powers(x, n=2)),
    "traces": len(traces),
    "compiled": lowered.compile()(jnp.ones((2, 3)), x),
    "callback": (with_callback(x), vmap(with_callback)(x)),
    "logged": (with_log(4.0), jax.effects_barrier(), list(seen)),
    "decides": name_error(jit(failing), 1.0),
    "equations": [str(eqn.primitive) for eqn in make_jaxpr(lambda x: jnp.sin(x) * 2 + x)(1.0).eqns],
    "shapes": jax.eval_shape(lambda a, b: a @ b, jnp.ones((4, 3)), x).shape,
    "batch": vmap(vmap(jnp.dot, (None, 1)), (0, None))(jnp.eye(3), jnp.arange(6.0).reshape(3, 2)),
    "axis": vmap(lambda v: v / jax.lax.psum(v, "i"), axis_name="i")(x),
    "out axis": vmap(lambda v: (v, 2 * v), out_axes=1)(jnp.eye(3)),
    "types": (str(jnp.arange(3).dtype), str((x * 2).dtype), str(jnp.result_type(jnp.int8, 1.0)), str(jnp.float32(1).dtype)),
    "donated": jit(lambda v: v + 1, donate_argnums=0)(jnp.zeros(2)),
    "disabled": None,
}
with jax.disable_jit():
    RESULTS["disabled"] = jit(failing)(-2.0)
