"""Index arithmetic against plain integers."""

import itertools

from hypothesis import given, strategies as st

from jitcore.loopir.expr import ZERO, Axis, Index, constant, delinearize, linearize

shapes = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


def evaluate(index: Index, values: dict) -> int:
    total = index.const
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis):
            total += coefficient * values[atom]
        else:
            inner = evaluate(atom.index, values)
            total += coefficient * (inner % atom.size if type(atom).__name__ == "Mod" else inner // atom.size)
    return total


def points(axes):
    for values in itertools.islice(itertools.product(*(range(axis.extent) for axis in axes)), 200):
        yield dict(zip(axes, values))


@given(shapes, st.data())
def test_reshape_of_reshape(shape, data):
    size = 1
    for extent in shape:
        size *= extent
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = data.draw(st.sampled_from(divisors))
    other = (first, size // first)
    axes = [Axis(extent) for extent in shape]
    index = tuple(map(Index.of, axes))
    moved = delinearize(linearize(index, shape), other)
    back = linearize(moved, other)
    for values in points(axes):
        expected = 0
        for axis in axes:
            expected = expected * axis.extent + values[axis]
        assert evaluate(back, values) == expected
        assert [evaluate(i, values) for i in moved] == list(divmod(expected, size // first))


@given(shapes)
def test_reshape_to_one_axis_and_back_simplifies(shape):
    axes = [Axis(extent) for extent in shape]
    index = tuple(Index.of(axis) if axis.extent != 1 else ZERO for axis in axes)
    assert delinearize(linearize(index, shape), shape) == index


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(2, 7)), min_size=1, max_size=3), st.integers(0, 20),
       st.integers(1, 12))
def test_division(terms, const, size):
    axes = [Axis(extent) for _, extent in terms]
    index = constant(const)
    for (coefficient, _), axis in zip(terms, axes):
        index = index + Index.of(axis) * coefficient
    quotient, remainder = index.floordiv(size), index.mod(size)
    for values in points(axes):
        whole = evaluate(index, values)
        assert evaluate(quotient, values) == whole // size
        assert evaluate(remainder, values) == whole % size


def test_equal_forms_are_equal():
    i, j = Axis(3), Axis(4)
    assert Index.of(i) * 4 + Index.of(j) == Index.of(j) + Index.of(i) * 4
    assert hash(Index.of(i) * 2 + 3) == hash(Index.of(i) + Index.of(i) + 3)
    assert Index.of(i) - Index.of(i) == ZERO


def test_stride():
    i, j = Axis(3), Axis(4)
    index = Index.of(i) * 4 + Index.of(j)
    assert (index.coefficient(i), index.coefficient(j), index.coefficient(Axis(2))) == (4, 1, 0)
    assert (Index.of(i) * 5 + Index.of(j)).mod(7).coefficient(i) is None
