"""Models of physics as people write them in NumPy: hundreds of operations on slices of arrays, which are
written in place. For other libraries the same text writes by `.at[...]`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable

import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.workload import Workload


# -- an ocean's mixing: along surfaces of equal density, and implicitly in depth ----------------------------
def mix_ocean(temperature, salinity, u, v, energy, mask, dt, dx, dz):
    """One step. Arrays are of longitude, latitude and depth, the bottom first."""
    temperature, salinity, u, v = temperature.copy(), salinity.copy(), u.copy(), v.copy()
    expansion = 0.2 + 0.01 * temperature - 1e-4 * temperature**2
    contraction = 0.78 - 1e-3 * temperature
    t_x, s_x = np.zeros_like(temperature), np.zeros_like(temperature)
    t_y, s_y = np.zeros_like(temperature), np.zeros_like(temperature)
    t_z, s_z = np.zeros_like(temperature), np.zeros_like(temperature)
    t_x[:-1] = mask[1:] * mask[:-1] * (temperature[1:] - temperature[:-1]) / dx
    s_x[:-1] = mask[1:] * mask[:-1] * (salinity[1:] - salinity[:-1]) / dx
    t_y[:, :-1] = mask[:, 1:] * mask[:, :-1] * (temperature[:, 1:] - temperature[:, :-1]) / dx
    s_y[:, :-1] = mask[:, 1:] * mask[:, :-1] * (salinity[:, 1:] - salinity[:, :-1]) / dx
    t_z[:, :, :-1] = mask[:, :, :-1] * (temperature[:, :, 1:] - temperature[:, :, :-1]) / dz
    s_z[:, :, :-1] = mask[:, :, :-1] * (salinity[:, :, 1:] - salinity[:, :, :-1]) / dz

    # fluxes by triads: the slope between a point, a neighbour beside it and one above or below
    east_t, north_t, top_t = np.zeros_like(t_x), np.zeros_like(t_x), np.zeros_like(t_x)
    east_s, north_s, top_s = np.zeros_like(t_x), np.zeros_like(t_x), np.zeros_like(t_x)
    k_33 = np.zeros_like(t_x)
    for up in range(2):
        rows = slice(up, -2 + up)
        below_t, below_s = t_z[1:-1, 1:-1, rows], s_z[1:-1, 1:-1, rows]
        a, b = expansion[1:-1, 1:-1, 1:-1], contraction[1:-1, 1:-1, 1:-1]
        density_z = np.minimum(b * below_s - a * below_t, -1e-6)
        for side in range(2):
            x = (slice(side, -2 + side), slice(1, -1), slice(1, -1))
            slope = -(b * s_x[x] - a * t_x[x]) / density_z
            taper = 0.5 * (1.0 + np.tanh((1e-2 - np.abs(slope)) / 1e-3))
            east_t[1:-1, 1:-1, 1:-1] += 250.0 * taper * (t_x[x] + slope * below_t)
            east_s[1:-1, 1:-1, 1:-1] += 250.0 * taper * (s_x[x] + slope * below_s)
            top_t[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope * t_x[x]
            top_s[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope * s_x[x]
            k_33[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope**2
            y = (slice(1, -1), slice(side, -2 + side), slice(1, -1))
            slope = -(b * s_y[y] - a * t_y[y]) / density_z
            taper = 0.5 * (1.0 + np.tanh((1e-2 - np.abs(slope)) / 1e-3))
            north_t[1:-1, 1:-1, 1:-1] += 250.0 * taper * (t_y[y] + slope * below_t)
            north_s[1:-1, 1:-1, 1:-1] += 250.0 * taper * (s_y[y] + slope * below_s)
            top_t[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope * t_y[y]
            top_s[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope * s_y[y]
            k_33[1:-1, 1:-1, 1:-1] += 250.0 * taper * slope**2
    temperature[1:-1, 1:-1, 1:-1] += dt * mask[1:-1, 1:-1, 1:-1] * (
        (east_t[1:-1, 1:-1, 1:-1] - east_t[:-2, 1:-1, 1:-1]) / dx
        + (north_t[1:-1, 1:-1, 1:-1] - north_t[1:-1, :-2, 1:-1]) / dx
        + (top_t[1:-1, 1:-1, 1:-1] - top_t[1:-1, 1:-1, :-2]) / dz)
    salinity[1:-1, 1:-1, 1:-1] += dt * mask[1:-1, 1:-1, 1:-1] * (
        (east_s[1:-1, 1:-1, 1:-1] - east_s[:-2, 1:-1, 1:-1]) / dx
        + (north_s[1:-1, 1:-1, 1:-1] - north_s[1:-1, :-2, 1:-1]) / dx
        + (top_s[1:-1, 1:-1, 1:-1] - top_s[1:-1, 1:-1, :-2]) / dz)

    # turbulence: shear makes it, stratification eats it
    buoyancy, shear = np.zeros_like(t_x), np.zeros_like(t_x)
    lighter, heavier = expansion[:, :, :-1] * t_z[:, :, :-1], contraction[:, :, :-1] * s_z[:, :, :-1]
    buoyancy[:, :, :-1] = 1e-2 * (lighter - heavier)
    shear[:, :, :-1] = ((u[:, :, 1:] - u[:, :, :-1]) / dz) ** 2 + ((v[:, :, 1:] - v[:, :, :-1]) / dz) ** 2
    root = np.sqrt(np.maximum(energy, 0.0))
    length = 2.0**0.5 * root / np.sqrt(np.maximum(buoyancy, 1e-8))
    length[:, :, 0] = np.minimum(length[:, :, 0], 0.5 * dz)
    length[:, :, -1] = np.minimum(length[:, :, -1], 0.5 * dz)
    length[:, :, :-1] = np.minimum(length[:, :, :-1], length[:, :, 1:] + dz)
    viscosity = np.clip(0.1 * length * root, 1e-4, 10.0)
    richardson = np.maximum(0.0, buoyancy / np.maximum(shear, 1e-12))
    prandtl = np.clip(6.6 * richardson, 1.0, 10.0)
    diffusivity = viscosity / prandtl
    source = viscosity * shear - diffusivity * buoyancy
    source[:, :, -1] += 1e-3 * np.sqrt(u[:, :, -1] ** 2 + v[:, :, -1] ** 2)
    energy = diffuse(energy + dt * source, viscosity, dt * 0.7 * root / length, mask, dt, dz)
    bottom = np.zeros_like(t_x)
    bottom[:, :, 0] = dt * 1e-3 / dz
    u = diffuse(u, viscosity, bottom, mask, dt, dz)
    v = diffuse(v, viscosity, bottom, mask, dt, dz)
    k_33 += diffusivity
    none = np.zeros_like(t_x)
    return (diffuse(temperature, k_33, none, mask, dt, dz), diffuse(salinity, k_33, none, mask, dt, dz), u, v,
            energy)


def diffuse(x, k, decay, mask, dt, dz):
    """An implicit step of diffusion in depth, with decay."""
    between = np.zeros_like(x)
    between[:, :, :-1] = dt / dz**2 * 0.5 * (k[:, :, 1:] + k[:, :, :-1])
    lower, upper, diagonal = np.zeros_like(x), np.zeros_like(x), 1.0 + decay
    lower[:, :, 1:] = -between[:, :, :-1]
    upper[:, :, :-1] = -between[:, :, :-1]
    diagonal[:, :, 1:] += between[:, :, :-1]
    diagonal[:, :, :-1] += between[:, :, :-1]
    lower[:, :, 1:] *= mask[:, :, :-1]
    return np.where(mask > 0, solve(lower, diagonal, upper, x), x)


def solve(lower, diagonal, upper, x):
    """Tridiagonal equations along the last axis, by elimination."""
    x, upper = x.copy(), upper.copy()
    upper[:, :, 0] /= diagonal[:, :, 0]
    x[:, :, 0] /= diagonal[:, :, 0]
    for k in range(1, x.shape[2]):
        pivot = diagonal[:, :, k] - lower[:, :, k] * upper[:, :, k - 1]
        upper[:, :, k] /= pivot
        x[:, :, k] = (x[:, :, k] - lower[:, :, k] * x[:, :, k - 1]) / pivot
    for k in range(x.shape[2] - 2, -1, -1):
        x[:, :, k] -= upper[:, :, k] * x[:, :, k + 1]
    return x


def make_solve(api) -> Callable:
    """`solve` as loops of a traced program."""
    fori_loop = api.lax.fori_loop

    def solve(lower, diagonal, upper, x):
        def eliminate(k, carried):
            x, upper = carried
            pivot = diagonal[:, :, k] - lower[:, :, k] * upper[:, :, k - 1]
            below = (x[:, :, k] - lower[:, :, k] * x[:, :, k - 1]) / pivot
            return x.at[:, :, k].set(below), upper.at[:, :, k].set(upper[:, :, k] / pivot)

        def substitute(i, x):
            k = x.shape[2] - 2 - i
            return x.at[:, :, k].set(x[:, :, k] - upper[:, :, k] * x[:, :, k + 1])

        x = x.at[:, :, 0].set(x[:, :, 0] / diagonal[:, :, 0])
        upper = upper.at[:, :, 0].set(upper[:, :, 0] / diagonal[:, :, 0])
        x, upper = fori_loop(1, x.shape[2], eliminate, (x, upper))
        return fori_loop(0, x.shape[2] - 1, substitute, x)

    return solve


# -- a fluid and the heat in it, on lattices of nine directions that are nine arrays -------------------------
def flow_and_heat(f0, f1, f2, f3, f4, f5, f6, f7, f8, g0, g1, g2, g3, g4, g5, g6, g7, g8, solid, speed):
    """One step: collide, stream, bounce back, and the boundaries on the left and right."""
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    heat = g0 + g1 + g2 + g3 + g4 + g5 + g6 + g7 + g8
    u = (f1 + f5 + f8 - f3 - f6 - f7) / rho
    v = (f2 + f5 + f6 - f4 - f7 - f8) / rho
    v = v + 0.01 * (heat - heat.mean())
    u[:] = np.where(solid, 0.0, u)
    v[:] = np.where(solid, 0.0, v)
    f0, f1, f2, f3, f4, f5, f6, f7, f8 = move(f0, f1, f2, f3, f4, f5, f6, f7, f8, rho, u, v, solid, 1.7)
    g0, g1, g2, g3, g4, g5, g6, g7, g8 = move(g0, g1, g2, g3, g4, g5, g6, g7, g8, heat, u, v, solid, 1.2)
    inlet = (f0[0] + f2[0] + f4[0] + 2.0 * (f3[0] + f6[0] + f7[0])) / (1.0 - speed)
    f1[0] = f3[0] + 2 / 3 * inlet * speed
    f5[0] = f7[0] - 0.5 * (f2[0] - f4[0]) + 1 / 6 * inlet * speed
    f8[0] = f6[0] + 0.5 * (f2[0] - f4[0]) + 1 / 6 * inlet * speed
    f3[-1] = f3[-2]
    f6[-1] = f6[-2]
    f7[-1] = f7[-2]
    g1[0] = 2 / 9 - g3[0]
    g5[0] = 1 / 18 - g7[0]
    g8[0] = 1 / 18 - g6[0]
    g3[-1] = g3[-2]
    g6[-1] = g6[-2]
    g7[-1] = g7[-2]
    return f0, f1, f2, f3, f4, f5, f6, f7, f8, g0, g1, g2, g3, g4, g5, g6, g7, g8


def move(f0, f1, f2, f3, f4, f5, f6, f7, f8, rho, u, v, solid, rate):
    """Nine populations relax towards equilibrium and go where they are bound for."""
    square = 1.5 * (u * u + v * v)
    p, m = u + v, u - v
    f0 = f0 + rate * (4 / 9 * rho * (1.0 - square) - f0)
    f1 = f1 + rate * (1 / 9 * rho * (1.0 + 3.0 * u + 4.5 * u * u - square) - f1)
    f2 = f2 + rate * (1 / 9 * rho * (1.0 + 3.0 * v + 4.5 * v * v - square) - f2)
    f3 = f3 + rate * (1 / 9 * rho * (1.0 - 3.0 * u + 4.5 * u * u - square) - f3)
    f4 = f4 + rate * (1 / 9 * rho * (1.0 - 3.0 * v + 4.5 * v * v - square) - f4)
    f5 = f5 + rate * (1 / 36 * rho * (1.0 + 3.0 * p + 4.5 * p * p - square) - f5)
    f6 = f6 + rate * (1 / 36 * rho * (1.0 - 3.0 * m + 4.5 * m * m - square) - f6)
    f7 = f7 + rate * (1 / 36 * rho * (1.0 - 3.0 * p + 4.5 * p * p - square) - f7)
    f8 = f8 + rate * (1 / 36 * rho * (1.0 + 3.0 * m + 4.5 * m * m - square) - f8)
    back1, back2, back5, back6 = f1.copy(), f2.copy(), f5.copy(), f6.copy()
    f1[:] = np.where(solid, f3, f1)
    f2[:] = np.where(solid, f4, f2)
    f5[:] = np.where(solid, f7, f5)
    f6[:] = np.where(solid, f8, f6)
    f3[:] = np.where(solid, back1, f3)
    f4[:] = np.where(solid, back2, f4)
    f7[:] = np.where(solid, back5, f7)
    f8[:] = np.where(solid, back6, f8)
    f1[1:] = f1[:-1].copy()
    f3[:-1] = f3[1:].copy()
    f2[:, 1:] = f2[:, :-1].copy()
    f4[:, :-1] = f4[:, 1:].copy()
    f5[1:, 1:] = f5[:-1, :-1].copy()
    f6[:-1, 1:] = f6[1:, :-1].copy()
    f7[:-1, :-1] = f7[1:, 1:].copy()
    f8[1:, :-1] = f8[:-1, 1:].copy()
    return f0, f1, f2, f3, f4, f5, f6, f7, f8


# -- shallow water over a bottom, with two substances in it: three stages of a Runge-Kutta step --------------
def advance_water(h, u, v, a, b, bottom, dt, dx):
    h1, u1, v1, a1, b1 = h.copy(), u.copy(), v.copy(), a.copy(), b.copy()
    h1, u1, v1, a1, b1 = change(h1, u1, v1, a1, b1, h, u, v, a, b, bottom, dt, dx)
    h2, u2, v2 = 0.75 * h + 0.25 * h1, 0.75 * u + 0.25 * u1, 0.75 * v + 0.25 * v1
    a2, b2 = 0.75 * a + 0.25 * a1, 0.75 * b + 0.25 * b1
    h2, u2, v2, a2, b2 = change(h2, u2, v2, a2, b2, h1, u1, v1, a1, b1, bottom, 0.25 * dt, dx)
    h3, u3, v3 = (h + 2.0 * h2) / 3.0, (u + 2.0 * u2) / 3.0, (v + 2.0 * v2) / 3.0
    a3, b3 = (a + 2.0 * a2) / 3.0, (b + 2.0 * b2) / 3.0
    return change(h3, u3, v3, a3, b3, h2, u2, v2, a2, b2, bottom, 2 / 3 * dt, dx)


def change(h, u, v, a, b, h0, u0, v0, a0, b0, bottom, dt, dx):
    """Adds what happens to (h0, u0, v0, a0, b0) in a time."""
    depth = h0 - bottom
    east, north = np.zeros_like(h), np.zeros_like(h)
    east[:-1] = 0.5 * (depth[1:] + depth[:-1]) * 0.5 * (u0[1:] + u0[:-1])
    north[:, :-1] = 0.5 * (depth[:, 1:] + depth[:, :-1]) * 0.5 * (v0[:, 1:] + v0[:, :-1])
    h[1:-1, 1:-1] -= dt / dx * (east[1:-1, 1:-1] - east[:-2, 1:-1] + north[1:-1, 1:-1] - north[1:-1, :-2])
    here_u, here_v = u0[1:-1, 1:-1], v0[1:-1, 1:-1]
    u[1:-1, 1:-1] += dt * (1e-4 * here_v - 9.81 * (h0[2:, 1:-1] - h0[:-2, 1:-1]) / (2.0 * dx))
    v[1:-1, 1:-1] += dt * (-1e-4 * here_u - 9.81 * (h0[1:-1, 2:] - h0[1:-1, :-2]) / (2.0 * dx))
    u[1:-1, 1:-1] -= dt * (here_u * (u0[2:, 1:-1] - u0[:-2, 1:-1])
                           + here_v * (u0[1:-1, 2:] - u0[1:-1, :-2])) / (2.0 * dx)
    v[1:-1, 1:-1] -= dt * (here_u * (v0[2:, 1:-1] - v0[:-2, 1:-1])
                           + here_v * (v0[1:-1, 2:] - v0[1:-1, :-2])) / (2.0 * dx)
    drag = 1e-3 * np.sqrt(here_u**2 + here_v**2) / np.maximum(depth[1:-1, 1:-1], 0.1)
    u[1:-1, 1:-1] -= dt * drag * here_u
    v[1:-1, 1:-1] -= dt * drag * here_v
    u[1:-1, 1:-1] += dt * 10.0 / dx**2 * (u0[2:, 1:-1] + u0[:-2, 1:-1]
                                          + u0[1:-1, 2:] + u0[1:-1, :-2] - 4.0 * here_u)
    v[1:-1, 1:-1] += dt * 10.0 / dx**2 * (v0[2:, 1:-1] + v0[:-2, 1:-1]
                                          + v0[1:-1, 2:] + v0[1:-1, :-2] - 4.0 * here_v)
    a[1:-1, 1:-1] -= dt / dx * (np.maximum(here_u, 0.0) * (a0[1:-1, 1:-1] - a0[:-2, 1:-1])
                                + np.minimum(here_u, 0.0) * (a0[2:, 1:-1] - a0[1:-1, 1:-1])
                                + np.maximum(here_v, 0.0) * (a0[1:-1, 1:-1] - a0[1:-1, :-2])
                                + np.minimum(here_v, 0.0) * (a0[1:-1, 2:] - a0[1:-1, 1:-1]))
    b[1:-1, 1:-1] -= dt / dx * (np.maximum(here_u, 0.0) * (b0[1:-1, 1:-1] - b0[:-2, 1:-1])
                                + np.minimum(here_u, 0.0) * (b0[2:, 1:-1] - b0[1:-1, 1:-1])
                                + np.maximum(here_v, 0.0) * (b0[1:-1, 1:-1] - b0[1:-1, :-2])
                                + np.minimum(here_v, 0.0) * (b0[1:-1, 2:] - b0[1:-1, 1:-1]))
    eaten = dt * 0.1 * a0[1:-1, 1:-1] * b0[1:-1, 1:-1] / (0.5 + a0[1:-1, 1:-1])
    a[1:-1, 1:-1] -= eaten
    b[1:-1, 1:-1] += 0.7 * eaten
    h[0], h[-1], h[:, 0], h[:, -1] = h[1], h[-2], h[:, 1], h[:, -2]
    u[0], u[-1], v[:, 0], v[:, -1] = 0.0, 0.0, 0.0, 0.0
    u[:, 0], u[:, -1], v[0], v[-1] = u[:, 1], u[:, -2], v[1], v[-2]
    a[0], a[-1], a[:, 0], a[:, -1] = a[1], a[-2], a[:, 1], a[:, -2]
    b[0], b[-1], b[:, 0], b[:, -1] = b[1], b[-2], b[:, 1], b[:, -2]
    return h, u, v, a, b


# -- the same for arrays that do not change -----------------------------------------------------------------
class _Updates(ast.NodeTransformer):
    """`x[i] = y` as `x = x.at[i].set(y)`, `x[i] += y` as `x = x.at[i].add(y)`."""

    names = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        (target,), value = node.targets, node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts))
            if all(isinstance(one, ast.Subscript) for one, _ in pairs):  # none is read by a later one
                return [self._update(one, "set", given) for one, given in pairs]
        return [self._update(target, "set", value) if isinstance(target, ast.Subscript) else node]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name = self.names[type(node.op)]
        return self._update(node.target, name, node.value) if isinstance(node.target, ast.Subscript) else node

    @staticmethod
    def _update(target: ast.Subscript, name: str, value: ast.expr) -> ast.stmt:
        array = ast.unparse(target.value)
        place = ast.unparse(target).removeprefix(array)
        text = f"{array} = {array}.at{place}.{name}({ast.unparse(value)})"
        return ast.parse(text).body[0]


def make_functional(*functions: Callable) -> Callable:
    """api -> the first of these functions, which call the others, over `api.numpy`."""
    text = "\n".join(textwrap.dedent(inspect.getsource(function)) for function in functions)
    text = ast.unparse(_Updates().visit(ast.parse(text)))

    def build(api) -> Callable:
        names = {"np": api.numpy, "solve": make_solve(api)}
        exec(compile(text, f"<{functions[0].__name__} without writes>", "exec"), names)
        return names[functions[0].__name__]

    return build


# -- rows ---------------------------------------------------------------------------------------------------
def make_ocean(side: int) -> tuple:
    shape = side, side, side
    temperature, salinity, u, v, energy = (make_normal(*shape, seed=k, dtype="float64") for k in range(5))
    depth = np.linspace(0.0, 1.0, side)
    mask = (depth >= 0.3 * np.abs(make_normal(side, side, 1, seed=5, dtype="float64"))).astype(float)
    return (10 + 10 * depth + 0.1 * temperature, 35 - depth + 0.01 * salinity, 0.1 * u, 0.1 * v,
            1e-3 * energy**2, mask, np.float64(600), np.float64(2e3), np.float64(25))


def make_lattice(side: int) -> tuple:
    shares = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
    noise = [1 + 0.01 * make_normal(side, side, seed=k, dtype="float64") for k in range(18)]
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    solid = (x - side // 3) ** 2 + (y - side // 2) ** 2 < (side // 8) ** 2
    return (*(share * one for share, one in zip(shares * 2, noise)), solid, np.float64(0.04))


def make_basin(side: int) -> tuple:
    h, u, v, a, b, bottom = (make_normal(side, side, seed=k, dtype="float64") for k in range(6))
    return 10 + 0.01 * h, 0.1 * u, 0.1 * v, np.abs(a), np.abs(b), 0.1 * bottom, np.float64(1), np.float64(100)


#: Name -> (the function in place, that without writes, its inputs, sides when timed and tested).
MODELS = {
    "ocean mixing": (mix_ocean, make_functional(mix_ocean, diffuse), make_ocean, 16, 6),
    "lattice Boltzmann": (flow_and_heat, make_functional(flow_and_heat, move), make_lattice, 64, 12),
    "shallow water": (advance_water, make_functional(advance_water, change), make_basin, 64, 12),
}

ROWS = tuple(Workload(f"{name} {side}^{3 if function is mix_ocean else 2} f64", make, build, size=side,
                      tiny=tiny, numpy=function, tolerance=1e-9)
             for name, (function, build, make, side, tiny) in MODELS.items())
