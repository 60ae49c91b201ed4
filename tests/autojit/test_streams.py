"""Compiled functions draw from generators of NumPy and Python the numbers that plain Python draws, to the last
bit, and leave them where it does."""

import copy
import random
import threading

import numpy as np
import pytest

import jitcore
from jitcore.process import streams

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
    gamma(2.0, 3.0)    gamma(u + 1.0)    geometric(0.25)    geometric(0.5, 3)    standard_gamma(0.5)    standard_gamma(2.5, 3)    beta(0.5, 2.0)    beta(2.0, 3.0, 2)    chisquare(3.0)
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
    choice(range(3, 30, 4))    choice(u)    choice((1.5, 2.5, 3.5))    choice([(1, 0.5), (2, -0.5), (3, 1.5)])[1]    choice([1.5, 2.5, 3.5])
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


class Walker:
    def __init__(self, seed):
        self.rng, self.x = np.random.default_rng(seed), 0.0

    def walk(self, n):
        for _ in range(n):
            step = self.rng.normal()
            if abs(self.x + step) < 3.0 or self.rng.random() < 0.1:
                self.x += step
        return self.x


class Own(random.Random):
    def random(self):
        return 0.25


OWN_RNG = np.random.default_rng(8)
OWN_RANDOM = random.Random(8)
draw = random.random


def metropolis(rng, n):
    x, taken, s = 0.0, 0, 0.0
    for _ in range(n):
        y = x + rng.uniform(-1.0, 1.0)
        d = (y * y - x * x) * 0.5
        if d < 0 or rng.random() < 1.0 / (1.0 + d):
            x = y
            taken += 1
        s += x
    return s, taken


def leaves(rng, n):
    for i in range(n):
        if rng.random() < 0.01:
            break
    return i


def rejects(rng, n):
    found = np.zeros(n)
    for i in range(n):
        while True:
            x, y = rng.uniform(-1, 1), rng.uniform(-1, 1)
            if x * x + y * y < 1:
                break
        found[i] = x
    return found


def of_two(one, other, n):
    s = 0.0
    for _ in range(n):
        s = s * 0.5 + one.random()
        if s > 0.75:
            s -= other.random()
    return s


def by_method(rng, n):
    take, s = rng.normal, 0.0
    for _ in range(n):
        s += take(0.0, 0.5)
    return s


def of_lists(rng, n):
    data, whole, s, k = [1.0, 2.5, -4.0], (3, 5, 7), 0.0, 0
    for _ in range(n):
        s = s * 0.5 + data[int(rng.uniform(0, 3))]
        k += whole[int(rng.uniform(-3, 3))] - whole[-1]
    return s, k


def asks_for_classes(rng, n):
    s = 1.0 if isinstance(rng, np.random.Generator) else 2.0
    s += 10.0 if type(rng) is np.random.RandomState else 20.0
    s += 100.0 if rng.__class__ is np.random.Generator else 200.0
    if rng is not None and rng and rng == rng:
        for _ in range(n):
            s += rng.normal()
    return s, type(rng).__name__, isinstance(rng, (int, np.ndarray))


def in_vectors(rng, n):
    found = 0.0
    for _ in range(n):
        p = rng.random(3)
        p = p / 2.0 + rng.normal(size=3)
        found += p[0] * p[2]
    return found


@pytest.mark.parametrize("function", [metropolis, leaves, rejects, by_method, of_lists, asks_for_classes,
                                      in_vectors])
@pytest.mark.parametrize("name", ["PCG64", "MT19937", "SFC64", "RandomState"])
def test_draws_keep_their_order(function, name):
    compare(function, MAKERS[name](), 500, calls=4)


def test_generators_of_one_call_are_told_apart():
    one, other = MAKERS["PCG64"](), MAKERS["MT19937"]()
    compiled = jitcore.autojit(of_two, strict=True)
    same = copy.deepcopy((one, other))
    assert compiled(one, other, 200) == of_two(*same, 200)
    assert compiled(one, one, 200) == of_two(same[0], same[0], 200)
    sharing = np.random.RandomState(one.bit_generator), np.random.RandomState(same[0].bit_generator)
    compiled = jitcore.autojit(of_two)
    assert compiled(one, sharing[0], 200) == of_two(same[0], sharing[1], 200)
    assert [read_state(x) for x in (one, other)] == [read_state(x) for x in same]


def test_a_method_of_an_object():
    ours, plain = Walker(3), Walker(3)
    compiled = jitcore.autojit(Walker.walk, strict=True)
    for _ in range(3):
        assert compiled(ours, 300) == plain.walk(300)
        assert read_state(ours.rng) == read_state(plain.rng)


@pytest.mark.parametrize("call, rng", [
    ("np.random.rand()", np.random.mtrand._rand), ("np.random.normal(0.0, 2.0)", np.random.mtrand._rand),
    ("np.random.randint(0, 9)", np.random.mtrand._rand), ("random.random()", random._inst),
    ("random.gauss(0.0, 1.0)", random._inst), ("draw()", random._inst), ("take()", OWN_RNG),
    ("own.normal()", OWN_RNG), ("mine.randint(1, 6)", OWN_RANDOM)])
def test_generators_of_modules(call, rng):
    names = {"own": OWN_RNG, "mine": OWN_RANDOM, "draw": draw, "take": OWN_RNG.normal}
    f = make(f"def f(n):\n    s = 0.0\n    for i in range(n):\n        s = s * 0.5 + {call}\n    return s", **names)
    compiled = jitcore.autojit(f, strict=True)
    for seed in range(3):
        reset(rng, seed)
        found, state = compiled(301), read_state(rng)
        reset(rng, seed)
        assert f(301) == found
        assert read_state(rng) == state


def reset(rng, seed):
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = np.random.PCG64(seed).state
    else:
        rng.seed(seed)


def test_what_is_refused_draws_nothing_twice():
    """Plain Python raises, and has drawn what it draws until then."""
    def f(rng, n, scale):
        s = 0.0
        for i in range(n):
            s += rng.normal(0.0, scale - i)
        return s

    one, other = np.random.default_rng(1), np.random.default_rng(1)
    compiled = jitcore.autojit(f)
    assert compiled(one, 5, 100.0) == f(other, 5, 100.0)
    for _ in range(2):
        for function, rng in ((compiled, one), (f, other)):
            with pytest.raises(ValueError, match="scale < 0"):
                function(rng, 9, 3.5)
    assert read_state(one) == read_state(other)


def test_a_class_of_the_users_draws_in_its_own_way():
    f = make("def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.random()\n    return s")
    assert jitcore.autojit(f)(Own(3), 100) == 25.0


def test_a_bit_generator_that_is_exchanged():
    f = make("def f(n):\n    s = 0.0\n    for i in range(n):\n        s += np.random.random()\n    return s")
    compiled, before = jitcore.autojit(f), np.random.get_bit_generator()
    try:
        for bits in (np.random.MT19937(3), np.random.PCG64(3), np.random.MT19937(4)):
            np.random.set_bit_generator(bits)
            same = np.random.RandomState(copy.deepcopy(bits))
            total = 0.0
            for _ in range(100):
                total += same.random()
            assert compiled(100) == total
            assert repr(bits.state) == repr(same._bit_generator.state)
    finally:
        np.random.set_bit_generator(before)


def test_other_threads_wait():
    """No number is drawn twice: the lock is held while a program draws."""
    f = make("def f(rng, n):\n    s = np.zeros(n)\n    for i in range(n):\n        s[i] = rng.random()\n    return s")
    rng, compiled, found = np.random.default_rng(2), jitcore.autojit(f, strict=True), []
    compiled(np.random.default_rng(0), 2000)
    threads = [threading.Thread(target=lambda: found.extend([compiled(rng, 2000) for _ in range(20)]))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = np.sort(np.concatenate(found))
    np.testing.assert_array_equal(drawn, np.sort(np.random.default_rng(2).random(drawn.size)))


@pytest.mark.parametrize("call", ["scipy.stats.norm.rvs(size=3)", "statistics.NormalDist().samples(3)[0]"])
def test_libraries_that_draw(call):
    """Their code is not traced: it would draw while tracing only."""
    import statistics

    import scipy.stats

    f = make(f"def f(x):\n    return x + {call} + np.random.rand()", scipy=scipy, statistics=statistics)
    compiled, found = jitcore.autojit(f), []
    with pytest.raises(jitcore.errors.NotTraceable, match="a draw by code that is not traced"):
        jitcore.autojit(f, strict=True)(np.zeros(3))
    for function in (f, compiled):
        np.random.seed(1)
        random.seed(1)
        found.append([function(np.zeros(3)).tolist() for _ in range(3)])
    assert found[0] == found[1]


@pytest.mark.parametrize("name, answer", [("has_function", lambda name: False), ("_has_fused_products", lambda: True)])
def test_what_this_numpy_does_otherwise_is_left_to_python(name, answer, monkeypatch):
    monkeypatch.setattr(f"jitcore.numpy_semantics.functions.streams.{name}", answer)
    f = make("def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.normal(0.5, 2.0)\n    return s")
    rng, same = np.random.RandomState(3), np.random.RandomState(3)
    with pytest.raises(jitcore.errors.NotTraceable, match="a draw"):
        jitcore.autojit(f, strict=True)(rng, 10)
    assert jitcore.autojit(f)(rng, 10) == f(same, 10)
    f = make("def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.random()\n    return s")
    assert jitcore.autojit(f, strict=True)(rng, 10) == f(same, 10)


def test_programs_for_another_numpy_are_not_used():
    rng = np.random.default_rng(3)
    memory = streams.find_memory(rng)
    assert streams.find_words(memory.form, rng) is memory.words
    assert streams.find_words(memory.form.replace(np.__version__, "1.0"), rng) is None


def test_generators_are_let_go():
    """Of many that come and go only the last ones are kept."""
    f = make("def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.random()\n    return s")
    compiled = jitcore.autojit(f, strict=True)
    for seed in range(200):
        assert compiled(np.random.default_rng(seed), 5) == f(np.random.default_rng(seed), 5)
    assert len(streams._memories) <= 64


@pytest.mark.parametrize("device", ["reference", "cuda:emulated"])
def test_other_backends(device):
    """Their programs draw on the host."""
    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    f = make("def f(rng, n):\n    s = 0.0\n    for i in range(n):\n        s += rng.normal()\n    return s")
    compiled = jitcore.autojit(f, device=device, strict=True)
    assert [compiled(rng, 10), compiled(rng, 10), rng.random()] == [f(same, 10), f(same, 10), same.random()]
