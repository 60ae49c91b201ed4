"""Modes and handles, with a toy mode: boxes are mutable arrays, plain ints are counted in 64 bits."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import lax, make_jaxpr
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import context, to_array
from jitcore.rewriter.errors import ControlFlowError
from jitcore.rewriter.functions import _MARK, rewrite_function
from jitcore.rewriter.handles import Handle, Kind, LeafType, Mode, current
from jitcore.rewriter.journal import Location, record


class BoxKind(Kind):
    def join(self, aval, other):
        assert other == LeafType(aval, self)
        return other

    def wrap(self, raw, aval):
        return Box(raw)


class NumberKind(Kind):
    def join(self, aval, other):
        assert isinstance(other.kind, NumberKind)
        return LeafType(aval, self)

    def wrap(self, raw, aval):
        return Number(raw)


BOX, NUMBER = BoxKind(), NumberKind()


class Memory(Location):
    """What a box holds."""

    name = "contents"

    def __init__(self, raw):
        self.raw, self.trace, self.is_shared, self.key = raw, context.trace, False, ("memory", id(self))

    def read(self):
        return self.raw

    def write(self, value):
        self.raw = value

    def is_new_in(self, trace):
        return self.trace is trace


class Box(Handle):
    """A mutable array."""

    def __init__(self, raw, memory=None):
        self.contents = memory or Memory(raw)

    @property
    def leaf_type(self):
        aval = self.read().aval
        return LeafType(ShapedArray(aval.shape, aval.dtype), BOX)

    @property
    def shape(self):
        return self.read().shape

    @property
    def memory(self):
        return self.contents

    def mark_shared(self, alias=None):
        self.contents.is_shared = True

    def read(self):
        return self.contents.raw

    def is_same(self, other):
        return self.contents is other.contents

    def is_made_in(self, trace):
        return trace.owns(self.read())

    def as_predicate(self):
        return lax.ne(self.read(), 0.0)

    def alias(self):
        return Box(None, self.contents)

    def set(self, value):
        if self.contents.is_shared:
            raise ControlFlowError("shared memory")
        record(self.contents)
        self.contents.write(current.mode.convert(value, self.leaf_type.aval))

    def __add__(self, other):
        return Box(self.read() + (other.read() if isinstance(other, Handle) else other))

    def __iadd__(self, other):
        self.set(self + other)
        return self

    def __gt__(self, other):
        return Number(self.read() > other)

    def __getitem__(self, place):
        return Box(self.read()[place.read() if isinstance(place, Handle) else place])


class Number(Handle):
    """A traced int or bool of Python's."""

    def __init__(self, raw):
        self.raw = raw

    @property
    def leaf_type(self):
        return LeafType(ShapedArray((), self.raw.dtype), NUMBER)

    def read(self):
        return self.raw

    def is_same(self, other):
        return self.raw is other.raw

    def is_made_in(self, trace):
        return trace.owns(self.raw)

    def as_predicate(self):
        return self.raw if self.raw.dtype == bool else lax.ne(self.raw, np.int64(0))

    def _apply(self, function, other):
        return Number(function(self.raw, other.read() if isinstance(other, Handle) else np.int64(other)))

    def __add__(self, other):
        return other + self if isinstance(other, Box) else self._apply(lax.add, other)

    def __mul__(self, other):
        return self._apply(lax.mul, other)

    def __sub__(self, other):
        return self._apply(lax.sub, other)

    def __rsub__(self, other):
        return Number(np.int64(other) - self.raw)

    def __lt__(self, other):
        return self._apply(lax.lt, other)

    def __gt__(self, other):
        return self._apply(lax.gt, other)

    __radd__, __rmul__ = __add__, __mul__


class ToyMode(Mode):
    def __init__(self):
        self.failure = Memory(to_array(False))
        self.bounds = []

    def type_of(self, leaf):
        return LeafType(ShapedArray((), np.asarray(leaf).dtype), NUMBER) if isinstance(leaf, int) else None

    def convert(self, leaf, aval):
        raw = leaf.read() if isinstance(leaf, Handle) else np.asarray(leaf)
        return jnp.asarray(raw, aval.dtype)

    def bound_index(self, element, low, high):
        self.bounds.append((low, high))
        return element

    def fail(self, predicate, error):
        record(self.failure)
        self.failure.write(lax.bitwise_or(self.failure.read(), to_array(True) if predicate is True else predicate))
        return True


for kind in (Memory, Box, Number, ToyMode):  # as jitcore's own code, these are not rewritten
    for method in filter(inspect.isfunction, vars(kind).values()):
        setattr(method, _MARK, method)


@contextlib.contextmanager
def use(mode):
    current.mode = mode
    try:
        yield mode
    finally:
        current.mode = None


def run(function, *values):
    """(what the boxes hold, what is returned, whether Python would raise) of a call with boxes of floats and
    numbers for ints; None for what is no handle."""

    def call(*raws):
        with use(ToyMode()) as mode:
            handles = [Number(raw) if raw.dtype == np.int64 else Box(raw) for raw in raws]
            result = rewrite_function(function)(*handles)
            outs = [handle.read() for handle in handles]
            return [*outs, result.read() if isinstance(result, Handle) else np.float64(0), mode.failure.read()]

    operands = [np.int64(value) if isinstance(value, int) else np.float64(value) for value in values]
    *boxes, result, failed = run_jaxpr_numpy(make_jaxpr(call)(*operands), operands)
    return [float(box) for box in boxes], float(result), bool(failed)


def test_stores_under_a_condition():
    def store(box, n):
        view = box.alias()
        if n > 2:
            view.set(box + 10)
        return box + n

    assert run(store, 1.0, 1) == ([1.0, 1.0], 2.0, False)
    assert run(store, 1.0, 3) == ([11.0, 3.0], 14.0, False)


def test_loops_carry_memory_and_count_in_the_mode_s_ints():
    def accumulate(box, n):
        total = 0
        for i in range(n):
            box.set(box + i)
            total = total + i * 2
        return total

    assert run(accumulate, 1.0, 5) == ([11.0, 5.0], 20.0, False)
    assert run(accumulate, 1.0, 0) == ([1.0, 0.0], 0.0, False)


def test_elements_of_ranges_have_bounds():
    def count(box, n):
        for i in range(2, 9):
            box.set(box + i)

    with use(ToyMode()) as mode:
        make_jaxpr(lambda raw: rewrite_function(count)(Box(raw), 0))(1.0)
        assert (2, 8) in mode.bounds and (0, 6) in mode.bounds


def test_memory_made_in_a_branch_is_merged_by_value():
    def choose(box, n):
        if n > 2:
            new = box + 1
            new.set(new + 100)
        else:
            new = box + 2
        new.set(new + 1000)
        return new

    assert run(choose, 1.0, 3) == ([1.0, 3.0], 1102.0, False)
    assert run(choose, 1.0, 0) == ([1.0, 0.0], 1003.0, False)


def test_two_names_of_one_box_stay_two_names_of_one_box():
    def choose(box, n):
        if n > 2:
            new = other = box + 1
        else:
            new = other = box + 2
        new.set(new + 1000)
        return other

    assert run(choose, 1.0, 3)[1] == 1002.0


def write_one_of_two(box, n):
    new = box
    if n > 2:
        new = box + 1
    new.set(new + 1000)
    return new


def write_a_view_of_one_of_two(box, n):
    new = box + 5
    view = new.alias()
    if n > 2:
        new = box + 1
    view.set(view + 1)
    return new


def write_an_argument_that_the_loop_replaces(box, n):
    for _ in range(n):
        box.set(box + 1)
        box = box + 2
    return box


def write_what_two_names_hold_in_the_next_iteration(box, n):
    new, old = box + 1, box + 2
    for _ in range(n):
        old.set(old + 1)
        new, old = new + 1, new
    return new


def write_what_an_alias_holds(box, n):
    new = old = box + 1
    for _ in range(n):
        new.set(new + 1)
        old.set(old + 1)
        new = old = new + 1
    return new


@pytest.mark.parametrize("function", [
    write_one_of_two, write_a_view_of_one_of_two, write_an_argument_that_the_loop_replaces])
def test_memory_that_may_be_seen_under_two_names_is_not_written(function):
    with pytest.raises(ControlFlowError, match="shared memory"):
        run(function, 1.0, 3)


def test_an_in_place_operator_keeps_the_name_s_box():
    def step(box, n):
        for _ in range(n):
            box += 2
            view = box.alias()
            view.set(view + 1)
        return box

    assert run(step, 1.0, 3) == ([10.0, 3.0], 10.0, False)


def test_memory_that_changes_names_is_written():
    assert run(write_what_two_names_hold_in_the_next_iteration, 1.0, 3)[1] == 5.0


def test_memory_of_which_each_iteration_makes_two_names_is_written():
    assert run(write_what_an_alias_holds, 1.0, 3) == ([1.0, 3.0], 11.0, False)


def test_boxes_of_own_memory_may_be_replaced_under_a_condition():
    def replace(box, n):
        new = box + 1
        if n > 2:
            new = new + 1
        new.set(new + 1000)
        return new

    assert run(replace, 1.0, 3)[1] == 1003.0


def test_failures_are_noted_and_end_loops():
    def count_down(n):
        while True:
            if n < 0:
                raise ValueError("odd")
            if not n:
                break
            n = n - 2
        return n

    assert run(count_down, 4) == ([4.0], 0.0, False)
    assert run(count_down, 5)[2] is True


def test_unbound_variables_are_failures():
    def read(box, n):
        if n > 2:
            y = box + 1
        return y

    assert run(read, 1.0, 3) == ([1.0, 3.0], 2.0, False)
    assert run(read, 1.0, 1)[2] is True


def test_short_ranges_are_gone_through_and_boxes_are_iterated():
    def visit(box, n):
        for i in range(2):
            box.set(box + i)
        total = n
        for i in range(3):
            total = total + i
        return total

    with use(ToyMode()):
        jaxpr = make_jaxpr(lambda raw: rewrite_function(visit)(Box(raw), Number(raw.astype(np.int64))).read())(1.0)
    assert sum(eqn.primitive.name in ("while", "scan") for eqn in jaxpr.eqns) == 1


class RecordingNames(dict):
    """A namespace that notes what is read."""

    def __init__(self, names):
        super().__init__(names)
        self.seen = set()

    def __getitem__(self, name):
        self.seen.add(name)
        return super().__getitem__(name)


STEP = 3


def test_a_mode_chooses_redirects_and_namespaces():
    def use_names(n):
        return helper(n) + STEP

    def helper(n):
        return n + abs(n)

    class Named(ToyMode):
        names = RecordingNames({**globals(), "STEP": 5, "helper": helper})
        redirects = {abs: lambda value: 100}

        def namespace_of(self, function):
            return self.names

    rewritten = rewrite_function(use_names)
    with use(Named()) as mode:
        assert rewritten(1) == 106
    assert "STEP" in mode.names.seen
    assert rewritten(1) == 5
