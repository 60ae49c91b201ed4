"""Random array programs, run by any NumPy-like namespace.

A program is a list of steps over a growing list of arrays; `run_program(program, namespace, inputs)` gives
every
array that a later step did not consume. Values stay of order one, and branches on values depend on inputs
only, so
that float32 and float64 runs agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jitcore import lax


class Step(NamedTuple):
    """One operation: `apply(namespace, params, *arrays)` on the arrays at `operands`."""

    name: str
    apply: Callable
    params: object
    operands: tuple[int, ...]


class Program(NamedTuple):
    shapes: tuple
    steps: tuple
    outputs: tuple

    def __str__(self) -> str:
        lines = [f"inputs {self.shapes}"]
        lines += [
            f"  v{len(self.shapes) + k} = {s.name}[{s.params}] {s.operands}" for k, s in enumerate(self.steps)
        ]
        return "\n".join([*lines, f"outputs {self.outputs}"])


UNARY = {
    "tanh": lambda xp, p, x: xp.tanh(x),
    "sin": lambda xp, p, x: xp.sin(x),
    "cos": lambda xp, p, x: xp.cos(x),
    "exp": lambda xp, p, x: xp.exp(-xp.abs(x)),
    "log1p": lambda xp, p, x: xp.log1p(xp.abs(x)),
    "sqrt": lambda xp, p, x: xp.sqrt(1.0 + x * x),
    "arctan": lambda xp, p, x: xp.arctan(x),
    "neg": lambda xp, p, x: -x,
    "scale": lambda xp, p, x: x * p + 0.25,
    "square": lambda xp, p, x: xp.tanh(x**2),
    "reciprocal": lambda xp, p, x: 1.0 / (2.0 + x * x),
    "clip": lambda xp, p, x: xp.clip(x, -0.5, 0.5),
}
BINARY = {
    "add": lambda xp, p, x, y: (x + y) * 0.5,
    "sub": lambda xp, p, x, y: x - y * 0.5,
    "mul": lambda xp, p, x, y: xp.tanh(x * y),
    "maximum": lambda xp, p, x, y: xp.maximum(x, y),
    "minimum": lambda xp, p, x, y: xp.minimum(x, y),
    "arctan2": lambda xp, p, x, y: xp.arctan2(x, 2.0 + xp.abs(y)),
    "hypot": lambda xp, p, x, y: xp.hypot(x, y) * 0.7,
}
REDUCTIONS = {
    "sum": lambda xp, p, x: xp.tanh(xp.sum(x, axis=p[0], keepdims=p[1])),
    "mean": lambda xp, p, x: xp.mean(x, axis=p[0], keepdims=p[1]),
    "max": lambda xp, p, x: xp.max(x, axis=p[0], keepdims=p[1]),
    "min": lambda xp, p, x: xp.min(x, axis=p[0], keepdims=p[1]),
    "var": lambda xp, p, x: xp.var(x, axis=p[0], keepdims=p[1]),
}
SHAPING = {
    "transpose": lambda xp, p, x: xp.transpose(x, p),
    "reshape": lambda xp, p, x: xp.reshape(x, p),
    "flip": lambda xp, p, x: xp.flip(x, p),
    "slice": lambda xp, p, x: x[p],
    "pad": lambda xp, p, x: xp.pad(x, p),
    "expand": lambda xp, p, x: xp.expand_dims(x, p),
    "roll": lambda xp, p, x: xp.roll(x, *p),
    "cumsum": lambda xp, p, x: xp.tanh(xp.cumsum(x, axis=p)),
    "concatenate": lambda xp, p, x: xp.concatenate([x, x * 0.5], axis=p),
    "repeat_row": lambda xp, p, x: xp.broadcast_to(x[None], (p, *x.shape)),
    "take": lambda xp, p, x: xp.take(x, np.asarray(p[1]), axis=p[0]),
    "softmax": lambda xp, p, x: _softmax(xp, x, p),
    "standardize": lambda xp, p, x: (
        (x - xp.mean(x, axis=p, keepdims=True)) / (1.0 + xp.std(x, axis=p, keepdims=True))
    ),
    "sort": lambda xp, p, x: xp.sort(x, axis=p),
}


def _scan_rows(xp, p, x):
    """A running state over the rows of x, the states stacked."""
    if xp is np:
        state, states = np.zeros(x.shape[1:], x.dtype), []
        for row in x[::-1] if p else x:
            state = np.tanh(state * 0.5 + row)
            states.append(state * 2.0)
        return np.stack(states[::-1] if p else states)

    def step(state, row):
        state = xp.tanh(state * 0.5 + row)
        return state, state * 2.0

    return lax.scan(step, xp.zeros(x.shape[1:], x.dtype), x, reverse=p)[1]


def _repeat_step(xp, p, x):
    def step(i, x):
        return xp.tanh(x * 0.5 + 0.1 * i) + x[..., ::-1] * 0.25 if x.ndim else xp.tanh(x * 0.5 + 0.1 * i)

    if xp is np:
        for i in range(p):
            x = step(i, x)
        return x
    return lax.fori_loop(0, p, step, x)


def _while_small(xp, p, x):
    """Doubles x until a counter derived from nothing but p runs out; the carry has three leaves."""
    if xp is np:
        i, total = 0, np.zeros_like(x)
        while i < p:
            i, x, total = i + 1, np.sin(x) * 0.9, total + x * 0.1
        return total

    def body(carry):
        i, x, total = carry
        return i + 1, xp.sin(x) * 0.9, total + x * 0.1

    return lax.while_loop(lambda carry: carry[0] < p, body, (0, x, xp.zeros_like(x)))[2]


def _branch(xp, p, x, condition):
    """One of two functions of x, by an element of an input."""
    if xp is np:
        return np.cos(x) if condition.ravel()[0] > p else x * 0.5
    return lax.cond(condition.ravel()[0] > p, xp.cos, lambda x: x * 0.5, x)


def _add_at(xp, p, x):
    if xp is np:
        x = x.copy()
        np.add.at(x, np.asarray(p), 0.5)
        return x
    return x.at[np.asarray(p)].add(0.5)


def _set_rows(xp, p, x):
    if xp is np:
        x = x.copy()
        x[p] = x[p] * 0.5
        return x
    return x.at[p].multiply(0.5)


def _pick(xp, p, x, selector):
    """The row of x at a position computed from an input."""
    position = xp.argmax(selector) % x.shape[0]
    return x[position]


LOOPS = {"scan_rows": _scan_rows, "repeat_step": _repeat_step, "while_small": _while_small}
UPDATES = {"add_at": _add_at, "set_rows": _set_rows}


def _softmax(xp, x, axis):
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def _where(xp, p, x, y, condition):
    return xp.where(condition > p, x, y)


def _matmul(xp, p, x, y):
    return xp.tanh(x @ y)


def make_program(seed: int, max_steps: int = 12) -> Program:
    """A random well-typed program."""
    rng = np.random.default_rng(seed)
    shapes = [_random_shape(rng) for _ in range(int(rng.integers(1, 4)))]
    inputs, known, steps = len(shapes), list(shapes), []
    for _ in range(int(rng.integers(1, max_steps + 1))):
        step = _random_step(rng, known, inputs)
        arrays = [np.zeros(known[k]) for k in step.operands]
        with np.errstate(all="ignore"):
            result = step.apply(np, step.params, *arrays)
        if result.size > 5000:
            continue
        steps.append(step)
        known.append(result.shape)
    used = {k for step in steps for k in step.operands}
    outputs = [k for k in range(inputs, len(known)) if k not in used] or [len(known) - 1]
    extra = int(rng.integers(0, len(known)))
    return Program(tuple(shapes), tuple(steps), (*outputs, extra))


def _random_shape(rng) -> tuple:
    ndim = int(rng.choice([0, 1, 2, 2, 3]))
    return tuple(int(n) for n in rng.choice([1, 2, 3, 5, 8, 17, 40], ndim)) if ndim < 3 else tuple(
        int(n) for n in rng.choice([1, 2, 3, 5], 3))


def _random_step(rng, shapes: list, inputs: int) -> Step:
    kinds = {"unary": 22, "binary": 22, "reduce": 16, "shape": 18, "where": 6, "matmul": 4, "loop": 4, "branch": 3,
             "update": 3, "pick": 2}
    kind = str(rng.choice(list(kinds), p=np.array(list(kinds.values())) / 100))
    k = int(rng.integers(len(shapes)))
    shape = shapes[k]
    if kind == "binary":
        other = _compatible(rng, shapes, shape)
        name = str(rng.choice(list(BINARY)))
        return Step(name, BINARY[name], None, (k, other) if rng.random() < 0.5 else (other, k))
    if kind == "where":
        other, condition = (
            _compatible(rng, shapes, shape),
            _compatible(rng, shapes[:inputs], shape, default=None),
        )
        joint = _broadcast(shapes, (k, other, condition))
        if condition is not None and joint is not None:
            return Step("where", _where, 0.125, (k, other, condition))
    if kind == "reduce" and shape:
        axes = [None, *range(len(shape)), tuple(range(len(shape)))]
        name = str(rng.choice(list(REDUCTIONS)))
        return Step(name, REDUCTIONS[name], (axes[int(rng.integers(len(axes)))], bool(rng.integers(2))), (k,))
    if kind == "matmul" and len(shape) == 2:
        matches = [j for j, s in enumerate(shapes) if len(s) in (1, 2) and s[0] == shape[1]]
        if matches:
            return Step("matmul", _matmul, None, (k, int(rng.choice(matches))))
    if kind == "shape":
        return _random_shaping(rng, k, shape)
    if kind == "loop" and shape:
        name = str(rng.choice(list(LOOPS)))
        return Step(
            name, LOOPS[name], bool(rng.integers(2)) if name == "scan_rows" else int(rng.integers(0, 4)), (k,)
        )
    if kind == "branch":
        return Step("branch", _branch, 0.125, (k, int(rng.integers(inputs))))
    if kind == "update" and shape:
        name = str(rng.choice(list(UPDATES)))
        rows = (
            [int(i) for i in rng.integers(0, shape[0], 3)]
            if name == "add_at"
            else slice(int(rng.integers(0, shape[0])), None)
        )
        return Step(name, UPDATES[name], rows, (k,))
    if kind == "pick" and shape:
        return Step("pick", _pick, None, (k, int(rng.integers(inputs))))
    name = str(rng.choice(list(UNARY)))
    return Step(name, UNARY[name], float(np.float32(rng.uniform(-1, 1))), (k,))


def _random_shaping(rng, k: int, shape: tuple) -> Step:
    if not shape:
        return Step("expand", SHAPING["expand"], 0, (k,))
    axis = int(rng.integers(len(shape)))
    name = str(rng.choice(list(SHAPING)))
    flat = int(np.prod(shape))
    params = {
        "transpose": tuple(map(int, rng.permutation(len(shape)))),
        "reshape": [(flat,), (1, flat), (*shape[1:], shape[0]), (-1, shape[-1])][int(rng.integers(4))],
        "slice": tuple(
            slice(int(rng.integers(0, 2)) if n > 2 else 0, None, int(rng.integers(1, 3))) for n in shape
        ),
        "pad": tuple((int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in shape),
        "roll": (int(rng.integers(-3, 4)), axis),
        "repeat_row": int(rng.integers(1, 4)),
        "take": (axis, [int(i) for i in rng.integers(0, shape[axis], 4)]),
    }.get(name, axis)
    return Step(name, SHAPING[name], params, (k,))


def _compatible(rng, shapes, shape, default=-1):
    """An array that broadcasts with `shape`."""
    matches = [j for j in range(len(shapes)) if _broadcast([shape, shapes[j]], (0, 1)) is not None]
    return int(rng.choice(matches)) if matches else default


def _broadcast(shapes, which):
    try:
        return np.broadcast_shapes(*[shapes[k] for k in which if k is not None])
    except ValueError:
        return None


def make_inputs(program: Program, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    return [np.asarray(rng.standard_normal(shape), np.float32) for shape in program.shapes]


def run_program(program: Program, namespace, inputs) -> tuple:
    """The program's outputs in this namespace."""
    values = list(inputs)
    for step in program.steps:
        values.append(step.apply(namespace, step.params, *[values[k] for k in step.operands]))
    return tuple(values[k] for k in program.outputs)
