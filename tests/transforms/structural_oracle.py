"""The comparison of the tests of derivatives with JAX: tangents and cotangents, at once and compiled."""

from __future__ import annotations

import numpy as np

import jitcore
from jitcore import dtypes
from tests.jax_answers import jax


def draw(rng, shape, dtype=np.float64) -> np.ndarray:
    values = rng.standard_normal(shape)
    return np.asarray(
        values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values, dtype
    )


def is_inexact(x) -> bool:
    return dtypes.is_inexact(np.asarray(x).dtype)


def as_list(outs) -> list:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


def merge(operands, inexact) -> list:
    """The operands with other values for the inexact ones."""
    values = iter(inexact)
    return [next(values) if is_inexact(x) else x for x in operands]


def derive(function, jvp, vjp, values, tangents, seed: int) -> tuple[list, list, list]:
    """The inexact results, their tangents, and cotangents of all operands for drawn ones of the results."""

    def inexact_results(*xs):
        return [out for out in as_list(function(*xs)) if dtypes.is_inexact(out.dtype)]

    outs, found = jvp(inexact_results, tuple(values), tuple(tangents))
    rng = np.random.default_rng(seed)
    cotangents = [draw(rng, out.shape, out.dtype) for out in outs]
    return outs, list(found), list(vjp(inexact_results, *values)[1](cotangents))


def compare(ours, theirs, *operands, tolerance: float = 1e-9, seed: int = 0, compiled: bool = True) -> None:
    """Derivatives of `ours` by its inexact operands, eager and compiled, are those of `theirs`."""
    rng = np.random.default_rng(seed)
    values = [np.asarray(x) for x in operands if is_inexact(x)]
    tangents = [draw(rng, x.shape, x.dtype) for x in values]

    def run(values, tangents):
        function = lambda *xs: ours(*merge(operands, xs))  # noqa: E731
        return derive(function, jitcore.jvp, jitcore.vjp, values, tangents, seed)

    with jax.enable_x64(True):
        expected = derive(lambda *xs: theirs(*merge(operands, xs)), jax.jvp, jax.vjp, values, tangents, seed)
    for actual in [run(values, tangents), *([jitcore.jit(run)(values, tangents)] if compiled else [])]:
        for group, wanted in zip(actual, expected):
            assert len(group) == len(wanted)
            for got, want in zip(group, map(np.asarray, wanted)):
                assert got.shape == want.shape and got.dtype == want.dtype
                wide = np.complex128 if want.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(
                    np.asarray(got, wide), want.astype(wide), rtol=tolerance, atol=tolerance
                )
