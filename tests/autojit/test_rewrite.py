"""`jitcore.rewrite`: the public form of the bytecode rewriter."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jitcore


@jitcore.rewrite
def clip(x, low=0.0):
    """Clips."""
    while x > 10:
        x = x / 2
    if x < low:
        return low
    return x


def test_control_flow_on_traced_values():
    for x in (-1.0, 3.0, 100.0):
        expected = clip(x)
        assert type(expected) is float  # in plain calls it is the function itself
        np.testing.assert_allclose(jitcore.jit(clip)(x), expected)
    assert jitcore.grad(clip)(3.0) == 1.0 and jitcore.grad(clip)(-1.0) == 0.0
    np.testing.assert_allclose(jitcore.vmap(clip)(np.array([-1.0, 3.0, 40.0])), [0.0, 3.0, 10.0])
    assert clip.__name__ == "clip" and clip.__doc__ == "Clips."


def test_what_is_no_function():
    with pytest.raises(TypeError, match="Expected a callable value"):
        jitcore.rewrite(3)


@pytest.mark.parametrize("first", ["jitcore.rewriter", "jitcore.autojitted", "jitcore.api"])
def test_names_do_not_depend_on_what_is_imported_first(first):
    code = f"import {first}, jitcore; assert callable(jitcore.rewrite) and callable(jitcore.autojit)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_loops_are_traced_whatever_else_was_imported():
    code = """
import jitcore
@jitcore.rewrite
def halve(x):
    while x > 10:
        x = x / 2
    return x
assert jitcore.jit(halve)(100.0) == 6.25
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
