"""What every distribution does with its arguments: the key, the shape, the dtype and the parameters.

In: arguments as the user passes them. Out: a raw key, a tuple of extents, a NumPy dtype, and parameters in
that dtype: NumPy scalars where they are known now, arrays otherwise.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.core.jaxpr import aval_of
from jitcore.lax.shape import broadcast_in_dim, broadcast_shapes, canonicalize_shape, check_nonnegative
from jitcore.random.keys import read_keys


def read_call(name: str, key, shape, dtype=None, *, accepts: str = "f",
              parameters=()) -> tuple[Array, tuple, np.dtype]:
    """The typed key, the shape and the dtype of a call.

    Args:
        shape: None takes the parameters' common shape.
        dtype: None takes the default float.
        accepts: kinds of dtypes ("f", "fc").
    Raises: TypeError for what is no key; ValueError for another dtype, or parameters that do not fit shape.
    """
    key = read_keys(name, key)
    dtype = dtypes.canonicalize(float if dtype is None else dtype)
    if dtypes.kind_of(dtype) not in accepts:
        wanted = "float or complex" if "c" in accepts else "float"
        raise ValueError(f"dtype argument to `{name}` must be a {wanted} dtype, got {dtype.name}")
    return key, read_shape(name, shape, *parameters), dtype


def read_shape(name: str, shape, *parameters) -> tuple:
    """The result's shape: what is asked for, or (None) what the parameters broadcast to.

    Raises: ValueError for parameters that do not broadcast to it; TypeError for a negative extent."""
    common = broadcast_shapes(*[aval_of(parameter).shape for parameter in parameters])
    if shape is None:
        return common
    shape = canonicalize_shape(shape)
    check_nonnegative(name, "shape", shape)
    if common and broadcast_shapes(shape, common) != shape:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape argument, and "
                         f"the result of broadcasting the shapes must equal the shape argument, but got "
                         f"parameters of shape {common} for shape argument {shape}.")
    return shape


def drawn_dtype(*parameters) -> np.dtype:
    """The dtype of draws where parameters decide it: their float dtype, at most as wide as floats are by
    default.

    ndarrays have 64 bits unless they are told otherwise: with them a key gives the numbers that it gives
    else, as in JAX."""
    dtype, default = dtypes.inexact_dtype(dtypes.result_type(*parameters)), dtypes.default_dtype("f")
    return default if dtype.itemsize > default.itemsize else dtype


def to_parameter(value, dtype):
    """A parameter in the distribution's dtype: an Array, or a NumPy scalar for a Python or NumPy scalar."""
    if isinstance(value, (*dtypes.PYTHON_SCALARS, np.generic)):
        return np.asarray(value).astype(dtype)[()]
    return jnp.asarray(value, dtype)


def spread_parameter(value, dtype, shape: tuple) -> Array:
    """A parameter as an array of this dtype and shape."""
    array = jnp.asarray(to_parameter(value, dtype))
    if array.shape == shape:
        return array
    offset = len(shape) - len(array.shape)
    fitting = [i for i, extent in enumerate(array.shape) if extent == shape[offset + i]]
    if len(fitting) < len(array.shape):
        return jnp.broadcast_to(array, shape)
    return broadcast_in_dim(array, shape, [offset + i for i in fitting])
