"""Random nests of transformations and control flow around a random function of a vector, for any library.

A nest is a list of names, innermost first; `build_nest(nest, library)` makes it a function from R^3 to R^3 of
values of order one. Each layer takes such a function and gives another, so that all orders are valid.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SIZE = 3


class Library(NamedTuple):
    """What a nest is written with. wide_while: whether reverse mode goes through `while_loop`."""

    api: object
    np: object
    lax: object
    checkpoint: Callable
    wide_while: bool


class Nest(NamedTuple):
    """seed: of the numbers in it. base: names of ELEMENTS applied one after another; layers: of LAYERS."""

    seed: int
    base: tuple[str, ...]
    layers: tuple[str, ...]

    def __str__(self) -> str:
        return f"seed {self.seed}: {' . '.join(reversed(self.layers))} of {' ; '.join(self.base)}"


def as_type(c, x):
    return np.asarray(c, x.dtype)


# -- elements of the innermost function: (library, numbers, x) -> vector -------------------------------------
ELEMENTS = {
    "sin": lambda lib, c, x: lib.np.sin(x * c[0]),
    "exp": lambda lib, c, x: lib.np.exp(-x * x * 0.5),
    "tanh": lambda lib, c, x: lib.np.tanh(x + c[0]),
    "log": lambda lib, c, x: lib.np.log(1.5 + x * x),
    "sqrt": lambda lib, c, x: lib.np.sqrt(1.0 + x * x * 0.5),
    "divide": lambda lib, c, x: x / (2.0 + lib.np.cos(x)),
    "power": lambda lib, c, x: (1.2 + lib.np.abs(x)) ** c[0],
    "integer power": lambda lib, c, x: (x * 0.5) ** 3,
    "arctan2": lambda lib, c, x: lib.np.arctan2(x, 1.5 + x[::-1] * x[::-1]),
    "logistic": lambda lib, c, x: lib.lax.logistic(x) * 2.0,
    "matmul": lambda lib, c, x: make_matrix(c, x) @ x,
    "outer": lambda lib, c, x: lib.np.sum(x[:, None] * lib.np.sin(x[None, :] + c[0]), axis=1) * 0.5,
    "maximum": lambda lib, c, x: lib.np.maximum(x, c),
    "where": lambda lib, c, x: lib.np.where(x > c, x * 1.5, lib.np.sin(x)),
    "clip": lambda lib, c, x: lib.np.clip(x, -0.7, 0.9) + 0.1 * x,
    "abs": lambda lib, c, x: lib.np.abs(x + 0.01) - 0.5,
    "softmax": lambda lib, c, x: softmax(lib, x) * 2.0,
    "max": lambda lib, c, x: x - lib.np.max(x * c),
    "sum": lambda lib, c, x: x * lib.np.sum(x * c),
    "prod": lambda lib, c, x: x * lib.np.prod(1.0 + 0.3 * x),
    "cumsum": lambda lib, c, x: lib.np.cumsum(x) * 0.5,
    "cumprod": lambda lib, c, x: lib.np.cumprod(1.0 + 0.4 * x) - 1.0,
    "sort": lambda lib, c, x: lib.np.sort(x * c) + x,
    "gather": lambda lib, c, x: x[np.array([2, 0, 2])] * c,
    "scatter": lambda lib, c, x: x.at[np.array([0, 2])].add(lib.np.sin(x[:2])),
    "update": lambda lib, c, x: x.at[1].set(x[0] * x[2]),
    "dynamic index": lambda lib, c, x: x + x[lib.np.argmax(x * c)],
    "roll": lambda lib, c, x: lib.np.roll(x, 1) * x,
    "pad": lambda lib, c, x: lib.np.pad(x, 2)[1:-1][:SIZE] + 0.5 * x,
    "concatenate": lambda lib, c, x: lib.np.concatenate([x[1:] * c[0], x[:2] * x[1:]])[np.array([0, 2, 3])],
    "reshape": lambda lib, c, x: lib.np.stack([x, x * x], 1).reshape(2, 3).T[:, 0] * 0.7,
    "norm": lambda lib, c, x: x / lib.np.sqrt(0.5 + lib.np.sum(x * x)),
    "einsum": lambda lib, c, x: lib.np.einsum("i,ij,j->i", x, make_matrix(c, x), lib.np.cos(x)),
    "stop_gradient": lambda lib, c, x: x * lib.lax.stop_gradient(lib.np.sin(x)) + 0.5 * x,
    "complex": lambda lib, c, x: lib.np.abs(lib.np.exp(1j * x) * (1.5 + x)) * c,
    "convolve": lambda lib, c, x: lib.np.convolve(x, c, mode="same"),
}
# Of a second kind of nests, with those above: special functions, linear algebra, Fourier transforms.
MORE_ELEMENTS = {
    "erf": lambda lib, c, x: lib.lax.erf(x * c[0]),
    "lgamma": lambda lib, c, x: lib.lax.lgamma(2.5 + lib.np.sin(x)),
    "logaddexp": lambda lib, c, x: lib.np.logaddexp(x, c[0] * x[::-1]),
    "cummax": lambda lib, c, x: lib.lax.cummax(x * c, axis=0),
    "associative scan": lambda lib, c, x: lib.lax.associative_scan(lambda a, b: a * b, 1.0 + 0.3 * x),
    "dynamic slice": lambda lib, c, x: lib.lax.dynamic_slice(
        lib.np.concatenate([x, x * x]), (lib.np.argmax(x),), (SIZE,)
    ),
    "dynamic update": lambda lib, c, x: lib.lax.dynamic_update_slice(
        x * c, x[:2] * x[1:], (lib.np.argmin(x),)
    ),
    "top_k": lambda lib, c, x: lib.lax.top_k(x * c, SIZE)[0],
    "fft": lambda lib, c, x: lib.np.fft.fft(x * c).real * 0.5,
    "rfft": lambda lib, c, x: lib.np.fft.irfft(lib.np.fft.rfft(x) * (1.0 + 0.5j), SIZE),
    "solve": lambda lib, c, x: lib.np.linalg.solve(make_square(lib, c, x), x),
    "inv": lambda lib, c, x: lib.np.linalg.inv(make_square(lib, c, x)) @ x,
    "det": lambda lib, c, x: x * lib.np.linalg.det(make_square(lib, c, x)) * 0.1,
    "cholesky": lambda lib, c, x: lib.np.linalg.cholesky(make_square(lib, c, x)) @ x * 0.5,
    "eigh": lambda lib, c, x: lib.np.linalg.eigh(make_square(lib, c, x))[0] * 0.5,
    "svd": lambda lib, c, x: lib.np.linalg.svd(make_square(lib, c, x), compute_uv=False) * 0.5,
    "qr": lambda lib, c, x: lib.np.linalg.qr(make_square(lib, c, x))[1] @ x * 0.3,
}


def make_matrix(c, x):
    return as_type(np.outer(np.sin(c * 3.0), c[::-1]), x)


def make_square(lib: Library, c, x):
    """A symmetric positive definite matrix, its eigenvalues apart from each other."""
    return lib.np.outer(lib.np.sin(x), lib.np.sin(x)) * 0.5 + as_type(np.diag([1.0, 2.0, 3.5]), x)


def softmax(lib: Library, x):
    e = lib.np.exp(x - lib.np.max(x))
    return e / lib.np.sum(e)


def make_base(nest: Nest, lib: Library) -> Callable:
    rng = np.random.default_rng(nest.seed)
    numbers = [rng.uniform(0.5, 1.5, SIZE) * rng.choice([-1, 1], SIZE) for _ in nest.base]

    def run(x):
        for name, c in zip(nest.base, numbers):
            x = lib.np.sin(ALL_ELEMENTS[name](lib, as_type(c, x), x)) * 1.5
        return x

    return run


# -- layers: (library, numbers, function) -> function --------------------------------------------------------
def _scan(lib, c, f):
    def step(carry, row):
        carry = 0.5 * f(carry) + row
        return carry, carry[0] * row[1]

    def run(x):
        rows = lib.np.stack([x, x * as_type(c, x), 0.3 * x])
        last, firsts = lib.lax.scan(step, x, rows)
        return last + firsts

    return run


def _reverse_scan(lib, c, f):
    def run(x):
        def step(carry, row):
            return f(carry * 0.5 + row * x), None

        return lib.lax.scan(step, 0.5 * x, lib.np.stack([x, x * as_type(c, x)]), reverse=True)[0]

    return run


def _while(lib, c, f):
    """Twice f; written for libraries whose reverse mode needs it with a scan."""

    def run(x):
        if not lib.wide_while:
            return lib.lax.scan(lambda y, _: (f(y) * 0.5 + 0.5 * x, None), x, None, length=2)[0]
        return lib.lax.while_loop(
            lambda carry: carry[0] < 2, lambda carry: (carry[0] + 1, f(carry[1]) * 0.5 + 0.5 * x), (0, x))[1]

    return run


def _custom_jvp(lib, c, f):
    """Half as steep again as f, in both modes."""
    function = lib.api.custom_jvp(f)

    @function.defjvp
    def rule(primals, tangents):
        value, slope = lib.api.jvp(f, primals, tangents)
        return value, 1.5 * slope

    return function


def _custom_vjp(lib, c, f):
    """Half as steep as f."""
    function = lib.api.custom_vjp(f)

    def forward(x):
        return f(x), x

    def backward(x, ct):
        return (0.5 * lib.api.vjp(f, x)[1](ct)[0],)

    function.defvjp(forward, backward)
    return function


def _contract(lib, c, f):
    """A scalar function of f and its arguments."""
    return lambda x: lib.np.sum(lib.np.sin(f(x)) * as_type(c, x))


LAYERS = {
    "jit": lambda lib, c, f: lib.api.jit(f),
    "grad": lambda lib, c, f: lib.api.grad(_contract(lib, c, f)),
    "value_and_grad": lambda lib, c, f: lambda x: sum(lib.api.value_and_grad(_contract(lib, c, f))(x)),
    "jvp": lambda lib, c, f: lambda x: lib.api.jvp(f, (x,), (lib.np.cos(x),))[1],
    "vjp": lambda lib, c, f: lambda x: lib.api.vjp(f, x)[1](lib.np.cos(x))[0],
    "linearize": lambda lib, c, f: lambda x: lib.api.linearize(f, x)[1](lib.np.cos(x)),
    "jacfwd": lambda lib, c, f: lambda x: lib.api.jacfwd(f)(x) @ as_type(c, x),
    "jacrev": lambda lib, c, f: lambda x: as_type(c, x) @ lib.api.jacrev(f)(x),
    "vmap": lambda lib, c, f: lambda x: lib.np.sum(lib.api.vmap(f)(
        lib.np.stack([x, x * as_type(c, x)])), axis=0) * 0.5,
    "vmap of columns": lambda lib, c, f: lambda x: lib.api.vmap(f, in_axes=1, out_axes=1)(
        lib.np.stack([x, 0.5 * x], 1))[:, 1],
    "vmap of a closure": lambda lib, c, f: lambda x: lib.api.vmap(lambda s: lib.np.sum(f(x * s)))(x),
    "remat": lambda lib, c, f: lib.checkpoint(f),
    "scan": _scan,
    "reverse scan": _reverse_scan,
    "cond": lambda lib, c, f: lambda x: lib.lax.cond(x[0] > 0.1, f, lambda x: x * x, x),
    "switch": lambda lib, c, f: lambda x: lib.lax.switch(
        (x[1] > 0).astype(np.int32), [lambda x: lib.np.sin(x), f, lambda x: x], x),
    "fori_loop": lambda lib, c, f: lambda x: lib.lax.fori_loop(
        0, 2, lambda i, y: f(y) * 0.5 + x * 0.5 * (i + 1), x),
    "while_loop": _while,
    "map": lambda lib, c, f: lambda x: lib.lax.map(lambda s: lib.np.sum(f(x * s)), x),
}
MORE_LAYERS = {"custom_jvp": _custom_jvp, "custom_vjp": _custom_vjp}
ALL_ELEMENTS, ALL_LAYERS = ELEMENTS | MORE_ELEMENTS, LAYERS | MORE_LAYERS


def make_nest(seed: int, more: bool = False, depth: int = 4) -> Nest:
    """A random nest with 1 to `depth` layers, of which at least one differentiates. more: of all tables."""
    rng = np.random.default_rng(seed)
    elements, table = (ALL_ELEMENTS, ALL_LAYERS) if more else (ELEMENTS, LAYERS)
    base = tuple(str(name) for name in rng.choice(list(elements), int(rng.integers(1, 4))))
    layers = [str(name) for name in rng.choice(list(table), int(rng.integers(1, depth + 1)))]
    derivatives = ("grad", "jvp", "vjp", "linearize", "jacfwd", "jacrev")
    if not any(name in derivatives for name in layers):
        layers[int(rng.integers(len(layers)))] = str(rng.choice(derivatives))
    return Nest(seed, base, tuple(_drop_undefined(layers)))


def _drop_undefined(layers: list[str]) -> list[str]:
    """The layers without rules of `custom_vjp` that forward mode would meet."""
    kept: list[str] = []
    reverse = True  # the mode of the next derivative outside
    for name in reversed(layers):
        if name in ("jvp", "linearize", "jacfwd"):
            reverse = False
        elif name in ("grad", "value_and_grad", "vjp", "jacrev"):
            reverse = True
        if name != "custom_vjp" or reverse:
            kept.insert(0, name)
    return kept


def build_nest(nest: Nest, lib: Library) -> Callable:
    rng = np.random.default_rng(nest.seed + 1)
    function = make_base(nest, lib)
    for number, name in enumerate(nest.layers):
        c = rng.uniform(0.4, 1.0, SIZE)
        function = ALL_LAYERS[name](lib, c, function)
        if number + 1 < len(nest.layers):  # derivatives grow with depth
            function = functools.partial(_squash, lib, function)
    return function


def _squash(lib: Library, function: Callable, x):
    return lib.np.sin(function(x))


def make_point(nest: Nest, dtype) -> np.ndarray:
    return np.asarray(np.random.default_rng(nest.seed + 2).uniform(-1.2, 1.2, SIZE), dtype)
