"""A user's file, type-checked (never run): derivatives take the arguments of the function."""

from typing import assert_type

import jitcore


def loss(x: jitcore.Array, n: int) -> jitcore.Array:
    return x


def use(x: jitcore.Array) -> None:
    assert_type(jitcore.value_and_grad(loss)(x, 3), tuple[jitcore.Array, jitcore.Array])
    assert_type(jitcore.grad(loss, argnums=0)(x, n=3), jitcore.Array)
    jitcore.jit(jitcore.grad(loss))(x, 3)
    jitcore.hessian(loss, argnums=(0,))(x, n=2)
    value, f_vjp = jitcore.vjp(loss, x, 3)
    jitcore.jvp(loss, (x, 1), (x, 1))
