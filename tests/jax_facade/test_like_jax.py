"""Calls that JAX's own tests make (`tests/jax_suite.py`), with JAX's answers: values, dtypes, weak types, errors."""

import numpy as np
import pytest

import jitcore.jax
from tests.jax_answers import ask

X, F = np.arange(1, 7, dtype=np.int32).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(2, 3)
MASK = np.array([[True, False, True], [False, False, True]])
PLACES = np.array([-1, 1, 7])


def rows_of_ufuncs():
    def add(u, method, **options):
        def call(jax):
            function = getattr(jax.numpy, u)
            x = jax.numpy.asarray(X if u.startswith("bitwise") else F)
            arguments = {"reduce": (x,), "accumulate": (x,), "reduceat": (x, jax.numpy.array([0, 2, 1])),
                         "outer": (x[0], x[:, 1]),
                         "at": (x[0] > 0 if u.startswith("logical") else x[0], jax.numpy.array([0, 0, 1, -1]), x[1, 0])}
            return getattr(function, method)(*arguments[method], **options)
        return f"{u}.{method} {options}", call

    for u in ("subtract", "bitwise_and", "bitwise_xor", "logaddexp", "add", "maximum", "logical_or", "multiply"):
        for options in ({}, {"axis": None}, {"axis": 1, "keepdims": True}, {"axis": 1, "where": MASK},
                        {"axis": 0, "initial": 2}, {"axis": None, "where": MASK, "initial": 2}):
            if u != "logaddexp" or not {"where", "initial"} & set(options):
                yield add(u, "reduce", **options)
        yield add(u, "accumulate", axis=1)
        yield add(u, "reduceat", axis=1)
        yield add(u, "outer")
        yield add(u, "at", inplace=False)


def rows_of_indexing():
    def add(method, mode, index, wraps):
        def call(jax):
            reference = jax.numpy.arange(5.).at[jax.numpy.asarray(index) if isinstance(index, np.ndarray) else index]
            arguments = () if method == "get" else (3.,)
            return getattr(reference, method)(*arguments, mode=mode, wrap_negative_indices=wraps)
        return f"at[{index}].{method} {mode} {wraps}", call

    for mode in (None, "fill", "clip", "drop"):
        for index in (-1, PLACES, np.uint8(3)):
            for method in ("get", "set", "add", "divide", "max"):
                yield add(method, mode, index, False)
    yield "take_along_axis", lambda jax: jax.numpy.take_along_axis(
        jax.numpy.asarray(F), jax.numpy.array([[-1, 0]]), 1, wrap_negative_indices=False)


CASES = dict([*rows_of_ufuncs(), *rows_of_indexing()])


def answer(case, jax):
    """What the call gives: leaves, or the class of the error."""
    try:
        return jax.tree_util.tree_leaves(case(jax))
    except Exception as error:
        return [type(error).__name__]


def check_like_jax(case, rtol=2e-6):
    ours, theirs = answer(case, jitcore.jax), ask(lambda jax: answer(case, jax))
    assert len(ours) == len(theirs)
    for mine, its in zip(ours, theirs, strict=True):
        if isinstance(its, str):
            assert mine == its, mine
        else:
            assert np.shape(mine) == np.shape(its)
            assert getattr(mine, "dtype", type(mine)) == getattr(its, "dtype", type(its))
            assert getattr(mine, "weak_type", False) == getattr(its, "weak_type", False)
            np.testing.assert_allclose(np.asarray(mine, its.dtype if hasattr(its, "dtype") else None), its, rtol=rtol,
                                       atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_calls(name):
    check_like_jax(CASES[name])
