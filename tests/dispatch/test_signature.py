"""Signatures of calls: keys, leaves put back, names of leaves, layouts of ndarrays."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jitcore import dtypes, tree_util
from jitcore.array import ConcreteArray
from jitcore.dispatch.options import NOTHING_SPECIAL, ArgumentPlan, JitOptions, plan_arguments
from jitcore.dispatch.signature import read_call, read_leaf, read_value


def fun(x, y=1, *args, flag=False, **others):
    return x


LEAVES = st.one_of(st.integers(-5, 5), st.floats(width=32), st.booleans(), st.just(np.ones(3, np.float32)),
                   st.just(ConcreteArray(np.ones(2))))
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.none()
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(TREES, max_size=3), st.dictionaries(st.sampled_from(["p", "q"]), TREES, max_size=2))
def test_rebuilding_gives_the_call_back(args, kwargs):
    call = read_call(fun, NOTHING_SPECIAL, tuple(args), kwargs)
    new_args, new_kwargs = call.rebuild(call.leaves)
    before, after = (tree_util.tree_leaves((a, k)) for a, k in ((args, kwargs), (new_args, new_kwargs)))
    assert [id(leaf) for leaf in before] == [id(leaf) for leaf in after]
    assert tree_util.tree_structure((tuple(args), kwargs)) == call.make_in_tree()
    assert tree_util.tree_structure((new_args, new_kwargs)) == call.make_in_tree()
    assert len(call.name_leaves(fun)) == len(call.leaves) == len(call.parts)
    assert hash(call.key) == hash(read_call(fun, NOTHING_SPECIAL, tuple(args), kwargs).key)


def test_static_values_return_to_their_places():
    plan = ArgumentPlan(static_nums=(0, -1), static_names=frozenset({"flag"}))
    call = read_call(fun, plan, ("s", 1.0, (2.0, 3.0), "t"), {"flag": "on", "k": 4})
    assert call.leaves == [1.0, 2.0, 3.0, 4]
    assert call.rebuild("abcd") == (("s", "a", ("b", "c"), "t"), {"flag": "on", "k": "d"})
    assert call.name_leaves(fun) == ["y", "args[0][0]", "args[0][1]", "k"]


def test_names_of_leaves():
    call = read_call(fun, NOTHING_SPECIAL, ({"w": [1, 2]}, 3, 4), {"z": (5,), "flag": 6})
    assert call.name_leaves(fun) == ["x['w'][0]", "x['w'][1]", "y", "args[0]", "flag", "z[0]"]
    assert read_call(max, NOTHING_SPECIAL, (1, 2), {}).name_leaves(max) == ["args[0]", "args[1]"]


def test_keys_tell_structures_apart():
    calls = [
        ((1, 2), {}),
        ((1,), {"y": 2}),
        (((1, 2),), {}),
        (([1, 2],), {}),
        (([1], 2), {}),
        ((1, 2, None), {}),
    ]
    assert len({read_call(fun, NOTHING_SPECIAL, *call).key for call in calls}) == len(calls)


def test_donated_flags_follow_the_leaves():
    plan = plan_arguments(fun, JitOptions(donate_argnums=(0, 2), donate_argnames=("k",)))
    call = read_call(fun, plan, ((1, 2), 3, [4]), {"k": 5, "m": 6})
    assert call.donated == (True, True, False, True, True, False)


@pytest.mark.parametrize("options, expected", [
    (JitOptions(static_argnums=(0,)), ((0,), {"x"})),
    (JitOptions(static_argnames=("y",)), ((1,), {"y"})),
    (JitOptions(static_argnames=("flag",)), ((), {"flag"})),
    (JitOptions(static_argnums=(5,)), ((5,), set())),
    (JitOptions(static_argnums=(-1,)), ((-1,), {"y"})),
    (JitOptions(static_argnums=(1,), static_argnames=()), ((1,), set())),
])
def test_positions_and_names_complete_each_other(options, expected):
    plan = plan_arguments(fun, options)
    assert (plan.static_nums, set(plan.static_names)) == expected


def test_positional_only_parameters_have_no_name():
    def only(x, /, y):
        return x

    plan = plan_arguments(only, JitOptions(static_argnums=(0,)))
    assert plan == ArgumentPlan((0,), frozenset())
    with pytest.raises(ValueError, match="invalid argnames"):
        plan_arguments(only, JitOptions(static_argnames=("x",)))


def test_signatures_are_not_read_without_need(monkeypatch):
    monkeypatch.setattr(inspect, "signature", lambda fun: pytest.fail("the signature was read"))
    assert plan_arguments(fun, JitOptions(keep_unused=True)) is NOTHING_SPECIAL
    read_call(fun, NOTHING_SPECIAL, ({"a": 1},), {"k": 2})


LAYOUTS = {
    "contiguous": (np.ones((2, 3)), True),
    "fortran": (np.asfortranarray(np.ones((2, 3))), False),
    "strided": (np.ones(6)[::2], False),
    "negative": (np.ones(6)[::-1], False),
    "scalar": (np.array(1.0), True),
    "swapped": (np.ones(3, ">f8"), False),
    "empty": (np.ones((0, 3)), True),
    "unaligned": (np.zeros(25, np.uint8)[1:].view(np.float64), False),
    "read-only": (np.broadcast_to(np.ones(3), (3,)), True),
    "broadcast": (np.broadcast_to(1.0, (3,)), False),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_foreign_layouts_are_copied(layout):
    array, shared = LAYOUTS[layout]
    shape, dtype, weak = read_leaf(array)
    value = read_value(array, dtype)
    assert value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative and not weak
    assert value.shape == array.shape == shape
    assert (value is array) == shared
    np.testing.assert_array_equal(value, array)


def test_subclasses_of_ndarray_lose_their_operators():
    value = read_value(np.ones((2, 2)).view(np.matrix), np.dtype(float))
    assert type(value) is np.ndarray


def test_every_supported_dtype_is_read():
    for dtype in dtypes.SUPPORTED:
        scalar = np.zeros((), dtype)[()]
        assert read_leaf(scalar) == ((), dtype, False)
        assert read_value(scalar, dtype).dtype == dtype
