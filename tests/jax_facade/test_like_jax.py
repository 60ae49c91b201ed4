"""Calls that JAX's own tests make (`tests/jax_suite.py`), with JAX's answers: values, dtypes, weak types, errors."""

import importlib
import re

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


def rows_of_numpy():
    """Calls of `jax.numpy` as text, in which `x`, `f`, `c`, `m` and `w` are arrays; `jit(...)` traces its arguments."""
    texts = """
        jnp.logaddexp(c, c[::-1]) | jnp.logaddexp2(c, c[::-1]) | jax.grad(lambda v: jnp.logaddexp(v, 0.))(jnp.nan)
        jax.grad(jax.nn.softplus)(jnp.nan) | jnp.arange(6.).reshape(2, 3).byteswap() | (f > 1).byteswap()
        jit(lambda v: v.byteswap(), x) | jit(lambda v: v.trace(), f) | jit(lambda v: v.trace(offset=1), f)
        jit(lambda a, i: jnp.insert(a, i, 9.), f[0], 2) | jit(lambda a, i: jnp.insert(a, i, f[:, 0], axis=1), f, -1)
        jit(lambda a, i: jnp.insert(a, i, 9.), f[0], 8) | jit(lambda a, i: jnp.insert(a, i, 9.), f[0], jnp.array([2, 0]))
        jit(lambda a, i: jnp.delete(a, i, assume_unique_indices=True), f[0], jnp.array([2, 0]))
        jnp.ravel_multi_index((jnp.array([1, 2]), jnp.array([0, 1])), (3, 4), dtype=jnp.int16)
        jnp.take_along_axis(f, jnp.array([[0, 2], [1, 5]]), 1, mode="one_hot") | jnp.take(f, 7, axis=1)
        jnp.take_along_axis(f, np.array([[0, 2], [1, 5]]), 1) | jnp.trim_zeros(jnp.array(3)) | jnp.trim_zeros(f > 4, axis=1)
        jnp.trim_zeros(f > 4) | jnp.trim_zeros(f > 4, "f", (0, 1)) | jnp.argsort(f, dtype=jnp.int16, descending=True)
        jnp.digitize(f[0], jnp.array([2., 1., 0.])) | jnp.digitize(f[0], jnp.array([2., 1., 0.]), right=True)
        jnp.c_[x[0], x[1]] | jnp.r_["0,2", x[0], x[1]] | jnp.r_["r", x[0], x[1]] | jnp.r_["c", x[0]] | jnp.r_["-1", x, x]
        jnp.r_["0,3,1", x[0], x[1]] | jnp.c_["0,2", x[0]] | jit(lambda v, s: jnp.roll(v, s, axis=(0, 1)), f, jnp.array([1, 2]))
        jit(lambda v, s: jnp.roll(v, s, axis=1), f, jnp.array([1, 1])) | jit(lambda v, s: jnp.roll(v, s), f, jnp.array([1]))
        jnp.trapezoid(f, dx=jnp.array([[1., 2., 3.]]), axis=0) | jnp.trapezoid(jnp.ones((2, 3, 4)), dx=jnp.ones((2, 2, 1)), axis=1)
        jnp.trapezoid(f, dx=jnp.array([1., 2.])) | jnp.full_like(jax.ShapeDtypeStruct((2,), jnp.float32), 3)
        jnp.zeros_like(jax.ShapeDtypeStruct((2,), jnp.int8)) | jnp.interp(jnp.array([.5, 9.]), jnp.arange(4.), c, period=2.)
        jnp.cov(f[:1], rowvar=False) | jnp.cov(f, dtype=jnp.float16) | jnp.corrcoef(f[:, :1], rowvar=False) | jnp.cov(f[0], rowvar=False)
        jnp.corrcoef(f, dtype=jnp.float16) | jnp.min(c, initial=0) | jnp.max(c, axis=0, initial=0) | jnp.max(c, initial=-9, where=m4)
        jnp.sum(f, where=m.astype(int)) | jnp.cumulative_sum(jnp.float32(1)) | jnp.var(f, ddof=1, correction=1)
        jnp.average(jnp.arange(24.).reshape(2, 3, 4), axis=(1, 0), weights=w.T, returned=True) | jnp.average(f, axis=(0, 1), weights=w)
        jnp.quantile(f, jnp.array([0., .3, .5, 1.]), axis=1, weights=w[0], method="inverted_cdf") | jnp.nanvar(f, mean=jnp.float32(2))
        jnp.quantile(f, .5, weights=w, method="inverted_cdf") | jnp.quantile(f, .5, weights=w) | jnp.nanstd(f, axis=0, mean=f[:1])
        jnp.percentile(f, jnp.array([10., 50.]), weights=w, method="inverted_cdf", axis=0, keepdims=True)
        jnp.nanquantile(f.at[0, 0].set(jnp.nan), .5, axis=1, weights=w, method="inverted_cdf")
        jnp.quantile(f[0], jnp.array([0., .1, .25, .5, .6, 1.]), method="inverted_cdf")
        jnp.linalg.matrix_rank(f, tol=4.) | jnp.linalg.matrix_rank(f @ f.T, hermitian=True) | jnp.linalg.norm(jnp.zeros((0, 3)), 2)
        jnp.linalg.norm(jnp.zeros((3, 0)), 1) | jnp.linalg.lstsq(jnp.zeros((3, 2)), jnp.ones(3)) | jnp.linalg.lstsq(jnp.zeros((0, 3)), jnp.zeros((0, 2)))
        jnp.linalg.lstsq(jnp.zeros((3, 0)), jnp.ones(3)) | jnp.linalg.qr(f, mode="full").Q.shape | jnp.fft.fft(jnp.zeros((0,), jnp.complex64))
        jnp.fft.irfftn(jnp.fft.rfftn(jnp.arange(48.).reshape(2, 3, 2, 4))) | jnp.fft.fft2(f, axes=(0,)) | jnp.fft.fft(f, axis=[0, 1])
        jax.scipy.linalg.companion(f[:, 1:]) | jax.scipy.linalg.leslie(f, f[:, 1:]) | jax.scipy.linalg.convolution_matrix(f, 2)
        jax.scipy.linalg.cho_solve((jnp.stack([jnp.eye(3) * 2, jnp.eye(3)]), True), f[0])
        jax.scipy.ndimage.map_coordinates(jnp.arange(-3, 3), [jnp.array([.5, 1.5, 2.5])], order=1)
        jax.scipy.ndimage.map_coordinates(f[0], [jnp.array([.5, 1.5])], order=0)
        jax.scipy.interpolate.RegularGridInterpolator((f[0],), f[1])(jnp.array([.5, 1.5]))
        jax.lax.add(f[:, :1], f[:1]) | jax.lax.igamma(f[:1] + 1, f[:, :1]) | jit(lambda a, b: jax.lax.mul(a, b), f[:, :1], f)
        jax.lax.mul(f[0], f) | jax.lax.conj(f) | jax.lax.pow(f, 2) | jax.lax.pow(f, jnp.array([[2]])) | jax.lax.fft(c, "fft", ())
        jax.grad(lambda v: jax.lax.sort(v, dimension=0).sum())(jnp.zeros((0, 5)))
        f * o | f @ jnp.ones((3, 1)) + o | jnp.asarray(o) | jax.eval_shape(lambda v: v + 1, d).shape
        jax.lax.reduce_window(f, 2., jax.lax.mul, (2, 2), (1, 1), "SAME") | jax.lax.reduce_window(f, 1., lambda a, b: a * .5 + b, (1, 2), (1, 1), "VALID")
        jax.lax.reduce_window(f, 2., jax.lax.mul, (2, 2), (1, 2), ((1, 0), (0, 2)), (2, 1), (1, 2))
        jnp.intersect1d(x, x[0], size=4, fill_value=-1) | jnp.intersect1d(x, x[0, :2], size=3, return_indices=True)
        jit(lambda a, b: jnp.setxor1d(a, b, size=6), x, x[0]) | jnp.setxor1d(x, x, size=2) | jnp.setdiff1d(x[0, :0], x, size=2)
        jnp.intersect1d(x, x[0, :2], return_indices=True) | jnp.quantile(f.astype(jnp.float16), jnp.float32(.3))
        jnp.percentile(x, jnp.bfloat16(30.)) | jax.scipy.stats.rankdata(f.at[0, 0].set(jnp.nan), axis=1)
        jax.scipy.stats.sem(f.at[0, 0].set(jnp.nan), axis=1, nan_policy="omit") | jax.scipy.stats.mode(jnp.zeros((0, 3)))
        jax.lax.conv_transpose(f.reshape(1, 6, 1), f[0].reshape(3, 1, 1), (2,), [(2, 1)], use_consistent_padding=True)
        jax.lax.reduce_window((f, x), (-jnp.inf, -1), later, (1, 2), (1, 1), "SAME")
    """

    def add(text):
        def call(jax):
            jnp = jax.numpy

            class Described:
                shape, dtype = (2, 3), np.dtype("float32")

            class Wrapped:
                def __jax_array__(self):
                    return jnp.asarray(F)

            def later(one, other):
                is_first = one[0] >= other[0]
                return tuple(jnp.where(is_first, a, b) for a, b in zip(one, other))

            names = {"jax": jax, "jnp": jnp, "np": np, "jit": lambda g, *args: jax.jit(g)(*args), "later": later, "o": Wrapped(), "d": Described(),
                     "x": jnp.asarray(X), "f": jnp.asarray(F), "m": jnp.asarray(MASK), "m4": jnp.asarray(MASK[0, :1]),
                     "c": jnp.array([1 + 2j, .5, 3j, -1 - 1j], jnp.complex64), "w": jnp.array([[1., 2., 0.], [.5, 1., 3.]])}
            for module in ("scipy.linalg", "scipy.ndimage", "scipy.interpolate", "scipy.stats"):
                importlib.import_module(f"{jax.__name__}.{module}")
            return eval(text, names)
        return text, call

    for text in re.split(r"\n| \| ", texts):
        if text.strip():
            yield add(text.strip())


CASES = dict([*rows_of_ufuncs(), *rows_of_indexing(), *rows_of_numpy()])


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
