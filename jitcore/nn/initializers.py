"""Initial weights: functions that return `init(key, shape, dtype)`.

In: a scale, a distribution, which axes are inputs and outputs. Out: initialisers, which draw arrays from a
key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes, numpy as jnp, random
from jitcore.array import Array
from jitcore.lax.shape import canonicalize_axis, canonicalize_shape

__all__ = ["constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
           "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones",
           "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform",
           "zeros"]

Initializer = Callable[..., Array]

# Standard deviations of the standard normal distribution cut off at 2: real numbers, and complex magnitudes.
_STDDEV_WITHIN_2 = 0.87962566103423978
_COMPLEX_STDDEV_WITHIN_2 = 0.95311164380491208


def _to_dtype(dtype) -> np.dtype:
    return dtypes.default_dtype("f") if dtype is None else dtypes.canonicalize(dtype)


def _make_initializer(draw: Callable, default_dtype) -> Initializer:
    """init(key, shape, dtype), which calls draw(key, shape, dtype) with the dtype resolved."""

    def init(key, shape, dtype=default_dtype) -> Array:
        return draw(key, canonicalize_shape(shape), _to_dtype(dtype))

    return init


def zeros(key, shape, dtype=None) -> Array:
    """All zeros; the key is not used."""
    return jnp.zeros(shape, _to_dtype(dtype))


def ones(key, shape, dtype=None) -> Array:
    """All ones; the key is not used."""
    return jnp.ones(shape, _to_dtype(dtype))


def constant(value, dtype=None) -> Initializer:
    """Initialiser: value everywhere."""
    return _make_initializer(lambda key, shape, dtype: jnp.full(shape, value, dtype), dtype)


def uniform(scale=1e-2, dtype=None) -> Initializer:
    """Initialiser: uniform in [0, scale)."""

    def draw(key, shape, dtype):
        return random.uniform(key, shape, dtype) * jnp.asarray(scale, dtype)

    return _make_initializer(draw, dtype)


def normal(stddev=1e-2, dtype=None) -> Initializer:
    """Initialiser: normal with this standard deviation."""

    def draw(key, shape, dtype):
        return random.normal(key, shape, dtype) * jnp.asarray(stddev, dtype)

    return _make_initializer(draw, dtype)


def truncated_normal(stddev=1e-2, dtype=None, lower=-2.0, upper=2.0) -> Initializer:
    """Initialiser: standard normal in (lower, upper), times stddev."""

    def draw(key, shape, dtype):
        return random.truncated_normal(key, lower, upper, shape, dtype) * jnp.asarray(stddev, dtype)

    return _make_initializer(draw, dtype)


# -- scaled by the number of inputs and outputs -----------------------------------------------------------
_FANS = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}


def variance_scaling(scale, mode: str, distribution: str, in_axis=-2, out_axis=-1, batch_axis=(),
                     dtype=None) -> Initializer:
    """Initialiser of variance scale / n, where n counts the inputs or outputs of a unit.

    Args:
        mode: what n is: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg" (the two's mean or geometric mean).
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis, out_axis, batch_axis: an axis or axes of the weights; all others are the receptive field.
    Raises: ValueError (when called) for another mode or distribution."""

    def draw(key, shape, dtype):
        if mode not in _FANS:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}")
        if distribution not in _SCALED:
            raise ValueError(f"invalid distribution for variance scaling initializer: {distribution}")
        fan = _FANS[mode](*_count_fans(shape, in_axis, out_axis, batch_axis))
        return _SCALED[distribution](key, shape, dtype, jnp.asarray(scale / fan, dtype))

    return _make_initializer(draw, dtype)


def _count_fans(shape, in_axis, out_axis, batch_axis) -> tuple[float, float]:
    """Inputs and outputs of one unit."""
    if in_axis == -2 and len(shape) <= 1:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional weights "
                         "tensor with default in_axis. Must be at least 2D or specify in_axis explicitly.")
    n_in, n_out, n_batch = (math.prod(shape[i] for i in (axes if isinstance(axes, Sequence) else (axes,)))
                            for axes in (in_axis, out_axis, batch_axis))
    field = math.prod(shape) / n_in / n_out / n_batch
    return n_in * field, n_out * field


def _draw_scaled_truncated(key, shape, dtype, variance) -> Array:
    if dtypes.is_complex(dtype):
        draw, within = _draw_complex_truncated(key, shape, dtype), _COMPLEX_STDDEV_WITHIN_2
    else:
        draw, within = random.truncated_normal(key, -2, 2, shape, dtype), _STDDEV_WITHIN_2
    return draw * (jnp.sqrt(variance) / jnp.asarray(within, dtype))


def _draw_scaled_normal(key, shape, dtype, variance) -> Array:
    return random.normal(key, shape, dtype) * jnp.sqrt(variance)


def _draw_scaled_uniform(key, shape, dtype, variance) -> Array:
    if dtypes.is_complex(dtype):
        radius_key, angle_key = random.split(key)
        radius = jnp.sqrt(2 * random.uniform(radius_key, shape, dtypes.real_dtype(dtype)))
        return _to_complex(radius, angle_key, shape, dtype) * jnp.sqrt(variance)
    return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)


def _draw_complex_truncated(key, shape, dtype) -> Array:
    """Complex standard normal numbers of magnitude below 2."""
    radius_key, angle_key = random.split(key)
    real = dtypes.real_dtype(dtype)
    t = jnp.asarray(1 - math.exp(-4), real) * random.uniform(radius_key, shape, real)
    return _to_complex(jnp.sqrt(-jnp.log(1 - t)), angle_key, shape, dtype)


def _to_complex(radius: Array, angle_key, shape, dtype) -> Array:
    """Complex numbers of these magnitudes with random angles."""
    angle = 2 * np.pi * jnp.asarray(random.uniform(angle_key, shape, dtypes.real_dtype(dtype)), dtype)
    return jnp.asarray(radius, dtype) * jnp.exp(1j * angle)


_SCALED = {"truncated_normal": _draw_scaled_truncated, "normal": _draw_scaled_normal,
           "uniform": _draw_scaled_uniform}


def _define_scaled(name: str, scale: float, mode: str, distribution: str, doc: str):
    def make(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}\n\nSame as: `variance_scaling({scale}, {mode!r}, {distribution!r}, ...)`."
    return make


glorot_uniform = xavier_uniform = _define_scaled("glorot_uniform", 1.0, "fan_avg", "uniform",
                                                 "Initialiser of Glorot and Bengio (2010), uniform.")
glorot_normal = xavier_normal = _define_scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal",
                                               "Initialiser of Glorot and Bengio (2010), normal.")
lecun_uniform = _define_scaled("lecun_uniform", 1.0, "fan_in", "uniform",
                               "Initialiser of LeCun et al. (1998), uniform.")
lecun_normal = _define_scaled("lecun_normal", 1.0, "fan_in", "truncated_normal",
                              "Initialiser of LeCun et al. (1998), normal.")
he_uniform = kaiming_uniform = _define_scaled("he_uniform", 2.0, "fan_in", "uniform",
                                              "Initialiser of He et al. (2015), uniform.")
he_normal = kaiming_normal = _define_scaled("he_normal", 2.0, "fan_in", "truncated_normal",
                                            "Initialiser of He et al. (2015), normal.")


# -- orthogonal -------------------------------------------------------------------------------------------
def orthogonal(scale=1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """Initialiser: a random matrix with orthonormal rows or columns.

    column_axis: the columns' axis; all others together are the rows'.
    Raises: ValueError (when called) for a shape of fewer than two axes."""

    def draw(key, shape, dtype):
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        axis = canonicalize_axis(column_axis, len(shape))
        n_columns = shape[axis]
        wide = dtypes.float32 if dtypes.is_half(dtype) else dtype  # which has decompositions
        matrix = random.orthogonal(key, math.prod(shape) // n_columns, (), wide, n_columns).astype(dtype)
        matrix = jnp.reshape(matrix, (*shape[:axis], *shape[axis + 1 :], n_columns))
        return jnp.asarray(scale, dtype) * jnp.moveaxis(matrix, -1, axis)

    return _make_initializer(draw, dtype)


def delta_orthogonal(scale=1.0, column_axis: int = -1, dtype=None) -> Initializer:
    """Initialiser of convolution kernels: an orthogonal matrix at the centre, 0 elsewhere.

    Raises: ValueError (when called) unless the shape has 3 to 5 axes and no more inputs than outputs."""

    def draw(key, shape, dtype):
        if not 3 <= len(shape) <= 5:
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`.")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        centre = tuple((extent - 1) // 2 for extent in shape[:-2])
        return jnp.zeros(shape, dtype).at[centre].set(matrix)

    return _make_initializer(draw, dtype)
