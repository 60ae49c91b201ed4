"""`jet` against nested `jvp`s along the same path."""

import math

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
import jitcore.scipy.special as special
from jitcore import lax
from jitcore.experimental.jet import jet


@pytest.fixture(autouse=True)
def double():
    with jitcore.enable_x64(True):
        yield


def differentiate(f, point, series, order):
    """The derivatives of f along the path, by jvp of jvp."""
    def path(t):
        return [x + sum(t**k / math.factorial(k) * term for k, term in enumerate(terms, 1))
                for x, terms in zip(point, series)]

    def g(t):
        return f(*path(t))

    found = []
    for _ in range(order + 1):
        found.append(g(0.0))
        g = (lambda g: lambda t: jitcore.jvp(g, (t,), (1.0,))[1])(g)
    return found


def compare(f, *shapes, low=0.3, high=0.9, order=4):
    draw = np.random.default_rng(0)
    point = [jnp.asarray(draw.uniform(low, high, shape)) for shape in shapes]
    series = [[jnp.asarray(draw.normal(size=shape)) for _ in range(order)] for shape in shapes]
    value, terms = jet(f, point, series)
    value_too, *wanted = differentiate(f, point, series, order)
    structure = jitcore.tree.structure(value)
    columns = [structure.unflatten([each[k] for each in structure.flatten_up_to(terms)])
               for k in range(order)]
    for found, want in zip([value, *columns], [value_too, *wanted]):
        for a, b in zip(jitcore.tree.leaves(found), jitcore.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8)


UNARY = ("sin cos tan asin acos atan sinh cosh tanh asinh atanh exp exp2 expm1 log log1p log2 log10 sqrt rsqrt cbrt "
         "logistic square floor sign abs neg erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e ndtri log_ndtr")


@pytest.mark.parametrize("name", UNARY.split())
def test_elementwise(name):
    compare(getattr(lax, name, None) or getattr(special, name), (3,))


def test_acosh():
    compare(lax.acosh, (3,), low=1.3, high=1.9)


@pytest.mark.parametrize("name",
                         "add multiply subtract divide power arctan2 maximum logaddexp hypot mod".split())
def test_two_operands(name):
    for shapes in (((3,), (3,)), ((), (3,)), ((3,), ())):
        compare(getattr(jnp, name), *shapes, order=3)


@pytest.mark.parametrize(("f", "shapes"), [
    (lambda x: x**3 + x**-2 + x**0.5, [(3,)]),
    (jnp.dot, [(3, 4), (4, 2)]),
    (lambda x: jnp.ones((2, 3)) @ x, [(3,)]),
    (lambda x, w: jnp.tanh(w @ jnp.tanh(w @ x)), [(3,), (3, 3)]),
    (jitcore.nn.softmax, [(4,)]), (jitcore.nn.gelu, [(4,)]), (jitcore.nn.relu, [(4,)]),
    (special.logsumexp, [(4,)]),
    (jnp.prod, [(4,)]), (jnp.max, [(4,)]), (jnp.cumsum, [(4,)]), (jnp.cumprod, [(4,)]), (jnp.sort, [(4,)]),
    (jnp.var, [(4,)]),
    (lambda x: x[jnp.array([0, 2, 2])] * x[1], [(4,)]),
    (lambda x: x.at[1].set(x[0] ** 2).at[jnp.array([0, 0])].add(x[2]), [(4,)]),
    (lambda x: jnp.where(x > 0.5, x**2, jnp.sin(x)), [(5,)]),
    (lambda x: jnp.concatenate([x.T.reshape(-1)[::-1], jnp.pad(x[0], 1), jnp.tile(x[1], 2)]) ** 2, [(2, 3)]),
    (lambda x: tuple(jnp.split(x**2, 2)), [(4,)]),
    (lambda x: jnp.abs(jnp.fft.fft(x)) ** 2, [(4,)]), (jnp.convolve, [(4,), (3,)]),
    (lambda x: jnp.real(jnp.exp(1j * x) * (x + 2j)), [(3,)]),
    (lambda x, y: {"a": x * y, "b": (x,)}, [(3,), (3,)]),
])
def test_functions_of_arrays(f, shapes):
    compare(f, *shapes)


@pytest.mark.parametrize("f", [
    jnp.linalg.inv, jnp.linalg.det, lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)),
    lambda x: jnp.linalg.solve(x, x[0]), lambda x: jnp.linalg.eigvalsh(x + x.T)])
def test_linear_algebra(f):
    compare(f, (3, 3), order=2)


@pytest.mark.parametrize("f", [
    lambda x: lax.scan(lambda c, x: (jnp.sin(c) * x, c**2), x[0], x),
    lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1],
    lambda x: lax.fori_loop(0, 3, lambda i, c: c * x + i, x),
    jitcore.vmap(lambda x: lax.while_loop(lambda c: c < 2.0, lambda c: c * (1 + x), x)),
    jitcore.jit(lambda x: jnp.sin(x) ** 2), jitcore.checkpoint(lambda x: jnp.sin(x) ** 2),
    jitcore.grad(lambda x: jnp.sum(jnp.sin(x) * x)),
])
def test_control_flow_and_calls(f):
    compare(f, (3,))


def test_rules_of_ones_own():
    @jitcore.custom_jvp
    def f(x):
        return jnp.exp(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * f(*primals) * tangents[0]))
    compare(f, (3,))


def test_inside_of_other_transformations():
    def third(x):
        return jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]

    assert np.isclose(third(0.5), -np.cos(0.5)) and np.isclose(jitcore.jit(third)(0.5), -np.cos(0.5))
    np.testing.assert_allclose(jitcore.grad(third)(0.5), np.sin(0.5))
    np.testing.assert_allclose(jitcore.vmap(third)(jnp.arange(3.0)), -np.cos(np.arange(3.0)))


def test_scales_and_empty_series():
    _, terms = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(terms, [1, 1 / 2, 1 / 6])
    assert jet(lambda x: 3.0, (1.0,), ((1.0,),)) == (3.0, [0.0])
    assert jet(lambda x: x, (1.0,), ((),)) == (1.0, [])
    value, terms = jet(lambda x: jnp.arange(3), (1.0,), ((1.0,),))
    np.testing.assert_array_equal(terms[0], [0, 0, 0])


def test_cost_is_polynomial():
    count = len(jitcore.make_jaxpr(lambda x: jet(lambda x: jnp.sin(jnp.exp(x) * x), (x,),
                                                 ([1.0] + [0.0] * 11,)))(0.3).eqns)
    assert count < 2500


def test_errors():
    with pytest.raises(TypeError, match="has no derivatives"):
        jet(jnp.sin, (1,), ((1,),))
    with pytest.raises(ValueError, match=r"inconsistent lengths .* \[1, 2\]"):
        jet(jnp.add, (1.0, 2.0), ((1.0,), (1.0, 2.0)))
    with pytest.raises(ValueError, match="must be an array"):
        jet(jnp.sum, ((1.0,),), ((1.0,),))
    with pytest.raises(ValueError, match=r"has shape \(2,\), the argument \(\)"):
        jet(jnp.sin, (1.0,), ((jnp.ones(2),),))
    with pytest.raises(ValueError, match="1 primals, but series for 0"):
        jet(jnp.sin, (1.0,), ())
    with pytest.raises(NotImplementedError, match="no Taylor rule for 'schur'"):
        jet(lambda x: jitcore.scipy.linalg.schur(x)[0], (jnp.eye(2),), ((jnp.eye(2),),))
