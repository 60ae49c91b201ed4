"""Implicit differentiation: roots and linear solutions, whatever computes them.

In: a function, an algorithm that solves for its root (or a linear function and an algorithm that inverts it),
and operands. Out: what the algorithm found. Derivatives come from the equation that the result solves, and
never from the algorithm, which may use loops that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, ShapedArray, aval_of, eval_jaxpr
from jitcore.lax.control_flow import control
from jitcore.lax.define import cast
from jitcore.lax.elementwise import neg, sub
from jitcore.transforms.custom_calls import JvpCall, Labels
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.linearize import linearize_flat
from jitcore.transforms.tangents import instantiate, is_zero, zero_like
from jitcore.transforms.transpose import is_linear, transpose_jaxpr
from jitcore.tree_util import PyTreeDef, tree_leaves, treedef_children, treedef_is_leaf, treedef_tuple


class Part(NamedTuple):
    """One of the functions that a call is made of: its jaxpr, and the values for its leading inputs, which
    it closes over."""

    jaxpr: ClosedJaxpr
    consts: list

    def run(self, consts: Sequence, *args) -> list:
        return eval_jaxpr(self.jaxpr.jaxpr, self.jaxpr.consts, [*consts, *args])


def _trace(fun: Callable, name: str, expected: str, operand: tuple[PyTreeDef, list[ShapedArray]],
           count: int = 1, has_aux: bool = False, check_shapes: bool = False) -> tuple[Part, Any]:
    """Traces a function of `count` trees like the operand. Returns: (part, structure of its result).

    Raises: TypeError when the result is not of the operand's structure; ValueError where it lacks the
        auxiliary part, or shapes differ."""
    tree, avals = operand
    traced = control.trace_function(fun, treedef_tuple([tree] * count), avals * count, name)
    found = traced.out_tree
    if has_aux:
        parts = [] if treedef_is_leaf(found) else treedef_children(found)
        if len(parts) != 2:
            raise ValueError(f"{name}() produced a pytree with structure {found}, but a pytree tuple with "
                             "auxiliary output was expected because has_aux was set to True.")
        found = parts[0]
    shapes = [aval.shape for aval in traced.out_avals[: found.num_leaves]]
    if check_shapes and shapes != [aval.shape for aval in avals]:
        raise ValueError(f"{name}() output shapes must match {expected}, got {shapes} and "
                         f"{[aval.shape for aval in avals]}")
    if found != tree:
        raise TypeError(f"{name}() output pytree structure must match {expected}, got {found} and {tree}.")
    return Part(*traced.close()), traced.out_tree


def _trace_widened(fun: Callable, name: str, expected: str, tree: PyTreeDef, leaves: list,
                   **checks: bool) -> tuple[Part, list, tuple]:
    """Traces a function of an operand that takes the 64 bits which it meets there, as a loop's carry does.

    Returns: (part, the leaves, their structure and types)."""
    avals = list(map(aval_of, leaves))
    part, _ = _trace(fun, name, expected, (tree, avals), **checks)
    wide = control.promote_carry(leaves, avals, part.jaxpr.out_avals)
    if wide is None:
        return part, leaves, (tree, avals)
    return _trace_widened(fun, name, expected, tree, wide, **checks)


def _split(values: Sequence, parts: Sequence[Part | None]) -> list[list]:
    """The operands of a call: those of each part, then the rest."""
    found, first = [], 0
    for part in parts:
        count = 0 if part is None else len(part.consts)
        found.append(list(values[first : first + count]))
        first += count
    return [*found, list(values[first:])]


def _join_consts(parts: Sequence[Part | None]) -> list:
    return [const for part in parts if part is not None for const in part.consts]


# -- roots --------------------------------------------------------------------------------------------------
def custom_root(f: Callable, initial_guess: Any, solve: Callable, tangent_solve: Callable,
                has_aux: bool = False) -> Any:
    """A root of `f`, with derivatives by the values that `f` closes over, from the implicit function theorem.

    Args:
        f: a function of one pytree of arrays, that returns one of the same structure.
        initial_guess: where the search begins; there are no derivatives by it.
        solve: `solve(f, initial_guess)` gives the root. It need not be differentiable.
        tangent_solve: `tangent_solve(g, y)` gives x with `g(x) = y`, where g is `f` linearized at the root;
            for scalars, `lambda g, y: y / g(1.0)`.
        has_aux: `solve` returns a pair, of which the second part is handed on.

    Returns: what `solve` returned; `f(root) == 0` is not checked.
    Raises: TypeError when one of the functions returns something of another structure."""
    leaves, tree, _ = control.flatten_operands(initial_guess)
    function, leaves, operand = _trace_widened(f, "f", "initial_guess", tree, leaves)
    avals = operand[1]
    search, out_tree = _trace(lambda guess: solve(f, guess), "solve", "initial_guess", operand,
                              has_aux=has_aux)

    def solve_linearized(x, y):
        _, linear = linearize_flat(lambda *xs: tree_leaves(f(tree.unflatten(xs))), tree_leaves(x),
                                   [True] * len(avals))

        def apply(t):  # which may have the 32 bits of numbers that tangent_solve made
            pairs = zip(tree_leaves(t), avals)
            given = [cast(leaf, aval_of(leaf), aval.dtype, False) for leaf, aval in pairs]
            return tree.unflatten(map(instantiate, linear.apply(given)))

        return tangent_solve(apply, y)

    inverse, _ = _trace(solve_linearized, "tangent_solve", "x", operand, count=2)
    parts = (function, search, inverse)

    def run(*operands):
        _, consts, _, guess = _split(operands, parts)
        return search.run(consts, *guess)

    def jvp(primals, tangents):
        consts, _, inverse_consts, _ = _split(primals, parts)
        d_consts = _split(tangents, parts)[0]
        outs = call.bind(*primals)
        root = outs[: len(avals)]
        _, change = run_jvp(lambda *values: function.run(values, *root), consts, d_consts)
        if all(map(is_zero, change)):
            return outs, list(map(zero_like, outs))
        moved = inverse.run(inverse_consts, *root, *map(instantiate, change))
        return outs, [*map(neg, moved), *map(zero_like, outs[len(avals) :])]

    call = JvpCall(run, jvp, None, DebugInfo("custom_root", "", "custom_root", None), Labels(("root_jvp",)))
    return out_tree.unflatten(call.bind(*_join_consts(parts), *leaves))


# -- linear systems -----------------------------------------------------------------------------------------
class _LinearSystem(NamedTuple):
    """The parts of a linear solution; those of the transposed system may be missing."""

    matvec: Part
    vecmat: Part | None
    solve: Part
    transpose_solve: Part | None

    def transpose(self) -> _LinearSystem:
        if self.vecmat is None or self.transpose_solve is None:
            raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                            "custom_linear_solve")
        return _LinearSystem(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def custom_linear_solve(matvec: Callable, b: Any, solve: Callable, transpose_solve: Callable | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> Any:
    """The solution x of `matvec(x) = b`, with derivatives by b and by the values that `matvec` closes over.

    Args:
        matvec: a linear function of one pytree of arrays.
        b: the right-hand side, a pytree like the argument and the result of `matvec`.
        solve: `solve(matvec, b)` gives x. It need not be differentiable.
        transpose_solve: `transpose_solve(vecmat, ct)` solves with the transpose of `matvec`; needed in
            reverse mode, unless the system is symmetric.
        symmetric: `matvec` is its own transpose; then `solve` serves for both.
        has_aux: the two solvers return pairs, of which the second part is handed on.

    Returns: what `solve` returned; `matvec(x) == b` is not checked.
    Raises: TypeError when one of the functions returns something of another structure, and in reverse mode
        without `transpose_solve`; ValueError for other shapes than those of b."""
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree, _ = control.flatten_operands(b)
    forward, leaves, operand = _trace_widened(matvec, "matvec", "b", tree, leaves, check_shapes=True)
    avals = operand[1]
    solver, out_tree = _trace(lambda b: solve(matvec, b), "solve", "b", operand, has_aux=has_aux,
                              check_shapes=True)
    backward = transpose_solver = None
    if transpose_solve is not None:
        backward = forward if symmetric else _transpose_part(forward, len(avals))

        def vecmat(x):
            return tree.unflatten(backward.run(backward.consts, *tree_leaves(x)))

        transpose_solver, _ = _trace(lambda ct: transpose_solve(matvec if symmetric else vecmat, ct),
                                     "transpose_solve", "b", operand, has_aux=has_aux,
                                     check_shapes=True)
    system = _LinearSystem(forward, backward, solver, transpose_solver)
    return out_tree.unflatten(_solve_system(system, _join_consts(system), leaves))


def _transpose_part(part: Part, count: int) -> Part:
    """The transpose of a function that is linear in its last `count` inputs."""
    flags = [False] * len(part.consts) + [True] * count
    return Part(transpose_jaxpr(part.jaxpr, flags, [True] * count, [True] * count)[0], part.consts)


def _solve_system(system: _LinearSystem, consts: Sequence, b: Sequence) -> list:
    """The solution and auxiliary results. consts: of all parts."""
    count = len(b)

    def run(*operands):
        _, _, solve_consts, _, right = _split(operands, system)
        return system.solve.run(solve_consts, *right)

    def jvp(primals, tangents):
        matvec_consts = _split(primals, system)[0]
        d_consts, _, _, _, right = _split(tangents, system)
        outs = call.bind(*primals)
        _, change = run_jvp(lambda *values: system.matvec.run(values, *outs[:count]), matvec_consts, d_consts)
        right = [t if is_zero(moved) else neg(moved) if is_zero(t) else sub(t, moved)
                 for t, moved in zip(right, change)]
        if all(map(is_zero, right)):
            return outs, list(map(zero_like, outs))
        found = call.bind(*primals[:-count], *map(instantiate, right))
        return outs, [*found[:count], *map(zero_like, outs[count:])]

    def transpose(cotangents, operands):
        transposed = system.transpose()
        values = _split(operands, system)
        swapped = [*values[1], *values[0], *values[3], *values[2]]
        found = _solve_system(transposed, swapped, list(map(instantiate, cotangents[:count])))
        return [None] * len(swapped) + [ct if is_linear(x) else None for ct, x in zip(found, values[4])]

    info = DebugInfo("custom_linear_solve", "", "custom_linear_solve", None)
    call = JvpCall(run, jvp, transpose, info, Labels(("linear_solve_jvp", "linear_solve_transpose")))
    return call.bind(*consts, *b)
