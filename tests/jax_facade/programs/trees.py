"""Pytrees: nested containers, classes of one's own, paths, and functions that take them apart."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
from jax import tree_util
from jax.flatten_util import ravel_pytree

Point = collections.namedtuple("Point", "x y")


@tree_util.register_pytree_node_class
class Interval:
    def __init__(self, low, high, name="interval"):
        self.low, self.high, self.name = low, high, name

    def tree_flatten(self):
        return (self.low, self.high), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name)


@tree_util.register_dataclass
@dataclasses.dataclass
class State:
    position: jax.Array
    speed: jax.Array
    label: str = dataclasses.field(metadata={"static": True}, default="body")


class Strict:
    """Its constructor takes arrays only."""

    def __init__(self, values):
        self.values = jnp.asarray(values)


tree_util.register_pytree_node(Strict, lambda s: ((s.values,), None), lambda _, children: Strict(*children))

tree = {"a": [1.0, (2.0, None)], "b": Point(jnp.arange(3.0), 4.0)}
vector, back = ravel_pytree(tree)
state = State(jnp.ones(2), jnp.array([0.5, -0.5]))
moved = jax.jit(lambda s: dataclasses.replace(s, position=s.position + 0.1 * s.speed))(state)
interval = jax.tree.map(lambda x: 2 * x, Interval(jnp.float32(1), jnp.float32(3)))

RESULTS = {
    "leaves": jax.tree.leaves(tree),
    "mapped": jax.tree.map(lambda x: x * 2, tree),
    "two": jax.tree.map(jnp.add, tree, tree),
    "vector": vector,
    "back": back(vector * 2),
    "paths": [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(tree)[0]],
    "reduced": tree_util.tree_reduce(lambda a, b: a + jnp.sum(b), tree, 0.0),
    "moved": (moved.position, moved.speed, moved.label),
    "interval": (interval.low, interval.high, interval.name),
    "transposed": jax.tree.transpose(jax.tree.structure({"a": 0, "b": 0}), jax.tree.structure([0, 0]),
                                     {"a": [1, 2], "b": [3, 4]}),
    "strict": jax.vmap(lambda s, k: Strict(s.values * k), (0, None))(Strict(jnp.arange(3.0)), 2.0).values,
    "gradient": jax.grad(lambda t: sum(jnp.sum(x**2) for x in jax.tree.leaves(t)))(tree),
    "all": jax.tree.all(jax.tree.map(lambda x: jnp.all(x >= 0), tree)),
}
