"""A user's file, type-checked and run: a heat equation fitted to data, a root, an integral, arrays of both kinds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

import jitcore
import jitcore.numpy as jnp
from jitcore import Array, lax, random, tree_util
from jitcore.typing import ArrayLike, DTypeLike


@partial(tree_util.register_dataclass, data_fields=["u", "time"], meta_fields=["spacing"])
@dataclass
class State:
    u: Array
    time: Array
    spacing: float = 0.1

    @jitcore.jit
    def energy(self, scale: float = 0.5) -> Array:
        return scale * self.spacing * jnp.sum(self.u**2)

    def total(self) -> Array:
        return self.energy(scale=1.0) + self.energy()


def laplacian(u: Array, spacing: float) -> Array:
    return (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)) / spacing**2


@jitcore.jit(static_argnames="steps")
def integrate(state: State, conductivity: ArrayLike, steps: int) -> tuple[State, Array]:
    def advance(state: State, _: None) -> tuple[State, Array]:
        change = 1e-3 * conductivity * laplacian(state.u, state.spacing)
        return replace(state, u=state.u + change, time=state.time + 1e-3), state.u.max()

    return lax.scan(advance, state, length=steps)


def misfit(conductivity: Array, state: State, data: npt.NDArray[np.float32]) -> Array:
    final, peaks = integrate(state, conductivity, steps=20)
    return jnp.mean(jnp.square(final.u - data)) + 1e-9 * peaks[-1]


def descend(function: Callable[[Array], Array], x: Array, rate: float, count: int) -> Array:
    slope = jitcore.grad(function)
    return lax.fori_loop(0, count, lambda _, x: x - rate * slope(x), x)


@jitcore.jit
def find_root(x: Array, tolerance: float = 1e-5) -> tuple[Array, Array]:
    def residual(x: Array) -> Array:
        return x * jnp.exp(x) - 1.0

    def is_far(state: tuple[Array, Array]) -> Array:
        return (jnp.abs(residual(state[0])) > tolerance) & (state[1] < 50)

    def improve(state: tuple[Array, Array]) -> tuple[Array, Array]:
        value, slope = jitcore.value_and_grad(residual)(state[0])
        return state[0] - value / slope, state[1] + 1

    return lax.while_loop(is_far, improve, (x, 0))


def estimate_pi(key: Array, count: int, dtype: DTypeLike = "float32") -> float:
    points = random.uniform(key, (count, 2), dtype=dtype, minval=-1.0)
    inside = jnp.linalg.norm(points, axis=1) < 1
    return 4.0 * float(inside.mean())


@jitcore.autojit
def smooth(signal: npt.NDArray[np.float64], passes: int = 2) -> npt.NDArray[np.float64]:
    for _ in range(passes):
        signal[1:-1] = (signal[:-2] + signal[1:-1] + signal[2:]) / 3
    return signal


def main() -> None:
    grid = np.linspace(0, 2 * np.pi, 64, endpoint=False, dtype=np.float32)
    start = State(jnp.asarray(np.sin(grid)), jnp.zeros(()), spacing=float(grid[1]))
    data = np.asarray(integrate(start, 0.8, steps=20)[0].u)
    fitted = descend(lambda c: misfit(c, start, data), jnp.array(0.5), rate=100.0, count=10)
    heights: list[Array] = [jnp.max(row) for row in jnp.outer(fitted * jnp.ones(2), start.u)]
    batch = jitcore.vmap(misfit, in_axes=(0, None, None))(jnp.linspace(0.1, 1, 4), start, data)
    root, count = find_root(jnp.float32(1.0))
    tangent = jitcore.jvp(jnp.sin, (root,), (jnp.ones_like(root),))[1]
    residuals: npt.NDArray[np.float64] = np.abs(smooth(np.array(batch, dtype=np.float64)))
    print(f"{float(fitted):.2f} {root:.4f} after {int(count)}, {start.total():.3f}", heights[0] > 0, tangent)
    print(residuals.sum(), estimate_pi(random.key(0), 1000), batch.argmin() == 3, data.shape == batch.shape)


if __name__ == "__main__":
    main()
