"""Lists of objects of one class: found by traced places, changed in place, and the caller's own objects."""

from __future__ import annotations

import copy
import dataclasses
import math
import textwrap
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import jitcore
from jitcore.errors import AutojitWarning
from tests.autojit.checking import assert_same, check, tune


@pytest.fixture(autouse=True)
def compiled_for_good(monkeypatch):
    tune(monkeypatch, probed_seconds=0.0)


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def dot(self, other):
        return self.x * other.x + self.y * other.y


class Body:
    gravity = 9.5

    def __init__(self, number):
        self.x, self.v, self.mass = float(number * number % 7), 0.5, 1.0 + number
        self.count, self.alive, self.note, self.name = number, True, None, "body"
        self.place = np.array([self.x, 1.0])
        self.path = [self.x, 0.0]
        self.color = (0.25, number)
        self.centre = Vector(self.x, 2.0 * number)

    @property
    def momentum(self):
        return self.mass * self.v

    @momentum.setter
    def momentum(self, value):
        self.v = value / self.mass

    def push(self, force, dt=0.125):
        self.v += force / self.mass * dt

    @staticmethod
    def double(x):
        return 2 * x


@dataclasses.dataclass
class Point:
    x: float
    y: int = 3


def attract(bodies):
    for i in range(len(bodies)):
        force = 0.0
        for j in range(len(bodies)):
            if i != j:
                d = bodies[j].x - bodies[i].x
                force += bodies[j].mass * d / (abs(d) ** 3 + 0.5)
        bodies[i].push(force)
    for body in bodies:
        body.x += body.v
    return bodies[-1].x


def kinds(bodies):
    total = 0
    for body in bodies:
        body.count += 1
        body.alive = body.x > 3.0
        if body.note is None and body.name == "body":
            total += body.count
        if body.alive:
            body.count = 2 * body.count
    return total, [body.alive for body in bodies[:3]]


def parts(bodies):
    for k, body in enumerate(bodies):
        body.place += body.v
        body.path[1] += k
        body.color = (body.color[0] + 0.5, body.color[1] + k)
        body.centre.x += 1.5
    return sum(body.place[0] + body.path[1] for body in bodies)


def methods(bodies):
    for body in bodies:
        body.momentum = body.momentum + body.gravity
        body.momentum *= Body.double(1.5)
    return bodies[2].momentum


def nearest(bodies, x):
    best, distance = None, math.inf
    for body in bodies:
        if abs(body.x - x) < distance:
            best, distance = body, abs(body.x - x)
    if best is not None:
        best.count += 100
    return distance


def computed(bodies, steps):
    at = 0
    for _ in range(steps):
        at = (at * 5 + 3) % len(bodies)
        bodies[at].count += at
        bodies[at - len(bodies)].x *= 0.75
    return bodies[at].count


def least(bodies):
    values = np.array([body.x for body in bodies])
    body = bodies[np.argmin(values)]
    body.x -= 1.0
    return isinstance(body, Body), body.x


def nested(bodies):
    total = 0.0
    for one in bodies:
        for other in bodies:
            if one is not other:
                total += (one.centre - other.centre).dot(one.centre)
    return total


def rare(bodies):
    for k in range(30):
        if k % 13 == 7:
            bodies[k % 9].v = bodies[(k + 1) % 9].v + 1.0
    return bodies[7].v


@pytest.mark.parametrize("function, more", [
    (attract, ()), (kinds, ()), (parts, ()), (methods, ()), (nearest, (2.5,)), (nearest, (math.nan,)),
    (computed, (40,)), (least, ()), (nested, ()), (rare, ())], ids=lambda one: getattr(one, "__name__", ""))
def test_objects_are_found_by_places_that_are_traced(function, more):
    check(function, [Body(number) for number in range(12)], *more)


def test_the_objects_are_the_callers():
    bodies = [Body(number) for number in range(9)]
    before = [(body, body.place, body.path, body.centre) for body in bodies]

    @jitcore.autojit(strict=True)
    def change(bodies, x):
        best = bodies[0]
        for body in bodies:
            body.place[1] += 1.0
            body.path[0] += 1.0
            body.centre.y += 1.0
            if body.x > x:
                best = body
        return best, best.centre

    best, centre = change(bodies, 3.0)
    assert best is [body for body in bodies if body.x > 3.0][-1] and centre is best.centre
    assert all(body is b and body.place is p and body.path is q and body.centre is c
               for body, (b, p, q, c) in zip(bodies, before))
    assert all(body.place[1] == 2.0 and body.path[0] == body.x + 1.0 for body in bodies)


def test_none_and_an_object():
    @jitcore.autojit(strict=True)
    def find(bodies, x):
        found = None
        for body in bodies:
            if body.x > x and found is None:
                found = body
        return found

    bodies = [Body(number) for number in range(9)]
    for x in (0.5, 1.5, 3.5, 100.0):
        assert find(bodies, x) is next((body for body in bodies if body.x > x), None)


def test_dataclasses_are_compared_by_their_fields():
    def count(points):
        n = 0
        for one in points:
            for other in points:
                n += one == other
        return n

    check(count, [Point(float(k % 5)) for k in range(11)])


OTHER_LISTS = {
    "one object twice": lambda bodies: [*bodies, bodies[3]],
    "another class among them": lambda bodies: [*bodies, Point(1.0)],
    "another attribute": lambda bodies: (setattr(bodies[2], "more", 1), bodies)[1],
    "one array twice": lambda bodies: (setattr(bodies[2], "place", bodies[1].place), bodies)[1],
    "a view": lambda bodies: (setattr(bodies[2], "place", np.zeros(4)[::2]), bodies)[1],
    "one list twice": lambda bodies: (setattr(bodies[2], "path", bodies[1].path), bodies)[1],
    "one nested object twice": lambda bodies: (setattr(bodies[2], "centre", bodies[1].centre), bodies)[1],
    "one is a part of another": lambda bodies: (setattr(bodies[2], "centre", bodies[1]), bodies)[1],
    "shared attributes": lambda bodies: (setattr(bodies[2], "__dict__", bodies[1].__dict__), bodies)[1],
    "an int among floats": lambda bodies: (setattr(bodies[2], "x", 3), bodies)[1],
    "a large int": lambda bodies: (setattr(bodies[2], "count", 1 << 70), bodies)[1],
    "an object with a second name": lambda bodies: (globals().__setitem__("second", bodies[5]), bodies)[1],
}
second = Body(3)


@pytest.mark.parametrize("name", OTHER_LISTS)
@pytest.mark.parametrize("function", [attract, kinds, parts, nested])
@pytest.mark.parametrize("is_first", [True, False])
def test_other_lists(name, function, is_first):
    """Behind a program for plain ones, and before."""
    make, results = OTHER_LISTS[name], []
    for call in (function, jitcore.autojit(function)):
        found = []
        for changes in (True, False) if is_first else (False, True):
            bodies = [Body(number) for number in range(10)]
            bodies = make(bodies) if changes else bodies
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AutojitWarning)
                try:
                    found.append(call(bodies))
                except AttributeError as error:
                    found.append(type(error))
            found.append([{key: value for key, value in vars(body).items() if key != "centre"}
                          for body in bodies])
        results.append(found)
    assert_same(*results)


def test_an_object_with_a_second_name():
    def change(bodies, own):
        for body in bodies:
            body.x += own.x
            own.v = body.x
        return own is bodies[4], own.v

    for function in (change, lambda bodies, own: change(bodies, own)):
        for pick in (0, 4, None):
            results = []
            for call in (function, jitcore.autojit(function)):
                bodies = [Body(number) for number in range(9)]
                own = Body(40) if pick is None else bodies[pick]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", AutojitWarning)
                    results.append((call(bodies, own), [body.x for body in bodies], own.v))
            assert_same(*results)


def test_a_view_of_an_array_of_an_object():
    def change(bodies, view):
        for body in bodies:
            body.place += view[0]
        return view[0]

    results = []
    for call in (change, jitcore.autojit(change)):
        bodies = [Body(number) for number in range(9)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AutojitWarning)
            for view in (np.ones(1), bodies[4].place[:1], bodies[3].place):
                results.append((call(bodies, view), [body.place.copy() for body in bodies]))
    assert_same(results[:3], results[3:])


# -- random programs ----------------------------------------------------------------------------------------
CLASSES = textwrap.dedent("""
    import dataclasses

    class Plain:
        def __init__(self, x, n):
            self.x, self.n, self.on, self.none, self.pair = x, n, n % 2 == 0, None, (x, n)
        def bump(self, by):
            self.x += by
            return self.n
        @property
        def twice(self):
            return 2 * self.x

    class Other(Plain):
        def bump(self, by):
            self.n += 1
            return self.x

    class Slots:
        __slots__ = ("x", "n", "on", "none", "pair")
        __init__, bump, twice = Plain.__init__, Plain.bump, Plain.twice

    @dataclasses.dataclass
    class Data:
        x: float
        n: int
        on: bool = True
        none: None = None
        pair: tuple = (1.0, 2)
        bump, twice = Plain.bump, Plain.twice
    """)
STATEMENTS = [
    "{a}.x += {b}.x * 0.5", "{a}.n += 1", "{a}.n = {b}.n - {a}.n", "{a}.on = not {b}.on",
    "{a}.x = {b}.twice * 0.25", "total += {a}.bump(0.5)", "total += {a}.x", "if {a}.on: {b}.x -= 1.0",
    "if {a}.n % 3 == 1: {b}.n += {a}.n", "if {a} is {b}: total += 1", "if {a}.none is None: total += {b}.n",
    "{a}.pair = ({b}.x, {a}.n)", "total += {a}.pair[0]", "if k == 5: {a}.x = 0.25", "if k == 4: {a}.n = 7",
    "best = {a}", "if {a}.x > 2.0: best = {b}", "if k == 3: {a}.n = 1.5", "if k == 2: {a}.fresh = {b}.n",
    "if {a}.x > 40.0: break"]
NAMES = ["objects[k]", "objects[(k * 3 + 1) % len(objects)]", "objects[at]", "objects[-1]", "one", "best"]
MIXES = {"plain": "[Plain(k * 0.5, k) for k in range(9)]", "slots": "[Slots(k * 0.5, k) for k in range(9)]",
         "data": "[Data(k * 0.5, k) for k in range(10)]",
         "subclasses": "[(Plain, Other)[k % 2](k * 0.5, k) for k in range(9)]",
         "others": "[Other(k * 0.5, k) for k in range(8)]", "short": "[Plain(k * 0.5, k) for k in range(3)]",
         "aliases": "(lambda o: [*o, o[2]])([Plain(k * 0.5, k) for k in range(9)])"}


@st.composite
def programs(draw):
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        names = st.sampled_from(NAMES)
        lines.append("        " + draw(st.sampled_from(STATEMENTS)).format(a=draw(names), b=draw(names)))
    head = draw(st.sampled_from(["for k, one in enumerate(objects):", "for k in range(len(objects)):"]))
    own = "" if "one in" in head else "        one = objects[k - 2]\n"
    source = (f"def run(objects, best):\n    total, at = 0.0, 1\n    {head}\n{own}"
              "        at = (at * 5 + k) % 7\n"
              + "\n".join(lines) + "\n    return total, at, best is objects[1], best.x\n")
    return source.replace("% 7", "% len(objects)"), draw(st.sampled_from(sorted(MIXES))), draw(st.booleans())


@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
@given(programs())
def test_random_programs_over_objects(program):
    source, mix, is_inside = program
    found = []
    for compiles in (False, True):
        names: dict = {"__name__": __name__}
        exec(compile(CLASSES + source, "<objects of a test>", "exec"), names)
        run = jitcore.autojit(names["run"]) if compiles else names["run"]
        states = []
        for _ in range(2):
            objects = eval(MIXES[mix], names)
            best = objects[1] if is_inside else copy.copy(objects[0])
            ids = [*map(id, objects)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AutojitWarning)
                try:
                    states.append(run(objects, best))
                except (TypeError, AttributeError) as error:
                    states.append(type(error))
            assert ids == [*map(id, objects)]
            for one in (*objects, best):
                held = "x", "n", "on", "none", "pair", "fresh"
                states.append([type(one).__name__, *[getattr(one, name, "-") for name in held]])
        found.append(states)
    assert_same(*found)
