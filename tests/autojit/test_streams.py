"""Compiled functions draw from generators of NumPy and Python the numbers that plain Python draws, to the last
bit, and leave them where it does."""

import copy
import random
import threading

import numpy as np
import pytest

import jitcore

SOURCES = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
MAKERS = {name: lambda name=name: np.random.Generator(getattr(np.random, name)(5)) for name in SOURCES}
MAKERS |= {"RandomState": lambda: np.random.RandomState(5), "Random": lambda: random.Random(5)}

OF_BOTH = """
    uniform()    uniform(-1, 2)    uniform(x, x + 3.0)    uniform(0.0, 1.0, 3)    uniform(size=(2, 3))
    uniform(u, u + 1.0)    uniform(-u, 2.0, 4)    uniform(0, i)
    normal()    normal(1.0, 2.0)    normal(x, 0.5)    normal(size=5)    normal(0, 1, (2, 3))    normal(u, 0.5)
    normal(0.0, u + 1.0)    normal(u, u + 1.0, (3, 4))    normal(0, i)
    standard_normal()    standard_normal(3)    standard_normal((2, 2))    standard_normal(None)
    exponential()    exponential(2.0)    exponential(x, 4)    exponential(u + 1.0)
    standard_exponential()    standard_exponential(3)
    poisson()    poisson(3.5)    poisson(40.0)    poisson(x + 2.0, 4)    poisson(u)
    laplace()    laplace(0.5, 2.0, 3)    gumbel()    gumbel(x, 1.0)    logistic(size=2)    logistic(u, 0.5)
    binomial(10, 0.3)    binomial(100, 0.7)    binomial(i, 0.5)    binomial(20, 0.5, 6)    binomial(50, u * 0.2)
    choice(7)    choice(i + 1)    choice(u)    choice(5, 3)    choice(u, (2, 2))    choice(4, size=6)
    permutation(6)    permutation(u)
"""
OF_GENERATOR = """
    random()    random(3)    random((2, 2))    random(size=4)    integers(10)    integers(0, 2)    integers(3, 9)
    integers(-5, 5, 4)    integers(0, 7, size=(2, 3))    integers(0, i + 1)    integers(1, 6, endpoint=True)
    integers(0, 10**12)    integers(2**62)    integers(5, 6)    integers(0, 2**32)    integers(0, 2**32 - 1, 3)
    standard_gamma(0.5)    standard_gamma(2.5, 3)    beta(0.5, 2.0)    beta(2.0, 3.0, 2)    chisquare(3.0)
    lognormal()    lognormal(0.5, 0.25, 3)    rayleigh(2.0)    pareto(3.0)    weibull(1.5)    power(2.0)
    standard_cauchy()    standard_t(4.0)    standard_t(3.0, 3)
"""
OF_STATE = """
    rand()    rand(3)    rand(2, 2)    randn()    randn(4)    randn(2, 3)    random_sample()    random_sample(3)
    random()    randint(10)    randint(0, 2)    randint(3, 9)    randint(-5, 5, 4)    randint(0, i + 1)
    randint(0, 7, size=(2, 3))    randint(0, 10**12)    randint(2**62)    randint(5, 6)    randint(0, 2**32)
"""
OF_PYTHON = """
    random()    uniform(1, 2)    uniform(x, 3.0)    uniform(0, i)    gauss(0, 1)    gauss(x, 0.5)    gauss(0.0, i)
    normalvariate(0, 1)    normalvariate(x, 2.0)    expovariate(1.5)    getrandbits(1)    getrandbits(32)
    getrandbits(33)    getrandbits(63)    randrange(10)    randrange(3, 9)    randrange(0, 20, 3)
    randrange(i + 1)    randrange(20, 0, -3)    randint(1, 6)    randint(-3, i)    randint(0, 2**40)    choice(range(7))
    choice(range(3, 30, 4))    choice(u)    choice((1.5, 2.5, 3.5))    choice([1.5, 2.5, 3.5])
"""


def list_calls(text: str) -> list[str]:
    return [call for call in text.replace("\n", "    ").split("    ") if call]


def group(calls: list[str], size: int = 6) -> list[tuple[str, ...]]:
    return [tuple(calls[k : k + size]) for k in range(0, len(calls), size)]


CALLS = [("PCG64", calls) for calls in group(list_calls(OF_BOTH + OF_GENERATOR))]
CALLS += [("RandomState", calls) for calls in group(list_calls(OF_BOTH + OF_STATE))]
CALLS += [("Random", calls) for calls in group(list_calls(OF_PYTHON))]
CALLS += [(name, calls) for name in SOURCES[1:] for calls in group(list_calls("""
    random()    normal()    integers(10)    standard_normal(3)    exponential()    poisson(4.0)
    integers(0, 2**40, 3)    random((2, 2))    choice(9)    binomial(30, 0.25)    permutation(5)    uniform(u, 5.0)
"""))]


def make(text: str, **names):
    namespace = {"np": np, "random": random, **names}
    exec(text, namespace)
    return namespace["f"]


def assert_equal(one, other):
    assert type(one) is type(other), (one, other)
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for pair in zip(one, other):
            assert_equal(*pair)
    else:
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), (one, other)


def read_state(rng):
    if isinstance(rng, random.Random):
        return rng.getstate()
    state = rng.get_state(legacy=False) if isinstance(rng, np.random.RandomState) else rng.bit_generator.state
    return repr(state)


def compare(function, rng, *arguments, calls=2, strict=True):
    """Calls plainly and compiled: what is returned and the generators' states are equal."""
    compiled = jitcore.autojit(function, strict=strict)
    other = copy.deepcopy(rng)
    for _ in range(calls):
        assert_equal(function(other, *arguments), compiled(rng, *arguments))
        assert read_state(rng) == read_state(other)
    return compiled


@pytest.mark.parametrize("name, calls", CALLS)
def test_draws_are_the_same(name, calls):
    """Twice in each iteration: the first with others behind it, the second behind itself."""
    places = range(len(calls))
    assign = "; ".join(f"v{k} = rng.{calls[k]}" for k in places)
    f = make(f"""
def f(rng, n, u):
    x, i = 0.5, 1
    {assign}
    {"; ".join(f"s{k} = v{k} * 0.5" for k in places)}
    for i in range(1, n):
        {assign}
        {"; ".join(f"w{k} = rng.{calls[k]}" for k in places)}
        if i % 3 == 1:
            {"; ".join(f"s{k} = s{k} * 0.5 + w{k}" for k in places)}
        x = x * 0.5 + 0.25
    return {", ".join(f"s{k}, v{k}" for k in places)}
""")
    compare(f, MAKERS[name](), 120, np.array([0.5, 1.5, 2.5, 3.25]))
