"""What users' derivative rules return, checked against what they have to return.

In: the result of a rule, and structures and avals it has to agree with. Out: flat results, or the error. The
first line of an error is JAX's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import registry
from jitcore.errors import build_error
from jitcore.transforms.tangents import Zero, tangent_aval
from jitcore.tree_util import PyTreeDef, tree_flatten, tree_leaves_with_path
from jitcore.tree_util.nodes import keystr


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, as rules with `symbolic_zeros=True` see it.

    Attributes: aval, shape, dtype, ndim, size: of the derivative."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(value) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(aval_of(value)))

    def __repr__(self) -> str:
        return "SymbolicZero"


class Rule(NamedTuple):
    """Who is being checked. kind: "JVP" or "VJP fwd"; name: of the rule; function: that it belongs to."""

    kind: str
    name: str
    function: str

    def __str__(self) -> str:
        return f"Custom {self.kind} rule {self.name} for function {self.function}"


class Output(NamedTuple):
    """The result of a function: structure and avals."""

    tree: PyTreeDef
    avals: list[ShapedArray]

    def describe_avals(self) -> str:
        return str(self.tree.unflatten([aval.long() for aval in self.avals]))


def flatten_output(out) -> tuple[list, Output]:
    """Raises: TypeError for a leaf that is no array."""
    leaves, tree = tree_flatten(out)
    return leaves, Output(tree, list(map(aval_of, leaves)))


def _same_types(avals: Sequence[ShapedArray], others: Sequence[ShapedArray]) -> bool:
    return [(aval.shape, aval.dtype) for aval in avals] == [(aval.shape, aval.dtype) for aval in others]


def check_pair(rule: Rule, pair, meaning: str) -> tuple[Any, Any]:
    """Raises: TypeError unless a rule returned two things. meaning: of the pair, in words."""
    if isinstance(pair, (tuple, list)) and len(pair) == 2:
        return tuple(pair)
    raise build_error(TypeError,
                      f"{rule} must produce a pair (list or tuple of length two) {meaning}, but got {pair}.")


def check_primal_output(rule: Rule, found: Output, expected: Output | None) -> None:
    """The primal results of a rule against those of the function, where it has run.

    Raises: TypeError where structure, shapes or dtypes differ."""
    if expected is None:
        return
    must = f"{rule} must produce a pair (list or tuple of length two) where the first element represents the "
    must += f"primal output (equal in value to the output of {rule.function})"
    if found.tree != expected.tree:
        raise build_error(TypeError, f"{must}, in the same containers.",
                          detail=f"The rule's first element had the structure {found.tree}, "
                          f"the function's output {expected.tree}.",
                          fix=f"return {rule.function}(...) itself as the first element.")
    if not _same_types(found.avals, expected.avals):
        raise build_error(
            TypeError,
            f"{must}, with leaves of the same shape/dtype.",
            detail=f"The rule's first element had shapes/dtypes {found.describe_avals()}, the function's "
            f"output {expected.describe_avals()}.",
            fix=f"return {rule.function}(...) itself as the first element.")


def read_tangents(rule: Rule, tangents, primals: Output) -> list:
    """The tangents that a rule returned, `SymbolicZero`s as `Zero`s.

    Raises: TypeError where structure, shapes or dtypes are not those of the primal results."""
    leaves, tree = tree_flatten(tangents)
    if tree != primals.tree:
        raise build_error(TypeError,
                          f"{rule} must produce primal and tangent outputs with equal container (pytree) "
                          f"structures, but got {primals.tree} and {tree} respectively.",
                          fix="return one tangent for each array of the output.")
    expected = list(map(tangent_aval, primals.avals))
    given = [leaf.aval if isinstance(leaf, SymbolicZero) else aval_of(leaf) for leaf in leaves]
    for place, (aval, aim) in enumerate(zip(given, expected)):
        if dtypes.differ_in_width(aval.dtype, aim.dtype) and not isinstance(leaves[place], SymbolicZero):
            leaves[place] = registry["convert_element_type"].bind(leaves[place], new_dtype=aim.dtype,
                                                                  weak_type=False)
            given[place] = aval.update(dtype=aim.dtype)
    if not _same_types(expected, given):
        raise _tangent_types_error(primals.avals, expected, given)
    return [Zero(aval) if isinstance(leaf, SymbolicZero) or aval.dtype == dtypes.float0 else leaf
            for leaf, aval in zip(leaves, expected)]


def _tangent_types_error(primals, expected, given) -> Exception:
    text = "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes"
    fix = "a tangent has the shape and dtype of its primal; t.astype(x.dtype) converts it."
    if len(primals) == 1:
        return build_error(TypeError, f"{text}. Expected {expected[0].long()} (tangent type of "
                           f"{primals[0].long()}) but got {given[0].long()}.", fix=fix)
    differing = "; ".join(f"primal {p.long()} with tangent {t.long()}, expecting tangent {e.long()}"
                          for p, e, t in zip(primals, expected, given) if not _same_types([e], [t]))
    return build_error(TypeError, f"{text}, but got:", detail=differing, fix=fix)


def read_cotangents(cotangents, in_tree: PyTreeDef, in_avals: Sequence[ShapedArray]) -> list:
    """What a bwd rule returned, one derivative for each leaf of the arguments; None stands for zeros.

    Raises: TypeError unless it is a tuple with one entry like each argument; ValueError for a leaf of
        another shape or dtype."""
    if isinstance(cotangents, list):
        cotangents = tuple(cotangents)
    leaves = _match_arguments(cotangents, in_tree) if isinstance(cotangents, tuple) else None
    if leaves is None:
        structure = tree_flatten(cotangents)[1]
        raise build_error(
            TypeError,
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure "
            "as the args tuple of the primal function, and in particular must produce a tuple of length "
            "equal to the number of arguments to the primal function, but got bwd output structure "
            f"{structure} for primal input structure {in_tree}.",
            fix="return a tuple, (ct,) for one argument; None stands for an argument without cotangent.")
    return [_read_cotangent(leaf, aval, place, in_tree)
            for place, (leaf, aval) in enumerate(zip(leaves, in_avals))]


def _match_arguments(tree: tuple, in_tree: PyTreeDef) -> list | None:
    """One entry for each leaf of the arguments; None where the structures do not fit together."""
    marks = in_tree.unflatten([object()] * in_tree.num_leaves)
    leaves, prefix = tree_flatten(tree, is_leaf=lambda x: x is None)
    try:
        subtrees = prefix.flatten_up_to(marks)
    except ValueError:
        return None
    matched = []
    for leaf, subtree in zip(leaves, subtrees):
        inner, structure = tree_flatten(subtree)
        if leaf is not None and structure.num_nodes != 1:
            return None
        matched += [leaf] * len(inner)
    return matched


def _read_cotangent(leaf, aval: ShapedArray, place: int, in_tree: PyTreeDef):
    """A floating leaf of another precision is converted."""
    expected = tangent_aval(aval)
    if leaf is None or expected.dtype == dtypes.float0:
        return Zero(expected)
    given = leaf.aval if isinstance(leaf, SymbolicZero) else aval_of(leaf)
    if not (given.shape == expected.shape and _is_convertible(given.dtype, expected.dtype)):
        path, _ = tree_leaves_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[place]
        raise build_error(
            ValueError,
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the "
            f"primal function, but at output{keystr(path)} the bwd rule produced an output of type "
            f"{given.long()} corresponding to an input of type {aval.long()}",
            fix="a cotangent has the shape and dtype of its argument: sum over broadcast axes, convert.")
    if isinstance(leaf, SymbolicZero):
        return Zero(expected)
    if given.dtype == expected.dtype:
        return leaf
    return registry["convert_element_type"].bind(leaf, new_dtype=expected.dtype, weak_type=False)


def _is_convertible(given, expected) -> bool:
    both_inexact = dtypes.is_inexact(given) and dtypes.is_inexact(expected)
    return given == expected or (both_inexact and dtypes.is_complex(given) <= dtypes.is_complex(expected))
