"""`rng_bit_generator`, and keys of `rbg` and `unsafe_rbg`, against XLA's bits: eager and compiled."""

import numpy as np
import pytest

import jitcore
import jitcore.jax as jax_facade
import jitcore.numpy as jnp
from jitcore import lax, random
from tests.jax_answers import ask

FULL = 2**32 - 1
STATES = [(1, 2, 3, 4), (1, 2, FULL - 1, FULL), (FULL,) * 4]
SHAPES = [(), (0,), (1,), (2,), (7,), (3, 3), (3, 5), (5, 3), (4, 6), (3, 5, 7)]
#: Words that are NaNs, infinities and numbers of which none may lose a bit where keys are held in floats.
WORDS = np.array([[1, 2, FULL, 0x7FF80001], [3, 0xFFF7FFFF, 5, 0x7FF00000]], np.uint32)


def draw(jax, state, shape, dtype, algorithm):
    with jax.enable_x64(True):
        key = jax.numpy.array(state, "uint32")
        found = jax.lax.rng_bit_generator(key, shape, dtype, getattr(jax.lax.RandomAlgorithm, algorithm))
        return [np.asarray(part).tolist() for part in found]


@pytest.mark.parametrize("algorithm", ["RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"])
@pytest.mark.parametrize("state", STATES)
def test_bits(state, algorithm):
    for shape in SHAPES:
        for dtype in ("uint8", "uint16", "uint32", "uint64"):
            theirs = ask(lambda jax, shape=shape, dtype=dtype: draw(jax, state, shape, dtype, algorithm))
            assert draw(jax_facade, state, shape, dtype, algorithm) == theirs
            run = jitcore.jit(lambda key, shape=shape, dtype=dtype: lax.rng_bit_generator(
                key, shape, dtype, getattr(lax.RandomAlgorithm, algorithm)))
            if dtype in ("uint32", "uint64"):
                assert [part.tolist() for part in run(np.array(state, np.uint32))] == theirs


def test_forms_of_the_state():
    state, bits = lax.rng_bit_generator(np.array([1 | 2 << 32, 3 | 4 << 32], np.uint64), (5,))
    narrow, same = lax.rng_bit_generator(np.arange(1, 5, dtype=np.uint32), (5,))
    np.testing.assert_array_equal(bits, same)
    np.testing.assert_array_equal(state.data.view(np.uint32), narrow)
    with pytest.raises(TypeError, match=r"uint32\[4\] or uint64\[2\]"):
        lax.rng_bit_generator(np.zeros(3, np.uint32), (2,))
    with pytest.raises(TypeError, match="unsupported dtype int32"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), "int32")
    with pytest.raises(NotImplementedError, match="out_sharding"):
        lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), out_sharding="x")


def test_jaxpr():
    text = " ".join(str(jitcore.make_jaxpr(lambda key: lax.rng_bit_generator(key, (3,)))(np.zeros(4, np.uint32))).split())
    assert "b:u32[4] c:u32[3] = rng_bit_generator[ algorithm=RNG_DEFAULT dtype=uint32 shape=(3,) ]" in text


def test_batch_draws_by_the_first_key():
    def run(jax):
        keys = jax.numpy.arange(12, dtype="uint32").reshape(3, 4)
        found = jax.vmap(lambda key: jax.lax.rng_bit_generator(key, (5,)))(keys)
        return [np.asarray(part).tolist() for part in found]

    assert run(jax_facade) == ask(run)


USES = {
    "seeds": lambda jax, random, k, ks, w, impl: [random.key(7, impl=impl), random.PRNGKey(8, impl=impl),
                                                  jax.vmap(lambda s: random.key(s, impl=impl))(jax.numpy.arange(3))],
    "bits": lambda jax, random, k, ks, w, impl: [random.bits(k, (5,), dtype) for dtype in ("uint8", "uint16", "uint32")],
    "keys": lambda jax, random, k, ks, w, impl: [random.split(k, 3), ks, random.split(w[1]), random.fold_in(k, 7)],
    "moves": lambda jax, random, k, ks, w, impl: [
        w, w[1], w[::-1], jax.numpy.where(np.array([True, False]), w, w[::-1]), w == w[0], w != w[1],
        w.at[0].set(w[1]), jax.numpy.stack([w[1], w[0]]), w.at[np.array([7, 1])].get(mode="fill")],
    "batches": lambda jax, random, k, ks, w, impl: [
        jax.vmap(lambda k: random.bits(k, (2,)))(w), jax.vmap(jax.vmap(random.bits))(ks), jax.vmap(random.split)(w),
        jax.vmap(random.fold_in)(w, np.arange(2)), jax.vmap(lambda i: random.fold_in(k, i))(np.arange(2)),
        jax.vmap(lambda k: random.fold_in(k, 1))(w)],
    "loops": lambda jax, random, k, ks, w, impl: [
        jax.lax.scan(lambda c, x: (random.split(c)[0], random.fold_in(x, 1)), k, w),
        jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, random.split(c[1])[1]), (0, w[1]))[1],
        jax.lax.cond(random.uniform(k) > 2, lambda: w[0], lambda: w[1])],
    "draws": lambda jax, random, k, ks, w, impl: [random.uniform(k, (4,)), random.permutation(k, 7),
                                                  random.randint(k, (3,), 0, 100)],
}


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("use", USES)
def test_keys(use, impl):
    def run(jax, compiled=False):
        random = jax.random
        k, w = random.key(5, impl=impl), random.wrap_key_data(WORDS, impl=impl)
        def call(k, ks, w):
            return USES[use](jax, random, k, ks, w, impl)

        found = (jax.jit(call) if compiled else call)(k, random.split(k, (3, 2)), w)
        words = [random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
                 for x in jax.tree.leaves(found)]
        return [np.asarray(x).tolist() for x in words]

    theirs = ask(run)
    assert run(jax_facade) == theirs
    assert run(jax_facade, compiled=True) == theirs


@pytest.mark.parametrize("how", [
    {"compiler_options": {"fastmath": True}}, {"compiler_options": {"codegen": "python"}},
    {"compiler_options": {"codegen": "numba"}}, {"backend": "reference"}, {"backend": "xla"}, {"backend": "cuda:emulated"},
], ids=lambda how: "-".join(str(value) for options in how.values() for value in (
    options.items() if isinstance(options, dict) else [options])))
def test_bits_of_words_stay_wherever_keys_move(how):
    if how.get("backend") == "xla":
        pytest.importorskip("jax")
    words = random.wrap_key_data(WORDS, impl="rbg")

    def move(words):
        found = USES["moves"](jax_facade, random, words[0], words, words, "rbg")
        return [random.key_data(x) if jnp.issubdtype(x.dtype, jitcore.dtypes.prng_key) else x for x in found]

    for own, expected in zip(jitcore.jit(move, **how)(words), move(words), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_implementations_do_not_mix():
    with pytest.raises(TypeError, match="equal does not accept dtypes key<fry>, key<rbg>"):
        random.key(0) == random.key(0, impl="rbg")
    with pytest.raises((TypeError, ValueError), match="key<"):
        jnp.stack([random.key(0), random.key(0, impl="rbg")])
    with pytest.raises(TypeError, match="end with"):
        random.bits(random.PRNGKey(0, impl="rbg"))
    assert random.key(0, impl="rbg").dtype != random.key(0, impl="unsafe_rbg").dtype
