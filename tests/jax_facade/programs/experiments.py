"""Of `jax.experimental`: checks, sparse arrays, Taylor series, differential equations, rules for batches."""

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental import checkify, sparse
from jax.experimental.jet import jet
from jax.experimental.ode import odeint


def checked_mean(x, n):
    checkify.check(n > 0, "n is {n}", n=n)
    return jnp.sum(x) / n


def first_error(function, *args, errors=checkify.user_checks):
    error, _ = jax.jit(checkify.checkify(function, errors=errors))(*args)
    return error.get()


@custom_vmap
def row_times(a, v):
    return a @ v


@row_times.def_vmap
def row_times_batched(size, in_batched, a, v):
    a = a if in_batched[0] else jnp.broadcast_to(a, (size, *a.shape))
    v = v if in_batched[1] else jnp.broadcast_to(v, (size, *v.shape))
    return jnp.sum(a * v, -1), True


dense = jnp.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
matrix = sparse.BCOO.fromdense(dense)
v = jnp.array([1.0, -1.0, 0.5])


def swing(state, t, damping):
    angle, speed = state
    return speed, -jnp.sin(angle) - damping * speed


def swing_to(damping):
    return odeint(swing, (1.0, 0.0), jnp.linspace(0.0, 3.0, 4), damping, rtol=1e-5, atol=1e-5)[0]


RESULTS = {
    "checks": (first_error(checked_mean, v, jnp.int32(0)), first_error(checked_mean, v, jnp.int32(2)),
               first_error(lambda x: jnp.log(x), -v, errors=checkify.float_checks),
               first_error(lambda x: 1 / x, dense, errors=checkify.div_checks)),
    "sparse": (matrix @ v, matrix.T @ jnp.ones(2), matrix.sum(0).todense(), (matrix * 2).todense(),
               sparse.sparsify(lambda m, x: jnp.sin(m) @ x)(matrix, v), sparse.grad(lambda m: jnp.sum((m @ v) ** 2))(matrix).data),
    "taylor": jet(lambda x, y: jnp.exp(x) * jnp.sin(y), (0.2, 0.3), ([1.0, 0.0, 0.5], [1.0, 2.0, 0.0])),
    "equation": jax.jit(swing_to)(0.3),
    "adjoint": jax.jit(jax.grad(lambda d: swing_to(d)[-1]))(0.3),
    "batched": jax.vmap(row_times, (None, 0))(v, jnp.eye(3)),
}
