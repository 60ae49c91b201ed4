"""Generators of random numbers in traced code: methods draw by `lax.draw` what NumPy's and Python's draw.

In: the words of a generator, an array that each draw writes (`process.streams`); parameters. Out: what the
method of this name returns; `NotTraceable` for methods and parameters that draw in other ways. Parameters
that the generator refuses leave the call to plain Python, which raises.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.lax.draw import SIGNATURES, draw
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.calls import as_shape
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.conversions import StandIn
from jitcore.numpy_semantics.values.items import get_item, pick_item
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.numpy_semantics.values.promotion import as_operand, to_raw
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.process.streams import FUNCTIONS, find_class, find_memory, has_function
from jitcore.rewriter.handles import Handle

__all__ = ["Stream", "make_stream"]


_OF_LOGARITHMS = ("legacy_gauss", "legacy_exponential", "python_gauss", "python_normal")


class Stream(StandIn):
    """Stands for a generator. form: see `streams.describe`."""

    @property
    def __class__(self):
        return find_class(self._form)

    def __init__(self, words: NDArray, form: str):
        self._words, self._form = words, form

    def __getattr__(self, name: str) -> Any:
        kind = self._form.partition(" ")[0]
        if name.startswith("__"):
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        raise not_traceable(f"a draw by {kind}.{name}()")

    def _draw(self, function: str, shape: tuple, *values: Array) -> Array:
        """The next numbers."""
        needed = "log" if function in _OF_LOGARITHMS else function
        if needed in FUNCTIONS and not has_function(needed):
            raise not_traceable(f"a draw by {needed}(), which is not to be found,")
        if function == "legacy_gauss":
            _refuse_fused()
        storage = self._words.storage
        source = self._form.split()[1]
        words, found = draw(storage.value, *values, function=function, source=source, shape=shape)
        storage.write(words)
        return found


def make_stream(words: NDArray, form: str) -> Stream:
    return _KINDS[form.partition(" ")[0]](words, form)


# -- parameters ---------------------------------------------------------------------------------------------
def _to_floats(value: Any) -> Array:
    value = as_operand(value)
    if getattr(value, "is_padded", False):
        raise not_traceable("a draw with parameters of traced extent")
    if isinstance(value, Handle) and value.dtype.kind not in "fiub":
        raise not_traceable("a draw with parameters that are no real numbers")
    return to_raw(value, dtypes.float64)


def _refuse_unless(is_right: Array, text: str) -> None:
    """Leaves the call to Python where a parameter is not right: it raises."""
    if is_right.shape:
        is_right = jnp.all(is_right)
    if isinstance(is_right, ConcreteArray):
        if not is_right.data:
            raise not_traceable(f"a draw whose parameters are refused: {text}")
        return
    fail(lax.bitwise_not(is_right), ValueError(text))


def _is_not_negative(value: Array) -> Array:
    """Whether it is 0 or more, and no -0.0."""
    bits = lax.bitcast_convert_type(value, dtypes.int64)
    return lax.bitwise_and(lax.eq(value, value), lax.ge(bits, jnp.zeros_like(bits)))


def _find_shape(size: Any, values: Sequence[Array]) -> tuple:
    own = np.broadcast_shapes(*[tuple(value.shape) for value in values])
    if size is None:
        return own
    shape = as_shape(size)
    if not shape or np.broadcast_shapes(shape, own) != shape:
        raise not_traceable("a draw of a size that its parameters do not have")
    return shape


def _check_dtype(dtype: Any, default: Any = dtypes.float64) -> None:
    if np.dtype(dtype) != default:
        raise not_traceable(f"a draw of dtype {np.dtype(dtype)}")


def _check_out(out: Any) -> None:
    if out is not None:
        raise not_traceable("a draw with out=")


def _give(found: Array, kind: type) -> Any:
    """What a method returns: a Python number, or an array."""
    return new_array(found) if found.shape else Number(kind, found)


def _make_parameter(values: Array, shape: tuple) -> Array:
    return jnp.broadcast_to(values, shape) if values.shape and tuple(values.shape) != shape else values


@functools.cache
def _has_fused_products() -> bool:
    """Whether NumPy was compiled to sums whose products are not rounded, as some compilers do by default."""
    numbers = np.random.RandomState(1).random_sample(24)
    found = [np.random.RandomState(1).uniform(0.1, 0.8, 24)]
    expected = [0.1 + (0.8 - 0.1) * numbers]
    bits = np.random.MT19937
    for make in (np.random.RandomState, np.random.Generator):
        found.append(make(bits(1)).normal(0.1, 0.7, 24))
        expected.append(0.1 + 0.7 * make(bits(1)).standard_normal(24))
    found.append(np.random.Generator(bits(1)).uniform(0.1, 0.8, 24))
    expected.append(0.1 + (0.8 - 0.1) * np.random.Generator(bits(1)).random(24))
    rng = np.random.RandomState(bits(1))
    with find_memory(rng) as memory:
        impl = draw.primitive.impl
        expected.append(impl(memory.words, function="legacy_gauss", source="MT19937", shape=(24,))[1])
    found.append(rng.standard_normal(24))
    return not all(map(np.array_equal, found, expected))


def _refuse_fused() -> None:
    if _has_fused_products():
        raise not_traceable("a draw of this NumPy, which rounds in its own way,")


# -- what NumPy's two kinds have in common ----------------------------------------------------------------
#: Constraints of a distribution's parameters.
_CHECKS = {"+": (_is_not_negative, "< 0"), ">": (lambda x: lax.gt(x, jnp.zeros_like(x)), "<= 0"), " ": None}


class _OfNumpy(Stream):
    _double, _normal, _exponential = "next_double", "", ""

    def _sample(self, function: str, size: Any, constraints: str = "", *parameters: Any) -> Any:
        """Numbers of a distribution of NumPy's C code."""
        values = [_to_floats(parameter) for parameter in parameters]
        shape = _find_shape(size, values)
        for value, constraint in zip(values, constraints):
            if constraint in "+>":
                is_right, text = _CHECKS[constraint]
                _refuse_unless(is_right(value), text)
        values = [_make_parameter(value, shape) for value in values]
        kind = float if SIGNATURES[function].result.kind == "f" else int
        return _give(self._draw(function, shape, *values), kind)

    def _scale(self, function: str, size: Any, low: Any, scale: Any) -> Any:
        """low + scale * numbers of a distribution; low may be None."""
        _refuse_fused()
        values = [_to_floats(value) for value in (low, scale) if value is not None]
        found = self._draw(function, _find_shape(size, values))
        found = lax.mul(*_spread(values[-1], found))
        if low is not None:
            found = lax.add(*_spread(values[0], found))
        return _give(found, float)

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = _to_floats(low), _to_floats(high)
        extent = lax.sub(*_spread(high, low))
        _refuse_unless(lax.bitwise_and(lax.is_finite(extent), self._check_extent(extent)), "high - low")
        return self._scale(self._double, size, low, extent)

    def _check_extent(self, extent: Array) -> Array:
        return lax.eq(extent, extent)

    def normal(self, loc=0.0, scale=1.0, size=None):
        _refuse_unless(_is_not_negative(_to_floats(scale)), "scale < 0")
        return self._scale(self._normal, size, loc, scale)

    def exponential(self, scale=1.0, size=None):
        _refuse_unless(_is_not_negative(_to_floats(scale)), "scale < 0")
        return self._scale(self._exponential, size, None, scale)

    def poisson(self, lam=1.0, size=None):
        return self._sample("random_poisson", size, "+", _bound(lam, 9.2e18))

    def laplace(self, loc=0.0, scale=1.0, size=None):
        return self._sample("random_laplace", size, " +", loc, scale)

    def gumbel(self, loc=0.0, scale=1.0, size=None):
        return self._sample("random_gumbel", size, " +", loc, scale)

    def logistic(self, loc=0.0, scale=1.0, size=None):
        return self._sample("random_logistic", size, " +", loc, scale)

    def binomial(self, n, p, size=None):
        n, p = _to_ints(n), _to_floats(p)
        shape = _find_shape(size, [n, p])
        inside = lax.bitwise_and(lax.ge(p, jnp.zeros_like(p)), lax.le(p, jnp.ones_like(p)))
        _refuse_unless(inside, "p < 0, p > 1 or p is NaN")
        _refuse_unless(lax.ge(n, jnp.zeros_like(n)), "n < 0")
        values = _make_parameter(p, shape), _make_parameter(n, shape)
        return _give(self._draw("random_binomial", shape, *values), int)

    # -- integers
    _is_masked = False

    def _draw_below(self, low: Any, high: Any, size: Any, dtype: Any, is_closed: bool = False) -> Any:
        """Integers from low on, below high."""
        if high is None:
            low, high = 0, low
        if dtype is not int and np.dtype(dtype) != dtypes.int64:
            raise not_traceable(f"a draw of dtype {np.dtype(dtype)}")
        low, high = _to_ints(low), _to_ints(high)
        if low.shape or high.shape:
            raise not_traceable("a draw of integers with arrays for bounds")
        last = high if is_closed else lax.sub(high, np.int64(1))
        _refuse_unless(lax.bitwise_and(lax.ge(last, low), lax.gt(high, np.int64(-2**63))), "low >= high")
        extent = lax.convert_element_type(lax.sub(last, low), dtypes.uint64)
        first = lax.convert_element_type(low, dtypes.uint64)
        ones = np.uint64(2**64 - 1)
        mask = lax.shift_right_logical(ones, lax.clz(extent))
        mask = lax.select_n(lax.eq(extent, np.uint64(0)), mask, np.uint64(0))
        shape = () if size is None else _find_shape(size, [])
        found = self._draw("random_bounded_uint64", shape, first, extent, mask, np.uint64(self._is_masked))
        found = lax.convert_element_type(found, dtypes.int64)
        if shape:
            return new_array(found)
        if dtype is not int:
            return Scalar(found)
        bounds = tuple(int(bound.data) if isinstance(bound, ConcreteArray) else end
                       for bound, end in ((low, -2.0**63), (last, 2.0**63)))
        return Number(int, found, interval=bounds)

    def _choose(self, a: Any, size: Any, replace: Any, p: Any, draw_below: Any) -> Any:
        if p is not None or replace is not True and replace is not np.True_:
            raise not_traceable("a choice with p= or without replacement")
        if isinstance(a, Number) and a.python_type is int or isinstance(a, int):
            return draw_below(a, size)
        a = as_operand(np.asarray(a) if not _has_handles(a) else a)
        if not isinstance(a, NDArray) or a.ndim != 1 or a.is_padded:
            raise not_traceable("a choice of something else than a range or an array of one axis")
        return get_item(a, draw_below(a.shape[0], size))

    def _shuffle(self, values: Array) -> Array:
        count = int(values.shape[0])
        if count < 2:
            return values
        last = jnp.arange(count - 1, 0, -1, dtype=dtypes.uint64)
        places = lax.convert_element_type(self._draw("random_interval", (count - 1,), last), dtypes.int64)

        def exchange(k, state):  # each with one before it, from the last one on
            here, there = lax.sub(np.int64(count - 1), k), places[k]
            one, other = state[here], state[there]
            return state.at[here].set(other).at[there].set(one)

        return lax.fori_loop(0, count - 1, exchange, values)

    def shuffle(self, x):
        if not isinstance(x, NDArray) or x.ndim != 1 or x.is_padded:
            raise not_traceable("a shuffle of something else than an array of one axis")
        x[...] = new_array(self._shuffle(x.read()))

    def permutation(self, x):
        if isinstance(x, int):
            return new_array(self._shuffle(jnp.arange(x, dtype=dtypes.int64)))
        if not isinstance(x, NDArray) or x.ndim != 1 or x.is_padded:
            raise not_traceable("a permutation of something else than a range or an array of one axis")
        return new_array(self._shuffle(x.read()))


def _spread(one: Array, other: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(tuple(one.shape), tuple(other.shape))
    return tuple(value if tuple(value.shape) == shape else jnp.broadcast_to(value, shape)
                 for value in (one, other))


def _bound(value: Any, limit: float) -> Any:
    found = _to_floats(value)
    _refuse_unless(lax.le(found, jnp.full_like(found, limit)), "value too large")
    return value


def _to_ints(value: Any) -> Array:
    value = as_operand(value)
    kind = value.python_type if type(value) is Number else getattr(value, "dtype", None)
    if kind not in (int, dtypes.int64, dtypes.int32) and type(value) is not int:
        raise not_traceable("a draw with bounds that are no ints")
    return to_raw(value, dtypes.int64)


def _has_handles(value: Any) -> bool:
    return isinstance(value, Handle) or isinstance(value, (list, tuple)) and any(
        isinstance(item, Handle) for item in value)


class _RandomState(_OfNumpy):
    """`np.random.RandomState`, and the functions of `np.random`."""

    _normal, _exponential, _is_masked = "legacy_gauss", "legacy_exponential", True

    def random_sample(self, size=None):
        return self._sample(self._double, size)

    random = ranf = sample = random_sample

    def rand(self, *size):
        return self._sample(self._double, size or None)

    def randn(self, *size):
        return self.standard_normal(size or None)

    def standard_normal(self, size=None):
        return self._sample(self._normal, size)

    def standard_exponential(self, size=None):
        return self._sample(self._exponential, size)

    def randint(self, low, high=None, size=None, dtype=int):
        return self._draw_below(low, high, size, dtype)

    def choice(self, a, size=None, replace=True, p=None):
        return self._choose(a, size, replace, p, lambda n, size: self._draw_below(0, n, size, int))


class _Generator(_OfNumpy):
    """`np.random.Generator`."""

    _normal, _exponential = "random_standard_normal", "random_standard_exponential"

    def _check_extent(self, extent):
        return _is_not_negative(extent)

    def random(self, size=None, dtype=np.float64, out=None):
        _check_dtype(dtype)
        _check_out(out)
        return self._sample(self._double, size)

    def standard_normal(self, size=None, dtype=np.float64, out=None):
        _check_dtype(dtype)
        _check_out(out)
        return self._sample(self._normal, size)

    def standard_exponential(self, size=None, dtype=np.float64, method="zig", out=None):
        _check_dtype(dtype)
        _check_out(out)
        if method != "zig":
            raise not_traceable(f"a draw by the method {method!r}")
        return self._sample(self._exponential, size)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        if not isinstance(endpoint, bool):
            raise not_traceable("a draw with a traced endpoint=")
        return self._draw_below(low, high, size, dtype, endpoint)

    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        if axis != 0:
            raise not_traceable("a choice along another axis")
        dtype = type(np.random.Generator(np.random.PCG64(0)).choice(2)) if size is None else np.int64
        return self._choose(a, size, replace, p, lambda n, size: self._draw_below(0, n, size, dtype))

    def shuffle(self, x, axis=0):
        if axis != 0:
            raise not_traceable("a shuffle along another axis")
        super().shuffle(x)

    def permutation(self, x, axis=0):
        if axis != 0:
            raise not_traceable("a permutation along another axis")
        return super().permutation(x)

    def standard_gamma(self, shape, size=None, dtype=np.float64, out=None):
        _check_dtype(dtype)
        _check_out(out)
        return self._sample("random_standard_gamma", size, "+", shape)

    def gamma(self, shape, scale=1.0, size=None):
        values = [_to_floats(shape), _to_floats(scale)]
        for value in values:
            _refuse_unless(_is_not_negative(value), "< 0")
        size = _find_shape(size, values)
        found = self._draw("random_standard_gamma", size, _make_parameter(values[0], size))
        return _give(lax.mul(*_spread(values[1], found)), float)

    def geometric(self, p, size=None):
        p = _to_floats(p)
        inside = lax.bitwise_and(lax.gt(p, jnp.zeros_like(p)), lax.le(p, jnp.ones_like(p)))
        _refuse_unless(inside, "p <= 0, p > 1 or p is NaN")
        return self._sample("random_geometric", size, "", p)

    def beta(self, a, b, size=None):
        return self._sample("random_beta", size, ">>", a, b)

    def chisquare(self, df, size=None):
        return self._sample("random_chisquare", size, ">", df)

    def lognormal(self, mean=0.0, sigma=1.0, size=None):
        return self._sample("random_lognormal", size, " +", mean, sigma)

    def rayleigh(self, scale=1.0, size=None):
        return self._sample("random_rayleigh", size, "+", scale)

    def pareto(self, a, size=None):
        return self._sample("random_pareto", size, ">", a)

    def weibull(self, a, size=None):
        return self._sample("random_weibull", size, "+", a)

    def power(self, a, size=None):
        return self._sample("random_power", size, ">", a)

    def standard_cauchy(self, size=None):
        return self._sample("random_standard_cauchy", size)

    def standard_t(self, df, size=None):
        return self._sample("random_standard_t", size, ">", df)


# -- Python's -----------------------------------------------------------------------------------------------
class _Random(Stream):
    """`random.Random`, and the functions of `random`: as that module writes them."""

    def random(self):
        return Number(float, self._draw("next_double", ()))

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def gauss(self, mu=0.0, sigma=1.0):
        return mu + Number(float, self._draw("python_gauss", ())) * sigma

    def normalvariate(self, mu=0.0, sigma=1.0):
        return mu + Number(float, self._draw("python_normal", ())) * sigma

    def expovariate(self, lambd):
        return Number(float, self._draw("legacy_exponential", ())) / lambd

    def getrandbits(self, k):
        if type(k) is not int or not 0 < k < 64:
            raise not_traceable("random.getrandbits() of more than 63 bits, or of a traced number of them")
        return Number(int, self._draw("python_bits", (), np.int64(k)), interval=(0, 2**k - 1))

    def randrange(self, start, stop=None, step=1):
        if not all(type(value) is int or type(value) is Number and value.python_type is int
                   for value in (start, step, *(() if stop is None else (stop,)))):
            raise not_traceable("random.randrange() of something else than ints")
        if type(step) is not int or not step:
            raise not_traceable("random.randrange() with a step of this kind")
        if stop is None:
            return self._draw_below(start)
        width = stop - start
        count = width if step == 1 else (width + step - (1 if step > 0 else -1)) // step
        return start + step * self._draw_below(count)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def choice(self, seq):
        if isinstance(seq, (list, tuple, range)) and not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        place = self._draw_below(len(seq))
        if type(seq) is range:
            return seq.start + seq.step * place
        return pick_item(seq, place) if isinstance(seq, (list, tuple)) else operator.getitem(seq, place)

    def _draw_below(self, count: Any) -> Number:
        raw = _to_ints(count)
        _refuse_unless(lax.gt(raw, np.int64(0)), "empty range for randrange()")
        last = count - 1 if type(count) is int else 2.0**62
        return Number(int, self._draw("python_below", (), raw), interval=(0, last))


_KINDS = {"RandomState": _RandomState, "Generator": _Generator, "Random": _Random}
