"""Derivatives in all modes, with rules of one's own, and what can be done with them."""

import jax
import jax.numpy as jnp
from jax import custom_jvp, custom_vjp, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


@custom_jvp
def safe_root(x):
    return jnp.sqrt(x)


@safe_root.defjvp
def safe_root_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    root = safe_root(x)
    return root, jnp.where(x > 0, dx / (2 * jnp.where(x > 0, root, 1.0)), 0.0)


@custom_vjp
def clip_gradient(x):
    return x


clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -0.5, 0.5),))


def energy(p, q):
    return jnp.sum(p**2) / 2 + jnp.sum(jnp.cos(q)) * jnp.prod(jnp.exp(-q))


p, q = jnp.array([0.3, -0.2, 0.9]), jnp.array([0.1, 0.7, -0.4])
value, push = linearize(energy, p, q)
value_too, pull = vjp(energy, p, q)


def newton_root(f, x, steps=8):
    return jax.lax.fori_loop(0, steps, lambda _, x: x - f(x) / grad(f)(x), x)


RESULTS = {
    "grad": grad(energy, (0, 1))(p, q),
    "jvp": jvp(energy, (p, q), (q, p)),
    "push": push(q, p),
    "pull": pull(1.0),
    "hessian": hessian(energy, 1)(p, q),
    "hessian by reverse mode": jacrev(grad(energy, 1), 1)(p, q),
    "jacobian": jacfwd(lambda x: jnp.outer(x, x) @ x)(p),
    "third": grad(grad(grad(jnp.tanh)))(0.7),
    "each": vmap(grad(lambda x: jnp.sin(x) * x))(q),
    "root at zero": vmap(grad(safe_root))(jnp.array([0.0, 4.0])),
    "clipped": grad(lambda x: jnp.sum(3 * clip_gradient(x)))(p),
    "checkpointed": grad(lambda x: jnp.sum(jax.checkpoint(jnp.sin)(x) ** 2))(p),
    "newton": newton_root(lambda x: x**3 - 2.0, 1.0),
    "complex": grad(lambda z: jnp.abs(z) ** 2)(1.5 + 2j),
    "stopped": grad(lambda x: x * jax.lax.stop_gradient(x))(3.0),
    "auxiliary": grad(lambda x: (x**2, {"cube": x**3}), has_aux=True)(2.0),
    "per example": vmap(grad(lambda w, x: jnp.tanh(w @ x)), (None, 0))(p, jnp.eye(3)),
}
