"""`custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`: whose rule is applied where, under every
transformation; structures of arguments, closures, symbolic zeros."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jax_np
import numpy as np
import pytest

import jitcore
from jitcore import (closure_convert, custom_gradient, custom_jvp, custom_vjp, grad, jit, jvp, lax, linearize,
                     make_jaxpr, numpy as jnp, vjp, vmap)
from jitcore.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values

X = np.float64(0.7)
XS = np.linspace(-1.0, 1.5, 4)


# Rules with a factor that the true derivative lacks show that they were used.
@custom_jvp
def forward(x):
    return jnp.sin(x)


@forward.defjvp
def _forward_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return forward(x), 3 * jnp.cos(x) * t


@custom_vjp
def reverse(x):
    return jnp.sin(x)


def _reverse_fwd(x):
    return reverse(x), x


def _reverse_bwd(x, ct):
    return (3 * jnp.cos(x) * ct,)


reverse.defvjp(_reverse_fwd, _reverse_bwd)

BOTH = pytest.mark.parametrize("f", [forward, reverse], ids=["custom_jvp", "custom_vjp"])


def first(x):
    return 3 * np.cos(x)


def second(x):
    return -3 * np.sin(x)


# -- transformations ----------------------------------------------------------------------------------------
@BOTH
def test_values(f):
    for run in (f, jit(f), lambda x: vmap(f)(x[None])[0], lambda x: lax.cond(x > 0, f, jnp.cos, x)):
        np.testing.assert_allclose(run(X), np.sin(X), rtol=1e-12)


@BOTH
@pytest.mark.parametrize("transform", [
    lambda f: grad(f), lambda f: jit(grad(f)), lambda f: grad(jit(f)), lambda f: jit(grad(jit(f))),
    lambda f: jitcore.jacrev(f), lambda f: grad(jitcore.checkpoint(f)), lambda f: jitcore.checkpoint(grad(f)),
    lambda f: lambda x: vjp(f, x)[1](np.float64(1.0))[0],
    lambda f: grad(lambda x: lax.cond(x > 0, f, lambda x: x, x)),
    lambda f: grad(lambda x: lax.scan(lambda c, _: (f(x), c), 0 * x, None, length=3)[0]),
    lambda f: grad(lambda x: lax.fori_loop(0, 3, lambda i, c: f(x), 0 * x)),
    lambda f: jit(grad(lambda x: lax.map(f, x[None])[0])),
], ids=lambda _: "")
def test_the_rule_is_used(f, transform):
    np.testing.assert_allclose(transform(f)(X), first(X), rtol=1e-12)


@BOTH
@pytest.mark.parametrize("transform", [
    lambda f: grad(grad(f)), lambda f: jit(grad(grad(f))), lambda f: grad(jit(grad(jit(f)))),
    lambda f: jitcore.jacrev(jitcore.jacrev(f)), lambda f: grad(vmap_one(grad(f))),
], ids=lambda _: "")
def test_derivatives_of_rules(f, transform):
    np.testing.assert_allclose(transform(f)(X), second(X), rtol=1e-12)


def test_hessian():
    np.testing.assert_allclose(jitcore.hessian(forward)(X), second(X), rtol=1e-12)


def vmap_one(f):
    return lambda x: vmap(f)(x[None])[0]


@BOTH
@pytest.mark.parametrize("transform", [
    lambda f: vmap(grad(f)), lambda f: jit(vmap(grad(f))), lambda f: vmap(jit(grad(f))),
    lambda f: grad(lambda xs: vmap(f)(xs).sum()), lambda f: jit(grad(lambda xs: vmap(jit(f))(xs).sum())),
    lambda f: grad(lambda xs: jit(vmap(f))(xs).sum()), lambda f: grad(lambda xs: lax.map(f, xs).sum()),
    lambda f: lambda xs: vmap(vmap(grad(f)))(xs.reshape(2, 2)).reshape(4),
    lambda f: lambda xs: grad(lambda xs: vmap(vmap(f))(xs).sum())(xs.reshape(2, 2)).reshape(4),
], ids=lambda _: "")
def test_batches(f, transform):
    np.testing.assert_allclose(transform(f)(XS), first(XS), rtol=1e-12)


@BOTH
def test_while_loops(f):
    """f is applied as long as the result is large."""

    def run(x):
        return lax.while_loop(lambda s: s[1] < 2, lambda s: (f(s[0]), s[1] + 1), (x, 0))[0]

    wanted = first(np.sin(X)) * first(X)
    np.testing.assert_allclose(grad(run)(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(jit(grad(run))(X), wanted, rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, jit, vmap_one], ids=["plain", "jit", "vmap"])
def test_forward_mode(wrap):
    f = wrap(forward)
    np.testing.assert_allclose(jvp(f, (X,), (np.float64(2.0),))[1], 2 * first(X), rtol=1e-12)
    np.testing.assert_allclose(linearize(f, X)[1](np.float64(2.0)), 2 * first(X), rtol=1e-12)
    np.testing.assert_allclose(jitcore.jacfwd(jitcore.jacfwd(f))(X), second(X), rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, jit, vmap_one, lambda f: jit(jit(f))],
                         ids=["plain", "jit", "vmap", "jit of jit"])
def test_custom_vjp_has_no_forward_mode(wrap):
    message = re.escape("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")
    for run in (lambda x: jvp(wrap(reverse), (x,), (x,)), jit(lambda x: jvp(wrap(reverse), (x,), (x,)))):
        with pytest.raises(TypeError, match=message):
            run(X)


def test_python_decides_by_values_when_nothing_is_traced():
    @custom_jvp
    def f(x):
        return jnp.sin(x) if x > 0 else x

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), (2 * t if x > 0 else 5 * t)

    assert grad(f)(1.0) == 2.0 and grad(f)(-1.0) == 5.0 and jvp(f, (1.0,), (1.0,))[1] == 2.0
    with pytest.raises(jitcore.errors.TracerBoolConversionError):
        jit(grad(f))(1.0)


@pytest.mark.cpu
def test_calls_vanish_in_programs():
    many = np.linspace(0.1, 2, 20)  # the elements of few are stored before they become one number
    compiled = jit(lambda x: (forward(x) * reverse(x)).sum())
    compiled(many)
    text = compiled.inspect("loop program")
    assert "call" not in text and text.count("kernel") == 1
    compiled = jit(grad(lambda x: (forward(x) + reverse(x)).sum()))
    compiled(many)
    assert compiled.inspect("loop program").count("kernel") == 1


# -- jaxprs -------------------------------------------------------------------------------------------------
def test_jaxprs_are_those_of_jax():
    def build(package, numpy):
        @package.custom_jvp
        def f(x, y):
            return numpy.sin(x) * y

        f.defjvps(lambda t, ans, x, y: t, None)

        @package.custom_vjp
        def g(x):
            return numpy.sin(x)

        def g_fwd(x):
            return g(x), x

        def g_bwd(x, ct):
            return (ct,)

        g.defvjp(g_fwd, g_bwd)
        return lambda x: g(f(x, x))

    ours = str(make_jaxpr(build(jitcore, jnp))(np.float32(1)))
    assert ours == str(jax.make_jaxpr(build(jax, jax_np))(np.float32(1)))


# -- arguments ----------------------------------------------------------------------------------------------
def test_pytrees_keywords_and_defaults():
    @custom_jvp
    def f(p, scale=2.0, *, unused=None):
        return {"y": p["a"] * p["b"][0] * scale, "n": None}

    @f.defjvp
    def rule(primals, tangents):
        (p, scale), (dp, dscale) = primals, tangents
        assert set(dp) == {"a", "b"} and np.shape(dscale) == ()
        return f(p, scale), {"y": 10 * dp["a"] + 100 * dp["b"][0] + 1000 * dscale, "n": None}

    p = {"a": X, "b": (X + 1, None)}
    assert f(scale=3.0, p=p)["y"] == pytest.approx(3 * X * (X + 1))
    by_p, by_scale = grad(lambda p, s: f(p, scale=s)["y"], (0, 1))(p, np.float64(2.0))
    assert by_p["a"] == 10 and by_p["b"][0] == 100 and by_scale == 1000
    message = "could not be resolved to positional-only arguments. Binding failed with the error"
    for arguments in ({"unused": 1.0}, {"absent": 1.0}):
        with pytest.raises(TypeError, match=message):
            f(p, **arguments)


@pytest.mark.parametrize("how", [{"nondiff_argnums": (0, 2)}, {"nondiff_argnames": ("f", "n")}])
def test_arguments_that_are_not_differentiated(how):
    @functools.partial(custom_jvp, **how)
    def apply(f, x, n):
        return f(x) * n

    @apply.defjvp
    def rule(f, n, primals, tangents):
        (x,), (t,) = primals, tangents
        return apply(f, x, n), 7 * n * t

    @functools.partial(custom_vjp, **how)
    def apply_reverse(f, x, n):
        return f(x) * n

    apply_reverse.defvjp(lambda f, x, n: (f(x) * n, x), lambda f, n, x, ct: (7 * n * ct,))
    for function in (apply, apply_reverse):
        run = lambda x, function=function: function(jnp.sin, x, 2)  # noqa: E731
        for derived in (grad(run), jit(grad(run)), grad(jit(run)), vmap_one(grad(run)), grad(vmap_one(run))):
            assert derived(X) == 14


def test_traced_arguments_that_are_not_differentiated():
    @functools.partial(custom_jvp, nondiff_argnums=0)
    def f(scale, x):
        return scale * x

    @f.defjvp
    def rule(scale, primals, tangents):
        return f(scale, *primals), 5 * scale * tangents[0]

    two = np.float64(2.0)
    assert jit(grad(f, 1))(two, X) == 10
    assert grad(jit(f), 1)(two, X) == 10 and grad(jit(f), 0)(two, X) == 0
    np.testing.assert_allclose(vmap(grad(f, 1), (0, None))(XS, X), 5 * XS)
    np.testing.assert_allclose(grad(lambda x: vmap(f, (0, None))(XS, x).sum())(X), 5 * XS.sum())


def test_traced_arguments_of_custom_vjp_have_to_be_differentiated():
    f = custom_vjp(lambda scale, x: scale * x, nondiff_argnums=0)
    f.defvjp(lambda scale, x: (scale * x, None), lambda scale, _, ct: (ct,))
    with pytest.raises(jitcore.errors.UnexpectedTracerError, match="nondiff_argnums as non-differentiable"):
        jit(f)(X, X)


def test_integers_have_no_derivative():
    @custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def rule(primals, tangents):
        (x, n), (t, dn) = primals, tangents
        assert dn.dtype == jitcore.dtypes.float0
        return f(x, n), (4 * t, dn)

    @custom_vjp
    def g(x, n):
        return x * n, n + 1

    def bwd(n, cts):
        assert cts[1].dtype == jitcore.dtypes.float0
        return 4 * cts[0], None

    g.defvjp(lambda x, n: (g(x, n), n), bwd)
    n = np.int32(3)
    for function in (f, g):
        for derived in (grad(lambda x, function=function: function(x, n)[0]),
                        jit(grad(lambda x, function=function: jit(function)(x, n)[0]))):
            assert derived(X) == 4


def test_one_value_for_all_elements():
    """The cotangent of an argument without batch axis is a sum over the batch."""

    @custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)), lambda r, ct: (5 * ct * r[1] * jnp.cos(r[0]), ct * jnp.sin(r[0]))
    )
    run = lambda x, y: vmap(f, (0, None))(x, y).sum()  # noqa: E731
    for derived in (grad(run, (0, 1)), jit(grad(run, (0, 1))), grad(jit(run), (0, 1))):
        by_x, by_y = derived(XS, X)
        np.testing.assert_allclose(by_x, 5 * X * np.cos(XS), rtol=1e-12)
        np.testing.assert_allclose(by_y, np.sin(XS).sum(), rtol=1e-12)


# -- closures -----------------------------------------------------------------------------------------------
def close_over(x, decorate):
    if decorate is custom_jvp:
        f = custom_jvp(lambda y: x * y)
        f.defjvp(lambda primals, tangents: (f(*primals), 9 * x * tangents[0]))
    else:
        f = custom_vjp(lambda y: x * y)
        f.defvjp(lambda y: (f(y), y), lambda y, ct: (9 * x * ct,))
    return f


@pytest.mark.parametrize("decorate", [custom_jvp, custom_vjp])
def test_closures_over_traced_values(decorate):
    run = lambda x: grad(close_over(x, decorate))(3.0)  # noqa: E731
    assert jit(run)(2.0) == 18
    np.testing.assert_allclose(vmap(run)(XS), 9 * XS)
    np.testing.assert_allclose(jit(vmap(run))(XS), 9 * XS)
    np.testing.assert_allclose(vmap(lambda x: close_over(x, decorate)(3.0))(XS), 3 * XS)
    mapped = lambda y: vmap(lambda x: close_over(x, decorate)(y))(XS).sum()  # noqa: E731
    np.testing.assert_allclose(jit(grad(mapped))(3.0), 9 * XS.sum(), rtol=1e-6)


@pytest.mark.parametrize("decorate", [custom_jvp, custom_vjp])
def test_closures_over_differentiated_values_are_refused(decorate):
    with pytest.raises(jitcore.errors.UnexpectedTracerError):
        grad(lambda x: close_over(x, decorate)(x))(2.0)


def test_differentiation_by_a_closure_of_a_traced_custom_vjp_is_refused():
    message = "Detected differentiation of a custom_vjp function with respect to a closed-over value."
    with pytest.raises(Exception, match=message):
        grad(jit(lambda x: close_over(x, custom_vjp)(x)))(2.0)


def test_closure_convert():
    def minimize(f, x):
        converted, consts = closure_convert(f, x)
        return scaled(converted, x, *consts)

    @functools.partial(custom_vjp, nondiff_argnums=0)
    def scaled(f, x, *consts):
        return f(x, *consts)

    def fwd(f, x, *consts):
        return scaled(f, x, *consts), (x, consts)

    def bwd(f, residuals, ct):
        x, consts = residuals
        return (10 * ct, *(100 * ct for _ in consts))

    scaled.defvjp(fwd, bwd)
    run = lambda a, x: minimize(lambda x: a * x + jnp.sin(2.0), x)  # noqa: E731
    for derived in (grad(run, (0, 1)), jit(grad(run, (0, 1)))):
        assert derived(X, X) == (100, 10)
    converted, consts = closure_convert(lambda x: x * np.arange(3.0), X)
    assert consts == [] and converted(X).shape == (3,)
    with pytest.raises(TypeError, match="same Pytree structure as the example arguments"):
        converted((X, X))


@BOTH
def test_rules_keep_no_tracers(f):
    with jitcore.checking_leaks():
        for derived in (jit(grad(f)), grad(jit(f)), jit(vmap_one(grad(f)))):
            np.testing.assert_allclose(derived(X), first(X), rtol=1e-12)


def test_collectives_inside():
    f = custom_jvp(lambda x: x - lax.pmean(x, "i"))
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    np.testing.assert_allclose(vmap(f, axis_name="i")(XS), XS - XS.mean(), atol=1e-15)
    found = grad(lambda xs: (vmap(f, axis_name="i")(xs) * XS).sum())(XS)
    np.testing.assert_allclose(found, 2 * XS)


# -- custom_gradient ----------------------------------------------------------------------------------------
def test_custom_gradient():
    @custom_gradient
    def f(x, y):
        z = jnp.sin(x) * y
        return z, lambda g: (3 * g * jnp.cos(x) * y, 5 * g * jnp.sin(x))

    @custom_gradient
    def one(x):
        return jnp.sin(x), lambda g: 3 * g * jnp.cos(x)

    two = np.float64(2.0)
    for derived in (grad(f, (0, 1)), jit(grad(f, (0, 1))), grad(jit(f), (0, 1))):
        by_x, by_y = derived(X, two)
        np.testing.assert_allclose([by_x, by_y], [6 * np.cos(X), 5 * np.sin(X)], rtol=1e-12)
    for derived in (grad(one), jit(grad(one)), vmap_one(grad(one)), grad(vmap_one(one))):
        np.testing.assert_allclose(derived(X), first(X), rtol=1e-12)
    np.testing.assert_allclose(grad(grad(one))(X), second(X), rtol=1e-12)


# -- symbolic zeros -----------------------------------------------------------------------------------------
def test_symbolic_zeros_of_custom_jvp():
    seen = []

    @custom_jvp
    def f(x, y):
        return x * y, y

    def rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        return f(*primals), (3 * tangents[0], SymbolicZero.from_primal_value(primals[1]))

    f.defjvp(rule, symbolic_zeros=True)
    assert grad(lambda x: sum(f(x, 2.0)))(X) == 3
    assert grad(jit(lambda x: sum(f(x, 2.0))))(X) == 3
    np.testing.assert_allclose(vmap(grad(lambda x: sum(f(x, 2.0))))(XS), 3 * np.ones(4))
    np.testing.assert_allclose(grad(lambda xs: sum(vmap(f, (0, None))(xs, 2.0)).sum())(XS), 3 * np.ones(4))
    assert seen and all(zeros == [False, True] for zeros in seen)


def test_symbolic_zeros_of_custom_vjp():
    seen = []

    @custom_vjp
    def f(x, y):
        return x * y, jnp.sin(x)

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        return f(*custom_vjp_primal_tree_values((x, y))), None

    def bwd(_, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        return 3 * cts[0], SymbolicZero(jnp.asarray(2.0).aval)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    two = np.float32(2.0)
    for derived in (grad(lambda x: f(x, two)[0]), grad(jit(lambda x: f(x, two)[0]))):
        seen.clear()
        assert derived(X) == 3 and seen == [(True, False), [False, True]]
