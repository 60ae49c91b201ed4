"""Shape rules of the structured primitives with a symbolic extent."""

import numpy as np
import pytest

from jitcore import lax
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.symbolic import DimVar
from jitcore.core.trace import trace_to_jaxpr

N = DimVar("n")
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
ROWS_TO = lax.ScatterDimensionNumbers((1,), (0,), (0,))

# name, function of x: f32[n, 4] and i: i32[n, 1], shape of the result
CASES = [
    ("reshape", lambda x, i: lax.reshape(x, (2, N * 2)), (2, 2 * N)),
    ("broadcast_in_dim", lambda x, i: lax.broadcast_in_dim(x, (3, N, 4), (1, 2)), (3, N, 4)),
    ("squeeze", lambda x, i: lax.squeeze(lax.expand_dims(x, (0,)), (0,)), (N, 4)),
    ("transpose", lambda x, i: lax.transpose(x, (1, 0)), (4, N)),
    ("concatenate", lambda x, i: lax.concatenate([x, x], 0), (2 * N, 4)),
    ("split", lambda x, i: lax.split(lax.concatenate([x, x], 0), (N, N))[1], (N, 4)),
    ("pad", lambda x, i: lax.pad(x, 0.0, [(1, 1, 1), (0, 0, 1)]), (2 * N + 1, 7)),
    ("tile", lambda x, i: lax.tile(x, (2, 1)), (2 * N, 4)),
    ("full", lambda x, i: lax.full((N,), 1.0), (N,)),
    ("iota", lambda x, i: lax.iota(np.int32, N), (N,)),
    ("reduce_sum", lambda x, i: lax.reduce_sum(x, (1,)), (N,)),
    ("argmax", lambda x, i: lax.argmax(x, 0, np.int32), (4,)),
    ("cumsum", lambda x, i: lax.cumsum(x, 0), (N, 4)),
    ("slice", lambda x, i: lax.slice(x, (0, 0), (N, 4), (2, 1)), ((N + 1) // 2, 4)),
    ("slice_in_dim", lambda x, i: lax.slice_in_dim(x, 1, None), (N - 1, 4)),
    ("index_in_dim", lambda x, i: lax.index_in_dim(x, -1, keepdims=False), (4,)),
    ("gather", lambda x, i: lax.gather(x, i, ROWS, (1, 4)), (N, 4)),
    ("scatter_add", lambda x, i: lax.scatter_add(x, i, x, ROWS_TO), (N, 4)),
    ("dot", lambda x, i: lax.dot(x, lax.transpose(x, (1, 0))), (N, N)),
    ("sort", lambda x, i: lax.sort(x, 0), (N, 4)),
    ("top_k", lambda x, i: lax.top_k(x, 2)[0], (N, 2)),
    ("reduce_window_sum", lambda x, i: lax.reduce_window_sum(x, (1, 2)), (N, 3)),
]


@pytest.mark.parametrize("function, shape", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_shape(function, shape):
    avals = [ShapedArray((N, 4), np.float32), ShapedArray((N, 1), np.int32)]
    jaxpr, _ = trace_to_jaxpr(lambda x, i: [function(x, i)], avals)
    check_jaxpr(jaxpr)
    assert jaxpr.out_avals[0].shape == shape


def test_a_wrong_size_is_found():
    with pytest.raises(TypeError, match="reshape total size must be unchanged"):
        trace_to_jaxpr(lambda x: [lax.reshape(x, (N * 3,))], [ShapedArray((N, 4), np.float32)])
