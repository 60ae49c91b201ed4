"""`checkpoint`: equal derivatives, what is kept for them, and that the second computation stays one."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax, vmap
from jitcore.ad_checkpoint import (checkpoint, checkpoint_name, checkpoint_policies, print_saved_residuals,
                                   remat, saved_residuals)
from jitcore.core.jaxpr import sub_jaxprs
from jitcore.errors import TracerBoolConversionError
from jitcore.transforms.autodiff import grad, jvp, value_and_grad

X = np.array([0.3, 0.7, 1.1])
W = np.linspace(-1, 1, 9).reshape(3, 3)
TOLERANCE = {"rtol": 1e-12, "atol": 1e-14}


@pytest.fixture(autouse=True)
def checked():
    with jitcore.config.override(check_jaxprs=True):
        yield


def chain(x):
    return jnp.sin(jnp.sin(jnp.sin(x)))


def layer(x):
    h = checkpoint_name(jnp.tanh(W @ x), "hidden")
    return checkpoint_name(jnp.tanh(W @ h), "top") * x


def in_loop(x):
    return lax.scan(lambda c, w: (jnp.sin(c * w) + x, jnp.cos(c)), x, np.linspace(0.5, 1, 4))[0]


def in_search(x):
    return lax.while_loop(lambda c: jnp.sum(c) < 6.0, lambda c: c * 1.4 + jnp.sin(c * x), x)


def in_choice(x):
    return lax.cond(x[0] > 0.1, lambda x: jnp.exp(x) * x, lambda x: x, x)


def nested(x):
    return checkpoint(layer)(jit(chain)(x)) * x


FUNCTIONS = (chain, layer, in_loop, in_search, in_choice, nested)
POLICIES = {
    "default": None,
    "nothing": checkpoint_policies.nothing_saveable,
    "everything": checkpoint_policies.everything_saveable,
    "dots": checkpoint_policies.dots_saveable,
    "dots without batch": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "hidden": checkpoint_policies.save_only_these_names("hidden"),
    "all but hidden": checkpoint_policies.save_any_names_but_these("hidden"),
    "either": checkpoint_policies.save_from_both_policies(
        checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("top")),
}


def count_kept(f, *args):
    return sum(int(np.prod(aval.shape)) for aval, _ in saved_residuals(f, *args))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_derivatives_are_the_same(f):
    def total(g):
        return lambda x: jnp.sum(g(x) ** 2)

    batch = np.stack([X, 2 * X])
    plain = total(f)
    first = np.asarray(jit(grad(plain))(X))
    second = np.asarray(jit(grad(lambda x: jnp.sum(grad(plain)(x) * x)))(X))
    mapped = np.asarray(jit(vmap(grad(plain)))(batch))
    slope = np.asarray(jvp(plain, (X,), (X,))[1])
    for g in (
        total(checkpoint(f)),
        checkpoint(total(f)),
        total(checkpoint(jit(f))),
        total(jit(checkpoint(f))),
    ):
        np.testing.assert_allclose(np.asarray(grad(g)(X)), first, **TOLERANCE)
        np.testing.assert_allclose(np.asarray(jit(grad(g))(X)), first, **TOLERANCE)
    g = total(checkpoint(f))
    np.testing.assert_allclose(
        np.asarray(jit(grad(lambda x: jnp.sum(grad(g)(x) * x)))(X)), second, rtol=1e-11)
    np.testing.assert_allclose(np.asarray(jit(vmap(grad(g)))(batch)), mapped, **TOLERANCE)
    np.testing.assert_allclose(np.asarray(jvp(g, (X,), (X,))[1]), slope, **TOLERANCE)


@pytest.mark.parametrize("name", POLICIES)
def test_policies_change_no_value(name):
    def total(g):
        return lambda x: jnp.sum(g(x) ** 2)

    expected = np.asarray(grad(total(layer))(X))
    g = total(checkpoint(layer, policy=POLICIES[name]))
    for ours in (grad(g), jit(grad(g)), grad(jit(g))):
        np.testing.assert_allclose(np.asarray(ours(X)), expected, **TOLERANCE)


def test_equals_jax():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):

        def theirs(x):
            h = jax.numpy.tanh(W @ x)
            return (jax.numpy.tanh(W @ h) * x).sum()

        expected = np.asarray(jax.grad(jax.checkpoint(theirs))(X))
    np.testing.assert_allclose(
        np.asarray(jit(grad(lambda x: checkpoint(layer)(x).sum()))(X)), expected, rtol=1e-10
    )


# -- what is kept -------------------------------------------------------------------------------------------
def describe(f, *args):
    return [f"{aval.short()} {origin}" for aval, origin in saved_residuals(f, *args)]


def test_kept_values():
    assert describe(chain, 1.0) == ["f32[] output of cos"] * 3
    assert describe(checkpoint(chain), 1.0) == ["f32[] from the argument x"]
    everything = checkpoint(chain, policy=checkpoint_policies.everything_saveable)
    assert describe(everything, 1.0) == ["f32[] output of cos"] * 3


def test_kept_values_of_policies():
    def kept(policy):
        return {line.split(" ", 1)[1] for line in describe(checkpoint(layer, policy=policy), X)}

    names = checkpoint_policies.save_only_these_names("hidden")
    always = {"from a constant", "from the argument x"}
    assert kept(None) == always
    assert kept(names) == always | {"named 'hidden'"}
    assert kept(POLICIES["all but hidden"]) == always | {"named 'top'"}
    assert kept(POLICIES["dots"]) == always | {"output of dot_general"}


def test_memory_of_a_deep_function_is_that_of_its_parts():
    def repeat(x, part):
        for _ in range(10):
            x = part(x)
        return x

    block = lambda x: jnp.sin(jnp.exp(jnp.sin(jnp.cos(x))))  # noqa: E731
    assert count_kept(lambda x: repeat(x, block), X) == 10 * 4 * X.size
    assert count_kept(lambda x: repeat(x, checkpoint(block)), X) == 10 * X.size


def test_loop_of_checkpointed_steps_keeps_the_carry_alone():
    def loop(x, step):
        return lax.scan(lambda c, _: (step(c), None), x, None, length=7)[0]

    step = lambda c: jnp.sin(jnp.exp(jnp.sin(c)))  # noqa: E731
    assert count_kept(lambda x: loop(x, checkpoint(step)), X) == 7 * X.size
    assert count_kept(lambda x: loop(x, step), X) == 7 * 3 * X.size


def test_print_saved_residuals(capsys):
    print_saved_residuals(remat(chain), 1.0)
    assert capsys.readouterr().out == "f32[] from the argument x\n"


# -- the second computation ---------------------------------------------------------------------------------
def count_equations(closed, name):
    inner = (count_equations(each, name) for eqn in closed.eqns for each in sub_jaxprs(eqn.params))
    return sum(eqn.primitive.name == name for eqn in closed.eqns) + sum(inner)


@pytest.mark.parametrize(("prevent_cse", "count"), [(True, 5), (False, 3)])
def test_merging_is_prevented_where_it_is_asked_for(prevent_cse, count):
    f = jit(value_and_grad(checkpoint(chain, prevent_cse=prevent_cse)))
    f(0.3)
    optimized = f.inspect("optimized jaxpr")
    assert optimized.count("= sin ") == count
    assert optimized.count("= cos ") == 3


def test_optimization_barrier():
    tree = {"a": X, "b": (2 * X,)}
    out = lax.optimization_barrier(tree)
    np.testing.assert_array_equal(out["a"], X)

    @jit
    def f(x):
        return jnp.exp(x) + jnp.exp(lax.optimization_barrier(x))

    np.testing.assert_allclose(f(X), 2 * np.exp(X), rtol=1e-6)
    assert f.inspect("optimized jaxpr").count("= exp ") == 2
    slope = grad(lambda x: jnp.sum(lax.optimization_barrier(x) ** 2))(X)
    np.testing.assert_allclose(np.asarray(slope), 2 * X, rtol=1e-12)
    np.testing.assert_array_equal(vmap(lax.optimization_barrier)(W), W)


def test_one_trace_of_a_jitted_gradient():
    jitcore.clear_caches()
    f = jit(grad(checkpoint(lambda x: jnp.sum(chain(x)))))
    for factor in range(3):
        f(factor * X)
    assert f.cache_info().traces == 1
    assert f.cache_info().compiles == 1


# -- arguments ----------------------------------------------------------------------------------------------
def test_static_arguments():
    def f(x, double, *, negate=False):
        x = 2 * jnp.sin(x) if double else jnp.sin(x)
        return -x if negate else x

    for static in ({"static_argnums": 1}, {"static_argnums": (-1,)}):
        g = checkpoint(f, static_argnames="negate", **static)
        np.testing.assert_allclose(float(grad(g)(np.float64(0.3), True)), 2 * np.cos(0.3))
        np.testing.assert_allclose(float(grad(g)(np.float64(0.3), False, negate=True)), -np.cos(0.3))


def test_trees_and_closures():
    scale = jnp.asarray(X)

    @checkpoint
    def f(tree, *, shift):
        return {"out": jnp.sin(tree["a"] * scale) + shift}

    found = grad(lambda a: jnp.sum(f({"a": a}, shift=1.0)["out"]))(X)
    np.testing.assert_allclose(np.asarray(found), np.cos(X * X) * X, rtol=1e-12)
    by_closure = grad(lambda s: jnp.sum(checkpoint(lambda x: jnp.sin(x * s))(X)))(X)
    np.testing.assert_allclose(np.asarray(by_closure), np.cos(X * X) * X, rtol=1e-12)


def test_errors():
    with pytest.raises(TypeError, match="prevent_cse must be a bool or tuple of bools"):
        checkpoint(chain, prevent_cse=3)
    with pytest.raises(TypeError, match="Argument 'a' of type <class 'str'> is not a valid"):
        checkpoint(chain)("a")
    with pytest.raises(ValueError, match="can only take integer values greater than or equal to"):
        checkpoint(chain, static_argnums=(3,))(1.0)
    with pytest.raises(
        TypeError, match="traced for checkpoint / remat returned a value of type <class 'str'>"
    ):
        checkpoint(lambda x: "a")(1.0)
    with pytest.raises(TracerBoolConversionError):
        checkpoint(lambda x: x if x > 0 else -x)(1.0)
