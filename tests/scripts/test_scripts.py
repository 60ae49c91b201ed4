"""Scripts whose loops are compiled while they run do what they do in plain Python, and their loops are entered."""

import contextlib
import gc
import importlib
import io
import os
import pickle
import re
import select
import shutil
import subprocess
import sys
import textwrap
import time
from types import ModuleType

import pytest

import jitcore
from jitcore.backends.cpu.machine import host
from jitcore.config import config
from jitcore.scripts import environment, learned, loops, running, sampling, workshop
from jitcore.scripts.compiling import Refused, compile_loop
from jitcore.scripts.helper import Helper
from jitcore.scripts.learned import Note, add_lesson
from jitcore.scripts.loops import LoopFate
from jitcore.scripts.regions import list_held
from jitcore.scripts.sampling import Sampler
from jitcore.scripts.sessions.imports import Hook
from jitcore.scripts.sessions.runner import has_units
from jitcore.scripts.texts import write_record
from jitcore.scripts.units import State, Uncollected


class Inline:
    """A helper that compiles at once, in this process."""

    seconds, maker = 0.0, None

    def __init__(self):
        self.answer, self.jobs = None, []

    def submit(self, job):
        self.jobs.append(job)
        try:
            self.answer = compile_loop(job).pack()
        except Refused as error:
            self.answer = str(error)

    def poll(self):
        answer, self.answer = self.answer, None
        return answer

    def leave(self):
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Everything that is met in two ticks of a millisecond is hot; other tests write compiled files meanwhile."""
    monkeypatch.setattr(learned, "_stamp_folders", list)
    monkeypatch.setattr(sampling, "TICK", 0.001)
    monkeypatch.setattr(sampling, "HOT", 1)
    monkeypatch.setattr(sampling, "DEBUG", True)
    monkeypatch.setattr(loops, "PART", 1e-4)


def run(source: str, sampler: Sampler | None = None, opens: bool = False) -> tuple[dict, str]:
    """(variables, output) of a script. opens: whether entries ask from the beginning."""
    module, written = ModuleType("__main__"), io.StringIO()
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    code = compile(source, "script.py", "exec")
    try:
        with contextlib.redirect_stdout(written):
            if sampler is not None:
                code = sampler.add(write_record(code, source.encode()))
                sampler.start()
                for unit in sampler.units if opens else ():
                    if unit.loop is not None and unit.loop.level == unit.loop.is_run:
                        unit.gate.open()
            try:
                exec(code, module.__dict__)
            finally:
                if sampler is not None:
                    sampler.stop()
    finally:
        sys.modules["__main__"] = before
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}, written.getvalue()


def run_sampled(source: str, opens: bool = False) -> tuple[dict, str, Sampler]:
    sampler = Sampler(sys.path[:])
    sampler.workshop.helper = Inline()
    return *run(source, sampler, opens), sampler


def run_with_module(source: str, folder, name: str) -> tuple[dict, Sampler]:
    """The same of a script and a module of its own in a folder, which is imported anew."""
    sampler = Sampler(sys.path[:])
    sampler.workshop.helper = Inline()
    hook = Hook([str(folder)], sampler.prepare)
    hook.install()
    try:
        return run(source, sampler)[0], sampler
    finally:
        hook.remove()
        del sys.modules[name]


SCRIPTS = {
    "a very long list with one number of another kind": """
        def total(values):
            s = 0
            for k in range(0, len(values), 7):
                s += values[k]
            return s
        values = [3] * 1_500_000
        sums = [total(values) for _ in range(3)]
        values[1_000_001] = 2.5
        sums += [total(values) for _ in range(3)]
    """,
    "sums of a module": """
        s = 0
        for i in range(400_000):
            s += i % 7
    """,
    "a function": """
        def total(n):
            s = 0.0
            for i in range(n):
                if i % 3 == 0:
                    s += i * 0.5
                else:
                    s -= 1.0
            return s
        s = total(400_000)
    """,
    "arrays in place": """
        import numpy as np
        u = np.zeros(50)
        u[0] = 1.0
        for step in range(30_000):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        total = round(u.sum(), 9)
    """,
    "a break": """
        k, found = 0, None
        for k in range(1_000_000):
            if k * k > 90_000_000_000:
                found = k
                break
        else:
            found = -1
    """,
    "a while": """
        n, steps = 837799, 0
        total = 0
        for start in range(1, 3000):
            n = start
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
    """,
    "prints": """
        s = 0
        for i in range(300_000):
            s += i & 3
            if i % 60_000 == 0:
                print("at", i, s)
        print("end", s)
    """,
    "a function of the script": """
        def f(x):
            return x * x - 1
        s = 0.0
        for i in range(200_000):
            s += f(i * 1e-3)
    """,
    "steps": """
        s, i = 0, -1
        for i in range(700_000, 5, -2):
            s ^= i
    """,
    "nothing left": """
        s = 0
        for i in range(0):
            s = 1
        for j in range(1_000_000):
            s += j
    """,
    "an inner loop": """
        rows = []
        for row in range(100):
            s = 0
            for i in range(10_000):
                s += i * row % 7
            rows.append(s)
    """,
    "lists and what is zipped": """
        xs = [k * 0.001 for k in range(400_000)]
        ys = [2 * x + 1 for x in xs]
        w = b = 0.0
        for x, y in zip(xs, ys):
            error = w * x + b - y
            w -= 1e-5 * error * x
            b -= 1e-5 * error
    """,
    "an array's elements": """
        import numpy as np
        total = np.float64(0.0)
        for t in np.linspace(0.0, 1.0, 200_001):
            total += t * (1 - t)
    """,
    "numbered elements, and a break": """
        data = [(k * 7919) % 100_003 for k in range(300_000)]
        best, at = -1, None
        for number, value in enumerate(data, 5):
            if value > best:
                best, at = value, number
            if number == 250_000:
                break
    """,
    "an iterator that is gone on with": """
        it = iter(range(1_000_000))
        numbers = iter([k % 11 for k in range(400_000)])
        s = 0
        for v in numbers:
            s += v * 3
            if s > 5_000_000:
                break
        behind = [next(numbers) for _ in range(3)]
    """,
    "an iterator of a range that is gone on with": """
        numbers, s = iter(range(5, 900_000, 2)), 0
        for v in numbers:
            s += v & 3
            if s > 600_000:
                break
        behind = [next(numbers) for _ in range(3)]
        for v in numbers:
            if v % 100_000 == 1:
                print(v, next(numbers))
    """,
    "a list that grows": """
        x, path = 0.25, []
        for step in range(200_000):
            x = 3.7 * x * (1 - x)
            path.append(x)
        s = sum(path)
    """,
    "prints in each iteration": """
        import numpy as np
        u = np.linspace(0.0, 1.0, 60_000)
        for step in range(2_000):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            if step % 7 == 3:
                u[5] = step
            print(step, round(float(u[1:9].sum()), 9))
            last = step
        k = 0.0
        while k < 500:
            u *= 0.99
            print(round(float(u[5]), 9))
            k += 1
        total = round(float(u.sum()), 9)
    """,
    "an object of the module": """
        import numpy as np
        class Simulation:
            def __init__(self, n):
                self.u = np.zeros(n)
                self.u[n // 2] = 1.0
                self.n, self.step, self.t, self.seen = n, 0, 0.0, [0.0, 0.0]
            def advance(self):
                self.u[1:-1] += 0.1 * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
                self.step += 1
                self.t += 0.5
                self.seen[1] = self.t
                if self.step % self.n == 0:
                    self.u[self.n // 2] += 1.0
        box = (Simulation(64),)
        simulation = box[0]
        for k in range(30_000):
            simulation.advance()
        total, steps, t, seen = float(simulation.u.sum().round(9)), simulation.step, simulation.t, simulation.seen
        while simulation.step < 60_000:
            simulation.advance()
        more = [simulation.step, simulation.t, float(simulation.u.sum().round(9))]
    """,
    "a docstring, and names that the module reads elsewhere": """
        'What this does.'
        __author__ = "somebody"
        s = 0
        if __name__ == "__main__":
            for i in range(400_000):
                s += i % 7
        print(__doc__)
    """,
    "members of enumerations, properties that are set, and static methods": """
        import numpy as np
        from enum import Enum, IntEnum
        class Shape(Enum):
            CIRCLE, BOX = "circle", "box"
        class Level(IntEnum):
            LOW, HIGH = 1, 5
        class Robot:
            def __init__(self):
                self.shape, self.radius = Shape.CIRCLE, 2.0
            @property
            def shape(self):
                return self._shape
            @shape.setter
            def shape(self, value):
                if not isinstance(value, Shape):
                    raise TypeError
                self._shape = value
            @staticmethod
            def scale(x):
                return 0.5 * x
            def cost(self, points, level):
                if self.shape is Shape.BOX:
                    return self.scale(points.max())
                return self.radius * points.min() if self.shape == Shape.CIRCLE and level > Level.LOW else 0.0
        robot, points, total = Robot(), np.linspace(0.5, 1.5, 8), 0.0
        for k in range(40_000):
            total += robot.cost(points + k, Level.HIGH)
        robot.shape = Shape.BOX
        for k in range(40_000):
            total += robot.cost(points - k, Level.HIGH)
        total = round(float(total), 6)
    """,
    "what ends the program in rare cases, and constants of sys": """
        import sys
        import numpy as np
        def solve(x, n):
            best = sys.float_info.max
            for k in range(n):
                if x[k % x.size] > 100.0 or k > sys.maxsize:
                    print("too large")
                    sys.exit("stopped")
                best = min(best, abs(x[k % x.size] - k * 1e-3))
            return best
        x = np.linspace(0.0, 9.0, 50)
        total = round(float(solve(x, 100_000)), 9)
        x[40] = 200.0
        try:
            solve(x, 100_000)
        except SystemExit as error:
            total = [total, str(error)]
    """,
    "an object with attributes that cannot be told": """
        import io, threading
        import numpy as np
        class Simulation:
            def __init__(self):
                self.log, self.lock, self.seen = io.StringIO(), threading.Lock(), {(0, 1), (2, 3)}
                self.u, self.n = np.linspace(0.0, 1.0, 40), 0
            def advance(self):
                self.u[1:-1] += 0.1 * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
                self.n += 1
                if self.n % 10_000 == 0:
                    self.log.write(f"{self.n} {self.u[20]:.6f}; ")
        simulation = Simulation()
        for k in range(40_000):
            simulation.advance()
        total, log = [simulation.n, round(float(simulation.u.sum()), 9)], simulation.log.getvalue()
    """,
    "flags together, other names of members, and their values": """
        import enum
        class Right(enum.Flag):
            READ, WRITE, BOTH = 1, 2, 3
        class Size(enum.Enum):
            SMALL, LARGE, HUGE = 1, 8, 8
        def cost(n, right, size):
            total = 0.0
            for k in range(n):
                if Right.READ in right:
                    total += 1.5
                if right is Right.BOTH:
                    total += size.value + (k & 3)
                if size is Size.HUGE:
                    total -= 0.5
            return total
        total = [cost(40_000, right, size) for size in Size
                 for right in (Right.READ, Right.WRITE, Right.READ | Right.WRITE, Right(0))]
    """,
    "objects in a list, and the last of them": """
        import numpy as np
        class Body:
            def __init__(self, x):
                self.x, self.v, self.trace = np.array([x, 1.0]), 0.5 * x, 0.0
            def push(self, others):
                for other in others:
                    if other is not self:
                        self.v += 1e-4 * float((other.x - self.x).sum())
        class World:
            def __init__(self, n):
                self.bodies = [Body(float(k)) for k in range(n)]
            def step(self):
                for body in self.bodies:
                    body.push(self.bodies)
                for body in self.bodies:
                    body.x = body.x + 1e-3 * body.v
                    body.trace = float(body.x[0])
        world = World(3)
        for step in range(20_000):
            world.step()
            for body in world.bodies:
                body.trace += 1.0
        traces = [round(body.trace, 9) for body in world.bodies] + [body is world.bodies[-1]]
    """,
    "views and names that a loop leaves behind": """
        import numpy as np
        U, V = np.ones((12, 12)), np.zeros((12, 12))
        V[4:6, 4:6] = 0.5
        for i in range(20_000):
            u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
            w = u * v * v
            u += 0.02 * (1 - u) - 0.1 * w
            v += 0.1 * w - 0.01 * v
            for Z in (U, V):
                Z[0, :] = Z[1, :]
                Z[:, -1] = Z[:, -2]
            if i % 4_000 == 0:
                print(i, round(float(V.sum()), 9))
        same = [Z is V, u.base is U, v.base is V]
        u[:] = 3.0
        total = round(float(U.sum() + V.sum()), 9)
    """,
    "an array in an attribute and as a result": """
        import numpy as np
        class Layer:
            def __init__(self):
                self.w, self.out, self.seen = np.full((3, 3), 0.1), None, []
            def forward(self, x):
                self.seen = [x]
                self.out = np.tanh(x @ self.w)
                self.seen.append(self.out)
                return self.out
        layer, x = Layer(), np.linspace(0.0, 1.0, 6).reshape(2, 3)
        for epoch in range(20_000):
            out = layer.forward(x)
            layer.w -= 0.01 * (x.T @ out)
            if epoch % 5_000 == 0:
                print(epoch, round(float(out.sum()), 9))
        same = [out is layer.out, layer.seen[1] is out, layer.seen[0] is x]
        total = round(float(layer.w.sum()), 9)
    """,
    "numbers of several types, and draws": """
        import numpy as np
        np.random.seed(3)
        total = 0.0
        for path in range(2_000):
            s = 1.5
            for t in range(20):
                s *= 1.0 + 0.01 * np.random.normal()
            total += max(s - 1.4, 0)
        total = round(float(total), 12)
    """,
    "a comprehension that reads a variable of the function": """
        def table(n):
            rows = [[0.0] * n for _ in range(n)]
            total = 0.0
            for i in range(1_200_000):
                total += rows[1][0] + i * 0.5
            return total
        total = table(4)
    """,
    "integer arrays of what a mask picks": """
        import numpy as np
        f = np.arange(600.0).reshape(10, 20, 3) / 600
        inside = (np.add.outer(np.arange(10), np.arange(20)) % 7) == 0
        for step in range(5_000):
            picked = f[inside, :]
            picked = picked[:, [2, 0, 1]]
            f *= 0.999
            f[inside, :] = picked
        total = round(float(f.sum()), 9)
    """,
    "a matrix of lists": """
        n = 40
        a = [[(i * 7 + j) % 11 * 0.5 for j in range(n)] for i in range(n)]
        b = [[(i + 3 * j) % 5 - 1.5 for j in range(n)] for i in range(n)]
        c = [[0.0] * n for _ in range(n)]
        for turn in range(40):
            for i in range(n):
                for j in range(n):
                    total = 0.0
                    for k in range(n):
                        total += a[i][k] * b[k][j]
                    c[i][j] = total + turn
        rows = [row[3] for row in c]
    """,
    "a list of ints that is written": """
        n = 200_000
        sieve = [1] * (n + 1)
        sieve[0] = sieve[1] = 0
        for p in range(2, n + 1):
            if sieve[p] and p * p <= n:
                for q in range(p * p, n + 1, p):
                    sieve[q] = 0
        count = sum(sieve)
    """,
    "a table, its last column by negative places": """
        n, rounds = 300, 400
        table = [k * 0.25 for k in range(n)]
        for r in range(rounds):
            for k in range(1, n):
                table[-k] = 0.5 * (table[-k] + table[k - 1]) + r
        head = table[:5]
    """,
    "arrays that are written and then made anew": """
        import numpy as np
        def move(n, keeps):
            x, v = np.linspace(0.0, 1.0, 40), np.linspace(1.0, 2.0, 40)
            first, seen = x, [x]
            for i in range(n):
                x += 0.01 * v
                x = x % 1.0
                if keeps and i % 500 == 0:
                    seen.append(x)
            return [round(float(one.sum()), 9) for one in (x, first, *seen)]
        s = move(60_000, False) + move(60_000, True)
    """,
    "a function that rarely prints": """
        def solve(m, e):
            x = m
            for it in range(30):
                d = (x * x - e) / (2.0 * x)
                x -= d
                if abs(d) < 1e-12:
                    break
            else:
                print("not converged", m)
            if x > 1.7315:
                print(f"large {x:.6f}")
            return x
        total = 0.0
        for k in range(150_000):
            total += solve(1.0 + (k % 7), 2.0 + k * 1e-5 / 1.5)
        total = round(total, 6)
    """,
    "transforms, and a view that becomes an array": """
        import numpy as np
        n = 96
        k = np.fft.fftfreq(n, 1.0 / n)
        decay = np.exp(-1e-4 * (k[:, None] ** 2 + k ** 2))
        u = np.real(np.fft.ifftn(np.fft.fftn(np.outer(np.sin(np.arange(n)), np.cos(np.arange(n))))))
        for step in range(1_200):
            u = np.real(np.fft.ifftn(decay * np.fft.fftn(u)))
            u[0] *= 0.5
            if step % 300 == 150:
                print(step, round(float(np.abs(u).sum()), 6))
        total = round(float(np.abs(u).max()), 6)
    """,
    "work behind what each iteration prints": """
        import numpy as np
        u, history = np.linspace(0.0, 1.0, 20_000), []
        for step in range(1_500):
            print(step, round(float(u[5]), 9))
            for k in range(3):
                u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
            history.append(float(u[7]))
            if step % 100 == 50:
                u[5] = step
                print("kick", step)
            if u[9] > 90.0:
                continue
            u[9] += 0.01
        total = round(float(u.sum()), 9)
    """,
    "work between two prints, left in its midst": """
        import numpy as np
        u, k, last = np.linspace(0.0, 1.0, 20_000), 0, 0.0
        while True:
            print("begin", k)
            v = u * 0.5
            v += np.sin(u) * 0.25
            if k == 1_300:
                break
            k += 1
            u = 0.5 * (u + v)
            print("end", k, round(float(v[7]), 9))
            u += 0.001 * np.cos(u)
            last = float(u.max()) > 0.5
    """,
    "elements of a list become of another type": """
        values = [0] * 100
        for k in range(300_000):
            if k == 200_000:
                values[7] = 1.5
            values[k % 100] = values[(k + 1) % 100] + 1
    """,
    "an index behind the end": """
        values, at, seen = [0.0] * 50, 0, 0
        try:
            for k in range(400_000):
                at = k // 7_000
                values[at] += 1.0
                seen = k
        except IndexError as error:
            said = str(error)
    """,
    "rows that are one list": """
        row = [0] * 30
        grid = [row] * 5 + [[0] * 30 for _ in range(20)]
        for k in range(200_000):
            grid[k % 25][k % 30] += 1
        total = [sum(one) for one in grid]
    """,
    "numbers too large": """
        values = [1] * 30
        for k in range(3_000):
            values[k % 30] = values[(k + 1) % 30] * 3 + 1
        digits = len(str(values[3]))
    """,
    "comprehensions": """
        def weigh(i, values):
            s = 0.0
            for j, v in enumerate(values):
                s += v / (i + j + 1)
            return s

        def weigh_all(values):
            return [weigh(i, values) for i in range(len(values))]

        values = [1.0] * 100
        for k in range(60):
            values = [v * 0.1 for v in weigh_all(values)]
        squares = [i * k % 7 for i in range(900) for k in range(i)]
        known = sorted(globals().keys() & {"i", "k", "v"})
    """,
    "comprehensions with conditions": """
        def select(n):
            return [k * 0.5 for k in range(n) if k % 3]

        total, count = sum(select(600_000)), len(select(1000))
        pairs = [(k, -k) for k in range(300_000) if k % 1000 == 0]
    """,
    "variables of functions around": """
        def count(n):
            step, calls = 3, 0

            def add(k):
                s = 0
                for i in range(k):
                    s += i * step
                return s

            def bump():
                nonlocal calls
                calls += 1
                return calls

            def bump_all(k):
                s = 0
                for i in range(k):
                    s += bump() + calls
                return s

            first = add(n)
            step = 5
            return first, add(n), bump_all(n), calls

        first, second, third, calls = count(200_000)
    """,
    "counting without end": """
        import itertools

        def first(n):
            found = 0
            for k in itertools.count(5, 3):
                found += k % 7
                if k > n:
                    return k, found

        at, found = first(900_000)
        rest = itertools.count(10)
        for k in rest:
            if k > 500_000 and k % 97 == 3:
                break
        following = next(rest)
    """,
    "values of other kinds": """
        class Grid:
            def __init__(self, n):
                self.n = n
                self.values = [0.0] * n

        def relax(grid, steps):
            total = 0.0
            for k in range(steps):
                grid.values[k % grid.n] += 0.5
                total += grid.values[(k + 1) % grid.n]
            return total

        totals = [relax(Grid(n), 250_000) for n in (20, 30, 40, 20)]
    """,
    "ranges of other steps": """
        def go(n):
            s = 0
            for step in (1, 3, -2, 5, -7, 2, -1, 4):
                for j in range(0 if step > 0 else n, n if step > 0 else 0, step):
                    s += j * step % 11
                s = s * len(str(s)) % 1_000_003
            return s, j

        total, last = go(400_000)
    """,
    "iterations that become shorter": """
        values, kept = [0] * 200_000, {}
        for k in range(1, 3000):
            for j in range(0, 200_000, k * k):
                values[j] += k
            if k % 3 == 0:
                kept[k] = values[k]
        total = sum(values)
    """,
    "short lists": """
        def cycle(n):
            last, counts = [-1] * n, [0] * 5
            for k in range(200_000):
                last[k * 7 % n] = k
                counts[last[k % n] % 5] += 1
            return last, counts

        last, counts = cycle(9)
    """,
    "an element of another type": """
        values = [k % 5 for k in range(800_000)]
        values[700_000] = 2.5
        s = 0
        for v in values:
            s += v
    """,
}
#: How many of a script's loops are entered.
COMPILED = {name: 1 for name in SCRIPTS} | {"rows that are one list": 0, "numbers too large": 0, "iterations that become shorter": 0}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_compiled_while_they_run(name):
    source = textwrap.dedent(SCRIPTS[name])
    expected = run(source)
    names, written, sampler = run_sampled(source)
    assert written == expected[1]
    assert {key: value for key, value in names.items() if type(value) in (int, float, str, list)} == {
        key: value for key, value in expected[0].items() if type(value) in (int, float, str, list)}
    assert sum(unit.fate.entries > 0 for unit in sampler.units if unit.fate) >= COMPILED[name], [
        unit.fate and unit.fate.reason for unit in sampler.units]


@pytest.mark.parametrize("name", [
    "arrays in place", "members of enumerations, properties that are set, and static methods"])
def test_what_a_run_found_out_is_kept(name, tmp_path):
    source = textwrap.dedent(SCRIPTS[name])
    with config.override(cache_dir=str(tmp_path)):
        *_, first = run_sampled(source)
        first.keep()
        names, _, second = run_sampled(source)
    loops = [unit for unit in second.units if not unit.is_function]
    assert not second.workshop.helper.jobs and all(unit.fate.entries == 1 for unit in loops)
    assert names["total"] == run(source)[0]["total"]


def test_what_was_compiled_for_another_processor_is_compiled_anew(tmp_path, monkeypatch):
    """Machines may share a folder."""
    source = textwrap.dedent(SCRIPTS["arrays in place"])
    with config.override(cache_dir=str(tmp_path)):
        *_, first = run_sampled(source)
        first.keep()
        monkeypatch.setattr(host, "identify", lambda: b"another processor".ljust(32))
        names, _, second = run_sampled(source)
        second.keep()
        *_, third = run_sampled(source)
    assert len(second.workshop.helper.jobs) == 1 and not third.workshop.helper.jobs
    assert names["total"] == run(source)[0]["total"]


def test_what_an_ended_run_still_has_compiled_is_waited_for(tmp_path):
    source = textwrap.dedent(SCRIPTS["arrays in place"])

    class Slow(Inline):
        def submit(self, job):
            self.jobs.append(job)

        def leave(self, note):
            self.note = note

    with config.override(cache_dir=str(tmp_path)), subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as maker:
        first = Sampler(sys.path[:])
        first.workshop.helper = slow = Slow()
        slow.maker = maker.pid, time.time() + 100
        run(source, first)
        first.keep()
        first.leave()
        *_, second = run_sampled(source)
        assert len(slow.jobs) == 1 and not second.workshop.helper.jobs and second.units[0].state == State.COLD
        add_lesson(slow.note, compile_loop(slow.jobs[0]).pack())
        maker.communicate(b"\n")
        *_, third = run_sampled(source)
        assert not third.workshop.helper.jobs and third.units[0].fate.entries == 1
        first.has_learned = True
        first.keep()  # as if whoever compiled it had told nothing
        *_, fourth = run_sampled(source)
        assert len(fourth.workshop.helper.jobs) == 1 and fourth.units[0].fate.entries == 1


def test_a_program_that_comes_too_late_is_kept_for_the_next_pass_and_for_later_runs(tmp_path, monkeypatch):
    """Loading it takes longer than Python takes for what is left of the loop."""
    monkeypatch.setattr(loops, "find_loading_time", lambda packed: 1e9)
    source = textwrap.dedent(SCRIPTS["sums of a module"])
    with config.override(cache_dir=str(tmp_path)):
        names, _, first = run_sampled(source)
        first.keep()
        *_, second = run_sampled(source)
    (unit,) = first.units
    assert names == run(source)[0]
    assert unit.state == State.READY and unit.fate.region is None and not unit.fate.entries
    assert not second.workshop.helper.jobs and second.units[0].fate.entries
    source = TOTAL + "found = [total(400_000)]\nfound += [total(300_000)]\n"
    names, _, third = run_sampled(source)
    assert names["found"] == run(source)[0]["found"]
    assert [unit.fate.entries for unit in third.units if not unit.is_function and unit.fate] == [1]


def test_jitcore_s_own_modules_are_not_the_script_s():
    """In a work tree its backends are a link to a folder beside it, where scripts may stand, too."""
    root = os.path.dirname(os.path.dirname(jitcore.__file__))
    hook = Hook([root], None)
    for folder in (os.path.join(root, "jitcore"), os.path.join(root, "jitcore", "backends", "cpu")):
        assert not hook._is_own(os.path.realpath(folder), set())
    assert hook._is_own(os.path.join(root, "examples"), set())


@pytest.mark.parametrize("is_there", [False, True])
def test_answers_that_an_ended_run_has_not_read_are_kept(is_there, tmp_path, monkeypatch):
    """is_there: whether the answer lies in the pipe when the run ends."""
    monkeypatch.setenv("JITCORE_CACHE_DIR", str(tmp_path))
    with config.override(cache_dir=str(tmp_path)):
        *_, sampler = run_sampled(textwrap.dedent(SCRIPTS["sums of a module"]))
        (job,), (unit,) = sampler.workshop.helper.jobs, sampler.units
        helper = Helper(sys.path[:])
        helper.submit(job)
        pid, answers = helper._process, helper._answers
        if is_there:
            select.select([answers], [], [])
            os.read(answers, len(pickle.dumps("ready", 5)) + 8)
            select.select([answers], [], [])
        helper.leave(Note(b"k" * 32, unit.key, ((), (), ()), 1.0))
        os.waitpid(pid, 0)
        (lesson,) = learned.load_lessons(b"k" * 32).values()
    assert pickle.loads(lesson.program[1:]).parameters


def test_values_are_told_once():
    """What many functions and variables lead to is gone through once, and classes are looked at once."""
    source = textwrap.dedent("""
        class Node:
            def __init__(self, number, others):
                self.number, self.others = number, others
        nodes = []
        for k in range(60):
            nodes.append(Node(k, nodes[-20:]))
    """) + "\n".join(f"def f{k}(): return nodes, {', '.join(f'f{j}' for j in range(k))}" for k in range(1, 40))
    module = ModuleType("__main__")
    before, sys.modules["__main__"] = sys.modules["__main__"], module
    asked, right = [], environment.list_stored_names
    try:
        exec(source, module.__dict__)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(environment, "list_stored_names", lambda code: asked.append(code) or right(code))
            patch.setattr(environment, "MAX_VALUES", 6_000)
            data, _ = environment.describe({}, [module.f39])
        assert len(asked) <= 2 and len(data) < 40_000
    finally:
        sys.modules["__main__"] = before


def test_attempts_have_a_budget(monkeypatch):
    """What they cost is little beside what the script has run, or what programs have gained."""
    sampler = Sampler(sys.path[:])
    shop = sampler.workshop
    monkeypatch.setattr(workshop, "ALLOWANCE", 0.03)
    assert shop.can_afford()
    shop.spent = 1.0
    assert not shop.can_afford()
    sampler.n_ticks = 10_000_000
    assert shop.can_afford()
    sampler.n_ticks = 0

    class Unit:
        class fate:
            replaced = 2.0

    sampler.units = [Unit]
    assert shop.can_afford()


def test_a_program_that_would_leave_each_iteration_is_none():
    source = textwrap.dedent("""
        import array
        class Box:
            def __init__(self):
                self.data, self.total = array.array("d", [1.0] * 10), 0.0
            def add(self, k):
                self.total += self.data[k % 10]
        def work(box):
            for k in range(300_000):
                box.add(k)
        box = Box()
        work(box)
        total = box.total
    """)
    names, _, sampler = run_sampled(source)
    assert names["total"] == run(source)[0]["total"]
    reasons = [unit.fate.reason for unit in sampler.units if unit.fate is not None]
    assert "each of its iterations does something that is left to Python" in reasons, reasons


@pytest.mark.parametrize("source", [
    """
    def count(n):
        found = 0
        for k in range(n):
            found += count(k) + 1
        return found
    found = count(23)
    """,
    """
    def depth(n):
        return 1 + depth(n - 1) if n else 0
    found = 0
    for k in range(40_000):
        found += depth(60)
    """,
])
def test_recursion_is_left_to_python_without_a_helper(source):
    """Where nothing has loaded NumPy: asked in another process."""
    code = textwrap.dedent(source)
    told = textwrap.dedent(f"""
        from jitcore.scripts.sampling import Sampler
        from jitcore.scripts.texts import write_record
        source = {code!r}
        sampler = Sampler([])
        code = sampler.add(write_record(compile(source, "script.py", "exec"), source.encode()))
        sampler.start()
        exec(code, {{"__name__": "__main__"}})
        sampler.pause()
        print(*(unit.lesson.reason for unit in sampler.units if unit.lesson), "workshop" in vars(sampler))
        """)
    found = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert re.fullmatch(r".* calls itself False\n", found.stdout), found


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_a_process_that_has_ended_is_not_waited_for():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as maker:
        lesson = learned.Lesson(None, None, "", maker=(maker.pid, time.time() + 100))
        assert lesson.is_being_made
        maker.stdin.close()
        os.waitid(os.P_PID, maker.pid, os.WEXITED | os.WNOWAIT)
        assert not lesson.is_being_made


def test_a_wrong_program_is_found_out(monkeypatch):
    """Its first use is compared with what Python does."""
    from jitcore.scripts.regions import Region

    def run_wrong(self, values, call=None):
        found = right(self, values, call)
        return found and (found[0], {**found[1], "s": found[1]["s"] + 1})

    right = Region.run
    monkeypatch.setattr(Region, "run", run_wrong)
    source = textwrap.dedent(SCRIPTS["sums of a module"])
    names, _, sampler = run_sampled(source)
    assert names["s"] == run(source)[0]["s"]
    (unit,) = sampler.units
    assert unit.state == State.DEAD and re.search("does not do what Python does: s is", unit.fate.reason)


def test_a_slow_program_is_left_again(monkeypatch):
    monkeypatch.setattr(LoopFate, "_use_mark", lambda self, frame, ahead: setattr(self, "pace", 1e-9))
    source = textwrap.dedent(SCRIPTS["sums of a module"])
    names, _, sampler = run_sampled(source)
    assert names["s"] == run(source)[0]["s"]
    assert sampler.units[0].fate.reason == "its program takes longer than Python"


def test_a_miss_does_not_shrink_the_room_of_lists(tmp_path):
    """In the first iteration of the second run a variable has another type."""
    source = textwrap.dedent("""
        x, error, path = 0.25, None, []
        for step in range(60_000):
            error = x - 0.5
            x = 3.7 * x * (1 - x)
            path.append(error)
        total = sum(path)
    """)
    with config.override(cache_dir=str(tmp_path)):
        *_, first = run_sampled(source)
        first.keep()
        names, _, second = run_sampled(source)
    assert names == run(source)[0]
    assert second.units[0].fate is None or second.units[0].fate._room >= 1000


def test_a_loop_that_is_left_too_often_is_left_to_python():
    source = textwrap.dedent("""
        n = s = 0
        while n < 1_000_000:
            s += n % 7
            n += 1
            if n % 3 == 0:
                print(end="")
    """)
    expected, _ = run(source)
    names, _, sampler = run_sampled(source)
    (fate,) = [unit.fate for unit in sampler.units if unit.fate is not None]
    assert names == expected and "entering its program takes longer" in fate.reason
    assert fate.entries < 30_000


@pytest.mark.parametrize("source, has", [("", False), ("x = 1", False), ("for i in range(3): pass", True),
                                         ("i = 0\nwhile i < 3: i += 1", True), ("def f(): pass", True)])
def test_what_has_neither_loops_nor_functions_is_not_watched(source, has):
    assert has_units(compile(source, "script.py", "exec")) is has


def test_objects_of_own_modules_are_told(tmp_path, monkeypatch):
    """Classes, functions and variables of modules of the script, by the modules and by their own names."""
    (tmp_path / "own_sheet.py").write_text(textwrap.dedent("""
        FACTOR = 0.5
        calls = []

        class Sheet:
            scale = 2.0

            def __init__(self, n):
                self.n, self.values = n, [float(k) for k in range(n)]

            def at(self, k):
                return self.values[k % self.n] * self.scale

        def weigh(x):
            return x * FACTOR
        """))
    source = textwrap.dedent("""
        import own_sheet
        from own_sheet import Sheet

        def relax(sheet, steps):
            total = 0.0
            for k in range(steps):
                sheet.values[k % sheet.n] += own_sheet.weigh(sheet.at(k + 1)) * 1e-3
                total += sheet.at(k) * own_sheet.FACTOR
            return total

        sheet = Sheet(40)
        totals = [relax(sheet, 60_000)]
        own_sheet.FACTOR = 0.25
        Sheet.scale = 1.0
        totals += [relax(sheet, 60_000), relax(own_sheet.Sheet(30), 60_000)]
        values = sheet.values
        """)
    monkeypatch.syspath_prepend(tmp_path)
    expected = run(source)[0]
    del sys.modules["own_sheet"]
    found, sampler = run_with_module(source, tmp_path, "own_sheet")
    assert found["totals"] == expected["totals"] and found["values"] == expected["values"]
    assert any(unit.fate.entries for unit in sampler.units if unit.fate), [
        unit.fate and unit.fate.reason for unit in sampler.units]


@pytest.mark.parametrize("before, after, line", [
    ("LOW, HIGH, TOP = 1, 5, 1", "LOW, HIGH, TOP = 1, 5, 5", "1.0 if changed.Level.TOP is changed.Level.LOW else 2.0"),
    ("LOW, HIGH = 1, 5", "LOW, HIGH = 1, 6", "changed.Level.HIGH.value"),
    ("LOW, HIGH = 1, 5", "LOW, HIGH = 1, 5\n    @property\n    def weight(self): return 3.0",
     "getattr(changed.Level.LOW, 'weight', 2.0)"),
    ("LOW = 1", "LOW = 1\n    def __str__(self): return 'x'", "len(str(changed.Level.LOW))")])
def test_programs_are_not_used_for_enumerations_that_have_changed(before, after, line, tmp_path, monkeypatch):
    source = f"import changed\ntotal = 0.0\nfor k in range(40_000):\n    total += {line}\n"
    monkeypatch.syspath_prepend(tmp_path)
    with config.override(cache_dir=str(tmp_path / "cache")):
        for members in (before, before, after, before):
            (tmp_path / "changed.py").write_text(f"import enum\nclass Level(enum.Enum):\n    {members}\n")
            shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
            expected = run(source)[0]["total"]
            del sys.modules["changed"]
            found, sampler = run_with_module(source, tmp_path, "changed")
            assert found["total"] == expected
            sampler.keep()


def test_no_tick_comes_while_the_workshop_is_loaded(monkeypatch):
    """It would find half of a module."""
    seen = []
    monkeypatch.setattr(workshop, "Workshop", lambda sampler, path: seen.append(sampler.is_busy))
    sampler = Sampler([])
    assert sampler.workshop is None and seen == [True] and not sampler.is_busy


def test_what_is_no_folder_in_the_path_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "added_late.py").write_text("x = 1")
    prepared = []
    hook = Hook([], lambda read, path, *_: prepared.append(path) or read()[0])
    hook.install()
    try:
        for one in (3, None, tmp_path, b"bytes", str(tmp_path), str(tmp_path)):
            monkeypatch.setattr(sys, "path", [*sys.path, one])
        module = importlib.import_module("added_late")
        sys.path.append("a\0b")
    finally:
        hook.remove()
        sys.modules.pop("added_late", None)
    assert module.x == 1 and prepared == [str(tmp_path / "added_late.py")]


def test_sizes_that_come_again_have_their_programs(tmp_path):
    source = textwrap.dedent("""
        import numpy as np

        def smooth(u):
            for _ in range(3):
                u = 0.5 * u + 0.25 * np.roll(u, 1) + 0.25 * np.roll(u, -1) - 1e-3 * u * u
            return u

        def evolve(n, steps):
            u = np.linspace(0.0, 1.0, n)
            for _ in range(steps):
                u = smooth(u) + 1e-4 * u.sum()
            return float(u.sum())

        parts = [np.linspace(0.0, 1.0, n) for n in (20, 30, 40)]
        calls = map(smooth, parts * 2_000)  # which no loop of the script makes
        total = [round(float(sum(map(np.sum, calls))), 6)]
        total += [round(evolve(n, 6_000), 6) for n in (20, 30, 40, 20, 30, 40)]
        """)
    expected = run(source)[0]["total"]
    with config.override(cache_dir=str(tmp_path)):
        names, _, first = run_sampled(source)
        first.keep()
        again, _, second = run_sampled(source)
    assert names["total"] == again["total"] == expected
    calls = {unit.fate.unit.line: unit.fate for unit in first.units if unit.fate and unit.fate.entries}
    n_jobs = len(first.workshop.helper.jobs), len(second.workshop.helper.jobs)
    assert n_jobs[0] <= 16 and n_jobs[1] <= 4, (n_jobs, calls)
    assert calls[4].entries > 500 and calls[11].entries >= 3, calls


@pytest.mark.parametrize("order", ["k % 2", "random.randrange(6)"])
def test_kinds_that_take_turns_have_a_program_each(order, tmp_path):
    """Calls find the one that takes them, and nothing is forgotten between."""
    source = textwrap.dedent(f"""
        import random
        import numpy as np

        def smooth(u):
            for _ in range(3):
                u = 0.5 * u + 0.25 * np.roll(u, 1) + 0.25 * np.roll(u, -1) - 1e-3 * u * u
            return u

        random.seed(1)
        parts = [np.linspace(0.0, 1.0, n) for n in range(20, 26)]
        calls = map(smooth, [parts[{order}] for k in range(9_000)])
        total = round(float(sum(map(np.sum, calls))), 6)
        """)
    expected = run(source)[0]["total"]
    with config.override(cache_dir=str(tmp_path)):
        names, _, first = run_sampled(source)
        first.keep()
        again, _, second = run_sampled(source)
    assert names["total"] == again["total"] == expected
    found = [max(unit.fate.entries for unit in one.units if unit.fate) for one in (first, second)]
    assert found[0] > 3_000 and found[1] > 6_000 and len(second.workshop.helper.jobs) < 10, found


#: A function with a loop, and its line.
TOTAL, TOTAL_LINE = textwrap.dedent("""
    def total(n):
        s = 0
        for k in range(n):
            s += k * k % 7
        return s
    """), 4


def test_what_was_too_short_is_tried_again():
    source = TOTAL + textwrap.dedent("""
        found = [total(3) for _ in range(50_000)]
        found += [total(2_000_000)]
        """)
    names, _, sampler = run_sampled(source)
    assert names["found"] == run(source)[0]["found"]
    assert any(unit.fate.entries for unit in sampler.units if unit.fate), [
        unit.fate and unit.fate.reason for unit in sampler.units]


def test_a_later_run_tries_it_again_with_larger_sizes(tmp_path, monkeypatch):
    source = TOTAL + textwrap.dedent("""
        import os

        found = [total(int(os.environ["SIZE"])) for _ in range(int(os.environ["COUNT"]))]
        """)
    with config.override(cache_dir=str(tmp_path)):
        for size, count, is_entered in (3, 50_000, False), (3, 50_000, False), (6_000_000, 1, True):
            monkeypatch.setenv("SIZE", str(size))
            monkeypatch.setenv("COUNT", str(count))
            names, _, sampler = run_sampled(source)
            sampler.keep()
            loop = next(unit for unit in sampler.units if not unit.is_function and unit.line == TOTAL_LINE)
            assert (loop.fate is not None and loop.fate.entries > 0) == is_entered, (size, loop.lesson)
            assert names["found"] == run(source)[0]["found"]


def test_exceptions_are_those_of_python():
    source = textwrap.dedent("""
        s = 0
        for i in range(300_000):
            s += 1 / (299_990 - i)
    """)
    with pytest.raises(ZeroDivisionError):
        run(source)
    with pytest.raises(ZeroDivisionError) as caught:
        run_sampled(source)
    assert caught.traceback[-1].lineno == 3


def test_another_process_compiles(tmp_path):
    """In plain Python this takes a minute."""
    script = tmp_path / "long.py"
    script.write_text("s = 0\nfor i in range(1_000_000_000):\n    s += i & 1\nprint(s)\n")
    command = [sys.executable, "-m", "jitcore", "run", "--report", str(script)]
    environment = {**os.environ, "JITCORE_CACHE_DIR": str(tmp_path / "cache"), "JITCORE_SCRIPTS_DEBUG": "1"}
    for _ in range(2):  # the second time with what the first one found out
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=True)
        assert done.stdout == "500000000\n"
        assert re.search(r"^2-3 +compiled", done.stderr, re.MULTILINE)


def test_a_class_that_changes_before_the_first_call_is_compared():
    """Then it has no version: that is none with which it was the same."""
    from jitcore.scripts.running import ClassGuard

    class Changed:
        rate = 1

    for change, same in [(lambda: setattr(Changed, "rate", 2), False), (lambda: setattr(Changed, "rate", 1), True)]:
        guard = ClassGuard(Changed)
        Changed.rate = 5
        assert guard.version.value != guard.known[0]
        Changed.rate = 1
        change()
        assert guard.version.value != guard.known[0]
        assert guard.check() is same
        Changed.rate = 1


def test_long_lists_of_numbers_hold_nothing_to_share():
    """What each entry of a program would go through otherwise."""
    row = [1.0]
    assert not list_held([0] * 100_000) and not list_held((1.0,) * 100_000) and not list_held(range(9))
    assert list_held([row] * 100_000)[-1] is row and list_held([1, row])[1] is row and not list_held({1: row})


def test_entries_that_do_nothing_are_weighed(monkeypatch):
    """After the first one, to copy the list takes longer than Python takes for the loop."""
    run_once = LoopFate._run

    def run_and_forget(self, *given):
        found = run_once(self, *given)
        self._fixed, self._done = 1e9, 0
        return found

    monkeypatch.setattr(LoopFate, "_run", run_and_forget)
    source = """
def add(table, n):
    for i in range(n):
        table[i] += 1
table = [0] * 20_000
for _ in range(4000):
    add(table, 20_000 if _ < 100 else 5)
print(table[0], table[-1])
"""
    _, written, sampler = run_sampled(source, opens=True)
    unit = next(unit for unit in sampler.units if unit.loop is not None and unit.line == 3)
    assert written == "4000 100\n" and unit.fate.entries and unit.n_asked < 2500


def test_a_loop_that_is_told_a_thousand_elements_is_weighed_by_these(monkeypatch):
    """To copy the list takes as long as 5000 iterations in Python: of the 20,000, a program does 1000 at once."""
    run_once = LoopFate._run

    def run_and_copy(self, *given):
        self._fixed = 5000 * self.pace
        return run_once(self, *given)

    monkeypatch.setattr(LoopFate, "_run", run_and_copy)
    source = """
def count(keys, table):
    for key in keys:
        table[key % 100] += 1
keys, table = [7 * k % 1009 for k in range(20_000)], [0] * 100
for _ in range(40):
    count(keys, table)
print(sum(table))
"""
    _, written, sampler = run_sampled(source, opens=True)
    unit = next(unit for unit in sampler.units if unit.loop is not None and unit.line == 3)
    assert written == "800000\n" and unit.fate.region is not None and unit.fate.entries == 0


@pytest.mark.parametrize("step, form", [("i", "range *"), ("3", "range 3"), ("-1", "range -1"), ("2 * i + 1", "range *")])
def test_steps_that_are_no_constants_are_arguments(step, form):
    source = f"""
def mark(found, i):
    for j in range(20_000)[::{step}]:
        found[j] += 1
found = [0] * 20_000
for i in range(20, 60):
    mark(found, i)
print(sum(found))
"""
    _, written, sampler = run_sampled(source, opens=True)
    assert written == f"{sum(run(source)[0]['found'])}\n" and form in [job.form for job in sampler.workshop.helper.jobs]


def test_nothing_is_collected_while_programs_are_loaded(monkeypatch):
    loaded, defines = [], running.define
    monkeypatch.setattr(running, "define", lambda *given: loaded.append(gc.isenabled()) or defines(*given))
    run_sampled(textwrap.dedent(SCRIPTS["sums of a module"]), opens=True)
    assert loaded[0] is False and gc.isenabled()
    gc.disable()
    try:
        with Uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
