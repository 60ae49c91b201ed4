"""The comparison of the lax tests: a function of jitcore against the same of JAX, eager and traced.

In: two functions and operands. Out: nothing, or an AssertionError unless shapes, dtypes, weak types and
values agree.
"""

import numpy as np

from jitcore.array import Array
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import ShapedArray, aval_of, eval_jaxpr
from jitcore.core.trace import to_numpy, trace_to_jaxpr, wrap_result
from tests.jax_answers import jax

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5,
             "complex128": 1e-12}


def random_array(rng, shape, dtype="float32") -> np.ndarray:
    """Normal floats, integers in [-9, 9] ([0, 9] if unsigned), or random bools."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) > 0.5
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)


def as_list(outs) -> list:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


def run_traced(function, *operands) -> list:
    """The outputs of the function's jaxpr, which is checked first; what is not yet an Array is wrapped."""
    jaxpr, consts = trace_to_jaxpr(lambda *args: as_list(function(*args)), list(map(aval_of, operands)))
    check_jaxpr(jaxpr)
    outs = eval_jaxpr(jaxpr, consts, operands)
    return [wrap_result(to_numpy(out), aval) for out, aval in zip(outs, jaxpr.out_avals)]


def assert_same(actual, expected, tolerance=None) -> None:
    """actual: an Array of ours; expected: a JAX array."""
    assert isinstance(actual, Array)
    facts = ShapedArray(expected.shape, expected.dtype, expected.weak_type)
    assert actual.aval == facts, (actual.aval, facts)
    value, wanted = np.asarray(actual), np.asarray(expected)
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(value, wanted)
    else:
        tolerance = TOLERANCE[wanted.dtype.name] if tolerance is None else tolerance
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(value.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance)


def check_against_jax(ours, theirs, *operands, tolerance=None) -> None:
    """ours(*operands), run at once and from its jaxpr, is theirs(*operands)."""
    wide = any(
        getattr(operand, "dtype", np.dtype("float32")).name in ("int64", "uint64", "float64", "complex128")
        for operand in operands
    )
    with jax.enable_x64(wide):
        expected = as_list(theirs(*operands))
    eager, traced = as_list(ours(*operands)), run_traced(ours, *operands)
    assert len(eager) == len(traced) == len(expected)
    for actual in (eager, traced):
        for out, wanted in zip(actual, expected):
            assert_same(out, wanted, tolerance)
