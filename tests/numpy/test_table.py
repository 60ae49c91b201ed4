"""Every public function: eager against JAX (dtype, weak type, values), traced and compiled against eager, NumPy's
namesake traced."""

import inspect

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, scipy
from jitcore.array import Array, ConcreteArray
from jitcore.config import config
from jitcore.core.check import check_jaxpr
from jitcore.core.jaxpr import eval_jaxpr
from jitcore.core.trace import Tracer, trace_to_jaxpr
from tests.jax_answers import jax
from tests.numpy.table import CASES, EAGER_CASES

jax_numpy = jax.numpy

WIDE = {"float32": "float64", "int32": "int64", "complex64": "complex128"}


def map_arrays(function, tree):
    """The tree with `function` applied to every ndarray in it."""
    if isinstance(tree, np.ndarray):
        return function(tree)
    if type(tree) in (list, tuple):
        return type(tree)(map_arrays(function, item) for item in tree)
    if isinstance(tree, dict):
        return {key: map_arrays(function, item) for key, item in tree.items()}
    return tree


def list_leaves(tree) -> list:
    if isinstance(tree, (list, tuple)):
        return [leaf for item in tree for leaf in list_leaves(item)]
    return [tree]


def find(namespace, name: str):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def widen(x: np.ndarray) -> np.ndarray:
    return x.astype(WIDE.get(x.dtype.name, x.dtype))


def assert_same(ours, theirs, name: str):
    ours, theirs = list_leaves(ours), list_leaves(theirs)
    assert len(ours) == len(theirs)
    for mine, expected in zip(ours, theirs):
        if not isinstance(mine, Array):
            assert mine == expected or bool(np.all(np.asarray(mine) == np.asarray(expected)))
            continue
        want = np.asarray(expected)
        got = np.asarray(mine)
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        # A comparison of weak operands is a weakly typed bool in JAX; here bools are never weak.
        assert got.dtype == bool or mine.weak_type == getattr(expected, "weak_type", mine.weak_type)
        precision = {"e": 2e-3, "f": 2e-5, "d": 1e-11, "F": 2e-5, "D": 1e-11}.get(want.dtype.char, 0)
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0) if want.size and precision else 0
        np.testing.assert_allclose(got, want, rtol=precision, atol=precision * scale, err_msg=name)


def all_cases(*tables):
    return [pytest.param(name, call, id=f"{name}-{i}") for table in tables for name in sorted(table)
            for i, call in enumerate(table[name])]


def call_eagerly(namespace, name: str, call):
    args, kwargs = map_arrays(namespace.asarray, call)
    return find(namespace, name)(*args, **kwargs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("name, call", all_cases(CASES, EAGER_CASES))
def test_eager_matches_jax(name, call, wide):
    call = map_arrays(widen, call) if wide else call
    with jax.enable_x64(wide), config.override(enable_x64=wide):
        assert_same(call_eagerly(jnp, name, call), call_eagerly(jax_numpy, name, call), name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, call", all_cases(CASES))
def test_eager_types_match_jax(name, call):
    """Shapes, dtypes and weak types, which JAX tells without compiling."""
    leaves = []
    map_arrays(leaves.append, call)

    def run(*tracers):
        remaining = iter(tracers)
        args, kwargs = map_arrays(lambda _: next(remaining), call)
        out = list_leaves(find(jax_numpy, name)(*args, **kwargs))
        return [x for x in out if isinstance(x, jax.Array)]

    expected = jax.eval_shape(run, *leaves)
    got = [x for x in list_leaves(call_eagerly(jnp, name, call)) if isinstance(x, Array)]
    assert [(x.shape, x.dtype) for x in got] == [(x.shape, x.dtype) for x in expected]
    assert [x.weak_type for x in got if x.dtype != bool] == [x.weak_type for x in expected if x.dtype != bool]


def open_call(function, call):
    """(the ndarrays in a call, a function of what stands for them, giving the results that are arrays, a list of
    whether each result was a tracer, one for each time that it ran)."""
    leaves, shapes = [], []
    map_arrays(leaves.append, call)

    def run(*tracers):
        remaining = iter(tracers)
        args, kwargs = map_arrays(lambda _: next(remaining), call)
        out = list_leaves(function(*args, **kwargs))
        shapes.append([isinstance(x, Tracer) for x in out])
        return [x for x in out if isinstance(x, Array)]

    return leaves, run, shapes


def trace_call(function, call):
    """(results of the call with every ndarray leaf traced, whether each was a tracer)."""
    leaves, run, shapes = open_call(function, call)
    inputs = [ConcreteArray(np.array(leaf)) for leaf in leaves]
    jaxpr, consts = trace_to_jaxpr(run, [x.aval for x in inputs])
    check_jaxpr(jaxpr)
    values = eval_jaxpr(jaxpr, consts, inputs)
    outs = [
        ConcreteArray(np.asarray(x, atom.aval.dtype), atom.aval.weak_type)
        for x, atom in zip(values, jaxpr.outvars)
    ]
    return outs, shapes[0]


@pytest.mark.parametrize("name, call", all_cases(CASES))
def test_traced_matches_eager(name, call):
    function = find(jnp, name)
    args, kwargs = map_arrays(jnp.asarray, call)
    eager = [x for x in list_leaves(function(*args, **kwargs)) if isinstance(x, Array)]
    if not eager:
        return
    outs, _ = trace_call(function, call)
    outs = [x for x in outs if isinstance(x, Array)]
    assert [x.aval for x in outs] == [x.aval for x in eager]
    assert_same(outs, eager, name)


@pytest.mark.slow
@pytest.mark.parametrize("name, call", all_cases(CASES))
def test_compiled_matches_eager(name, call):
    """By the default backend: `--backend` chooses another one."""
    function = find(jnp, name)
    args, kwargs = map_arrays(jnp.asarray, call)
    eager = [x for x in list_leaves(function(*args, **kwargs)) if isinstance(x, Array)]
    leaves, run, _ = open_call(function, call)
    assert_same(jit(run)(*leaves), eager, name)


# Functions that NumPy does not dispatch: they make arrays, or answer about types and shapes.
NOT_DISPATCHED = set(
    "array asarray arange linspace zeros ones empty full eye identity tri indices isscalar iterable promote_types issubdtype "
    "isdtype finfo iinfo fromfunction frombuffer fromiter fromstring from_dlpack bartlett blackman hamming hanning kaiser "
    "logspace geomspace broadcast_shapes tril_indices triu_indices diag_indices mask_indices fft.fftfreq fft.rfftfreq "
    "meshgrid put put_along_axis place fill_diagonal vander diag_indices_from tril_indices_from triu_indices_from".split())


# Results that JAX, and with it this project, defines otherwise than NumPy.
OTHER_IN_NUMPY = {
    "empty_like": "arrays are never uninitialised",
    "polydiv": "the remainder keeps its leading zeros",
    "result_type": "another promotion lattice",
}


def calls_for_numpy():
    calls_found = []
    for name, calls in sorted(CASES.items()):
        function = (
            getattr(np, name, None)
            if "." not in name
            else getattr(find(np, name.split(".")[0]), name.split(".")[1], None)
        )
        if function is None or name in NOT_DISPATCHED:
            continue
        for i, call in enumerate(calls):
            leaves = []
            map_arrays(leaves.append, call)
            if leaves and accepts(function, call):
                calls_found.append(pytest.param(name, function, call, id=f"{name}-{i}"))
    return calls_found


def accepts(function, call) -> bool:
    """Whether NumPy's own function takes these arguments (ours may have more)."""
    try:
        with np.errstate(all="ignore"):
            function(*call[0], **call[1])
    except (TypeError, ValueError, NotImplementedError, IndexError):
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, function, call", calls_for_numpy())
def test_values_match_numpy_in_double(name, function, call):
    """Values alone: NumPy's dtypes and its widths of results follow other rules."""
    if name in OTHER_IN_NUMPY:
        pytest.skip(OTHER_IN_NUMPY[name])
    wide = map_arrays(widen, call)
    expected = list_leaves(function(*wide[0], **wide[1]))
    with config.override(enable_x64=True):
        got = list_leaves(call_eagerly(jnp, name, wide))
    assert len(got) == len(expected)
    for mine, want in zip(got, expected):
        want = np.asarray(want)
        # of bools and small integers, as in JAX, a mean is a float32 even where 64 bits are the default
        tolerance = 1e-6 if np.asarray(mine).dtype == np.float32 else 1e-11
        scale = max(1, np.abs(want).max(initial=0))
        np.testing.assert_allclose(np.asarray(mine, want.dtype), want, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, function, call", calls_for_numpy())
def test_numpy_function_on_tracer_is_traced(name, function, call):
    args, kwargs = map_arrays(jnp.asarray, call)
    eager = [x for x in list_leaves(find(jnp, name)(*args, **kwargs)) if isinstance(x, Array)]
    outs, is_traced = trace_call(function, call)
    if eager:
        assert any(is_traced)
        assert_same([x for x in outs if isinstance(x, Array)], eager, name)


def test_enough_functions():
    public = [
        name
        for name in jnp.__all__
        if callable(getattr(jnp, name)) and not isinstance(getattr(jnp, name), type)
    ]
    assert len(public) >= 150


def test_every_function_is_in_the_table():
    names = [
        name
        for name in jnp.__all__
        if callable(getattr(jnp, name)) and not isinstance(getattr(jnp, name), type)
    ]
    names += [f"linalg.{name}" for name in jnp.linalg.__all__] + [f"fft.{name}" for name in jnp.fft.__all__]
    elsewhere = {"UniqueAll", "UniqueCounts", "UniqueInverse", "apply_along_axis", "vectorize",  # test_vectorizing.py
                 "__array_namespace_info__",  # test_array_api.py
                 "apply_over_axes", "array_repr", "array_str", "frompyfunc", "fromfile", "fromiter", "load", "packbits",
                 "save", "savez"}  # test_files.py
    missing = [n for n in names if n not in CASES and n not in elsewhere and not isinstance(find(jnp, n), type)]
    assert not missing


@pytest.mark.parametrize("name", sorted(jnp.__all__))
def test_public_function_has_signature_and_docstring(name):
    value = getattr(jnp, name)
    if callable(value) and not isinstance(value, type):
        inspect.signature(value)
        assert value.__doc__


@pytest.mark.parametrize("fail", [
    lambda: jnp.split(jnp.arange(7), 3), lambda: jnp.linalg.inv(jnp.ones((2, 3))),
    lambda: jnp.fft.fft(jnp.ones(3), norm="x"), lambda: scipy.special.erf("a"), lambda: scipy.special.polygamma("a", 1.0),
    lambda: scipy.linalg.det(jnp.ones((2, 3)))])
def test_tracebacks_have_no_frames_of_the_inside(fail):
    with pytest.raises((TypeError, ValueError)) as found:
        fail()
    assert {entry.path.name for entry in found.traceback} == {"test_table.py"}
