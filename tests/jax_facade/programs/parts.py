"""Arrays cut into a part for each device, with one device."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

COUNT = jax.local_device_count()
xs = jnp.arange(6.0).reshape(1, 6) if COUNT == 1 else jnp.ones((COUNT, 6))


@partial(jax.pmap, axis_name="batch", in_axes=(0, None), static_broadcasted_argnums=2)
def step(x, rate, power, **options):
    return lax.pmean(x, "batch") * rate**power + options["shift"], lax.axis_index("batch")


@partial(jax.pmap, axis_name="batch", donate_argnums=0)
def update(params, x):
    slope = jax.grad(lambda p: jnp.sum((p["w"] * x - 1) ** 2))(params)
    slope = lax.psum(slope, axis_name="batch")
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, slope)


replicated = jax.tree.map(lambda x: jnp.stack([x] * COUNT), {"w": jnp.ones(6)})
RESULTS = {
    "step": step(xs, 2.0, 3, shift=jnp.ones(COUNT)),
    "update": update(replicated, xs),
    "keys": jax.pmap(lambda key: jax.random.normal(key, (3,)))(jax.random.split(jax.random.PRNGKey(0), COUNT)),
    "axes": jax.pmap(lambda x, y: x @ y, in_axes=(0, 2), out_axes=1)(jnp.ones((COUNT, 2, 3)),
                                                                     jnp.ones((3, 4, COUNT))),
    "slope": jax.grad(lambda x: jax.pmap(jnp.sin)(x).sum())(xs),
    "inside": jax.jit(lambda x: jax.pmap(lambda row: row * 2)(x).sum())(xs),
}
