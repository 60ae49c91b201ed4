"""Loops and choices that depend on values, batched, differentiated and compiled."""

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, vmap


def collatz(n):
    def step(carry):
        n, count = carry
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(lambda carry: carry[0] != 1, step, (n, 0))[1]


def smooth(xs, rate):
    def step(mean, x):
        mean = (1 - rate) * mean + rate * x
        return mean, mean

    return lax.scan(step, xs[0], xs)[1]


@jit
def piecewise(x):
    index = jnp.sum(x > jnp.array([-1.0, 0.0, 1.0]))
    return lax.switch(index, [jnp.sin, jnp.cos, jnp.exp, lambda x: x * 2], x)


def power(x, n):
    return lax.fori_loop(0, n, lambda _, y: y * x, jnp.ones_like(x))


xs = jnp.array([0.5, 2.0, -1.0, 3.0, 0.25])

RESULTS = {
    "collatz": vmap(collatz)(jnp.arange(1, 12)),
    "smooth": smooth(xs, 0.3),
    "smooth backwards": lax.scan(lambda c, x: (c + x, c * x), 0.0, xs, reverse=True),
    "gradient of scan": grad(lambda xs, r: jnp.sum(smooth(xs, r) ** 2), (0, 1))(xs, 0.3),
    "piecewise": vmap(piecewise)(jnp.array([-2.0, -0.5, 0.5, 2.0])),
    "gradient of switch": vmap(grad(piecewise))(jnp.array([-2.0, -0.5, 0.5, 2.0])),
    "power": power(xs, 5),
    "jvp of fori": jax.jvp(lambda x: power(x, 4), (xs,), (jnp.ones_like(xs),)),
    "cond": [lax.cond(flag, lambda x: x + 1, lambda x: x * 10, 3.0) for flag in (True, False)],
    "mapped": lax.map(lambda x: jnp.dot(x, x), jnp.arange(6.0).reshape(3, 2)),
    "prefixes": lax.associative_scan(jnp.maximum, xs),
    "nested": jit(lambda x: lax.scan(lambda c, r: (lax.fori_loop(0, 3, lambda i, y: y + r, c), c), 0.0, x))(xs),
    "where": jnp.where(xs > 0, jnp.log(jnp.where(xs > 0, xs, 1.0)), 0.0),
    "select": lax.select(xs > 1, xs, -xs),
}
