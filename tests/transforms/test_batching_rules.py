"""Every primitive of the registry under `vmap` against a Python loop over the elements, for all places of the
batch axis and all choices of batched operands."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jitcore import jit, make_jaxpr, vmap
from jitcore.core.jaxpr import sub_jaxprs
from jitcore.core.primitive import registry
from jitcore.tree_util import tree_flatten, tree_leaves
from tests.transforms.batching_cases import (CASES, COLLECTIVES, DRAWN_AT_ONCE, ON_MESHES, WITHIN_RULES,
                                             WITHOUT_OPERANDS)

PARAMS = [pytest.param(name, case, id=f"{name}-{i}")
          for name, cases in sorted(CASES.items()) for i, case in enumerate(cases)]
MOST_CHOICES = 24


def find_primitives(closed) -> set[str]:
    names = {eqn.primitive.name for eqn in closed.eqns}
    return names.union(*(find_primitives(inner) for eqn in closed.eqns for inner in sub_jaxprs(eqn.params)))


def list_axes(case) -> list[tuple]:
    """Choices of an axis (or None) for each operand: all of them where they are few, else a sample."""
    places = [sorted({None, 0, len(x.shape), min(1, len(x.shape))}, key=str) for x in case.operands]
    choices = [axes for axes in itertools.product(*places) if any(axis is not None for axis in axes)]
    if len(choices) <= MOST_CHOICES:
        return choices
    rng = np.random.default_rng(0)
    always = [axes for axes in choices if all(axis in (0, None) for axis in axes)][:MOST_CHOICES]
    return always + [
        choices[i] for i in rng.choice(len(choices), MOST_CHOICES - len(always) or 1, replace=False)
    ]


def take(values, axes, position):
    return [x if axis is None else np.take(x, position, axis) for x, axis in zip(values, axes)]


def loop_over_elements(function, values, axes, size):
    results = [tree_flatten(function(*take(values, axes, i))) for i in range(size)]
    columns = zip(*[leaves for leaves, _ in results])
    return [np.stack([np.asarray(x) for x in column]) for column in columns], results[0][1]


def assert_same(actual, expected, tolerance):
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected):
        got = np.asarray(got)
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_every_primitive_has_a_rule():
    assert [name for name, primitive in registry.items() if primitive.batch is None] == sorted(
        WITHOUT_OPERANDS, key=list(registry).index
    )


def test_every_rule_has_a_case():
    elsewhere = WITHOUT_OPERANDS | WITHIN_RULES | ON_MESHES | DRAWN_AT_ONCE
    assert set(registry) - set(CASES) - elsewhere == COLLECTIVES


@pytest.mark.parametrize("name, case", PARAMS)
def test_case_applies_its_primitive(name, case):
    rng = np.random.default_rng(1)
    assert name in find_primitives(make_jaxpr(case.function)(*[x.draw(rng, 1, None) for x in case.operands]))


@pytest.mark.parametrize("name, case", PARAMS)
def test_rule_equals_a_loop_over_the_elements(name, case):
    rng = np.random.default_rng(2)
    for axes in list_axes(case):
        for size in (3, 1):
            values = [x.draw(rng, size, axis) for x, axis in zip(case.operands, axes)]
            expected, tree = loop_over_elements(case.function, values, axes, size)
            outs, out_tree = tree_flatten(vmap(case.function, in_axes=axes)(*values))
            assert out_tree == tree
            assert_same(outs, expected, case.tolerance)


@pytest.mark.parametrize("name, case", PARAMS)
def test_batch_of_no_elements(name, case):
    rng = np.random.default_rng(3)
    element = case.function(*[x.draw(rng, 1, None) for x in case.operands])
    choices = {tuple(0 if i in chosen else None for i in range(len(case.operands)))
               for chosen in ((0,), range(len(case.operands)), (len(case.operands) - 1,))}
    for axes in choices:
        values = [x.draw(rng, 0, axis) for x, axis in zip(case.operands, axes)]
        outs = vmap(case.function, in_axes=axes)(*values)
        for out, like in zip(tree_leaves(outs), tree_leaves(element), strict=True):
            assert out.shape == (0, *like.shape) and out.dtype == like.dtype


@pytest.mark.parametrize("name, case", PARAMS)
def test_compiled_rule_equals_a_loop(name, case):
    rng = np.random.default_rng(4)
    axes = tuple(len(x.shape) if i % 2 else 0 for i, x in enumerate(case.operands))
    values = [x.draw(rng, 3, axis) for x, axis in zip(case.operands, axes)]
    expected, _ = loop_over_elements(case.function, values, axes, 3)
    assert_same(tree_leaves(jit(vmap(case.function, in_axes=axes))(*values)), expected, case.tolerance)


@pytest.mark.parametrize("name, case", PARAMS)
def test_two_axes_in_any_order(name, case):
    """The outer axis of some operands, the inner one of others, both of the first."""
    rng = np.random.default_rng(5)
    outer = tuple(0 if i % 2 == 0 else None for i in range(len(case.operands)))
    inner = tuple(None if i % 3 == 2 else 0 for i in range(len(case.operands)))
    values = []
    for x, a, b in zip(case.operands, outer, inner):
        sizes = (*((2,) if a == 0 else ()), *((3,) if b == 0 else ()))
        values.append(x._replace(shape=(*sizes, *x.shape)).draw(rng, 1, None))
    mapped = vmap(vmap(case.function, in_axes=inner), in_axes=outer)(*values)
    rows = [loop_over_elements(case.function, take(values, outer, i), inner, 3)[0] for i in range(2)]
    assert_same(tree_leaves(mapped), [np.stack(column) for column in zip(*rows)], case.tolerance)
