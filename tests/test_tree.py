"""Pytrees: the same leaves, structures, printed forms, paths and errors as JAX, where JAX is installed."""

import collections
import dataclasses
import functools
import time

import pytest
from hypothesis import given, strategies as st

from jitcore import tree, tree_util

jtu = pytest.importorskip("jax.tree_util", reason="JAX is the oracle")

Point = collections.namedtuple("Point", "x y")


def register_in_both(name, *arguments):
    """Call the registration function `name` of jitcore and of JAX."""
    for module in (tree_util, jtu):
        # Each module gets keys of its own classes.
        getattr(module, name)(*(a(module) if getattr(a, "takes_module", False) else a for a in arguments))


class Pair:
    """Registered by plain functions."""

    def __init__(self, first, second, tag="t"):
        self.parts, self.tag = (first, second), tag

    def __eq__(self, other):
        return type(other) is Pair and (self.parts, self.tag) == (other.parts, other.tag)

    __hash__ = None


register_in_both("register_pytree_node", Pair, lambda p: (p.parts, p.tag), lambda tag, ab: Pair(*ab, tag))


class Box:
    """Registered as a class."""

    def __init__(self, content):
        self.content = content

    def __eq__(self, other):
        return type(other) is Box and self.content == other.content

    __hash__ = None

    def tree_flatten(self):
        return (self.content,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


register_in_both("register_pytree_node_class", Box)


class Keyed(Box):
    """Registered with keys."""

    __eq__, __hash__ = (lambda self, other: type(other) is Keyed and self.content == other.content), None


def give_module(function):
    function.takes_module = True
    return function


@give_module
def flatten_keyed_with(module):
    return lambda keyed: (((module.GetAttrKey("content"), keyed.content),), "aux")


register_in_both("register_pytree_with_keys", Keyed, flatten_keyed_with, lambda aux, parts: Keyed(*parts))


@dataclasses.dataclass
class Layer:
    """Registered with fields found by themselves."""

    weight: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})
    bias: object = None


register_in_both("register_dataclass", Layer)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Registered as static."""

    value: int


register_in_both("register_static", Setting)

TREES = {
    "leaf": 5,
    "none": None,
    "empty tuple": (),
    "empty list": [],
    "empty dict": {},
    "nested": (1, [2, None, (3,)], {"b": 4, "a": {"z": 5, "y": ()}}),
    "int keys": {3: 1, 1: 2, 2: 3},
    "tuple keys": {(1, "b"): 1, (1, "a"): 2},
    "ordered": collections.OrderedDict(b=1, a=[2, 3]),
    "default": collections.defaultdict(list, b=1, a=(2, 3)),
    "namedtuple": Point(1, Point([2, 3], None)),
    "string": ["text", b"bytes"],
    "set": [{1, 2}],
    "pair": [Pair(1, (2, 3), "tag")],
    "box": Box(Box(1)),
    "keyed": {"k": Keyed([1, 2])},
    "dataclass": [Layer(1, "first", (2, 3)), Layer(4)],
    "static": (Setting(3), 4),
}
every_tree = pytest.mark.parametrize("value", TREES.values(), ids=TREES)


def check_same_as_jax(value):
    leaves, treedef = tree_util.tree_flatten(value)
    expected_leaves, expected_treedef = jtu.tree_flatten(value)
    assert leaves == expected_leaves
    assert str(treedef) == str(expected_treedef)
    assert treedef.num_leaves == expected_treedef.num_leaves
    assert treedef.num_nodes == expected_treedef.num_nodes
    rebuilt, expected = treedef.unflatten(leaves), expected_treedef.unflatten(leaves)
    assert rebuilt == value
    assert list(map(str, jtu.tree_leaves(rebuilt))) == list(map(str, jtu.tree_leaves(expected)))
    paths = [(tree_util.keystr(path), leaf) for path, leaf in tree_util.tree_leaves_with_path(value)]
    assert paths == [(jtu.keystr(path), leaf) for path, leaf in jtu.tree_leaves_with_path(value)]


@every_tree
def test_flattens_prints_and_names_paths_as_jax(value):
    check_same_as_jax(value)


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    | st.dictionaries(st.integers(), inner, max_size=3).map(collections.OrderedDict)
    | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda d: collections.defaultdict(int, d))
    | st.tuples(inner, inner).map(lambda pair: Point(*pair))
    | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
    | inner.map(Box)
    | st.builds(Layer, weight=inner, name=st.text(max_size=2), bias=inner),
    max_leaves=12,
)


@given(values)
def test_random_trees_are_as_in_jax(value):
    check_same_as_jax(value)


@given(values, values)
def test_equality_and_hash_are_as_in_jax(first, second):
    ours = tree_util.tree_structure(first), tree_util.tree_structure(second)
    same = jtu.tree_structure(first) == jtu.tree_structure(second)
    assert (ours[0] == ours[1]) == same
    assert not same or hash(ours[0]) == hash(ours[1])


@given(values, values)
def test_prefixes_are_matched_as_in_jax(prefix, full):
    def run(module):
        try:
            return module.tree_leaves(module.tree_broadcast(prefix, full))
        except ValueError:
            return ValueError

    expected = run(jtu)
    # dict, OrderedDict and defaultdict with the same keys match each other here.
    subclasses = collections.OrderedDict | collections.defaultdict
    if not any(isinstance(node, subclasses) for node in walk(prefix, full)):
        assert run(tree_util) == expected


def walk(*roots):
    for root in roots:
        yield root
        level = tree_util.flatten_one_level(root)
        yield from walk(*(child for _, child in level[0])) if level else ()


def test_dict_order_does_not_matter_and_results_are_sorted():
    first, second = {"b": 1, "a": {"d": 2, "c": 3}}, {"a": {"c": 3, "d": 2}, "b": 1}
    assert tree_util.tree_structure(first) == tree_util.tree_structure(second)
    assert str(tree_util.tree_map(lambda x: x, first)) == str(second)
    default = collections.defaultdict(list, b=1, a=2)
    mapped = tree_util.tree_map(lambda x: x, default)
    assert list(mapped) == ["a", "b"] and mapped.default_factory is list and list(default) == ["b", "a"]


def test_keys_that_cannot_be_compared_still_have_one_order():
    first, second = {1: "int", "a": "str"}, {"a": "str", 1: "int"}
    assert tree_util.tree_leaves(first) == tree_util.tree_leaves(second)
    assert tree_util.tree_structure(first) == tree_util.tree_structure(second)


def test_deque_and_struct_sequence_are_nodes():
    assert tree_util.tree_leaves([collections.deque([1, 2]), time.gmtime(0)[:2]]) == [1, 2, 1970, 1]
    assert tree_util.tree_map(str, collections.deque([1, 2], maxlen=5)) == collections.deque(["1", "2"])
    assert tree_util.tree_map(lambda x: x, time.gmtime(0)) == time.gmtime(0)


def test_map_takes_prefix_and_is_leaf():
    assert tree.map(lambda a, b: (a, b), [1, 2], [{"k": 3}, (4,)]) == [(1, {"k": 3}), (2, (4,))]
    assert tree.map(lambda a: a, [None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree.map(type, [None, 1], is_leaf=lambda x: x is None) == [type(None), int]
    assert tree.map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)) == [2, 1]


@pytest.mark.parametrize("first, second, message", [
    ([1, 2], [1], "at the root, expected a list of length 2, found 1."),
    ({"a": [1, 2]}, {"a": (1, 2)}, r"at \['a'\], expected a list, found a tuple."),
    ({"a": [1, {"k": 2}]}, {"a": [1, {"q": 2}]}, r"at \['a'\]\[1\], a dict differs: expected \['k'\], found"),
    (Point(1, [2]), Point(1, 2), r"at .y, expected a list, found a leaf of type int."),
    (None, 3, "at the root, expected None, found a leaf of type int."),
    (Pair(1, 2, "p"), Pair(1, 2, "q"), "a Pair differs: expected 'p', found 'q'"),
    (Layer([1]), Layer(2), "at .weight, expected a list"),
])
def test_mismatch_is_located(first, second, message):
    with pytest.raises(ValueError, match=message):
        tree.map(lambda a, b: a, first, second)
    with pytest.raises(ValueError):
        jtu.tree_map(lambda a, b: a, first, second)


@pytest.mark.parametrize("leaves", [[1], [1, 2, 3]])
def test_wrong_number_of_leaves(leaves):
    with pytest.raises(ValueError):
        tree.unflatten(tree.structure([0, 0]), leaves)


def test_reduce_all_and_transpose():
    value = {"a": (1, 2), "b": (3, 4)}
    assert tree.reduce(lambda a, b: a + b, value) == 10
    assert tree.reduce(lambda a, b: a + b, value, 5) == 15
    with pytest.raises(TypeError):
        tree.reduce(lambda a, b: a + b, [])
    assert tree.all([True, {"a": 1}]) and not tree.all([True, {"a": 0}])
    outer, inner = tree.structure({"a": 0, "b": 0}), tree.structure((0, 0))
    for given_inner in (inner, None):
        assert tree.transpose(outer, given_inner, value) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    with pytest.raises(TypeError, match="Mismatch"):
        tree.transpose(outer, tree.structure([0, 0]), value)


def test_flatten_axes():
    treedef = tree.structure(({"a": 0, "b": (0, 0)}, 0, None))
    assert tree_util.flatten_axes("vmap in_axes", treedef, 0) == [0] * 4
    assert tree_util.flatten_axes("vmap in_axes", treedef, (None, 1, None)) == [None] * 3 + [1]
    assert tree_util.flatten_axes("vmap in_axes", treedef, ({"a": 2, "b": 3}, 1, 5)) == [2, 3, 3, 1]
    with pytest.raises(ValueError, match=r"vmap in_axes specification must be a tree prefix.*\n.*\(0, 1\)\n"):
        tree_util.flatten_axes("vmap in_axes", treedef, (0, 1))


def test_map_with_path_and_simple_keystr():
    value = {"a": [1, Point(2, 3)], "b": Keyed(4)}
    assert tree.map_with_path(lambda path, x: tree_util.keystr(path), value) == {
        "a": ["['a'][0]", Point("['a'][1].x", "['a'][1].y")], "b": Keyed("['b'].content")}
    simple = [tree_util.keystr(p, simple=True, separator="/") for p, _ in tree.leaves_with_path(value)]
    assert simple == [jtu.keystr(p, simple=True, separator="/") for p, _ in jtu.tree_leaves_with_path(value)]


def test_is_leaf_with_path():
    value = [[1, 2], [3, [4]]]
    pairs, treedef = tree.flatten_with_path(value, lambda path, x: len(path) == 1 and path[0].idx == 1, True)
    assert [leaf for _, leaf in pairs] == [1, 2, [3, [4]]]
    assert treedef.unflatten([leaf for _, leaf in pairs]) == value
    shared, stop = [5], (tree_util.SequenceKey(1),)
    pairs, treedef = tree.flatten_with_path([shared, shared, None], lambda path, x: path == stop, True)
    assert str(treedef) == "PyTreeDef([[*], *, None])"
    assert treedef.unflatten([leaf for _, leaf in pairs]) == [shared, shared, None]


def test_treedef_parts():
    treedef = tree.structure([1, (2, 3), Pair(4, 5, "tag")])
    assert [str(child) for child in treedef.children()] == [
        "PyTreeDef(*)", "PyTreeDef((*, *))", "PyTreeDef(CustomNode(Pair[tag], [*, *]))"]
    assert treedef.children()[2].node_data() == (Pair, "tag")
    assert tree.structure(0).node_data() is None and tree.structure(0).is_leaf()
    assert str(tree_util.treedef_tuple(treedef.children()[:2])) == "PyTreeDef((*, (*, *)))"
    assert tree.structure([0, 0]).compose(tree.structure((0,))) == tree.structure([(0,), (0,)])
    assert tree_util.all_leaves([1, "a"]) and not tree_util.all_leaves([1, None])


def test_partial_is_a_pytree_of_its_arguments():
    def add(a, b, c=0):
        return a + b + c

    partial = tree_util.Partial(add, 1, c=2)
    assert tree.leaves(partial) == [1, 2]
    assert tree.map(lambda x: 10 * x, partial)(5) == 35
    assert tree.structure(partial) == tree.structure(tree_util.Partial(add, 7, c=8))
    assert tree.structure(partial) != tree.structure(tree_util.Partial(max, 7, c=8))
    assert tree.leaves(tree_util.Partial(functools.partial(add, 1), 2)) == [2]
    assert tree_util.Partial(functools.partial(add, 1), 2)() == 3
    outer = tree_util.Partial(partial, 3)
    assert tree.leaves(outer) == jtu.tree_leaves(jtu.Partial(jtu.Partial(add, 1, c=2), 3)) == [3]
    assert outer() == 6 and tree.structure(outer) == tree.structure(tree_util.Partial(partial, 4))


def test_registration_errors():
    with pytest.raises(ValueError, match="Duplicate custom PyTreeDef type registration for .*Box"):
        tree_util.register_pytree_node_class(Box)
    with pytest.raises(ValueError, match="Duplicate"):
        tree_util.register_pytree_node(list, lambda x: (x, None), lambda aux, x: list(x))

    @dataclasses.dataclass
    class Unregistered:
        a: int
        b: int

    with pytest.raises(TypeError, match="both"):
        tree_util.register_dataclass(Unregistered, data_fields=["a"])
    with pytest.raises(ValueError, match=r"Missing fields: \['b'\]. Unexpected fields: \['c'\]"):
        tree_util.register_dataclass(Unregistered, data_fields=["a"], meta_fields=["c"])
    with pytest.raises(TypeError, match="not a dataclass"):
        tree_util.register_dataclass(int)
    tree_util.register_dataclass(Unregistered, data_fields=["a"], meta_fields=["b"])
    assert tree.leaves(Unregistered(1, 2)) == [1]
    assert tree.map(str, Unregistered(1, 2)) == Unregistered("1", 2)


def test_registration_is_private_to_jitcore():
    import optree

    assert optree.tree_leaves(Box(1)) != [1]


def test_auxiliary_data_without_hash_can_be_rebuilt():
    value = {"b": Pair(1, 2, ["list"]), "a": 3}
    assert tree.map(lambda x: x, value) == value
    assert tree.structure(value) != tree.structure({"b": Pair(1, 2, ["other"]), "a": 3})
