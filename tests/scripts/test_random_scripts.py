"""Random scripts: loops that are compiled at their first entry, checked, and gone on with, do what Python does."""

import random
import textwrap

import numpy as np
import pytest

from jitcore.process import lazy
from jitcore.scripts import loops, running, runs
from jitcore.scripts.units import State
from jitcore.scripts.workshop import Workshop
from tests.scripts.test_scripts import run, run_sampled

pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def at_once(monkeypatch):
    """Loops, and runs of statements in them, are compiled where they are first entered, and stopped at their
    next head."""

    def submit(self, fate, frame, iterator):
        right(self, fate, frame, iterator)
        self.look_after(frame)
        if fate.state == State.READY:
            self.arm(frame, fate.unit)

    right = Workshop.submit_loop
    monkeypatch.setattr(Workshop, "submit_loop", submit)
    monkeypatch.setattr(loops, "FEW", 1)
    monkeypatch.setattr(loops, "MANY", 1)
    monkeypatch.setattr(runs, "TIMED", 1)
    monkeypatch.setattr(runs, "SHORT", 0.0)
    monkeypatch.setattr(runs, "ENTRY", -1.0)


class Writer:
    """A random script. Its variables: ints a, b; floats x, y, v; an array u of eight floats; lists of what was
    appended, of ints, floats and pairs; an array of floats; lists that are written, two of them one, and rows of
    lists. draws: whether it draws random numbers, too; lists: whether it uses these lists; talks: whether
    each iteration prints something, between statements."""

    def __init__(self, seed: int, draws: bool, lists: bool = False, talks: bool = False):
        self.draw, self.draws, self.lists, self.talks = random.Random(seed), draws, lists, talks
        self.depth = 0

    def write(self) -> str:
        body = "\n".join(self.statement() for _ in range(self.draw.randint(2, 5)))
        if self.talks:
            first, *rest = body.splitlines(keepends=True)
            places = [k for k, line in enumerate(rest) if not line.startswith((" ", "else"))] or [0]
            for place in sorted(self.draw.choices(places, k=self.draw.randint(1, 2)), reverse=True):
                rest.insert(place, "print(a, b)\n")
            body = "".join([*(["print(i)\n"] if self.draw.random() < 0.5 else []), first, *rest])
        text = self.loop("i", self.draw.randint(3, 40), body)
        if self.draw.random() < 0.5:
            names = "a, b, x, y, u, w, log" + ", ns, fs, other, grid, ms, both" * self.lists
            kept = ", ".join(self.draw.sample(names.split(", "), self.draw.randint(2, 6)))  # others die inside
            text = f"def f({names}):\n{indent(text)}\n    return {kept}\n{kept} = f({names})"
        if self.lists:
            text = f"try:\n{indent(text)}\nexcept (IndexError, TypeError) as error:\n    print(repr(error))"
        before, behind = (SEEDED, DRAWN) if self.draws else ("", "")
        before, behind = (before + LISTED, behind + TOLD) if self.lists else (before, behind)
        return f"{HEAD}{before}{text}\n{TAIL}{behind}"

    def loop(self, counter: str, count: int, body: str) -> str:
        start, step = self.draw.choice([(0, 1), (2, 1), (-3, 2), (count, -1)])
        stop = start + step * count
        head = self.draw.choice([f"for {counter} in range({start}, {stop}, {step}):"] * 3 + [
            f"for {counter} in whole[:{count}]:", f"for {counter} in reversed(whole[:{count}]):",
            f"for {counter}, v in enumerate(parts[:{count}], {start}):", f"for {counter}, v in pairs[:{count}]:",
            f"for {counter}, v in zip(range({start}, {stop}, {step}), row):",
            f"for v, ({counter}, c) in zip(row[:{count}], zip(whole, whole[3:])):"])
        if self.draw.random() < 0.2:
            more = self.draw.choice(["", " and b < 900", " and x < 40.0 and y == y"])
            return f"{counter} = 0\nwhile {counter} < {count}{more}:\n    {counter} += 1\n{indent(body)}"
        end = self.draw.choice(["", "", "\nelse:\n    b += 100"])
        return f"{head}\n{indent(body)}{end}"

    def statement(self) -> str:
        kinds = [self.assign, self.assign, self.assign, self.branch, self.leave, self.store, self.tell, self.inner,
                 self.grow]
        return self.draw.choice(kinds if self.depth < 2 else kinds[:3])()

    def assign(self) -> str:
        if self.draws and self.draw.random() < 0.5:
            return self.draw.choice(DRAWS)
        if self.lists and self.draw.random() < 0.6:
            return self.draw.choice(LISTS)
        return self.draw.choice([
            "a = (a * 3 + i) % 17", "b += a", "b = b - i if a > 5 else b + 1", "x = 0.5 * x + i", "y += x * 0.25",
            "x, y = y, x * 0.5", "y = max(x, y) - a", "c = a + b\na = c % 5", "x = float(u[2]) * 0.5 + 1.0",
            "y = 0.5 * v + x", "x += v if v > 1.0 else i"])

    def store(self) -> str:
        return self.draw.choice(["u[a % 8] += x * 0.125", "u[1:-1] = 0.5 * (u[2:] + u[:-2])", "u = u * 0.5 + y * 0.01",
                                 "u[:] = np.minimum(u + 1.0, 50.0)", "y += float(u.sum()) * 0.01",
                                 "u += 0.25\nu = u * 0.5", "w = u\nw[a % 8] = 1.5", "w += 1.0\nw = u * 0.25"])

    def branch(self) -> str:
        self.depth += 1
        one, other = self.statement(), self.statement()
        self.depth -= 1
        return f"if {self.condition()}:\n{indent(one)}\nelse:\n{indent(other)}"

    def leave(self) -> str:
        return f"if {self.condition()} and b > 60:\n    {self.draw.choice(['break', 'continue', 'break'])}"

    def tell(self) -> str:
        if self.draw.random() < 0.3:
            return "print(a, b)"
        return f"if {self.condition()} and a % 4 == 1:\n    print('at', i, a, b)"

    def grow(self) -> str:
        return self.draw.choice(["log.append(x)", "log.append(a)\nx += 0.5", "if a > 4:\n    log.append(y)"])

    def inner(self) -> str:
        self.depth += 1
        body = "\n".join(self.assign() for _ in range(2))
        self.depth -= 1
        return f"for j in range({self.draw.randint(0, 6)}):\n{indent(body)}"

    def condition(self) -> str:
        if self.draws and self.draw.random() < 0.3:
            return self.draw.choice(["rng.random() < 0.5", "random.random() < 0.25 or np.random.rand() < x"])
        return self.draw.choice(["a > 7", "i % 3 == 0", "x < y", "a % 2 == b % 2", "u[3] > 1.5"])


DRAWS = """x = rng.random()
y += rng.normal(0.0, 0.5)
a = int(rng.integers(0, 17))
x = np.random.rand() - 0.5
y = y * 0.5 + np.random.normal()
a = np.random.randint(17)
u = u * 0.5 + np.random.randn(8) * 0.25
u[:4] = rng.uniform(-1.0, 1.0, 4)
x = random.random()
y = random.gauss(x, 0.5)
a = random.randint(0, 16)
b += random.choice([1, 2, 4])
x, y = rng.standard_normal(), rng.exponential()
rng.shuffle(u)""".split("\n")
LISTS = r"""ns[i % 20] = a
ns[a % 20] += b % 5
x = fs[i % 18] * 0.5
fs[a] = x * 0.25 + 1.0
fs[-1 - a] = y * 0.125
y = fs[-(i % 7) - 1] + x
b += ns[-1] + len(fs)
other[i % 18] = x * 0.5
x = 0.5 * other[3] + sum(fs) * 0.01
grid[i % 16][a % 3] = y * 0.0625
y = grid[a % 16][i % 3] + 0.5
cells = grid[a % 16]\ncells[1] = x * 0.125
a = (a + max(ns)) % 17
x = min(fs) + 0.25 * x
part = fs[2:9]\npart[0] = y\nx += part[i % 7] * 0.125
for n in ns:\n    b += n % 3
for z in fs:\n    y = 0.5 * y + z
ns[a] = fs[3]
fs[i] = 1.0
fs[i % 18], fs[a] = fs[a], fs[i % 18]
b += sum(cell[1] > 0.25 for cell in grid)
x = float(np.array(fs).mean())
grid[2] = grid[3]
ms[a % 20] = ms[(a + 1) % 20] + i
ms[i % 20] = min(ms[a], ms[i % 20] + 1)
x = ms[a] * 0.5
ms[a] = a if x < y else y
b += int(ms[3]) % 5
ms[i % 20] += x
ms[i % 20] += 1
if ms[a] == 0:\n    b += 1
both[i % 16][a % 3] = ms[a]
both[a % 16][i % 3] += a
x = max(ms[2], x) * 0.5
for m in ms:\n    y = 0.5 * y + m * 0.01
ms[a] = -ms[i % 20]
ms[0] = ms[1] // 2
ms[a] = abs(ms[i % 20]) % 7
ms[i % 20], ms[a] = ms[a], ms[i % 20]
ns[i % 20] += x
fs[i % 18] = a
x = ms[i % 20] if ms[i % 20] < 50 else x
b += sum(1 for m in ms if m > 2)""".split("\n")
LISTS = [line.replace("\\n", "\n") for line in LISTS]
LISTED = ("ns = [(5 * k) % 7 for k in range(20)]\nfs = [0.25 * k for k in range(18)]\nother, part, cells = fs, [], []\n"
          "grid = [[0.5 * k - j for j in range(3)] for k in range(16)]\nn = z = m = 0\n"
          "ms = [0, 0.5, 3, 1e300, -2, 7.25, 5] * 3\nboth = [[k, 0.5 * k, j] for j, k in enumerate(range(16))]\n")
TOLD = ("print([round(one, 6) for one in ns], [round(one, 6) for one in fs], other is fs)\n"
        "print([round(one, 6) for one in ms], [[round(one, 6) for one in row] for row in both])\n"
        "print([[round(one, 6) for one in row] for row in grid], grid[2] is grid[3])\n")
SEEDED = "import random\nrandom.seed(3)\nnp.random.seed(4)\nrng = np.random.default_rng(5)\n"
DRAWN = "print(random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), rng.random())\n"
HEAD = (
    "import numpy as np\na, b, x, y = 1, 2, 0.75, -1.5\nu = np.arange(8.0)\nw = u\ni = j = c = -7\nv, log = 0.5, []\n"
    "whole = [(7 * k) % 11 - 3 for k in range(50)]\nparts = [0.375 * k for k in range(45)]\n"
    "pairs = list(zip(whole, parts))\nrow = np.linspace(-2.0, 3.0, 48)\n")

TAIL = "print(a, b, len(log))\n"


def indent(text: str) -> str:
    return textwrap.indent(text, "    ")


def check(seed: int, draws: bool = False, lists: bool = False, talks: bool = False) -> int:
    """Compares a script; how many of its loops, or of those that talk runs in them, were compiled."""
    source = Writer(seed, draws, lists, talks).write()
    expected, written = run(source)
    names, ours, sampler = run_sampled(source, opens=True)
    assert ours == written, source
    assert (names["u"] is names["w"]) == (expected["u"] is expected["w"]), source
    for name in ("a", "b", "x", "y", "u", "w", "i", "j", "c", "v"):
        assert type(names[name]) is type(expected[name]), (name, source)
        np.testing.assert_allclose(names[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=f"{name}\n{source}")
    assert [*map(type, names["log"])] == [*map(type, expected["log"])], source
    np.testing.assert_allclose(names["log"], expected["log"], rtol=1e-9, atol=1e-9, err_msg=source)
    return sum(unit.fate.entries > 0 and unit.loop.is_run >= talks for unit in sampler.units if unit.fate)


def test_random_scripts():
    assert sum(map(check, range(40))) > 20


def test_random_scripts_that_draw():
    """The same numbers, the next ones too."""
    assert sum(check(seed, draws=True) for seed in range(40)) > 20


def test_random_scripts_with_lists():
    """The same objects, with elements of the same types."""
    assert sum(check(seed, lists=True) for seed in range(60)) > 15


@pytest.fixture
def without_numpy(monkeypatch):
    """Programs that need no NumPy are loaded as in a process without. Gives: how many there were."""
    found, defines = [0], running.define

    def define(program, constants):
        found[0] += not program.needs_numpy
        return defines(program, constants)

    monkeypatch.setattr(lazy, "is_loaded", lambda name: False)
    monkeypatch.setattr(running, "define", define)
    return found


def test_random_scripts_with_lists_without_numpy(without_numpy):
    assert sum(check(seed, lists=True) for seed in range(100, 140)) > 10 and without_numpy[0] > 5


@pytest.mark.slow
def test_many_random_scripts_with_lists_without_numpy(without_numpy):
    assert sum(check(seed, lists=True) for seed in range(2000, 2600)) > 150 and without_numpy[0] > 80


def test_random_scripts_that_print_in_each_iteration():
    assert sum(check(seed, talks=True) for seed in range(60)) > 15


@pytest.mark.slow
def test_many_random_scripts_that_print_in_each_iteration():
    assert sum(check(seed, talks=True, lists=seed % 3 == 0) for seed in range(1000, 1600)) > 150


@pytest.mark.slow
def test_many_random_scripts_with_lists():
    assert sum(check(seed, lists=True) for seed in range(1000, 1600)) > 150


@pytest.mark.slow
def test_many_random_scripts():
    assert sum(map(check, range(1000, 1600))) > 300


@pytest.mark.slow
def test_many_random_scripts_that_draw():
    assert sum(check(seed, draws=True) for seed in range(1000, 1600)) > 300
