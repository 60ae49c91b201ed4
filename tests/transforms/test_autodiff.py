"""The public functions of differentiation against JAX: values, dtypes, weak types, containers; and what they
promise about tracing, compiling and pytrees."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import grad, hessian, jacfwd, jacrev, jit, jvp, linear_transpose, linearize, value_and_grad, vjp
from jitcore.dtypes import float0
from jitcore.process.effort import counters
from jitcore.test_util import check_grads, check_jvp, check_vjp
from jitcore.tree_util import Partial, register_pytree_node_class, tree_flatten, tree_map
from tests.jax_answers import ask, jax


class Point(NamedTuple):
    x: object
    y: object


X = np.array([0.5, -1.0, 2.0], np.float32)
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
NO = np.zeros((), float0)


def polynomial(x):
    return x * x * x - 2.0 * x


def dot(a, b):
    return a @ b


# Each case is a function of a library: jitcore or jax.
CASES = {
    "jvp": lambda api: api.jvp(api.numpy.sin, (0.1,), (0.2,)),
    "jvp of lists": lambda api: api.jvp(lambda x, y: x * y, [2.0, 3.0], [1.0, -1.0]),
    "jvp of trees": lambda api: api.jvp(
        lambda p: {"a": p.x * p.y, "b": [p.x]}, (Point(2.0, X),), (Point(1.0, X * 2),)),
    "jvp of a constant": lambda api: api.jvp(lambda x: 1.0, (2.0,), (1.0,)),
    "jvp of an integer": lambda api: api.jvp(api.numpy.sin, (2,), (NO,))[0],
    "jvp with aux": lambda api: api.jvp(lambda x: (x * x, {"y": 2 * x, "name": "s"}), (3.0,), (1.0,), has_aux=True),
    "jvp with None": lambda api: api.jvp(lambda x: (x["a"], None), ({"a": 2.0, "b": None},), ({"a": 1.0, "b": None},)),
    "linearize": lambda api: api.linearize(polynomial, 2.0)[1](3.0),
    "linearize of several": lambda api: api.linearize(lambda x, y: (x * y, x), 2.0, X)[1](1.0, X),
    "linearize with aux": lambda api: (lambda y, f, aux: (y, f(1.0), aux))(
        *api.linearize(lambda x: (x * x, (x, 7)), 3.0, has_aux=True)),
    "vjp": lambda api: api.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0),
    "vjp of trees": lambda api: api.vjp(lambda p: (p.x * p.y, {"k": p.x}), Point(2.0, X))[1]((X, {"k": 2.0})),
    "vjp of one array to two": lambda api: api.vjp(lambda x: (x, 2.0 * x), X)[1]((X, X)),
    "vjp with aux": lambda api: (lambda y, f, aux: (y, f(1.0), aux))(
        *api.vjp(lambda x: (x * x, [x, "name"]), 3.0, has_aux=True)),
    "vjp without use": lambda api: api.vjp(lambda x, y: x, 2.0, X)[1](1.0),
    "vjp of an integer result": lambda api: api.vjp(lambda x: 2, 3.0)[1](1),
    "grad": lambda api: api.grad(polynomial)(2.0),
    "grad of float32": lambda api: api.grad(polynomial)(np.float32(2.0)),
    "grad of an array": lambda api: api.grad(lambda x: x @ x)(X),
    "grad by the second": lambda api: api.grad(lambda x, y: x @ (y * y), argnums=1)(X, 2 * X),
    "grad by the last": lambda api: api.grad(lambda x, y: x @ (y * y), argnums=-1)(X, 2 * X),
    "grad by both": lambda api: api.grad(lambda x, y: x @ (y * y), argnums=(1, 0))(X, 2 * X),
    "grad by a list": lambda api: api.grad(lambda x, y: x * y, argnums=[0])(2.0, 3.0),
    "grad with keywords": lambda api: api.grad(lambda x, *, y: x * y)(3.0, y=2.0),
    "grad with a string": lambda api: api.grad(lambda x, mode: x * len(mode))(3.0, "abc"),
    "grad with an object": lambda api: api.grad(lambda f, x: f(x), argnums=1)(polynomial, 3.0),
    "grad of a tree": lambda api: api.grad(lambda d: d["a"] * d["c"][1][0])({"a": 3.0, "b": None, "c": (2.0, [5.0])}),
    "grad with aux": lambda api: api.grad(lambda x: (x * x, {"twice": 2 * x}), has_aux=True)(3.0),
    "grad of a constant": lambda api: api.grad(lambda x: 1.0)(3.0),
    "grad by an integer": lambda api: api.grad(lambda x, y: x * y, argnums=1, allow_int=True)(2.0, 3).dtype == float0,
    "grad of complex": lambda api: api.grad(lambda z: (z * z.conj()).real)(np.complex64(1.0 + 2.0j)),
    "grad, holomorphic": lambda api: api.grad(lambda z: z * z * z, holomorphic=True)(1.0 + 2.0j),
    "grad of grad": lambda api: api.grad(api.grad(polynomial))(2.0),
    "grad of grad of grad": lambda api: api.grad(api.grad(api.grad(polynomial)))(2.0),
    "value_and_grad": lambda api: api.value_and_grad(polynomial)(2.0),
    "value_and_grad with aux": lambda api: api.value_and_grad(lambda x: (x * x, x), has_aux=True)(2.0),
    "value_and_grad by both": lambda api: api.value_and_grad(lambda x, y: x * y, (0, 1))(2.0, 3.0),
    "jit of grad": lambda api: api.jit(api.grad(polynomial))(2.0),
    "grad of jit": lambda api: api.grad(api.jit(polynomial))(2.0),
    "grad of half": lambda api: api.grad(lambda x: x * x)(np.float16(3.0)),
    "grad of an inner product": lambda api: api.grad(lambda x: dot(x, M @ x[:3]) if x.ndim == 3 else dot(M @ x, M @ x))(X),
    "perturbations stay apart": lambda api: api.grad(lambda x: x * api.grad(lambda y: x + y)(2.0))(3.0),
    "linear_transpose": lambda api: api.linear_transpose(lambda x, y: 0.5 * x - 2.0 * y, X, X)(X),
    "linear_transpose of types": lambda api: api.linear_transpose(
        lambda x: (x[0], 3.0 * x[1]), api.ShapeDtypeStruct((2,), np.float32))((1.0, 2.0)),
    "linear_transpose of a constant": lambda api: api.linear_transpose(lambda x, y: x, 1.0, X)(1.0),
    "jacfwd": lambda api: api.jacfwd(lambda x: x * x)(X),
    "jacrev": lambda api: api.jacrev(lambda x: x * x)(X),
    "jacfwd of a number": lambda api: api.jacfwd(polynomial)(2.0),
    "jacrev of a number": lambda api: api.jacrev(polynomial)(2.0),
    "jacfwd of matrices": lambda api: api.jacfwd(lambda a: a @ a.T)(M),
    "jacrev of matrices": lambda api: api.jacrev(lambda a: a @ a.T)(M),
    "jacfwd by both": lambda api: api.jacfwd(lambda x, m: m @ x, argnums=(0, 1))(X, M),
    "jacrev by both": lambda api: api.jacrev(lambda x, m: m @ x, argnums=(0, 1))(X, M),
    "jacfwd of trees": lambda api: api.jacfwd(lambda d: (d["a"] * d["b"], {"s": d["a"]}))({"a": 2.0, "b": X}),
    "jacrev of trees": lambda api: api.jacrev(lambda d: (d["a"] * d["b"], {"s": d["a"]}))({"a": 2.0, "b": X}),
    "jacfwd with aux": lambda api: api.jacfwd(lambda x: (x * x, x), has_aux=True)(X),
    "jacrev with aux": lambda api: api.jacrev(lambda x: (x * x, {"x": x, "s": "s"}), has_aux=True)(X),
    "jacfwd of constants": lambda api: api.jacfwd(lambda x: (x, 2.0))(1.0),
    "jacfwd of integers": lambda api: api.jacfwd(lambda x: (x > 0).astype(int))(X),
    "jacrev by integers": lambda api: api.jacrev(lambda x, n: x * n, (0, 1), allow_int=True)(1.0, np.ones(2, np.int32)),
    "jacfwd to complex": lambda api: api.jacfwd(lambda x: (x, 2.0j * x))(X),
    "jacfwd, holomorphic": lambda api: api.jacfwd(lambda z: z * z, holomorphic=True)(X + 1j * X),
    "jacrev, holomorphic": lambda api: api.jacrev(lambda z: z * z, holomorphic=True)(X + 1j * X),
    "jacfwd of nothing": lambda api: api.jacfwd(lambda x: x)(X[:0]),
    "jacrev of nothing": lambda api: api.jacrev(lambda x: x)(X[:0]),
    "jacobian": lambda api: api.jacobian(lambda x: x * x)(X),
    "hessian": lambda api: api.hessian(lambda x: x @ (x * x))(X),
    "hessian of trees": lambda api: api.hessian(lambda d: d["a"] * d["a"] * (d["b"] @ d["b"]))({"a": 2.0, "b": X}),
    "hessian by both": lambda api: api.hessian(lambda x, y: x @ (x * y), argnums=(0, 1))(X, 2 * X),
    "hessian with aux": lambda api: api.hessian(lambda x: (x @ x, x), has_aux=True)(X),
    "jit of hessian": lambda api: api.jit(api.hessian(lambda x: x @ (x * x)))(X),
    "jit of jacobian of jit": lambda api: api.jit(api.jacrev(api.jit(lambda x: x * x)))(X),
    "vmap of grad": lambda api: api.vmap(api.grad(polynomial))(X),
    "grad of vmap": lambda api: api.grad(lambda x: api.vmap(polynomial)(x) @ np.ones(3, np.float32))(X),
    "vmap of vjp": lambda api: api.vmap(lambda x, ct: api.vjp(polynomial, x)[1](ct)[0])(X, X),
    "vmap of a linear function": lambda api: api.vmap(api.linearize(polynomial, 2.0)[1])(X),
    "f_vjp through jit": lambda api: api.jit(lambda f, ct: f(ct))(api.vjp(polynomial, X)[1], X),
    "f_vjp out of jit": lambda api: api.jit(lambda x: api.vjp(polynomial, x)[1])(X)(X),
    "f_jvp through jit": lambda api: api.jit(lambda f, t: f(t))(api.linearize(polynomial, X)[1], X),
    "f_jvp out of jit": lambda api: api.jit(lambda x: api.linearize(polynomial, x)[1])(X)(X),
    "value decides a branch": lambda api: api.grad(lambda x: x * x if x > 1 else 3.0 * x)(2.0),
    "value as index": lambda api: api.grad(lambda x: [x, x * x][int(x)])(1.0),
}


def describe(leaf):
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return type(leaf)
    return str(np.dtype(dtype)), bool(getattr(leaf, "weak_type", False))


def describe_ours(leaf):
    return describe(jnp.asarray(leaf) if isinstance(leaf, float) else leaf)


def describe_theirs(leaf):
    return (str(np.dtype(np.float32)), True) if isinstance(leaf, float) else describe(leaf)


@pytest.mark.parametrize("name", CASES)
def test_as_jax_has_it(name):
    ours, tree = tree_flatten(CASES[name](jitcore))

    def answer(jax):
        leaves, tree = jax.tree.flatten(CASES[name](jax))
        return leaves, str(tree)

    theirs, expected_tree = ask(answer)
    assert str(tree) == expected_tree
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, str):
            assert a == b
            continue
        assert describe_ours(a) == describe_theirs(b), (a, b)
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6, atol=1e-6)


# -- dtypes and containers ----------------------------------------------------------------------------------
def test_float64_stays_float64():
    x = np.linspace(0.1, 1, 4)
    gradient = grad(lambda x: x @ (x * x))(x)
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-14)
    assert jacfwd(lambda x: x * x)(x).dtype == np.float64
    assert jvp(lambda x: x * x, (np.float64(2),), (1.0,))[1].dtype == np.float64  # a Python scalar fits both
    assert vjp(lambda x: x * x, np.float64(2))[1](1.0)[0] == 4.0


def test_derivatives_of_integers_have_no_information():
    value, push = linearize(lambda n, x: (n * 2, x * n), 3, 2.0)
    assert value == (6, 6.0)
    tangents = push(NO, 1.0)
    assert tangents[0].dtype == float0 and tangents[0].shape == () and tangents[1] == 3.0
    (ct, other) = vjp(lambda n, x: x * n, np.arange(3, dtype=np.int32), 2.0)[1](X)
    assert ct.dtype == float0 and ct.shape == (3,) and other == X @ [0, 1, 2]
    assert jit(grad(lambda n, x: x * n, (0, 1), allow_int=True))(3, 2.0)[0].dtype == float0
    out = jit(lambda n, t: jvp(lambda n: n * 2, (n,), (t,)))(3, NO)
    assert out[0] == 6 and out[1].dtype == float0


def test_derivatives_of_integers_under_vmap():
    pulled = jitcore.vmap(lambda x, n, ct: vjp(lambda x, n: x * n, x, n)[1](ct))(
        X, np.arange(3, dtype=np.int32), X
    )
    np.testing.assert_array_equal(pulled[0], X * np.arange(3))
    assert pulled[1].dtype == float0 and pulled[1].shape == (3,)
    axes = jitcore.vmap(grad(lambda n, x: n @ x, allow_int=True), (0, None), out_axes=-1)
    assert axes(np.ones((2, 3), np.int32), X).shape == (3, 2)


@register_pytree_node_class
class Box:
    def __init__(self, content):
        self.content = content

    def tree_flatten(self):
        return (self.content,), "box"

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def test_registered_nodes_and_optree_types():
    gradient = grad(lambda b: b.content * b.content)(Box(3.0))
    assert isinstance(gradient, Box) and gradient.content == 6.0
    jacobian = jacrev(lambda b: Box(b.content * X))(Box(2.0))
    assert isinstance(jacobian, Box) and isinstance(jacobian.content, Box)
    np.testing.assert_array_equal(jacobian.content.content, X)


def test_keys_pass_through():
    key = jitcore.random.key(0)
    noise = jitcore.random.normal(key, (3,))
    np.testing.assert_array_equal(grad(lambda x, key: x @ jitcore.random.normal(key, (3,)))(X, key), noise)
    by_key, by_x = vjp(lambda key, x: x * jitcore.random.normal(key, (3,)), key, 2.0)[1](X)
    np.testing.assert_allclose(by_x, noise @ X, rtol=1e-6)


def test_names_and_documentation_are_those_of_the_function():
    def energy(x):
        """Of a spring."""
        return x * x

    assert grad(energy).__name__ == "energy" and grad(energy).__wrapped__ is energy
    assert grad(energy, argnums=0).__doc__.startswith(
        "Gradient of energy with respect to positional argument(s) 0. Takes the same arguments as energy but "
        "returns the gradient")
    assert grad(energy).__doc__.endswith("Of a spring.")
    assert "Jacobian of energy" in jacfwd(energy).__doc__


def test_results_that_are_functions_are_pytrees():
    _, push = linearize(polynomial, X)
    _, pull = vjp(polynomial, X)
    transposed = linear_transpose(lambda x: X * x, 1.0)
    for function in (push, pull, transposed):
        assert isinstance(function, Partial)
        leaves, tree = tree_flatten(function)
        assert leaves and all(isinstance(leaf, (jitcore.Array, np.ndarray)) for leaf in leaves)
        again = tree.unflatten(leaves)
        np.testing.assert_array_equal(again(X)[0] if again.func is not push.func else again(X),
                                      function(X)[0] if function is not push else function(X))


def test_later_changes_of_an_argument_do_not_matter():
    x = X.copy()
    _, pull = vjp(lambda x: x * x, x)
    x[:] = 0
    np.testing.assert_array_equal(pull(np.ones(3, np.float32))[0], 2 * X)


def test_auxiliary_results_hold_no_tracer():
    (value, aux), gradient = value_and_grad(lambda x: (x * x, {"x": x, "y": x * 2}), has_aux=True)(3.0)
    assert (value, aux["x"], aux["y"], gradient) == (9.0, 3.0, 6.0, 6.0)
    assert not any(isinstance(leaf, jitcore.core.trace.Tracer) for leaf in aux.values())
    inner = jit(lambda x: grad(lambda y: (x * y, y * 3), has_aux=True)(x))(2.0)
    assert inner == (2.0, 6.0)


# -- tracing and compiling ----------------------------------------------------------------------------------
def test_jit_of_grad_traces_once():
    runs = []

    def f(x):
        runs.append(0)
        return x @ (x * x)

    g = jit(grad(f))
    for _ in range(3):
        g(X)
    assert len(runs) == 1
    assert g.cache_info()[:2] == (2, 1) and g.cache_info().traces == 1


def test_grad_of_jit_is_traced_and_compiled_once():
    jitcore.clear_caches()
    runs, start = [], (counters.traces, counters.compiles)

    @jit
    def f(x):
        runs.append(0)
        return x @ (x * x)

    g = grad(f)
    expected = g(X)
    before = counters.traces, counters.compiles
    assert before[0] == start[0] + 1 and before[1] > start[1]
    for _ in range(3):
        np.testing.assert_array_equal(g(X), expected)
        np.testing.assert_array_equal(grad(f)(X), expected)
    assert len(runs) == 1
    assert (counters.traces, counters.compiles) == before


@pytest.mark.parametrize("jitted", [True, False])
def test_halves_of_vjp(jitted):
    runs = []

    def f(x, m):
        runs.append(0)
        return m @ jnp.sin(x), {"x": x}

    fwd, bwd = jitcore.fwd_and_bwd(f, argnums=(0, 1), has_aux=True, jitted=jitted)
    theirs = jax.fwd_and_bwd(lambda x, m: (m @ jax.numpy.sin(x), {"x": x}), argnums=(0, 1), has_aux=True)
    ct = np.array([1.0, -2.0], np.float32)
    for scale in (1, 2, 3):
        value, residuals, aux = fwd(scale * X, M)
        expected_value, expected_residuals, _ = theirs[0](scale * X, M)
        np.testing.assert_allclose(value, expected_value, rtol=1e-6)
        np.testing.assert_array_equal(aux["x"], scale * X)
        for a, b in zip(bwd(residuals, ct), theirs[1](expected_residuals, ct), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    if jitted:
        assert len(runs) == 1 and fwd.cache_info().traces == bwd.cache_info().traces == 1
    single = jitcore.fwd_and_bwd(lambda x, m: m @ x, argnums=0, jitted=jitted)
    np.testing.assert_allclose(single[1](single[0](X, M)[1], ct), ct @ M)


@pytest.mark.parametrize("transform", [grad, value_and_grad, hessian, jacrev])
def test_disabled_jit(transform):
    with jitcore.disable_jit():
        found = transform(jit(lambda x: x @ (x * x)))(X)
    for a, b in zip(tree_flatten(found)[0], tree_flatten(transform(lambda x: x @ (x * x))(X))[0]):
        np.testing.assert_allclose(a, b)


def test_static_arguments_of_a_jitted_gradient():
    g = jit(grad(lambda x, mode: x * x if mode == "square" else x), static_argnames="mode")
    assert g(3.0, mode="square") == 6.0 and g(3.0, "plain") == 1.0


def test_methods_and_partials():
    class Model:
        scale = 3.0

        @jit
        def plain(self):
            return self

        def loss(self, x):
            return self.scale * x * x

    assert grad(Model().loss)(2.0) == 12.0
    assert grad(functools.partial(lambda a, x: a * x * x, 4.0))(1.0) == 8.0


# -- finite differences -------------------------------------------------------------------------------------
def test_check_grads_accepts_what_is_right():
    x = np.linspace(-1, 1, 3)
    check_grads(lambda x, y: {"a": x * y * y, "b": x}, (x, x + 2), order=2, modes=("fwd", "rev", "lin"))
    check_grads(lambda z: z * z, (x + 1j * x,), order=2)


def make_wrong(f):
    """A derivative of f that is off by a tenth."""
    return lambda primals, tangents: (
        f(*primals),
        tree_map(lambda t: t * 1.1, jvp(f, primals, tangents)[1]),
    )


def test_check_grads_notices_what_is_wrong():
    x = np.linspace(0.5, 1, 3)
    check_jvp(polynomial, functools.partial(jvp, polynomial), (x,))
    with pytest.raises(AssertionError, match="tangent"):
        check_jvp(polynomial, make_wrong(polynomial), (x,))
    check_vjp(polynomial, functools.partial(vjp, polynomial), (x,))
    with pytest.raises(AssertionError, match="cotangent projection"):
        check_vjp(
            polynomial, lambda x: (polynomial(x), lambda ct: (1.1 * vjp(polynomial, x)[1](ct)[0],)), (x,)
        )
