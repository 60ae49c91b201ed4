"""`custom_jvp`, `custom_vjp` and their company: functions of pytrees with derivative rules of their own.

In: a function and rules, both of pytrees. Out: a function that makes a `CustomCall` of each of its calls; how
traces handle those is written in `custom_calls.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from jitcore import errors
from jitcore.core import source
from jitcore.core.jaxpr import DebugInfo, Jaxpr, aval_of, eval_jaxpr
from jitcore.core.trace import Tracer, trace_to_jaxpr
from jitcore.process.pickling import find_global_name
from jitcore.transforms.batching import BatchTracer
from jitcore.transforms.custom_calls import JvpCall, Labels, VjpCall
from jitcore.transforms.custom_rule_checks import (Output, Rule, SymbolicZero, check_pair,
                                                   check_primal_output, flatten_output, read_cotangents,
                                                   read_tangents)
from jitcore.transforms.tangents import Zero, add_derivatives, has_tangent, instantiate, is_zero, tangent_aval
from jitcore.tree_util import (PyTreeDef, register_pytree_node_class, tree_flatten, tree_leaves, tree_map,
                               treedef_is_leaf)

R = TypeVar("R")


# -- arguments ----------------------------------------------------------------------------------------------
def _read_positions(fun: Callable, numbers: int | Sequence[int],
                    names: str | Sequence[str]) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated."""
    found = {numbers} if isinstance(numbers, int) else set(numbers)
    if names:
        parameters = list(source.inspect_signature(fun).parameters)
        found |= {parameters.index(name) for name in ([names] if isinstance(names, str) else names)}
    return tuple(sorted(found))


def _read_signature(fun: Callable) -> inspect.Signature:
    """The signature of a function; any number of arguments where Python cannot tell."""
    unknown = inspect.signature(lambda *args, **kwargs: None)
    try:
        return unknown if isinstance(fun, functools.partial) else source.inspect_signature(fun)
    except ValueError:  # a builtin may have none
        return unknown


class _Arguments:
    """The arguments of one call, apart by whether they are differentiated.

    Traced values among those that are not travel as leading operands, `hidden`, so that rules may read them
    in whichever trace they run."""

    def __init__(self, args: tuple, nondiff: Sequence[int]):
        self.count, self.nondiff = len(args), [n % len(args) for n in nondiff] if args else []
        fixed, self.fixed_tree = tree_flatten([args[n] for n in self.nondiff])
        self.hidden_places = [place for place, leaf in enumerate(fixed) if isinstance(leaf, Tracer)]
        self.fixed = [None if isinstance(leaf, Tracer) else leaf for leaf in fixed]
        leaves, self.in_tree = tree_flatten(tuple(x for n, x in enumerate(args) if n not in self.nondiff))
        self.avals = list(map(aval_of, leaves))
        self._operands = [*(fixed[place] for place in self.hidden_places), *leaves]

    @property
    def num_hidden(self) -> int:
        return len(self.hidden_places)

    def take_operands(self) -> list:
        """The operands of the call. They are handed over: rules outlive the traces of their values."""
        operands, self._operands = self._operands, []
        return operands

    def read_fixed(self, operands: Sequence) -> list:
        """The arguments that are not differentiated."""
        fixed = list(self.fixed)
        for place, value in zip(self.hidden_places, operands):
            fixed[place] = value
        return self.fixed_tree.unflatten(fixed)

    def read_all(self, operands: Sequence) -> list:
        """All arguments in their order."""
        fixed = iter(self.read_fixed(operands))
        given = iter(self.in_tree.unflatten(operands[self.num_hidden :]))
        return [next(fixed) if n in self.nondiff else next(given) for n in range(self.count)]


class _CallState:
    """What the parts of one call tell each other. structure: of the result, once function or rule have run;
    output: of the function itself, once it has run."""

    def __init__(self):
        self.structure: Any = None
        self.output: Output | None = None

    def flatten(self, out) -> list:
        """The leaves of what the function returned."""
        leaves, self.output = flatten_output(out)
        self.structure = self.output.tree
        return leaves


class _CustomFunction(Generic[R]):
    """What the two decorators share: the function, and how its arguments are read."""

    def __init__(self, fun: Callable[..., R], nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _read_positions(fun, nondiff_argnums, nondiff_argnames)
        self.symbolic_zeros = False
        self._signature = _read_signature(fun)

    def __reduce_ex__(self, protocol):
        return find_global_name(self) or super().__reduce_ex__(protocol)

    def _read_arguments(self, args: tuple, kwargs: dict) -> _Arguments:
        """Raises: TypeError for keyword arguments that have no position, or a call that does not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            unresolved = [name for name in bound.kwargs if name in kwargs]
            if unresolved:
                raise TypeError("The following keyword arguments could not be resolved to positions: "
                                f"{', '.join(unresolved)}")
        except TypeError as error:
            raise TypeError(
                f"The input arguments to the {type(self).__name__}-decorated function "
                f"{source.locate_function(self.fun)[0]} could not be resolved to positional-only arguments. "
                f"Binding failed with the error:\n{error}") from None
        return _Arguments(bound.args, self.nondiff_argnums)

    def _describe(self) -> DebugInfo:
        return DebugInfo(*source.locate_function(self.fun), type(self).__name__, None)


# -- custom_jvp ---------------------------------------------------------------------------------------------
class custom_jvp(_CustomFunction[R]):  # noqa: N801  JAX's name
    """A function whose jvp is given by a rule; its vjp follows by transposition of the tangents.

    Same as (as long as nothing is differentiated):
        fun(*args)

    Args:
        fun: a function of pytrees of arrays. Keyword arguments are resolved to positions.
        nondiff_argnums, nondiff_argnames: arguments that are not differentiated and may be no arrays; the
            rule gets them first, one by one.

    Example:
        @custom_jvp
        def f(x, y):
            return jnp.sin(x) * y

        @f.defjvp
        def f_jvp(primals, tangents):
            (x, y), (dx, dy) = primals, tangents
            return f(x, y), jnp.cos(x) * dx * y + jnp.sin(x) * dy"""

    def __init__(self, fun: Callable[..., R], nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self._rule_sees_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the rule; works as a decorator.

        Args:
            jvp: `jvp(*nondiff_args, primals, tangents) -> (primal_out, tangent_out)`, the tuples of all
                other arguments and of their tangents. tangent_out has the structure, shapes and dtypes of
                primal_out, and depends on the tangents linearly.
            symbolic_zeros: pass tangents known to be zero as `SymbolicZero`s; the rule may return such."""
        self.jvp, self.symbolic_zeros, self._rule_sees_zeros = jvp, symbolic_zeros, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Sets one rule for each argument: `jvps[i](tangent, primal_out, *primals) -> tangent_out`; None
        where it is zero. The results are added up.

        Raises: TypeError when some arguments are not differentiated."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals, tangents):
            out = self(*primals)
            terms = [rule(tree_map(_instantiate_leaf, t), out, *primals)
                     for rule, t in zip(jvps, tangents)
                     if rule is not None and not _is_zero_tree(t)]
            if not terms:
                return out, tree_map(SymbolicZero.from_primal_value, out)
            return out, functools.reduce(functools.partial(tree_map, add_derivatives), terms)

        self.defjvp(jvp)
        self._rule_sees_zeros = True

    @source.api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.jvp is None:
            name = source.locate_function(self.fun)[0]
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        arguments = self._read_arguments(args, kwargs)
        state = _CallState()
        info = self._describe()
        rule_name = source.locate_function(self.jvp)[0]
        call = JvpCall(lambda *operands: state.flatten(self.fun(*arguments.read_all(operands))),
                       self._make_rule(arguments, state, Rule("JVP", rule_name, info.fun_name)), None, info,
                       Labels((rule_name,), self.symbolic_zeros))
        outs = call.bind(*arguments.take_operands())
        return state.structure.unflatten(outs)

    def _make_rule(self, arguments: _Arguments, state: _CallState, rule: Rule) -> Callable:
        """The rule on leaves. The hidden operands' tangents are left out: by them there is no derivative."""
        jvp, read = self.jvp, _show_zero if self._rule_sees_zeros else instantiate

        def run(primals, tangents):
            unflatten, first = arguments.in_tree.unflatten, arguments.num_hidden
            pair = jvp(*arguments.read_fixed(primals), unflatten(primals[first:]),
                       unflatten(map(read, tangents[first:])))
            out, tangent = check_pair(rule, pair, "representing primal and tangent outputs")
            leaves, found = flatten_output(out)
            check_primal_output(rule, found, state.output)
            state.structure = found.tree
            return leaves, read_tangents(rule, tangent, found)

        return run


def _show_zero(derivative):
    return SymbolicZero(derivative.aval) if is_zero(derivative) else derivative


def _instantiate_leaf(derivative):
    return instantiate(Zero(derivative.aval)) if isinstance(derivative, SymbolicZero) else derivative


def _is_zero_tree(tree) -> bool:
    return all(isinstance(leaf, SymbolicZero) for leaf in tree_leaves(tree))


# -- custom_vjp ---------------------------------------------------------------------------------------------
class CustomVJPPrimal:
    """An argument of a fwd rule with `symbolic_zeros=True`: its value, and whether it is differentiated."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value, perturbed: bool):
        self.value, self.perturbed = value, perturbed


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a pytree of `CustomVJPPrimal`s. Raises: TypeError for another leaf."""

    def read(leaf):
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf type {type(leaf)}")
        return leaf.value

    return tree_map(read, tree)


class custom_vjp(_CustomFunction[R]):  # noqa: N801  JAX's name
    """A function whose vjp is given by two rules. It has no jvp.

    Args:
        fun, nondiff_argnums, nondiff_argnames: as for `custom_jvp`; arguments that are not differentiated
            must not be traced.

    Example:
        @custom_vjp
        def f(x, y):
            return jnp.sin(x) * y

        def f_fwd(x, y):
            return f(x, y), (jnp.cos(x), jnp.sin(x), y)

        def f_bwd(residuals, ct):
            cos_x, sin_x, y = residuals
            return cos_x * ct * y, sin_x * ct

        f.defvjp(f_fwd, f_bwd)"""

    def __init__(self, fun: Callable[..., R], nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        """Sets the rules.

        Args:
            fwd: `fwd(*args) -> (out, residuals)`; residuals is any pytree of arrays, for `bwd`.
            bwd: `bwd(*nondiff_args, residuals, cotangent) -> tuple` with a cotangent of each argument that is
                differentiated, of its structure, shapes and dtypes; None stands for zeros.
            symbolic_zeros: `fwd` gets `CustomVJPPrimal`s in place of arrays, `bwd` gets `SymbolicZero`s where
                cotangents are known to be zero.
            optimize_remat: accepted; a recomputed `fwd` never computes residuals that nothing reads."""
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @source.api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.fwd is None or self.bwd is None:
            name = source.locate_function(self.fun)[0]
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        arguments = self._read_arguments(args, kwargs)
        if arguments.num_hidden:
            raise _traced_nondiff_error()
        state = _CallState()
        info = self._describe()
        names = source.locate_function(self.fwd)[0], source.locate_function(self.bwd)[0]
        call = VjpCall(lambda *operands: state.flatten(self.fun(*arguments.read_all(operands))),
                       self._make_fwd(arguments, state, Rule("VJP fwd", names[0], info.fun_name)), info,
                       Labels(names, self.symbolic_zeros))
        outs = call.bind(*arguments.take_operands())
        return state.structure.unflatten(outs)

    def _make_fwd(self, arguments: _Arguments, state: _CallState, rule: Rule) -> Callable:
        fwd, symbolic = self.fwd, self.symbolic_zeros

        def run(primals, perturbed):
            given = list(map(CustomVJPPrimal, primals, perturbed)) if symbolic else primals
            pair = fwd(*arguments.read_all(given))
            out, residuals = check_pair(
                rule, pair, "where the first element represents the primal output (equal to those of the "
                f"custom_vjp-decorated function {rule.function}) and the second element represents residuals "
                "(i.e. values stored from the forward pass for use on the backward pass)")
            leaves, found = flatten_output(out)
            check_primal_output(rule, found, state.output)
            state.structure = found.tree
            res_leaves, res_tree = tree_flatten(residuals)
            return leaves, res_leaves, self._make_bwd(arguments, found.tree, res_tree)

        return run

    def _make_bwd(self, arguments: _Arguments, out_tree: PyTreeDef, res_tree: PyTreeDef) -> Callable:
        bwd = self.bwd
        read = _show_zero if self.symbolic_zeros else instantiate

        def run(residuals, cotangents):
            found = bwd(*arguments.read_fixed(()), res_tree.unflatten(residuals),
                        out_tree.unflatten(map(read, cotangents)))
            return read_cotangents(found, arguments.in_tree, arguments.avals)

        return run


def _traced_nondiff_error() -> Exception:
    return errors.UnexpectedTracerError(
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position indicated by "
        "nondiff_argnums as non-differentiable.\n"
        "Such arguments are fixed when the rules are made, so that they cannot be or contain traced arrays.\n"
        "To fix: pass arrays as ordinary arguments, and return None for them from the bwd rule.")


# -- built on custom_vjp ------------------------------------------------------------------------------------
@register_pytree_node_class
class _PullBack:
    """A traced function of cotangents: its jaxpr, and as children the values that it closes over."""

    def __init__(self, jaxpr: Jaxpr, trees: tuple[PyTreeDef, PyTreeDef], consts: Sequence):
        self.jaxpr, self.trees, self.consts = jaxpr, trees, consts

    def tree_flatten(self):
        return tuple(self.consts), (self.jaxpr, self.trees)

    @classmethod
    def tree_unflatten(cls, static, consts):
        return cls(*static, consts)

    @classmethod
    def trace(cls, rule: Callable, out) -> _PullBack:
        """Of `rule(cotangent)`, for a cotangent like `out`."""
        leaves, out_tree = tree_flatten(out)
        in_tree: Any = None

        def run(*cotangents):
            nonlocal in_tree
            found, in_tree = tree_flatten(rule(out_tree.unflatten(cotangents)))
            return found

        info = DebugInfo(*source.locate_function(rule), "custom_gradient", None)
        jaxpr, consts = trace_to_jaxpr(run, [tangent_aval(aval_of(leaf)) for leaf in leaves], info)
        return cls(jaxpr, (out_tree, in_tree), consts)

    def __call__(self, cotangent):
        out_tree, in_tree = self.trees
        leaves, structure = tree_flatten(cotangent)
        if structure != out_tree:
            raise TypeError(f"{out_tree}\n!=\n{structure}")
        found = in_tree.unflatten(eval_jaxpr(self.jaxpr, self.consts, leaves))
        return (found,) if treedef_is_leaf(in_tree) else found


def custom_gradient(fun: Callable) -> Callable:
    """A function that comes with its vjp, in one definition.

    Args:
        fun: `fun(*args) -> (out, rule)`, where `rule(cotangent)` gives the cotangents of the arguments: a
            tuple with one for each, or the cotangent itself of a single argument.

    Returns: a function of the same arguments with the value `out`."""

    @functools.wraps(fun)
    def run(*args, **kwargs):
        return fun(*args, **kwargs)[0]

    def fwd(*args, **kwargs):
        out, rule = fun(*args, **kwargs)
        return out, _PullBack.trace(rule, out)

    wrapped = custom_vjp(run)
    wrapped.defvjp(fwd, lambda pull_back, cotangent: pull_back(cotangent))
    return wrapped


# -- closures -----------------------------------------------------------------------------------------------
@source.api_boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """A function without its hidden arguments: `(converted, consts)` with
    `fun(*args) == converted(*args, *consts)`.

    consts are the values of enclosing functions that `fun` closes over and that may be differentiated; custom
    rules need such values as arguments. `fun` is traced once, for arguments like the example ones.

    Args:
        fun: a function of pytrees of arrays. example_args: of the structure, shapes and dtypes of its later
            arguments.
    Raises: the converted function raises TypeError for arguments of another structure."""
    leaves, in_tree = tree_flatten(example_args)
    out_tree: Any = None

    def run(*values):
        nonlocal out_tree
        outs, out_tree = tree_flatten(fun(*in_tree.unflatten(values)))
        return outs

    info = DebugInfo(*source.locate_function(fun), "closure_convert", None)
    jaxpr, consts = trace_to_jaxpr(run, list(map(aval_of, leaves)), info)
    is_hoisted = list(map(_may_have_tangent, consts))
    hoisted = [const for const, flag in zip(consts, is_hoisted) if flag]

    def converted(*args_and_consts):
        count = len(args_and_consts) - len(hoisted)
        args, structure = tree_flatten(tuple(args_and_consts[:count]))
        if structure != in_tree:
            raise TypeError("The inputs to the closure produced by closure_convert must have the same Pytree "
                            "structure as the example arguments passed when closure_convert was called. "
                            f"Expected {in_tree}, but got {structure}")
        given = iter(args_and_consts[count:])
        values = [next(given) if flag else const for const, flag in zip(consts, is_hoisted)]
        return out_tree.unflatten(eval_jaxpr(jaxpr, values, args))

    return converted, hoisted


def _may_have_tangent(value) -> bool:
    """Whether a value can depend on something that is differentiated now, or later when it is traced."""
    if isinstance(value, BatchTracer):
        return _may_have_tangent(value.value)
    return isinstance(value, Tracer) and has_tangent(value)
