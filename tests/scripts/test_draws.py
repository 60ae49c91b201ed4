"""Loops of scripts that draw random numbers are compiled, and draw what plain Python draws: the next numbers tell."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.scripts.test_random_scripts import at_once  # noqa: F401
from tests.scripts.test_scripts import run, run_sampled

pytestmark = pytest.mark.usefixtures("at_once")

SCRIPTS = {
    "Python's": """
        import random
        random.seed(1)
        i, inside, x, y = 0, 0, 0.0, 0.0
        for i in range(3000):
            x = random.random()
            y = random.random()
            if x * x + y * y < 1.0:
                inside += 1
        print(inside, random.random())
    """,
    "the legacy one, by scalars": """
        import numpy as np
        np.random.seed(3)
        def run(n):
            inside = 0
            for i in range(n):
                x = np.random.rand()
                y = np.random.uniform(-1, 1)
                if x * x + y * y < np.random.normal():
                    inside += np.random.randint(1, 7)
            return inside
        print(run(3001), np.random.randn(), np.random.rand())
    """,
    "the legacy one, by arrays": """
        import numpy as np
        np.random.seed(0)
        def walk(steps, n):
            x = np.zeros(n)
            for i in range(steps):
                x += np.random.randn(n)
                x += np.random.uniform(-1, 1, size=n)
                x[np.random.randint(n)] -= 1.0
            return x
        print(walk(500, 7).tolist(), np.random.randn())
    """,
    "a generator": """
        import numpy as np
        rng = np.random.default_rng(7)
        def run(rng, n):
            total, count = 0.0, 0
            for i in range(n):
                total += rng.normal() * rng.random()
                if rng.integers(0, 10) < 3:
                    count += 1
            return total, count
        print(run(rng, 3000), rng.random(), rng.integers(10))
    """,
    "a draw under a condition": """
        import math
        import numpy as np
        def metropolis(n, rng):
            x, taken, s = 0.0, 0, 0.0
            for i in range(n):
                y = x + rng.uniform(-1, 1)
                d = (y * y - x * x) / 2
                if d < 0 or rng.random() < math.exp(-d):
                    x = y
                    taken += 1
                s += x
            return taken
        rng = np.random.Generator(np.random.MT19937(0))
        print(metropolis(3000, rng), rng.random())
    """,
    "gauss, randint, choice": """
        import random
        random.seed(4)
        def run(n):
            s, places = 0.0, [(1, 0), (-1, 0), (0, 1), (0, -1)]
            x = y = 0
            for i in range(n):
                s += random.gauss(0.0, 1.0) * random.uniform(1, 2) + random.randint(1, 6)
                dx, dy = random.choice(places)
                x, y = x + dx, y + dy
            return s, x, y
        print(run(3000), random.gauss(0, 1), random.random())
    """,
    "an object's": """
        import numpy as np
        class Walker:
            def __init__(self, seed):
                self.rng, self.x = np.random.default_rng(seed), np.zeros(4)
            def run(self, n):
                for i in range(n):
                    self.x += self.rng.normal(size=4) * 0.1
                    if self.rng.random() < 1e-3:
                        print("event", i)
                return self.x.sum()
        walker = Walker(3)
        print(walker.run(3000), walker.rng.random())
    """,
    "an object's, called from a module that has its class": """
        import numpy as np
        class Swarm:
            def __init__(self, rng):
                self.rng, self.x, self.v = rng, rng.uniform(-1, 1, (5, 2)), np.zeros((5, 2))
            def step(self):
                pull = self.rng.random(self.x.shape)
                self.v = 0.5 * self.v - pull * self.x
                self.x = self.x + self.v
        swarm, k = Swarm(np.random.default_rng(10)), 0
        for k in range(3000):
            swarm.step()
        print(swarm.x.tolist(), swarm.rng.random())
    """,
    "an item at a place that is drawn": """
        import random
        random.seed(6)
        data, s, k = [1.0, 2.0, 5.0], 0.0, 0
        for k in range(3000):
            s = s * 0.5 + data[random.randrange(3)] - data[random.randint(-3, 2)]
        print(s, random.random())
    """,
    "methods by other names": """
        from random import gauss, random as pull
        import numpy as np
        import random
        random.seed(2)
        take = np.random.default_rng(3).normal
        def run(n, own=random.Random(3).random):
            t, i = 0.0, 0
            for i in range(n):
                t += pull() + gauss(0, 1) + take() + own()
                if t > 1000.0:
                    break
            return i, own()
        print(run(3000), pull(), gauss(0, 1), take())
    """,
    "generators among defaults, in lists, of classes": """
        import numpy as np
        class Source:
            rng = np.random.default_rng(6)
        def step(x, rng=np.random.default_rng(2)):
            return x * 0.5 + rng.normal()
        def run(n, rngs):
            x = 0.0
            for i in range(n):
                x = step(x) + rngs[0].random() + rngs[1].random() + Source.rng.random()
            return x
        rngs = [np.random.default_rng(k) for k in range(2)]
        print(run(3000, rngs), step(0.0), [rng.random() for rng in (*rngs, Source.rng)])
    """,
    "an error in the middle": """
        import numpy as np
        rng = np.random.default_rng(5)
        def run(n):
            for i in range(n):
                x = rng.normal(0.0, 2000.5 - i)
        try:
            run(3000)
        except ValueError as error:
            print(error, rng.random())
        i = k = 0
        try:
            for i in range(3000):
                k += rng.integers(0, 3)
                if k > 1500:
                    raise KeyError(i)
        except KeyError as error:
            print(error, k, rng.random())
    """,
    "several at once": """
        import random
        import numpy as np
        np.random.seed(2)
        random.seed(3)
        rng = np.random.Generator(np.random.SFC64(4))
        i, s, counts = 0, 0.0, np.zeros(10, int)
        for i in range(3000):
            if random.random() < 0.5:
                s += np.random.rand()
            else:
                s -= rng.standard_normal() * np.random.randn()
            counts[np.random.randint(0, 10)] += 1
            if i % 500 == 0:
                print(i, s, rng.random(), random.random())
        print(counts, np.random.rand(), random.random(), rng.random(), np.random.randn())
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_draws_are_pythons(name):
    source = textwrap.dedent(SCRIPTS[name])
    _, expected = run(source)
    _, written, sampler = run_sampled(source, opens=True)
    assert written == expected
    assert any(unit.fate.entries for unit in sampler.units if unit.fate), [
        unit.fate and unit.fate.reason for unit in sampler.units]


LEFT = {
    "two that share their bits": """
        import numpy as np
        one = np.random.default_rng(3)
        other = np.random.Generator(one.bit_generator)
        x = 0.0
        for i in range(1000):
            x = x * 0.5 + one.random() + other.normal()
        print(x, one.random())
    """,
    "seeds and makes in the loop": """
        import random
        import numpy as np
        x = 0.0
        for i in range(1000):
            if i % 100 == 0:
                np.random.seed(i)
                random.seed(i)
            x = x * 0.5 + np.random.rand() + random.random() + np.random.default_rng(i % 3).random()
        print(x, np.random.rand(), random.random())
    """,
    "what draws otherwise": """
        import random
        import numpy as np
        class Half(random.Random):
            def random(self):
                return 0.5
        half, rng = Half(3), np.random.default_rng(1)
        x, deck = 0.0, list(range(5))
        for i in range(1000):
            x += half.random() + rng.choice(3, p=[0.5, 0.25, 0.25]) + rng.multinomial(5, [0.5, 0.5])[0]
            random.shuffle(deck)
            x += deck[0] + random.sample(range(10), 2)[1] + random.triangular(0, 1)
        print(x, rng.random(), random.random())
    """,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_python(name):
    source = textwrap.dedent(LEFT[name])
    before = "import random\nrandom.seed(7)\n"
    assert run_sampled(before + source, opens=True)[1] == run(before + source)[1]


INTERRUPTED = """
import signal
import numpy as np

def stop(*_):
    raise KeyboardInterrupt

before = signal.signal(signal.SIGALRM, stop)
rng = np.random.default_rng(3)
count, i, x = 0, 0, np.zeros(3)
signal.setitimer(signal.ITIMER_REAL, 1.0)
try:
    for i in range(10**9):
        x += rng.random()
        count += 1
except KeyboardInterrupt:
    pass
finally:
    signal.signal(signal.SIGALRM, before)
"""


def test_an_interruption_leaves_whole_iterations():
    import numpy as np

    names, _, sampler = run_sampled(INTERRUPTED, opens=True)
    assert [one for one in sampler.units if one.fate is not None and one.fate.region is not None]
    same = np.random.default_rng(3)
    x, left = 0.0, names["count"]
    while left:  # one after the other, in pieces
        part = same.random(min(left, 1 << 20))
        x, left = float(np.cumsum([x, *part])[-1]), left - len(part)
    assert names["x"].tolist() == [x] * 3 and names["rng"].random() == same.random()


_STORED = """
import sys
from jitcore.config import config
from jitcore.scripts import learned, units
from tests.scripts import test_scripts
learned._stamp_folders = list  # other tests write compiled files meanwhile
units.LOADING = units.WITH_NUMPY = 0.0
source = sys.stdin.read()
expected = test_scripts.run(source)[1]
with config.override(cache_dir=sys.argv[1]):
    _, written, sampler = test_scripts.run_sampled(source, opens=True)
    sampler.keep()
assert written == expected
print(len(sampler.workshop.helper.jobs), sum(unit.fate.entries for unit in sampler.units if unit.fate))
"""


@pytest.mark.parametrize("name", ["the legacy one, by scalars", "gauss, randint, choice"])
def test_stored_programs_find_addresses_anew(name, tmp_path):
    """Functions lie elsewhere in each process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    source, counts = textwrap.dedent(SCRIPTS[name]).replace("300", "6000"), []
    for _ in range(2):
        found = subprocess.run([sys.executable, "-c", _STORED, str(tmp_path)], input=source, text=True, check=True,
                               capture_output=True, env=environment)
        counts.append([*map(int, found.stdout.split())])
    (jobs, _), (later_jobs, entries) = counts
    assert jobs and not later_jobs and entries


def test_a_call_keeps_its_generators_while_many_come_and_go():
    import numpy as np

    from jitcore.process import streams

    ours, others = np.random.default_rng(1), [np.random.default_rng(k) for k in range(200)]
    for one in others:
        words = streams.find_memory(ours).words
        streams.find_memory(one)
        assert streams.find_memory(ours).words is words
