"""Segment reductions against JAX."""

import jax
import numpy as np
import pytest

import jitcore
from jitcore import ops

NAMES = ["segment_sum", "segment_prod", "segment_max", "segment_min"]


def draw(shape, dtype):
    return (np.random.default_rng(1).standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape, ids_shape", [((40,), (40,)), ((40, 3), (40,)), ((0,), (0,))])
def test_against_jax(name, shape, ids_shape, dtype):
    data, ids = draw(shape, dtype), np.random.default_rng(2).integers(-2, 9, ids_shape).astype(np.int32)
    got = jitcore.jit(lambda d, i: getattr(ops, name)(d, i, 7))(data, ids)
    wanted = getattr(jax.ops, name)(data, ids, 7)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_number_of_segments_is_found(name):
    data, ids = draw((6,), "float32"), np.array([0, 0, 1, 1, 4, 4])
    np.testing.assert_allclose(np.asarray(getattr(ops, name)(data, ids)), getattr(jax.ops, name)(data, ids), rtol=1e-6)


def test_traced_segments_need_their_number():
    with pytest.raises(jitcore.errors.ConcretizationTypeError, match="segment_ids"):
        jitcore.jit(ops.segment_sum)(np.ones(3, np.float32), np.arange(3))


def test_shapes_must_fit():
    with pytest.raises(ValueError, match="does not begin"):
        ops.segment_sum(np.ones((3, 4)), np.arange(4), 4)
    with pytest.raises(TypeError, match="integer"):
        ops.segment_sum(np.ones(3), np.ones(3), 4)


def test_many_rows_into_few_segments():
    data, ids = draw((300_000,), "float32"), np.random.default_rng(2).integers(0, 50, 300_000)
    got = np.asarray(jitcore.jit(lambda d, i: ops.segment_sum(d, i, 50))(data, ids))
    np.testing.assert_allclose(got, np.bincount(ids, data.astype(np.float64)), rtol=1e-4, atol=1e-2)
