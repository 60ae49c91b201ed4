"""Checks of derivatives against finite differences, for tests of one's own functions.

In: a function and a point. Out: nothing, or an AssertionError that shows what differs. Names and tolerances
are those of `jax.test_util`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes
from jitcore.core import source
from jitcore.docstrings import document
from jitcore.transforms.autodiff import jvp, linearize, vjp
from jitcore.tree_util import tree_leaves, tree_map

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS = 1e-4
Tolerance = float | Mapping[Any, float] | None

#: How far derivatives of a dtype may lie from finite differences.
_TOLERANCES = {dtypes.bfloat16: 1e-1, dtypes.float16: 1e-2, dtypes.float32: 2e-3, dtypes.float64: 1e-5,
               dtypes.complex64: 1e-3, dtypes.complex128: 1e-5}


@source.api_boundary
def check_grads(f: Callable, args: Sequence, order: int, modes: Sequence[str] = ("fwd", "rev"),
                atol: Tolerance = None, rtol: Tolerance = None, eps: float = EPS) -> None:
    """Compares derivatives of `f` with central differences, in one random direction.

    Args:
        f: a function of pytrees of floating or complex arrays.
        args: where to differentiate.
        order: up to which order: 2 also checks the derivatives of the derivatives.
        modes: of "fwd" (`jvp`), "rev" (`vjp`) and "lin" (`linearize`).
        atol, rtol: tolerances, or dicts from dtypes to tolerances.
        eps: step of the differences, by default 1e-4: give float64 arguments.

    Raises: AssertionError where they differ."""
    check = {"atol": atol, "rtol": rtol, "eps": eps or EPS}
    _check_order(f, tuple(args), order, modes, check, "")


def _check_order(f: Callable, args: tuple, order: int, modes: Sequence[str], check: dict, within: str):
    forward = {"fwd": functools.partial(jvp, f), "lin": functools.partial(_push_linearized, f)}
    for mode, push in forward.items():
        if mode in modes:
            name = f"{'JVP' if mode == 'fwd' else 'LIN'}{' of ' if within else ''}{within}"
            check_jvp(f, push, args, err_msg=name, **check)
            if order > 1:
                _check_order(push, (args, args), order - 1, modes, check, name)
    if "rev" in modes:
        name = f"VJP{' of ' if within else ''}{within}"
        check_vjp(f, functools.partial(vjp, f), args, err_msg=name, **check)
        if order > 1:
            _check_order(functools.partial(_pull_value, f), args, order - 1, modes, check, name)


def _push_linearized(f, primals, tangents):
    value, push = linearize(f, *primals)
    return value, push(*tangents)


def _pull_value(f, *args):
    value, pull = vjp(f, *args)
    return pull(value)


@source.api_boundary
def check_jvp(f: Callable, f_jvp: Callable, args: Sequence, atol: Tolerance = None, rtol: Tolerance = None,
              eps: float = EPS, err_msg: str = "") -> None:
    """Compares `f_jvp(primals, tangents)`, such as `partial(jvp, f)`, with central differences of `f`.

    Args: as `check_grads`. err_msg: what messages begin with.
    Raises: AssertionError where they differ."""
    args = tuple(args)
    tangents = _draw_like(np.random.RandomState(0), args)
    value, tangent = f_jvp(args, tangents)
    assert _list_dtypes(value) == _list_dtypes(tangent), f"{err_msg} dtypes of the tangent"
    expected = f(*args)
    assert _list_dtypes(value) == _list_dtypes(expected), f"{err_msg} dtypes of the value"
    _check_close(value, expected, atol, rtol, f"{err_msg} primal".strip())
    slope = _find_differences(f, args, tangents, eps)
    _check_close(tangent, slope, atol, rtol, f"{err_msg} tangent".strip())


@source.api_boundary
def check_vjp(f: Callable, f_vjp: Callable, args: Sequence, atol: Tolerance = None, rtol: Tolerance = None,
              eps: float = EPS, err_msg: str = "") -> None:
    """Compares `f_vjp(*args)`, such as `partial(vjp, f)`, with central differences of `f`, both multiplied by
    random vectors on both sides.

    Args: as `check_jvp`.
    Raises: AssertionError where they differ."""
    args, rng = tuple(args), np.random.RandomState(0)
    value, pull = f_vjp(*args)
    _check_close(value, f(*args), atol, rtol, f"{err_msg} primal".strip())
    tangents = _draw_like(rng, args)
    slope = _find_differences(f, args, tangents, eps)
    cotangent = _draw_like(rng, value)
    pulled = tree_map(np.conj, pull(tree_map(np.conj, cotangent)))
    _check_close(_multiply(tangents, pulled), _multiply(slope, cotangent), atol, rtol,
                 f"{err_msg} cotangent projection".strip())


# -- numbers ------------------------------------------------------------------------------------------------
def _dtype_of(x) -> np.dtype:
    return dtypes.type_of(x)[0]


def _list_dtypes(tree) -> list[np.dtype]:
    return list(map(_dtype_of, tree_leaves(tree)))


def _draw_like(rng: np.random.RandomState, tree):
    """A random pytree of these shapes and dtypes."""

    def draw(x):
        dtype, shape = _dtype_of(x), np.shape(x)
        value = np.asarray(rng.randn(*shape)).astype(dtype)
        if dtypes.is_complex(dtype):
            value = (value + 1j * rng.randn(*shape)).astype(dtype)
        return value

    return tree_map(draw, tree)


def _find_differences(f: Callable, args: tuple, tangents: tuple, eps: float):
    """The derivative of f along tangents, by central differences."""

    def move(x, t, distance):
        return np.asarray(np.asarray(x) + np.asarray(t) * distance, _dtype_of(x))

    def subtract(above, below):
        above, below = np.asarray(above), np.asarray(below)
        with np.errstate(invalid="ignore"):
            return np.where(above == below, 0, above - below) * (0.5 / eps)  # infinities differ by 0

    above, below = (f(*tree_map(lambda x, t: move(x, t, sign * eps), args, tangents)) for sign in (1, -1))
    return tree_map(subtract, above, below)


def _multiply(xs, ys) -> np.ndarray:
    """The real inner product of two pytrees, in their widest dtype, which says how exact it is."""
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(tree_leaves(xs), tree_leaves(ys))]
    wide = [np.complex128 if dtypes.is_complex(x.dtype) else np.float64 for x, _ in pairs]
    total = sum(float(np.real(np.vdot(x.astype(kind), y.astype(kind)))) for kind, (x, y) in zip(wide, pairs))
    real = [np.real(np.zeros((), each.dtype)).dtype for pair in pairs for each in pair
            if each.dtype != dtypes.float0]
    return np.asarray(total, np.result_type(*real)) if real else np.asarray(total)


def _find_tolerance(given: Tolerance, dtype: np.dtype) -> float:
    if isinstance(given, (int, float)):
        return given
    table = _TOLERANCES | {np.dtype(key): value for key, value in (given or {}).items()}
    return table.get(dtype, 0.0)


def _check_close(xs, ys, atol: Tolerance, rtol: Tolerance, message: str) -> None:
    """Raises: AssertionError unless two pytrees agree to the looser tolerance of the dtypes involved."""

    def check(x, y):
        kinds = [_dtype_of(x), _dtype_of(y)]
        x, y = np.asarray(x), np.asarray(y)
        absolute, relative = (max(_find_tolerance(given, kind) for kind in kinds) for given in (atol, rtol))
        wide = np.complex128 if dtypes.is_complex(kinds[0]) else np.float64
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=absolute * x.size,
                                   rtol=relative * y.size, err_msg=message)

    tree_map(check, xs, ys)


document(sys.modules[__name__], __all__)
