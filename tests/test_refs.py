"""References to arrays, against JAX: what they hold after programs that read and write them."""

import numpy as np
import pytest

import jitcore
from jitcore import grad, jit, lax, new_ref, numpy as jnp, ref as refs, vmap

from tests.jax_answers import ask  # isort: skip


def use(jax, x):
    r = jax.new_ref(x)
    r[0] += 1
    return r[...]


def count(jax, x):
    r = jax.new_ref(x)

    def body(i, c):
        r[i] += c
        return c + 1

    return jax.lax.fori_loop(0, 3, body, 1.0), r[...]


def count_open(jax, x):
    r = jax.new_ref(x)

    def body(i, c):
        r[i] = r[i] * 2 + c
        return c + 1

    return jax.lax.fori_loop(0, x[0].astype(int) + 2, body, 1.0), r[...]


def scan(jax, x):
    r = jax.new_ref(x)

    def body(c, v):
        r[0] += v
        return c + r[0], r[...]

    return jax.lax.scan(body, 0.0, jax.numpy.arange(3.0)), jax.freeze(r)


def decide(jax, x):
    r = jax.new_ref(x)

    def double():
        r[...] = r[...] * 2
        return 1

    number = jax.lax.cond(x[0] > 0, double, lambda: 2)
    jax.lax.switch(1, [lambda: None, lambda: jax.ref.addupdate(r, 0, 5.0), lambda: None])
    return number, r[...], jax.ref.swap(r, 1, 7.0), jax.ref.get(r, slice(1, 3))


def nest(jax, x):
    r, s = jax.new_ref(x), jax.new_ref(0.0)

    def outer(c, v):
        def inner(i, d):
            def yes():
                r[i] = r[i] + v
                return 0

            def no():
                s[...] += d
                return 1

            return d + jax.lax.cond(i > 0, yes, no)

        return jax.lax.fori_loop(0, x.shape[0], inner, c), s[...]

    return jax.lax.scan(outer, 0.0, jax.numpy.arange(3.0)), r[...], s[...]


PROGRAMS = [use, count, count_open, scan, decide, nest]


def describe(tree, jax):
    return [(np.asarray(x), x.dtype, x.weak_type) for x in jax.tree.leaves(tree)]


def assert_same(got, want):
    for (one, dtype, weak), (other, *facts) in zip(got, want, strict=True):
        assert [dtype, weak] == facts
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("way", ["eager", "jit"])
def test_programs(program, way):
    def run(jax):
        f = lambda x: program(jax, x)  # noqa: E731
        return describe((jax.jit(f) if way == "jit" else f)(jax.numpy.arange(3.0)), jax)

    assert_same(run(jitcore), ask(run))


@pytest.mark.parametrize("program", [use, count, scan])
def test_under_transformations(program):
    def run(jax):
        x = jax.numpy.arange(6.0).reshape(2, 3)
        total = lambda x: sum((leaf**2).sum() for leaf in jax.tree.leaves(program(jax, x)))  # noqa: E731
        return describe((jax.vmap(lambda x: program(jax, x))(x), jax.grad(total)(x[0]),
                         jax.jit(jax.vmap(jax.grad(total)))(x), jax.jvp(total, (x[0],), (x[1],)),
                         jax.grad(jax.checkpoint(total))(x[0])), jax)

    assert_same(run(jitcore), ask(run))


def test_branches_are_mapped_and_differentiated():
    """JAX refuses both."""
    f = lambda x: decide(jitcore, x)[1]  # noqa: E731
    x = jnp.array([[1.0, 2.0, 3.0], [-1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(vmap(f)(x), [[7, 4, 6], [4, 2, 3]])
    np.testing.assert_array_equal(vmap(grad(lambda x: f(x).sum()))(x), [[2, 2, 2], [1, 1, 1]])


def test_outside_of_traces():
    r = new_ref(np.arange(3, dtype=np.float32))
    assert repr(r) == "Ref([0., 1., 2.], dtype=float32)" and len(r) == 3 and isinstance(r, jitcore.Ref)
    assert lax.while_loop(lambda c: c < 3, lambda c: r.__setitem__(0, r[0] + c) or c + 1, 0) == 3
    np.testing.assert_array_equal(r[...], [3, 1, 2])
    np.testing.assert_array_equal(vmap(lambda x: r[0] + x)(jnp.arange(2.0)), [3, 4])
    assert grad(lambda x: r[0] * x**2)(3.0) == 18
    np.testing.assert_array_equal(jit(lambda x: x)(refs.freeze(r)), r[...])


def test_a_reference_is_a_copy():
    own = np.zeros(2, np.float32)
    r = new_ref(own)
    own[0], kept = 5, r[...]
    r[1] = 3.0
    np.testing.assert_array_equal(r[...], [0, 3])
    np.testing.assert_array_equal(kept, [0, 0])


R = new_ref(jnp.arange(3.0))
REFUSED = [
    (lambda: R.__setitem__(0, 1), ValueError, "Invalid dtype for `swap`. Ref dtype: float32. Value dtype: int32"),
    (lambda: R.__setitem__(0, jnp.ones(2)), ValueError, r"Expected shape: \(\). Value shape: \(2,\)"),
    (lambda: R.__setitem__(..., 1.0), ValueError, "Invalid shape for `swap`"),
    (lambda: R.addupdate(0, jnp.ones(2)), ValueError, "Invalid shape for `addupdate`"),
    (lambda: new_ref([1, 2]), TypeError, "new_ref"),
    (lambda: new_ref(R), TypeError, "new_ref"),
    (lambda: new_ref(1.0, kind="x"), ValueError, "kind must be"),
    (lambda: R + 1, TypeError, "unsupported operand"),
    (lambda: vmap(lambda x: R.__setitem__(0, x))(jnp.ones(2)), Exception, "performing a set/swap operation"),
    (lambda: grad(lambda x: R.addupdate(0, x) or x)(1.0), Exception, "performing an? addupdate operation"),
    (lambda: jitcore.make_jaxpr(lambda x: R[0] + x)(1.0), NotImplementedError, "in which it was not made"),
    (lambda: jit(new_ref)(1.0), ValueError, "returned a mutable array reference"),
    (lambda: lax.while_loop(lambda c: R.__setitem__(0, 2.0) or c < 1, lambda c: c + 1, 0), NotImplementedError,
     "cond_fun of while_loop writes"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call()
    np.testing.assert_array_equal(R[...], [0, 1, 2])
