"""Small functions that have JAX's names: of pytrees, dtypes, processes, devices, products of scaled blocks, and hints."""

import operator
from dataclasses import dataclass

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import debug, dtypes, jit, lax, nn, tree, tree_util
from jitcore.tree_util import GetAttrKey, SequenceKey, tree_structure

PAIR = {"a": 1, "b": (2, [3])}


# -- pytrees ------------------------------------------------------------------------------------------------
def test_prefixes_are_broadcast():
    assert tree_util.broadcast_prefix({"a": "x", "b": "y"}, PAIR) == ["x", "y", "y"]
    assert tree_util.broadcast_prefix("x", PAIR) == ["x"] * 3
    assert tree_util.broadcast_prefix((1, 2), (3, (4, 5)), is_leaf=lambda x: x == 2) == [1, 2, 2]
    with pytest.raises(ValueError):
        tree_util.broadcast_prefix({"a": 1}, PAIR)


def test_one_level_is_flattened_with_keys():
    assert tree_util.flatten_one_level_with_keys([5, (6,)])[0] == [(SequenceKey(0), 5), (SequenceKey(1), (6,))]
    with pytest.raises(ValueError):
        tree_util.flatten_one_level_with_keys(3)


def test_paths_are_given_to_functions():
    expected = {"a": "['a'] 1 1", "b": ("['b'][0] 2 2", ["['b'][1][0] 3 3"])}
    join = lambda path, x, y: f"{tree_util.keystr(path)} {x} {y}"  # noqa: E731
    assert tree_util.tree_map_with_path(join, PAIR, PAIR) == expected == tree.map_with_path(join, PAIR, PAIR)


@pytest.mark.parametrize("reduce", [tree_util.tree_reduce_associative, tree.reduce_associative])
def test_associative_reductions(reduce):
    assert reduce(operator.add, ["a", ("b", {"c": "c"}), "d", "e"]) == "abcde"
    assert reduce(operator.add, [], identity=7) == 7
    assert reduce(operator.add, [(1,), (2,)], is_leaf=lambda x: isinstance(x, tuple)) == (1, 2)
    with pytest.raises(TypeError):
        reduce(operator.add, [])


def test_trees_are_turned_inside_out():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    given, expected = [{"a": 1, "b": 2}, {"a": 3, "b": 4}], {"a": [1, 3], "b": [2, 4]}
    assert tree_util.tree_transpose(outer, inner, given) == expected == tree.transpose(outer, None, given)
    with pytest.raises(TypeError):
        tree_util.tree_transpose(outer, inner, [1, 2])


def test_parts_of_structures():
    structure = tree_structure(PAIR)
    assert tree_util.treedef_children(structure) == [tree_structure(1), tree_structure((2, [3]))]
    assert tree_util.treedef_is_leaf(tree_structure(1)) and not tree_util.treedef_is_leaf(structure)


def test_classes_with_keys():
    @tree_util.register_pytree_with_keys_class
    @dataclass
    class Point:
        x: int
        y: int

        def tree_flatten_with_keys(self):
            return ((GetAttrKey("x"), self.x), (GetAttrKey("y"), self.y)), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    ((path, leaf), _), _ = tree_util.tree_flatten_with_path([Point(1, 2)])
    assert (tree_util.keystr(path), leaf) == ("[0].x", 1)
    assert tree_util.tree_map(lambda x: 2 * x, Point(1, 2)) == Point(2, 4)


# -- dtypes -------------------------------------------------------------------------------------------------
def test_dtypes_in_canonical_form():
    assert dtypes.canonicalize_dtype(float) == np.float32
    with jitcore.enable_x64(True):
        assert dtypes.canonicalize_dtype(float) == np.float64
    key = jitcore.random.key(0).dtype
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) == key
    with pytest.raises(ValueError):
        dtypes.canonicalize_dtype(key)
    with pytest.raises(TypeError):
        dtypes.canonicalize_dtype(object)
    assert dtypes.issubdtype(key, dtypes.prng_key) and not dtypes.issubdtype(np.uint32, dtypes.prng_key)


# -- processes and devices ----------------------------------------------------------------------------------
def test_one_process():
    assert (jitcore.host_count(), jitcore.host_id(), jitcore.host_ids(), jitcore.process_indices()) == (1, 0, [0], [0])


def test_copies_to_the_host_and_other_shardings():
    x = {"a": jnp.arange(3)}
    assert jitcore.copy_to_host_async(x)["a"] is x["a"]
    sharding = jitcore.SingleDeviceSharding(jitcore.devices()[0])
    np.testing.assert_array_equal(jitcore.reshard(x, sharding)["a"], [0, 1, 2])


def test_slices_by_their_size():
    x = np.arange(10)
    np.testing.assert_array_equal(x[jitcore.ds(2, 3)], [2, 3, 4])
    np.testing.assert_array_equal(x[jitcore.ds(4)], [0, 1, 2, 3])
    np.testing.assert_array_equal(x[jitcore.ds(1, 3, 2)], [1, 3, 5])


def test_environment_in_words(capsys):
    text = jitcore.print_environment_info(return_string=True)
    assert jitcore.__version__ in text and np.__version__ in text
    assert jitcore.print_environment_info() is None
    assert capsys.readouterr().out.strip() == text.strip()


def test_parts_of_an_array():
    (shard,) = jnp.arange(4).addressable_shards
    assert isinstance(shard, jitcore.Shard) and shard.replica_id == 0 and shard.device == jitcore.devices()[0]
    np.testing.assert_array_equal(shard.data, np.arange(4)[shard.index])


def test_shardings_are_drawn(capsys):
    debug.visualize_sharding((2, 3), jitcore.SingleDeviceSharding(jitcore.devices()[0]))
    assert "CPU 0" in capsys.readouterr().out.upper()
    with pytest.raises(ValueError):
        debug.visualize_sharding((2, 3, 4), jitcore.SingleDeviceSharding(jitcore.devices()[0]))


# -- products of scaled blocks ------------------------------------------------------------------------------
def test_products_of_scaled_blocks():
    draw = np.random.default_rng(0).normal
    lhs, rhs, left, right = (draw(size=shape).astype(np.float32) for shape in ((2, 3, 8), (2, 5, 8), (2, 3, 2), (2, 5, 4)))
    expected = np.einsum("bmk,bnk->bmn", lhs * np.repeat(left, 4, -1), rhs * np.repeat(right, 2, -1))
    for function in (nn.scaled_matmul, jit(nn.scaled_matmul)):
        found = function(lhs, rhs, left, right)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert nn.scaled_matmul(lhs, rhs, left, right, jnp.bfloat16).dtype == jnp.bfloat16
    with pytest.raises(ValueError):
        nn.scaled_matmul(lhs, rhs[..., :7], left, right)
    with pytest.raises(ValueError):
        nn.scaled_matmul(lhs, rhs, left[..., :1].repeat(3, -1), right)
    jitcore.test_util.check_grads(lambda a, b: nn.scaled_matmul(a, b, left, right), (lhs, rhs), order=1, modes=["rev"], rtol=1e-2, atol=1e-2)


# -- hints and tokens of lax ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split())
def test_accuracy_is_a_hint(name):
    function, x = getattr(lax, name), np.float32(0.7)
    for accuracy in (None, lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(atol=1e-3, ulps=2)):
        assert function(x, accuracy=accuracy) == function(x)
        assert jitcore.jit(lambda x, accuracy=accuracy: function(x, accuracy=accuracy))(x) == jitcore.jit(function)(x)
    with pytest.raises(NotImplementedError, match="Accuracy best not supported"):
        function(x, accuracy="best")
    with pytest.raises(TypeError, match="precision"):
        function(x, precision=3)


def test_tolerances():
    assert repr(lax.Tolerance(rtol=0.5)) == "Tolerance(atol=0.0, rtol=0.5, ulps=0)"
    for wrong in ({}, {"atol": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            lax.Tolerance(**wrong)
    with pytest.raises(TypeError, match="accuracy"):
        lax.sinh(1.0, accuracy=None)


def test_tokens():
    token = jitcore.jit(lax.after_all)(lax.create_token(), lax.create_token(3))
    assert repr(token) == "Token()" and not jitcore.tree.leaves(token)
    with pytest.raises(TypeError, match="must be tokens"):
        lax.after_all(1.0)


def test_stage():
    staged = lax.stage(2.0)
    assert staged.weak_type and staged == 2.0
    jaxpr = jitcore.make_jaxpr(lambda: lax.stage(np.float32(2)) + 1)()
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["optimization_barrier", "add"]
    assert jitcore.grad(lambda x: lax.stage(x) * 3)(1.0) == 3


def test_complex_numbers_of_parts_keep_them():
    for parts in ((0.0, np.inf), (np.inf, np.nan), (-0.0, -0.0)):
        made = lax.complex(*map(np.float64, parts))
        np.testing.assert_array_equal([made.real, made.imag], parts)
        assert np.signbit(made.real.data) == np.signbit(parts[0])
