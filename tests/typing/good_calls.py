"""A user's file, type-checked and run: what calls of each kind give."""

from typing import Any, assert_type

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore import Array, lax, nn, random
from jitcore.typing import ArrayLike


def arithmetic(x: Array, y: np.ndarray, n: int) -> None:
    assert_type(x + 1, Array)
    assert_type(2.0 * x - n, Array)
    assert_type(1j / x, Array)
    assert_type(x @ y, Array)
    assert_type(-x**2 % 3 // 2, Array)
    assert_type(x == y, Array)
    assert_type(0 < x, Array)
    assert_type((x > 0) & ~(x < 1) | True, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type(abs(x), Array)
    assert_type(round(x, 2), Array)
    assert_type(float(x[0]) + int(x[0]) + len(x), float)
    x += 1
    for row in x:
        assert_type(row, Array)
    if x.ndim > 1 and x.any():
        print(f"{x[0, 0]:.3f}", list(range(10))[x[0, 0]])


def elements(x: Array, mask: Array) -> None:
    assert_type(x[0], Array)
    assert_type(x[..., None, 1:-1, ::2], Array)
    assert_type(x[mask], Array)
    assert_type(x[np.array([0, 2])], Array)
    assert_type(x[jnp.arange(3), [0, 1, 2]], Array)
    assert_type(x.at[1:, 0].add(2.0), Array)
    assert_type(x.at[mask].multiply(2, mode="drop"), Array)
    assert_type(x.at[0].get(mode="fill", fill_value=0), Array)


def methods(x: jnp.ndarray) -> None:
    rows, columns = x.shape
    assert_type(rows * columns, int)
    assert_type(x.reshape(-1).T.sum(axis=0, keepdims=True), Array)
    assert_type(x.reshape((rows, -1)).mean((0, 1)), Array)
    assert_type(x.astype("float32").transpose(1, 0), Array)
    assert_type(x.astype(np.int32).transpose((1, 0)).copy(), Array)
    assert_type(x.std(ddof=1).clip(0, 1).item(), Any)
    assert_type(x.nonzero(), tuple[Array, ...])
    assert_type(x.dtype == jnp.float32, bool)
    assert_type(x.block_until_ready(), Array)
    np.testing.assert_allclose(np.asarray(x), x)


def numpy_functions(x: Array, y: ArrayLike) -> None:
    assert_type(jnp.sin(y), Array)
    assert_type(jnp.add(x, 1), Array)
    assert_type(jnp.add.reduce(x, axis=1), Array)
    assert_type(jnp.maximum.outer(x, x), Array)
    assert_type(jnp.where(x > 0, x, 0), Array)
    assert_type(jnp.where(x > 0), tuple[Array, ...])
    assert_type(jnp.array([[1, 2], [3.0, 4]], dtype=jnp.bfloat16), Array)
    assert_type(jnp.float32(3), Array)
    assert_type(jnp.zeros((3, 1), int) + jnp.ones_like(x, dtype=bool), Array)
    assert_type(jnp.linspace(0, 1, 5), Array)
    assert_type(jnp.linspace(0, 1, 5, retstep=True), tuple[Array, Array])
    assert_type(jnp.concatenate([x, jnp.asarray(y)], axis=-1), Array)
    assert_type(jnp.stack([x, x]) + jnp.vstack((x[0], x[1], x[2])), Array)
    assert_type(jnp.split(x, 3), list[Array])
    assert_type(jnp.split(x, [1, 2]), list[Array])
    assert_type(jnp.meshgrid(x[0], x[1], indexing="ij"), list[Array])
    assert_type(jnp.mgrid[0:3, 0:5], Array)
    assert_type(jnp.einsum("ij,jk->ik", x, y), Array)
    assert_type(jnp.unique(x), Array)
    assert_type(jnp.pad(x, ((1, 1), (0, 0)), mode="edge"), Array)
    assert_type(jnp.histogram(x, bins=20), tuple[Array, Array])
    assert_type(jnp.take(x, [0, 1], axis=1), Array)
    assert_type(jnp.quantile(x, 0.5, axis=0), Array)
    assert_type(jnp.shape(y), tuple[int, ...])
    assert_type(x * float(jnp.finfo(x.dtype).eps), Array)
    assert_type(jnp.sum(x, where=x > 0, initial=1), Array)
    assert_type(jnp.allclose(x, y), Array)
    assert_type(jnp.pi * x + jnp.inf, Array)
    assert_type(jnp.arange(10)[:, jnp.newaxis], Array)


def linear_algebra(a: Array, b: Array) -> None:
    q, r = jnp.linalg.qr(a)
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    assert_type((u * s) @ vh + q @ r, Array)
    assert_type(jnp.linalg.svd(a, compute_uv=False), Array)
    assert_type(jnp.linalg.eigh(a).eigenvalues, Array)
    assert_type(jnp.linalg.norm(a, ord=2, axis=(0, 1)), Array)
    assert_type(jnp.linalg.solve(a, b) + jnp.linalg.lstsq(a, b)[0], Array)
    assert_type(jnp.fft.irfft(jnp.fft.rfft(b), n=8), Array)


def loops(x: Array, v: Array, n: int) -> None:
    def body(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return carry[0] + i, carry[1] * i

    def move(carry: tuple[Array, Array], xs: Array) -> tuple[tuple[Array, Array], Array]:
        return (carry[1], xs), carry[0]

    assert_type(lax.fori_loop(0, n, lambda i, total: total + v[i], 0.0), Array)
    assert_type(lax.fori_loop(0, n, lambda i, total: total + i, x), Array)
    assert_type(lax.fori_loop(0, n, body, (x, x)), tuple[Array, Array])
    assert_type(lax.fori_loop(0, n, body, (0, x)), tuple[Array, Array])
    assert_type(lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x), Array)
    assert_type(lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1), Array)
    assert_type(lax.scan(move, (v, v), x), tuple[tuple[Array, Array], Array])
    assert_type(lax.scan(move, (0.0, v[0]), v), tuple[tuple[Array, Array], Array])
    assert_type(lax.scan(lambda total, value: (total + value, total), v, x), tuple[Array, Array])
    assert_type(lax.scan(lambda total, value: (total + value, None), 0.0, v)[0], Array)
    assert_type(lax.scan(lambda total, _: (total * 2, total), x, length=5), tuple[Array, Array])
    assert_type(lax.cond(v[0] > 0, lambda v: v + x, lambda v: v - x, x), Any)
    assert_type(lax.cond(v[0] > 0, jnp.sin, jnp.cos, x), Array)
    assert_type(lax.switch(n, [jnp.sin, jnp.cos], x), Array)
    assert_type(lax.map(jnp.sum, x), Array)
    assert_type(lax.map(lambda row: row.sum(), x), Array)
    assert_type(lax.associative_scan(jnp.add, x), Array)
    assert_type(lax.associative_scan(lambda a, b: a * b, x, reverse=True), Array)
    assert_type(lax.dynamic_slice(x, (0, n), (2, 2)), Array)
    assert_type(lax.stop_gradient((x, n)), tuple[Array, int])
    assert_type(lax.top_k(x, 3), list[Array])


def random_numbers(key: Array, old_key: Array) -> None:
    first, second = random.split(key)
    assert_type(first, Array)
    assert_type(random.split(old_key, 3), Array)
    assert_type(random.fold_in(second, 3), Array)
    assert_type(random.normal(first, (2, 3), dtype=jnp.float16), Array)
    assert_type(random.uniform(old_key, minval=-1), Array)
    assert_type(random.choice(first, 10, (3,), replace=False), Array)
    assert_type(random.randint(first, (3,), 0, 10), Array)


def network_functions(x: Array) -> None:
    assert_type(nn.softmax(nn.relu(x), axis=(0, 1)), Array)
    assert_type(nn.gelu(x, approximate=False) + nn.silu(1.0), Array)
    assert_type(nn.one_hot(x, 10, dtype=jnp.int8), Array)
    assert_type(nn.logsumexp(x, axis=-1, keepdims=True), Array)
    assert_type(nn.logsumexp(x, return_sign=True), tuple[Array, Array])


def energy(x: Array, scale: float = 1.0) -> Array:
    return (x**2).sum() * scale


def gradient(x: Array) -> Array:
    return jitcore.grad(energy)(x, scale=2.0)


def transformations(x: Array, weights: dict[str, Array]) -> None:
    def total(parameters: dict[str, Array], x: ArrayLike) -> Array:
        return (parameters["w"] * x).sum()

    assert_type(jitcore.jit(energy)(x, scale=2.0), Array)
    assert_type(jitcore.vmap(energy, in_axes=(0, None))(x, 2.0), Array)
    assert_type(jitcore.grad(total)(weights, x), dict[str, Array])
    assert_type(jitcore.value_and_grad(total)(weights, 1.0), tuple[Array, dict[str, Array]])
    assert_type(jitcore.grad(total, argnums=(0, 1))(weights, x), Any)
    print(jitcore.grad(lambda x: x**2)(3.0))
    assert_type(jitcore.jit(jitcore.vmap(jitcore.grad(energy)))(x), Array)
    assert_type(jitcore.hessian(energy)(x), Any)
    assert_type(jitcore.device_get(x), Any)
