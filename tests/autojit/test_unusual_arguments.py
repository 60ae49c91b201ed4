"""Arguments that are no plain arrays or numbers of the expected kind: what Python and NumPy do with them."""

from __future__ import annotations

import functools
import operator
import threading
import warnings

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import jitcore

LOG: list = []


class Tagged(np.ndarray):
    """Keeps a tag, and has an addition of its own."""

    def __array_finalize__(self, other):
        self.tag = getattr(other, "tag", 0)

    def __add__(self, other):
        return np.asarray(self) * 100


class Unit(np.ndarray):
    """All its ufuncs are ten times as large."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return getattr(ufunc, method)(*map(np.asarray, inputs), **options) * 10


def make_tagged() -> Tagged:
    made = np.arange(1.0, 4.0).view(Tagged)
    made.tag = 7
    return made


SUBCLASSES = {
    "masked": lambda: np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    "matrix": lambda: np.matrix([[1.0, 2.0, 3.0]]),
    "records": lambda: np.arange(3.0).view(np.recarray),
    "tagged": make_tagged,
    "unit": lambda: np.arange(1.0, 4.0).view(Unit),
    "memory map": lambda: np.ndarray.__new__(np.memmap, (3,), float, np.array([1.0, 2.0, 3.0]).data),
}


def add(x):
    return x + 1


def average(x):
    return x.mean(), x * x, x[0]


def write(x):
    x[0] = 5.0
    return x


def total(x):
    t = 0.0
    for i in range(len(x)):
        t = t + x[i]
    return t


def call_numpy(x):
    return np.sin(x).sum(), np.concatenate([x, x]), np.where(x > 1, x, 0), np.asarray(x) + 1


def make_masked(x):
    m = np.ma.masked_array(x.ravel(), mask=[1, 0, 1])
    return m.sum(), m + 1, np.ma.masked_where(x > 1, x).mean()


def make_views(x):
    return x.view(Tagged) + 1, np.asmatrix(x) * 2, x.view(np.recarray) + 1


def describe(value):
    if isinstance(value, (tuple, list)):
        return [describe(part) for part in value]
    return type(value), repr(value), getattr(value, "tag", None), repr(getattr(value, "mask", None))


def run(function, make, calls=4):
    """What calls return, and what they leave of their argument."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(calls):
            x = make()
            try:
                found.append(describe(function(x)))
            except Exception as error:
                found.append((type(error), str(error)))
            found.append(describe(x))
    return found


@pytest.mark.parametrize("name", SUBCLASSES)
def test_subclasses_of_ndarray(name):
    make = SUBCLASSES[name]
    for function in (add, average, write, total, call_numpy):
        assert run(function, make) == run(jitcore.autojit(function), make), function

    def read_captured(y):
        return captured + y, captured * y, y + captured

    captured = make()
    plain = lambda: np.ones(3)  # noqa: E731
    assert run(read_captured, plain) == run(jitcore.autojit(read_captured), plain)


def test_subclasses_that_are_made():
    for function in (make_masked, make_views):
        make = lambda: np.arange(3.0)  # noqa: E731
        assert run(function, make) == run(jitcore.autojit(function), make), function


#: Of eight floats. The last three have no element twice.
OVERLAPPING = {
    "windows": lambda b: as_strided(b, (4, 5), (8, 8)),
    "equal rows": lambda b: as_strided(b, (3, 4), (0, 8)),
    "equal columns": lambda b: as_strided(b, (3, 4), (8, 0)),
    "crossing": lambda b: as_strided(b, (3, 2), (8, 16)),
    "backwards": lambda b: as_strided(b[4:], (3, 2), (-8, 8)),
    "two steps": lambda b: as_strided(b, (3, 4), (16, 8)),
    "halves of elements": lambda b: as_strided(b, (3, 4), (4, 8)),
    "columns": lambda b: b.reshape(4, 2).T,
    "one row": lambda b: as_strided(b, (1, 4), (0, 16)),
    "apart": lambda b: as_strided(b, (2, 2), (32, 16)),
}


def shift_rows(x):
    x[1:] = x[:-1] * 2 + 1
    return x.sum()


def add_in_place(x):
    x += 1
    return x.copy()


def write_each(x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 2 + i
    return x.sum()


def write_row(x):
    x[0] = 7.0
    return x.sum(), x * 2


def write_masked(x):
    x[x > 2] = 0
    x.T[0] = 3
    return x * 1


@pytest.mark.parametrize("name", OVERLAPPING)
def test_arrays_that_overlap_themselves(name):
    for function in (shift_rows, add_in_place, write_each, write_row, write_masked):
        memories = []

        def make():
            memories.append(np.arange(8.0))
            return OVERLAPPING[name](memories[-1])

        compiled = jitcore.autojit(function)
        assert run(function, make) == run(compiled, make), function
        for memory in memories[:4]:
            np.testing.assert_array_equal(memory, memories[4])


def test_which_strides_overlap():
    from jitcore.autojitted.entry import SelfOverlaps

    for shape, strides, meets in [((4, 5), (8, 8), True), ((4, 5), (40, 8), False), ((4, 5), (8, 32), False),
                                  ((3, 2), (-8, 8), True), ((3, 2), (-16, 8), False), ((3, 2), (8, 24), False),
                                  ((1, 2), (0, 8), False), ((3, 2), (0, 8), True), ((), (), False)]:
        assert SelfOverlaps(shape, 8)[strides] is meets, (shape, strides)


def shift_right(k):
    return (7 - k) >> 2


def shift_left_in_loop(k):
    t = 0
    for _ in range(20):
        t += (k * 2) << 1
    return t


def combine_bits(k):
    return (k + 1) & 3, (k - 1) | 1, k ^ 2, ~(k + 1)


def raise_and_finish(k):
    try:
        raise ValueError(k)
    finally:
        LOG.append(1)


def raise_two_values(k):
    try:
        raise ValueError(k, "a")
    except KeyError:
        LOG.append(2)
    finally:
        LOG.append(3)


def raise_and_keep(k):
    try:
        try:
            raise ValueError(k + 1)
        finally:
            LOG.append(4)
    except ValueError as error:
        LOG.append(error.args[0])
    return k


@pytest.mark.parametrize("function", [shift_right, shift_left_in_loop, combine_bits, raise_and_finish,
                                      raise_two_values, raise_and_keep])
def test_numbers_of_another_type(function):
    """Operations of ints with floats, and numbers that exceptions carry."""
    found = []
    for one in (function, jitcore.autojit(function)):
        LOG.clear()
        values = iter((3.5, 3.5, 2, 5, 6.5, True, 8, 9, 0, 2.5))
        found.append((run(one, lambda: next(values), 10), list(LOG)))
    assert found[0] == found[1]


class Plotted:
    """Has attributes that can be no inputs beside those that can."""

    def __init__(self):
        self.u, self.n = np.linspace(0.0, 1.0, 50), 0
        self.lock, self.seen = threading.Lock(), {1.5}

    def step(self):
        self.u[1:-1] += 0.1 * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
        self.n += 1

    def lose(self):
        self.lock = None
        return self.u.sum()

    def hold(self):
        with self.lock:
            self.u *= 0.5

    def ask(self):
        return self.u.sum() if self.lock is not None else 0.0

    def list_all(self):
        return list(vars(self)), self.u.sum()

    def find(self):
        return getattr(self, "lock", 3) == 3, hasattr(self, "seen")

    def give(self):
        return self.seen

    def get_attribute(self):
        return operator.attrgetter("lock")(self) is None, operator.attrgetter("n", "u.size")(self)

    def call_method(self):
        return operator.methodcaller("__getattribute__", "lock")(self) is None

    def get_plainly(self):
        return object.__getattribute__(self, "lock") is None, self.__getattribute__("n")

    def get_by_super(self):
        return super().__getattribute__("lock") is None

    def map_getters(self):
        return list(map(getattr, [self], ["lock"]))[0] is None, list(map(operator.attrgetter("n"), [self]))

    def reduce_by_getter(self):
        return functools.reduce(getattr, ["lock"], self) is None

    def say(self):
        return "{0.lock!r:.3}".format(self)

    def match(self):
        match self:
            case Plotted(lock=None):
                return 1
        return 2

    def sort(self):
        return sorted([self, self], key=operator.attrgetter("n"))[0].n + operator.methodcaller("sum")(self.u)

    def lose_late(self, k):
        if self.u[k] > 0.5:
            self.lock = None
        return self.u[k]


@pytest.mark.parametrize("name, is_compiled", [
    ("step", True), ("lose", True), ("hold", False), ("ask", False), ("list_all", False), ("find", False),
    ("give", False), ("lose_late", False), ("get_attribute", False), ("call_method", False), ("get_plainly", False),
    ("get_by_super", False), ("map_getters", False), ("reduce_by_getter", False), ("say", False), ("match", False),
    ("sort", True)])
def test_attributes_that_can_be_no_inputs_matter_where_they_are_read(name, is_compiled):
    mine, theirs = Plotted(), Plotted()
    function = jitcore.autojit(getattr(Plotted, name))
    for k in (10, 40, 20):
        given = (k,) if name == "lose_late" else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert function(mine, *given) == getattr(theirs, name)(*given)
        assert (mine.u == theirs.u).all() and mine.n == theirs.n and mine.seen == {1.5}
        assert (mine.lock is None) == (theirs.lock is None)
    assert ("100 %" in str(function.report())) is is_compiled
    mine.seen, mine.lock = np.ones(3), 1.5  # which says nothing to a program that does not read it
    if is_compiled:
        function(mine)
        assert mine.seen.sum() == 3.0
    mine.lock = theirs.lock = None
    if name not in ("hold", "give", "list_all", "lose_late"):
        assert function(mine) == getattr(theirs, name)()


@pytest.mark.parametrize("later", [[2, 3], [[2, 3]], [2.0, 1], (2, 3), {2: 3}, "ab" * 20, np.array([2, 3])],
                         ids=lambda later: type(later).__name__)
def test_what_has_to_be_known_is_of_another_kind_later(later):
    def make(shape):
        return np.zeros(shape) + 1

    compiled = jitcore.autojit(make)
    for shape in (1, 2, 3, 4, 5, later, 6, later):
        outcomes = []
        for function in (make, compiled):
            try:
                outcomes.append(function(shape).tolist())
            except TypeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


class Nameless:
    """Of a class that does not say its module, as classes in C may: its instances have a variable of that name."""

    def __call__(self, x):
        return x * self.scale

    scale = 2.0


Nameless.__module__ = property(lambda self: "somewhere")  # type: ignore[assignment]
nameless = Nameless()


@pytest.mark.parametrize("function", [lambda x: nameless(x).sum(), lambda x: (x + 1, nameless)[0].sum(), lambda x: nameless.scale * x.sum()])
def test_classes_without_the_name_of_a_module(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jitcore.errors.AutojitWarning)
        assert jitcore.autojit(function)(np.arange(4.0)) == function(np.arange(4.0))
