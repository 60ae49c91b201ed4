"""Code written for one structure of pytree agrees with the pytree library, and refuses other structures."""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from typing import NamedTuple

import numpy as np
import optree
import pytest
from hypothesis import given, settings, strategies as st

import jitcore
from jitcore import lax, tree_util
from jitcore.array import ConcreteArray
from jitcore.dispatch import fast_call, function
from jitcore.process import generated
from jitcore.tree_util.nodes import NAMESPACE


class Point(NamedTuple):
    x: object
    y: object


@tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    weight: object
    bias: object
    name: str = dataclasses.field(default="m", metadata={"static": True})


@tree_util.register_dataclass
@dataclasses.dataclass
class Single:
    only: object


@tree_util.register_dataclass
@dataclasses.dataclass
class Nothing:
    note: str = dataclasses.field(default="", metadata={"static": True})


@tree_util.register_pytree_node_class
class Custom:
    """Gives its children as a generator and compares its data by value."""

    def __init__(self, children, data):
        self.children, self.data = children, data

    def tree_flatten(self):
        return (child for child in self.children), self.data

    @classmethod
    def tree_unflatten(cls, data, children):
        return cls(list(children), data)

    def __eq__(self, other):
        return isinstance(other, Custom) and (self.children, self.data) == (other.children, other.data)


class DictSubclass(dict):
    pass


def take_apart(spec: optree.PyTreeSpec, tree) -> list | None:
    """The leaves that the written code finds, None where it refuses the tree."""
    constants = generated.Constants()
    leaves = [f"x{i}" for i in range(spec.num_leaves)]
    lines = fast_call.write_taking_apart(spec, "root", leaves, constants)
    body = "".join(f"            {line}\n" for line in lines)
    source = (f"def make({constants.names}):\n    def take(root):\n        while True:\n{body}"
              f"            return [{', '.join(leaves)}]\n        return None\n    return take\n")
    take = generated.compile_function(source, "make", __name__, "")(*constants.values)
    try:
        return take(tree)
    except Exception:
        return None


class Unorderable:
    pass


KEY = Unorderable()
#: One structure a row, with other structures that must be refused.
TREES = {
    "tuple": ((1, (2, 3)), [(1, [2, 3]), (1, (2,)), (1, (2, 3, 4)), (1, 2), [1, (2, 3)], (1, Point(2, 3))]),
    "list": ([1, 2], [[1], [1, 2, 3], (1, 2), [], {0: 1, 1: 2}]),
    "dict": ({"b": 1, "a": {"c": 2}}, [{"b": 1}, {"b": 1, "a": {"d": 2}}, {"a": 1, "b": {"c": 2}},
             {"b": 1, "a": {"c": 2}, "z": 3}, collections.OrderedDict(b=1, a={"c": 2}), [1, 2]]),
    "odd keys": ({1: 1, 2.5: 2, "1": 3, (1, 2): 4, None: 5, b"x": 6, KEY: 7}, [{1: 1, 2.5: 2, "1": 3, (1, 3): 4}]),
    "keys to quote": ({"'": 1, '"': 2, "\\": 3, "\n": 4, "{x}": 5, "\ud800": 6, "": 7}, [{"'": 1}]),
    "namedtuple": (Point(1, Point(2, 3)), [Point(1, 2), (1, (2, 3)), Point(1, (2, 3))]),
    "dataclass": (Model(1, [2, 3], "a"), [Model(1, [2, 3], "b"), Model(1, 2, "a"), (1, [2, 3])]),
    "small dataclasses": ([Single(1), Nothing("n")], [[Single(1), Nothing("m")], [Single((1, 2)), Nothing("n")]]),
    "custom": (Custom([1, {"a": 2}], "d"), [Custom([1, {"a": 2}], "e"), Custom([1], "d"), Custom([1, {"b": 2}], "d")]),
    "None": ([None, 1, {"a": None}], [[1, 1, {"a": None}], [None, None, {"a": None}], [None, 1, {"a": 1}]]),
    "empty": ([(), [], {}, 1], [[(), (), {}, 1], [(1,), [], {}, 1], [(), [], {"a": 1}, 1]]),
    "leaf": (1, [(1,), None, []]),
    "OrderedDict": (collections.OrderedDict(z=1, a=2), [collections.OrderedDict(a=1, z=2), {"z": 1, "a": 2}]),
    "defaultdict": (collections.defaultdict(list, b=1, a=2), [collections.defaultdict(int, b=1, a=2), {"b": 1, "a": 2}]),
    "deque": (collections.deque([1, 2], maxlen=3), [collections.deque([1, 2]), [1, 2]]),
    "Partial": (tree_util.Partial(max, 1, key=2), [tree_util.Partial(min, 1, key=2), tree_util.Partial(max, 1)]),
    "struct sequence": (time.localtime(0), [tuple(time.localtime(0))]),
}


@pytest.mark.parametrize("name", TREES)
def test_one_structure_is_taken_apart_and_others_are_refused(name):
    tree, others = TREES[name]
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    assert take_apart(spec, tree) == leaves
    for other in others:
        found = take_apart(spec, other)
        # A refusal, or one object that is a leaf for the pytree library: the class of leaves is checked later.
        assert found is None or any(not optree.tree_is_leaf(leaf, namespace=NAMESPACE) for leaf in found)


@pytest.mark.parametrize("name", TREES)
def test_results_are_put_together_as_the_pytree_library_does(name):
    tree, _ = TREES[name]
    structure = tree_util.tree_structure(tree)
    values = [np.full(2, k, np.float32) for k in range(structure.num_leaves)]
    rebuild = fast_call.make_rebuilder(structure, [k % 2 == 1 for k in range(structure.num_leaves)])
    out = rebuild(values)
    assert type(out) is type(structure.unflatten(values)) or structure.is_leaf()
    found, out_structure = tree_util.tree_flatten(out)
    assert out_structure == structure and repr(out_structure) == repr(structure)
    assert [leaf.data is value for leaf, value in zip(found, values)] == [True] * len(values)
    assert [leaf.weak_type for leaf in found] == [k % 2 == 1 for k in range(len(values))]


def test_dicts_are_rebuilt_in_the_order_of_their_keys():
    tree = {"b": 1, "a": collections.defaultdict(list, z=2, y=3), "c": collections.OrderedDict(q=4, p=5)}
    out = fast_call.make_rebuilder(tree_util.tree_structure(tree), [False] * 5)([np.ones(1)] * 5)
    assert (list(out), list(out["a"]), list(out["c"])) == (["a", "b", "c"], ["y", "z"], ["q", "p"])


KEYS = st.one_of(st.text(max_size=2), st.integers(-2, 2), st.booleans(), st.tuples(st.integers(0, 1)), st.none())
NESTED = st.recursive(
    st.integers(0, 9),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.none(),
        st.builds(Point, inner, inner),
        st.builds(Model, inner, inner, st.sampled_from("ab")),
        st.builds(lambda children: Custom(children, 0), st.lists(inner, max_size=2)),
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(NESTED, NESTED)
def test_code_and_library_agree(tree, other):
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    other_leaves, other_spec = optree.tree_flatten(other, namespace=NAMESPACE)
    assert take_apart(spec, tree) == leaves
    found = take_apart(spec, other)
    if spec == other_spec:
        assert found == other_leaves
    else:
        assert found is None or any(not isinstance(leaf, int) for leaf in found)
    values = [np.array(leaf) for leaf in leaves]
    rebuilt = fast_call.make_rebuilder(tree_util.PyTreeDef(spec), [False] * len(values))(values)
    assert tree_util.tree_map(int, rebuilt) == tree
    assert tree_util.tree_structure(rebuilt).spec == spec


def test_deep_structures_need_no_deep_code():
    tree = 1
    for _ in range(400):
        tree = [tree]
    leaves, spec = optree.tree_flatten(tree, namespace=NAMESPACE)
    assert take_apart(spec, tree) == leaves
    out = fast_call.make_rebuilder(tree_util.PyTreeDef(spec), [False])([np.ones(1)])
    assert tree_util.tree_structure(out).spec == spec


def test_huge_structures_are_left_to_the_library(monkeypatch):
    structure = tree_util.tree_structure(list(range(fast_call.MAX_NODES)))
    assert not fast_call.is_small(structure)
    monkeypatch.setattr(generated, "compile_function", lambda *args: pytest.fail("code was written"))
    values = [np.ones(1)] * structure.num_leaves
    out = fast_call.make_rebuilder(structure, [False] * len(values))(values)
    assert len(out) == len(values) and all(leaf.__class__ is ConcreteArray for leaf in out)


# -- calls ---------------------------------------------------------------------------------------------------
def wrap(k: float) -> ConcreteArray:
    return ConcreteArray(np.full(3, k, np.float32))


CALLS = {
    "dict": lambda: {"w": wrap(1), "b": np.full(3, 2.0, np.float32), "s": 3.0},
    "nested": lambda: [(wrap(1), {"a": (2, None)}), Point(np.float32(1), True)],
    "dataclass": lambda: Model(wrap(1), [wrap(2), 1j]),
    "custom": lambda: Custom([wrap(1), Custom([2.0], 1)], "d"),
    "OrderedDict": lambda: collections.OrderedDict(z=wrap(1), a=wrap(2)),
}


@pytest.mark.parametrize("kind", CALLS)
def test_calls_with_pytrees_are_served_without_the_library(kind, monkeypatch):
    fun = jitcore.jit(lambda tree, *, other: (tree, other))
    expected = fun(CALLS[kind](), other=CALLS[kind]())
    for place, name in ((function, "read_call"), (optree, "tree_flatten")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, lambda *args, **kwargs: pytest.fail("the general path was taken"))
            out = fun(CALLS[kind](), other=CALLS[kind]())
        leaves, structure = tree_util.tree_flatten(out)
        assert structure == tree_util.tree_structure(expected)
        for leaf, other in zip(leaves, tree_util.tree_leaves(expected)):
            assert (leaf.dtype, leaf.weak_type) == (other.dtype, other.weak_type)
            np.testing.assert_array_equal(leaf, other)
    assert fun.cache_info()[:2] == (2, 1)


def test_containers_may_change_between_calls():
    fun = jitcore.jit(lambda tree: tree)
    tree = {"b": 1.0, "a": [2.0]}
    for _ in range(3):
        assert tree_util.tree_map(float, fun(tree)) == {"a": [2.0], "b": 1.0}
    tree["a"].append(3.0)
    tree["c"] = None
    for _ in range(3):
        assert tree_util.tree_map(float, fun(tree)) == {"a": [2.0, 3.0], "b": 1.0, "c": None}
    del tree["c"], tree["a"]
    tree["z"], tree["a"] = (4.0,), [5.0]
    assert tree_util.tree_map(float, fun(tree)) == {"a": [5.0], "b": 1.0, "z": (4.0,)}
    assert fun.cache_info().misses == 3


def test_the_order_of_keys_does_not_matter():
    fun = jitcore.jit(lambda tree: lax.sub(tree["x"], tree["y"]))
    for tree in ({"x": 5.0, "y": 3.0}, {"y": 3.0, "x": 5.0}) * 2:
        assert float(fun(tree)) == 2.0
    assert fun.cache_info()[:2] == (3, 1)


def test_a_wrong_structure_after_a_right_one_raises_what_a_first_call_raises():
    fun = jitcore.jit(lambda tree: lax.neg(tree["a"]))
    assert float(fun({"a": 1.0})) == -1.0
    for wrong, error in (({"b": 1.0}, KeyError), ([1.0], TypeError), (DictSubclass(a=1.0), TypeError),
                         ({"a": "text"}, TypeError), ({"a": [1.0]}, TypeError), ({"a": 2**40}, OverflowError)):
        for _ in range(2):
            with pytest.raises(error):
                fun(wrong)
        assert float(fun({"a": 2.0})) == -2.0


def test_static_fields_and_dtypes_belong_to_the_signature():
    fun = jitcore.jit(lambda model: model.weight if model.name == "a" else lax.neg(model.weight))
    for _ in range(3):
        assert float(fun(Model(1.0, None, "a"))) == 1.0
        assert float(fun(Model(1.0, None, "b"))) == -1.0
        assert fun(Model(np.int8(1), None, "a")).dtype == np.int8
        assert fun(Model(wrap(1), None, "b")).shape == (3,)
    assert fun.cache_info()[:2] == (8, 4)


def test_errors_of_registered_types_reach_the_user():
    class Fragile(Custom):
        broken = False

        def tree_flatten(self):
            if Fragile.broken:
                raise RuntimeError("cannot be flattened")
            return super().tree_flatten()

    tree_util.register_pytree_node_class(Fragile)
    fun = jitcore.jit(lambda tree: tree)
    fun(Fragile([1.0], 0))
    Fragile.broken = True
    with pytest.raises(RuntimeError, match="cannot be flattened"):
        fun(Fragile([1.0], 0))
    Fragile.broken = False
    assert float(fun(Fragile([2.0], 0)).children[0]) == 2.0


def test_deleted_arrays_in_pytrees_are_refused():
    fun = jitcore.jit(lambda tree: tree["a"])
    tree = {"a": wrap(1)}
    fun(tree)
    tree["a"].delete()
    with pytest.raises(jitcore.errors.DonatedArrayError):
        fun(tree)


def test_methods_of_pytrees_are_served_fast(monkeypatch):
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        weight: object
        bias: object

        @jitcore.jit
        def __call__(self, x):
            return lax.add(lax.mul(self.weight, x), self.bias)

    layer = Layer(wrap(2), wrap(1))
    layer(wrap(3))
    monkeypatch.setattr(function, "read_call", lambda *args, **kwargs: pytest.fail("the general path was taken"))
    np.testing.assert_array_equal(layer(wrap(4)), np.full(3, 9.0))
    layer.bias = wrap(0)
    np.testing.assert_array_equal(layer(wrap(4)), np.full(3, 8.0))


def test_eight_threads_call_with_several_structures():
    fun = jitcore.jit(lambda tree: tree_util.tree_map(lambda x: lax.add(x, 1.0), tree))
    makers = [lambda k: {"a": wrap(k)}, lambda k: [wrap(k), (wrap(k),)], lambda k: {"a": float(k)}, lambda k: wrap(k),
              lambda k: {"b": np.full(3, k, np.float32)}]
    failures = []

    def work(number):
        for k in range(300):
            tree = makers[(number + k) % len(makers)](k)
            for leaf in tree_util.tree_leaves(fun(tree)):
                if not np.all(np.asarray(leaf) == k + 1):
                    failures.append((number, k))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)
    info = fun.cache_info()
    assert info.hits + info.misses == 2400 and len(fun._function.fast.list_variants()) == len(makers)
