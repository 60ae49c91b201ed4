"""`draw`: machine code and NumPy's implementation give the same numbers and leave the same state."""

import numpy as np
import pytest

import jitcore
from jitcore import vmap
from jitcore.lax.draw import SIGNATURES, draw
from jitcore.process import streams
from jitcore.process.streams import GAUSS, LAYOUTS, STATE

FLOATS, INTS = (0.5, 1.25, 3.0, 2.0), (7, 5, 3)
#: Of those whose parameters depend on each other, or are limited.
PARAMETERS = {"random_binomial": (0.25, 40), "random_bounded_uint64": (3, 9, 15, 0), "random_geometric": (0.25,),
              "python_bits": (37,), "python_below": (1000,)}


def make_words(source):
    rng = np.random.Generator(getattr(np.random, source)(3))
    with streams.find_memory(rng) as memory:
        return memory.words.copy()


def list_parameters(function):
    kinds = SIGNATURES[function].parameters
    values = PARAMETERS.get(function) or (FLOATS if kinds and kinds[0].kind == "f" else INTS)
    return [kind.type(value) for kind, value in zip(kinds, values)]


def is_there(function):
    return not function.startswith("random_") or streams.has_function(function)


@pytest.mark.parametrize("source", LAYOUTS)
def test_machine_code_draws_what_numpy_draws(source):
    """All functions, one after the other, in one program."""
    names = [name for name in SIGNATURES if is_there(name) and (source == "MT19937" or "python" not in name)]
    parameters = [list_parameters(name) for name in names]

    def run(words):
        found = []
        for name, values in zip(names, parameters):
            for shape in ((), (3,), ()):
                words, numbers = draw(words, *values, function=name, source=source, shape=shape)
                found.append(numbers)
        return words, found

    words = make_words(source)
    theirs, expected = words, []
    for name, values in zip(names, parameters):
        for shape in ((), (3,), ()):
            theirs, numbers = draw.primitive.impl(theirs, *values, function=name, source=source, shape=shape)
            expected.append(numbers)
    ours, found = jitcore.jit(run)(words)
    assert len(names) > 10
    for one, other in zip(expected, found):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, np.asarray(other), strict=False)
    behind = STATE + len(LAYOUTS[source].inner)  # pointers
    np.testing.assert_array_equal(np.asarray(ours)[behind:], theirs[behind:])
    np.testing.assert_array_equal(np.asarray(ours)[GAUSS:STATE], theirs[GAUSS:STATE])


@pytest.mark.parametrize("shape, place", [((3,), 0), ((2, 3), 0), ((2, 3), 1)])
def test_parameters_that_are_arrays(shape, place):
    words, first, other = make_words("PCG64"), np.full(shape, 1.5), np.linspace(0.5, 3.0, 6)[:np.prod(shape)]
    values = [first, other.reshape(shape)]
    params = {"function": "random_laplace", "source": "PCG64", "shape": shape}
    expected = draw.primitive.impl(words, *values, **params)[1]
    found = jitcore.jit(lambda *values: draw(*values, **params)[1])(words, *values)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_what_is_not_used_is_drawn_all_the_same():
    words = make_words("SFC64")

    def f(words):
        params = {"function": "next_double", "source": "SFC64"}
        words, _ = draw(words, **params)
        words, one = draw(words, **params)
        words, other = draw(words, **params)
        return words, other - one, one

    rng = np.random.Generator(np.random.SFC64(3))
    _, first, second = rng.random(3)
    _, found, one = jitcore.jit(f)(words)
    assert (float(found), float(one)) == (second - first, first)


def test_under_a_condition_and_in_a_loop():
    def f(words, n):
        def body(_, state):
            words, total = state
            words, x = draw(words, function="next_double", source="PCG64")
            words, y = jitcore.lax.cond(x < 0.5, lambda words: tuple(draw(
                words, function="random_standard_normal", source="PCG64")), lambda words: (words, x), words)
            return words, total * 0.5 + y

        return jitcore.lax.fori_loop(0, n, body, (words, 0.0))[1]

    rng, total = np.random.Generator(np.random.PCG64(3)), 0.0
    for _ in range(100):
        x = rng.random()
        total = total * 0.5 + (rng.normal() if x < 0.5 else x)
    assert float(jitcore.jit(f)(make_words("PCG64"), 100)) == pytest.approx(total, rel=1e-15)


def test_each_element_of_a_batch_draws_from_the_words_it_is_given():
    words = make_words("PCG64")
    f = lambda mean: draw(words, mean, function="random_poisson", source="PCG64")[1]  # noqa: E731
    found = vmap(f)(np.array([4.0, 4.0, 50.0]))
    assert [int(x) for x in found] == [int(f(np.float64(mean))) for mean in (4.0, 4.0, 50.0)]


@pytest.mark.parametrize("words, values, match", [
    (np.zeros(3, np.uint64), (), "takes the words of a PCG64"),
    (make_words("MT19937"), (), "takes the words of a PCG64"),
    (make_words("PCG64"), (1.0,), "parameters of other types"),
])
def test_operands_are_checked(words, values, match):
    with pytest.raises(TypeError, match=match):
        draw(words, *values, function="random_standard_normal", source="PCG64")


def test_there_is_no_derivative():
    words = make_words("PCG64")
    with pytest.raises(NotImplementedError, match="have no derivative"):
        jitcore.grad(lambda mean: draw(words, mean, function="random_standard_gamma", source="PCG64")[1])(2.0)


@pytest.mark.parametrize("source", LAYOUTS)
def test_states_go_into_words_and_back(source):
    rng = np.random.Generator(getattr(np.random, source)(5))
    other = streams.duplicate(rng)
    assert streams.are_alike(rng, other)
    rng.integers(5)  # keeps half of a number
    assert not streams.are_alike(rng, other)
    copied = streams.make(streams.describe(rng))
    with streams.find_memory(rng) as one, streams.find_memory(copied) as other:
        other.words[GAUSS:] = one.words[GAUSS:]
        other.write()
    assert repr(copied.bit_generator.state) == repr(rng.bit_generator.state)
    assert copied.random() == rng.random() and streams.are_alike(rng, copied)
