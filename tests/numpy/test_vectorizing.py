"""`vectorize` and `apply_along_axis` against JAX and NumPy."""

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

from jitcore import jit, make_jaxpr, numpy as jnp

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("signature, shapes", [
    (None, ((2, 1, 3), (4, 3))), (None, ((), (3,))), (None, ((1, 1), (1,))), (None, ((0, 3), (1, 3))),
    ("(),()->()", ((2, 1), (3,))),
    ("(n,m),(m)->(n)", ((5, 2, 3), (3,))), ("(n,m),(m)->(n)", ((5, 2, 3), (4, 1, 3))),
    ("(n,m),(m)->(n)", ((1, 2, 3), (3,))), ("(n,m),(m,k)->(n,k)", ((2, 3), (6, 3, 4))),
], ids=str)
def test_as_in_jax(signature, shapes):
    values = [draw(*shape) for shape in shapes]
    function = (lambda a, b: a * b + a) if signature in (None, "(),()->()") else (lambda a, b: a @ b)
    theirs = jax_numpy.vectorize(function, signature=signature)(*values)
    ours = jnp.vectorize(function, signature=signature)
    for run in (ours, jit(ours)):
        out = run(*values)
        assert out.shape == theirs.shape and out.dtype == theirs.dtype
        np.testing.assert_allclose(out, theirs, rtol=1e-5, atol=1e-6)


def test_several_results_and_pytrees():
    x = draw(4, 2, 3)
    norm, unit = jnp.vectorize(
        lambda v: (jnp.linalg.norm(v), v / jnp.linalg.norm(v)), signature="(n)->(),(n)"
    )(x)
    np.testing.assert_allclose(norm, np.linalg.norm(x, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(unit, x / np.linalg.norm(x, axis=-1, keepdims=True), rtol=1e-5)
    assert jnp.vectorize(lambda a: {"k": a})(np.ones((1, 2)))["k"].shape == (1, 2)


def test_excluded_and_missing_arguments():
    x, table = draw(2, 3), draw(5)
    for excluded, kwargs, args in (({1}, {}, (x, table)), ({"table"}, {"table": table}, (x,))):
        out = jnp.vectorize(lambda a, table: a + table.sum(), excluded=excluded)(*args, **kwargs)
        np.testing.assert_allclose(out, x + table.sum(), rtol=1e-5)
    assert jnp.vectorize(lambda a, b: a if b is None else b)(x, None).shape == (2, 3)
    kinds = []
    jnp.vectorize(lambda a, name: kinds.append(name) or a, excluded={1})(x, "text")
    assert kinds == ["text"]


def test_what_has_one_element_is_not_repeated():
    closed = make_jaxpr(jnp.vectorize(lambda a, b: a @ b, signature="(n,m),(m)->(n)"))(
        draw(1, 2, 3), draw(4, 3)
    )
    (product,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "dot_general"]
    assert [atom.aval.shape for atom in product.invars] in ([(2, 3), (4, 3)], [(4, 3), (2, 3)])


@pytest.mark.parametrize("run", [
    lambda np, vectorize: vectorize(np.dot, signature="(n,m)->"),
    lambda np, vectorize: vectorize(np.dot, signature="(n, m),(m)->(n)"),
    lambda np, vectorize: vectorize(np.dot, signature="(n,m),(m)->(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(np.dot, signature="(n,m),(m)->(n)")(np.ones(5), np.ones(5)),
    lambda np, vectorize: vectorize(np.dot, signature="(n,m),(m)->(n)")(np.ones((5, 2)), np.ones(5)),
    lambda np, vectorize: vectorize(lambda a: (a, a), signature="(n)->(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(lambda a: (a, a, a), signature="(n)->(n),(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(lambda a: a, signature="(n)->(n),(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(lambda a: a.sum(), signature="(n)->(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(lambda a: a[:1], signature="(n)->(n)")(np.ones((5, 2))),
    lambda np, vectorize: vectorize(lambda a, b: a, signature="(),(n)->()")(np.ones(2), None),
    lambda np, vectorize: vectorize(lambda a: a, excluded={-1}),
    lambda np, vectorize: vectorize(lambda a: a, excluded={1.5}),
    lambda np, vectorize: vectorize(lambda a, b: a + b)(np.ones(3), np.ones(4)),
])
def test_errors_as_in_jax(run):
    def call(np):  # a malformed signature is found by the call at the latest
        function = run(np, np.vectorize)
        function(np.ones((2, 2)), np.ones(2))

    with pytest.raises(Exception) as theirs:
        call(jax_numpy)
    with pytest.raises(type(theirs.value)) as ours:
        call(jnp)
    expected = str(theirs.value).replace("jax.numpy", "jitcore.numpy")
    assert str(ours.value).startswith(expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_apply_along_axis(axis):
    x = draw(2, 3, 4)
    for function in (
        lambda v, k=1.0: (v * k).sum(),
        lambda v, k=1.0: v[::-1] * k,
        lambda v, k=1.0: v[:2, None] * v[:2] + k,
    ):
        expected = np.apply_along_axis(function, axis, x, k=2.0)
        np.testing.assert_allclose(
            jnp.apply_along_axis(function, axis, x, k=2.0), expected, rtol=1e-5, atol=1e-6
        )
        assert jax.numpy.apply_along_axis(function, axis, x).shape == expected.shape
