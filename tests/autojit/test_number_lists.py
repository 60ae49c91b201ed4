"""Long lists of numbers are arrays for programs, those of the caller and those that a call makes."""

from __future__ import annotations

import copy
import math
import random
import textwrap
import warnings

import pytest

import jitcore
from jitcore.errors import AutojitWarning
from tests.autojit.checking import tune


@pytest.fixture(autouse=True)
def compiled_for_good(monkeypatch):
    tune(monkeypatch, probed_seconds=0.0)


def coins(values, amount):
    ways = [float("inf")] * (amount + 1)
    ways[0] = 0
    for c in values:
        for i in range(c, amount + 1):
            ways[i] = min(ways[i], ways[i - c] + 1)
    return ways


def bubble(values):
    n = len(values)
    for i in range(n):
        swapped = False
        for j in range(0, n - i - 1):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
                swapped = True
        if not swapped:
            break
    return values


def nearest(graph, start):
    n = len(graph)
    distance, done = [float("inf")] * n, [False] * n
    distance[start] = 0
    for _ in range(n):
        at, best = -1, float("inf")
        for v in range(n):
            if not done[v] and distance[v] < best:
                at, best = v, distance[v]
        if at == -1:
            break
        done[at] = True
        for v in range(n):
            if graph[at][v] > 0 and distance[at] + graph[at][v] < distance[v]:
                distance[v] = distance[at] + graph[at][v]
    return distance, done


def counts(data):
    found = 256 * [0]
    for value in data:
        found[value % 256] += 1
    return found, max(found), sum(found), len(found), found[-1]


def one_list_of_two_names(n):
    a = b = [0] * n
    for i in range(n):
        a[i] = i * i % 7
        b[n - 1 - i] += 1
    return a, b, a is b


def ints_that_become_floats(values, x):
    for i in range(len(values)):
        if i % 3 == 0:
            values[i] = values[i] + x
    return values[0], values[1]


def rows(grid, n):
    total = 0.0
    for k in range(n):
        row = grid[k % len(grid)]
        row[k % 3] += 0.25
        total += row[(k + 1) % 3]
    return total


def halves(values, n):
    out = [0.0] * n
    for i in range(n):
        out[i] = values[i] / 2 if values[i] % 2 else values[i] // 2
    return out


def text_of_a_list(n):
    made = [0] * n
    for i in range(n):
        made[i] = i % 3
    made.append(5)
    made.sort()
    return made, str(made[:4])


R = random.Random(3)
GRAPH = [[R.choice([0, 0, R.randint(1, 50)]) for _ in range(80)] for _ in range(80)]
CASES = {
    "coins": (coins, ([1, 5, 12], 500)), "bubble": (bubble, ([R.random() for _ in range(90)],)),
    "bubble of ints": (bubble, ([R.randint(0, 9) for _ in range(90)],)),
    "bubble of both": (bubble, ([R.choice([1, 2.5, -3, math.inf, 4.0, 4]) for _ in range(90)],)),
    "nearest": (nearest, (GRAPH, 3)), "counts": (counts, ([R.randint(0, 999) for _ in range(700)],)),
    "two names": (one_list_of_two_names, (100,)), "floats among ints": (ints_that_become_floats, ([k for k in range(60)], 0.5)),
    "floats only": (ints_that_become_floats, ([0.5 * k for k in range(60)], 3)),
    "rows": (rows, ([[0.5, 1.5, 2.5] for _ in range(70)], 300)), "rows of ints": (rows, ([[1, 2, 3] for _ in range(70)], 300)),
    "halves": (halves, ([k for k in range(100)], 100)), "large ints": (halves, ([2**60 + k for k in range(100)], 100)),
    "larger ints": (halves, ([2**70 + k for k in range(100)], 100)), "NaN": (bubble, ([R.choice([1.0, math.nan, 2.0]) for _ in range(80)],)),
    "a list that is none": (text_of_a_list, (100,)),
}


def show(value):
    if type(value) in (list, tuple):
        return type(value), [show(one) for one in value]
    return type(value), repr(value)


@pytest.mark.parametrize("name", CASES)
def test_lists_are_those_of_python(name):
    function, arguments = CASES[name]
    compiled = jitcore.autojit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutojitWarning)
        for _ in range(3):
            given, own = copy.deepcopy(arguments), copy.deepcopy(arguments)
            assert show(compiled(*given)) == show(function(*own))
            assert show(given) == show(own)


def test_such_loops_are_compiled():
    for name in ("coins", "bubble of both", "nearest", "counts", "rows of ints", "floats among ints"):
        function, arguments = CASES[name]
        compiled = jitcore.autojit(function, strict=True)
        compiled(*copy.deepcopy(arguments))
        assert compiled.report().compiled == 100, name


def test_what_is_returned_is_the_argument():
    values = [R.random() for _ in range(80)]
    kept = [*values]
    found = jitcore.autojit(bubble)(values)
    assert found is values
    assert all(any(one is other for other in kept) for one in sorted(values)[:3]) or values == sorted(kept)


STATEMENTS = r"""p[i % 70] = b
p[i % 70] += x
p[b % 70] = p[(i + 1) % 70] + i
q[i % 65] = min(q[b % 65], x)
q[b % 65] = b
x = q[i % 65] * 0.5
r[i % 64] = x > 0.5
b += 1 if r[b % 64] else 2
if r[i % 64]:\n    p[0] = q[3]
if x > 0.25:\n    q[i % 65], q[0] = q[0], q[i % 65]
b += len(p)
b = (b * 3 + i) % 101
x = 0.5 * x + 0.125
x = p[i % 70] * 0.01
w[i % 90] = x
w[b % 90] += b
x = x + w[i % 90] * 0.001
p[-1 - b % 70] = -p[i % 70]
c = p\nc[b % 70] = i
q = [x] * 65
q = p if b > 50 and len(p) == 65 else q
for j in range(4):\n    p[(b + j) % 70] += j
b += sum(1 for v in r if v) % 5
x = max(q[0], q[1], x) * 0.5
w[i % 90] = p[b % 70]""".split("\n")


def write(seed: int) -> str:
    draw = random.Random(seed)
    body = "\n".join(line.replace("\\n", "\n") for line in draw.choices(STATEMENTS, k=draw.randint(2, 6)))
    head = draw.choice([f"for i in range({draw.randint(5, 60)}):", f"while i < {draw.randint(5, 60)}:\n        i += 1"])
    made = draw.choice(["p, q, r = [0] * 70, [0.5] * 65, [False] * 64", "p, q, r = [b] * 70, [x] * 65, [True] * 64"])
    back = draw.choice(["p, q, r, b, x", "p, b, x", "q, r, x, i", "b, x, p is c"])
    return (f"def f(w, b, x):\n    i = 0\n    {made}\n    c = p\n    {head}\n{textwrap.indent(body, ' ' * 8)}\n"
            f"    return {back}\n")


def check(seed: int) -> bool:
    """Whether the program was compiled."""
    source = write(seed)
    namespace: dict = {}
    exec(compile(source, f"<program {seed}>", "exec"), namespace)
    function = namespace["f"]
    compiled = jitcore.autojit(function)
    w = random.Random(seed).choice([[k % 5 for k in range(90)], [0.25 * k for k in range(90)], [k if k % 2 else 0.5 for k in range(90)]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutojitWarning)
        for b, x in ((3, 0.75), (8, 0.75), (3, -1.5)):
            given, own = [*w], [*w]
            expected = function(own, b, x)
            assert show(compiled(given, b, x)) == show(expected), source
            assert show(given) == show(own), source
    return compiled.report().compiled == 100


def test_random_programs():
    assert sum(map(check, range(25))) > 8


@pytest.mark.slow
def test_many_random_programs():
    assert sum(map(check, range(1000, 1300))) > 90
