"""A user's file, type-checked (never run): derivatives take the arguments of the function."""

from typing import Any, assert_type

import jitcore


def loss(x: jitcore.Array, n: int) -> jitcore.Array:
    return x


def use(x: jitcore.Array) -> None:
    assert_type(jitcore.value_and_grad(loss)(x, 3), tuple[jitcore.Array, Any])
    assert_type(jitcore.grad(loss, argnums=0)(x, n=3), Any)
    jitcore.grad(loss)(x, "3")  # type: ignore[arg-type]
    jitcore.grad(loss, argnum=0)  # type: ignore[call-arg]
    jitcore.jit(jitcore.grad(loss))(x, 3)
    jitcore.hessian(loss, argnums=(0,))(x, n=2)
    value, f_vjp = jitcore.vjp(loss, x, 3)
    jitcore.jvp(loss, (x, 1), (x, 1))
