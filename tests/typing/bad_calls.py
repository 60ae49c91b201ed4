"""A user's file with mistakes, type-checked (never run): each marked line is found, and no other."""

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore import Array, lax, nn, random, tree_util
from jitcore.config import config


def arrays(x: Array, y: list[float]) -> None:
    x + "one"  # error: operator
    x + y  # error: operator
    x @ None  # error: operator
    x < "one"  # error: operator
    x[0] = 1  # error: index
    del x[0]  # error: attr-defined
    x["name"]  # error: index
    x[[0, 2]]  # error: index
    x.at["name"]  # error: index
    x.at[0].set("one")  # error: arg-type
    x.at[0].assign(1.0)  # error: attr-defined
    x.summ()  # error: attr-defined
    x.sum(axes=0)  # error: call-arg
    x.sum(axis="rows")  # error: arg-type
    x.mean(keepdims="yes")  # error: arg-type
    x.reshape("flat")  # error: arg-type
    x.astype()  # error: call-arg
    x.shape = (3,)  # error: misc
    x.T()  # error: operator
    x.clip(low=0)  # error: call-arg
    first: int = x[0]  # error: assignment
    rows, columns = x.size  # error: misc
    print(first)


def numpy_functions(x: Array) -> None:
    jnp.sin("x")  # error: arg-type
    jnp.sin(x, x)  # error: call-arg
    jnp.sin([1.0, 2.0])  # error: arg-type
    jnp.add(x)  # error: call-arg
    jnp.sum(x, axis=1.5)  # error: arg-type
    jnp.sum(x, out=np.ones(3))  # error: arg-type
    jnp.sum(a=x, dims=0)  # error: call-arg
    jnp.zeros()  # error: call-arg
    jnp.zeros("three")  # error: arg-type
    jnp.zeros(3, dtype=32)  # error: arg-type
    jnp.zeros(3, 4)  # error: arg-type
    jnp.concatenate(x, x)  # error: arg-type
    jnp.concatenate([x, "x"])  # error: list-item
    jnp.stack([x], axis="0")  # error: arg-type
    jnp.where(x, x)  # error: call-overload
    jnp.linspace(0, 1, "ten")  # error: call-overload
    jnp.reshape(x)  # error: call-arg
    jnp.linalg.solve(x)  # error: call-arg
    jnp.linalg.qr(x, mode=1)  # error: call-overload
    jnp.linalg.nrom(x)  # error: attr-defined
    jnp.fft.fft(x, size=8)  # error: call-arg
    jnp.sinn(x)  # error: attr-defined
    jnp.mean(x).append(1)  # error: attr-defined
    jnp.nonzero(x).astype(int)  # error: attr-defined
    q, r = jnp.linalg.svd(x)  # error: misc
    print(q, r)


def loops(x: Array) -> None:
    def step(total: Array, value: Array) -> tuple[Array, Array]:
        return total + value, total

    lax.scan(step)  # error: call-overload
    lax.scan(lambda total: total, x, x)  # error: misc
    lax.scan(step, x, x, backwards=True)  # error: call-overload
    lax.fori_loop(0, 3, step, x)  # error: arg-type
    lax.while_loop(lambda i: i < 3, lambda i: i + 1)  # error: call-overload
    lax.cond(x, jnp.sin)  # error: call-arg
    lax.add(x)  # error: call-arg
    lax.dynamic_slice(x, (0,), 2)  # error: arg-type
    lax.stop_gradient(x).apply(1)  # error: attr-defined


def keys(key: Array) -> None:
    random.normal((2, 3))  # error: arg-type
    random.normal(0)  # error: arg-type
    random.normal(key, (2, "3"))  # error: arg-type
    random.normal(key, size=3)  # error: call-arg
    random.uniform(key, minval="0")  # error: arg-type
    random.normals(key)  # error: attr-defined
    random.split(key, "two")  # error: arg-type


def network_functions(x: Array) -> None:
    nn.relu()  # error: call-arg
    nn.softmax(x, dim=-1)  # error: call-arg
    nn.one_hot(x)  # error: call-arg
    nn.gelu(x, approximate="tanh")  # error: arg-type
    nn.relu(x).detach()  # error: attr-defined
    nn.initializers.he_normal()("key", (3, 4))  # error: arg-type


def loss(x: Array, n: int) -> Array:
    return x * n


class Model:
    @jitcore.jit
    def apply(self, x: Array) -> Array:
        return x


@jitcore.jit
def scale(x: Array, factor: float = 2.0) -> Array:
    return x


def transformations(x: Array) -> None:
    scale("text")  # error: arg-type
    scale(x, fact=3.0)  # error: call-arg
    Model().apply(x, x)  # error: call-arg
    Model().apply("text")  # error: arg-type
    Model().apply(x).summ()  # error: attr-defined
    jitcore.jit(scale, static_argnum=0)  # error: call-overload
    jitcore.jit(scale, inline="yes")  # error: call-overload
    jitcore.grad(loss)(x, "3")  # error: arg-type
    jitcore.grad(loss)(x=x, n=3)  # error: call-arg
    jitcore.grad(loss, argnum=0)  # error: call-overload
    jitcore.grad(loss)(x)  # error: call-arg
    jitcore.value_and_grad(loss)(x, 3).sum()  # error: attr-defined
    jitcore.vmap(loss)(x)  # error: call-arg
    jitcore.vmap(loss, axis=0)  # error: call-arg
    jitcore.jit(jitcore.grad(loss))(x, "3")  # error: arg-type


def others() -> None:
    tree_util.tree_flatten()  # error: call-arg
    config.update("jax_enable_x64")  # error: call-arg
    jitcore.gard  # error: attr-defined


def returns_a_number(x: Array) -> float:
    return x.sum()  # error: return-value
