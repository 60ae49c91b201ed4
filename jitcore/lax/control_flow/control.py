"""What `cond`, `while_loop` and `scan` share: tracing functions of pytrees and comparing what they return.

In: a user's function and the avals of its pytree arguments. Out: a `TracedFunction` (jaxpr, values it closes
over, output structure), or the error that names the part of the output that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitcore import dtypes
from jitcore.config import config
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, ShapedArray, aval_of, eval_jaxpr, sub_jaxprs
from jitcore.core.primitive import mark
from jitcore.core.trace import Tracer, close_over_consts, trace_to_jaxpr
from jitcore.errors import arguments
from jitcore.lax.define import cast
from jitcore.transforms.batching import BatchAxis, Flags, batch_jaxpr
from jitcore.tree_util import PyTreeDef, tree_flatten, tree_flatten_with_path
from jitcore.tree_util.nodes import flatten_one_level, keystr


def split_operands(args, first: int, second: int) -> tuple:
    """The operands of a loop in three groups, given the sizes of the first two: (consts, init, xs) of `scan`,
    (cond_consts, body_consts, carry) of `while`."""
    return args[:first], args[first : first + second], args[first + second :]


class TracedFunction(NamedTuple):
    """A function of pytrees as a jaxpr.

    consts: the values of `jaxpr.constvars`, arrays or outer tracers. out_example: the output with avals as
    leaves, for error texts."""

    jaxpr: Jaxpr
    consts: list
    out_tree: PyTreeDef
    out_example: Any

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    def close(self) -> tuple[ClosedJaxpr, list]:
        """The jaxpr with its constvars as leading invars, and the operands to pass for them."""
        return close_over_consts(self.jaxpr, self.consts)


def trace_function(fun: Callable, in_tree: PyTreeDef, in_avals: Sequence[ShapedArray],
                   transform: str) -> TracedFunction:
    """Traces `fun(*args)`, where `in_tree` is the structure of the tuple `args`.

    Raises: TypeError when the function returns something that is not an array."""
    found: dict[str, Any] = {}
    name, location = source.locate_function(fun)

    def run_flat(*leaves):
        outs, found["tree"] = tree_flatten(fun(*in_tree.unflatten(leaves)))
        for out in outs:
            _check_output(out, name, location, transform)
        return outs

    info = DebugInfo(name, location, transform, name_arguments(fun, in_tree))
    jaxpr, consts = trace_to_jaxpr(run_flat, in_avals, info)
    return TracedFunction(jaxpr, consts, found["tree"], found["tree"].unflatten(jaxpr.out_avals))


def _check_output(out, name: str, location: str, transform: str) -> None:
    try:
        aval_of(out)
    except TypeError:
        raise TypeError(f"function {name} at {location} traced for {transform} returned a value of type "
                        f"{type(out)}, which is not a valid jitcore type") from None


def name_arguments(fun: Callable, in_tree: PyTreeDef) -> list[str]:
    """The leaves of a function's arguments as its author would write them: `c`, `x[0]`, `d['a']`."""
    paths = [path for path, _ in tree_flatten_with_path(in_tree.unflatten(range(in_tree.num_leaves)))[0]]
    roots = name_parameters(fun)
    return [root_name(roots, path[0].idx) + keystr(path[1:]) for path in paths]


def name_parameters(fun: Callable) -> tuple[str, ...]:
    code = getattr(fun, "__code__", None)
    if code is None:
        return ()
    names = code.co_varnames[: code.co_argcount]
    return names[1:] if hasattr(fun, "__self__") else names


def root_name(roots: tuple[str, ...], index: int) -> str:
    return roots[index] if index < len(roots) else f"args[{index}]"


# -- operands ---------------------------------------------------------------------------------------------


def flatten_operands(tree) -> tuple[list, PyTreeDef, list[ShapedArray]]:
    """Leaves, structure and avals of an operand. Raises: TypeError for a leaf that is not an array."""
    leaves, treedef = tree_flatten(tree)
    return leaves, treedef, [_operand_aval(leaf) for leaf in leaves]


def _operand_aval(leaf) -> ShapedArray:
    try:
        return aval_of(leaf)
    except TypeError:
        raise TypeError(f"Argument {leaf!r} of type {type(leaf)} is not a valid jitcore type") from None


def is_concrete(*values) -> bool:
    """Whether Python can read these values now."""
    return not any(isinstance(value, Tracer) for value in values)


def runs_in_python(*values) -> bool:
    """Whether control flow on these values is plain Python: `config.disable_jit` on and all concrete."""
    return config.disable_jit and is_concrete(*values)


#: Equations that a loop outside of every trace may run one by one, at 15 us each; a longer one is compiled.
MOST_EAGER_EQUATIONS = 20_000


def may_compile() -> bool:
    """Whether a loop outside of every trace may become a program."""
    return not (config.disable_jit or config.no_tracing)


def count_equations(jaxpr: ClosedJaxpr) -> int:
    """How many equations one run of a jaxpr takes, about: a loop of unknown length counts as one round."""
    return sum(1 + eqn.params.get("length", 1) * sum(map(count_equations, sub_jaxprs(eqn.params)))
               for eqn in jaxpr.jaxpr.eqns)


def check_callable(message: str, *functions) -> None:
    if not all(map(callable, functions)):
        raise TypeError(message)


def as_scalar(name: str, value) -> ShapedArray:
    """The aval of a scalar predicate or index. Raises: TypeError for a value that is no scalar of numbers."""
    try:
        aval = aval_of(value)
    except TypeError:
        raise TypeError(f"{name} must be a scalar, got {value!r} of type {type(value)}") from None
    if aval.shape:
        text = value if is_concrete(value) else f"{aval.long()}"
        raise TypeError(f"{name} must be scalar, got {text} of shape {aval.shape}.")
    return aval


# -- carries ------------------------------------------------------------------------------------------------


def promote_carry(leaves: list, avals: list[ShapedArray], out_avals: Sequence[ShapedArray]) -> list | None:
    """The initial carry, its weakly typed leaves promoted to what the body returns, and the others to 64 bits
    that they met; None if unchanged."""
    if len(avals) != len(out_avals):
        return None
    changed = False
    promoted = list(leaves)
    for i, (leaf, aval, out) in enumerate(zip(leaves, avals, out_avals)):
        widens = dtypes.differ_in_width(aval.dtype, out.dtype)
        if (aval.weak_type or widens) and aval.dtype != out.dtype:
            dtype, _ = dtypes.join_types((aval.dtype, aval.weak_type), (out.dtype, out.weak_type))
            if dtype != aval.dtype:
                promoted[i] = cast(leaf, aval, dtype, False)
                changed = True
    return promoted if changed else None


def mark_carry(leaves: list, avals: list[ShapedArray], out_avals: Sequence[ShapedArray]) -> list | None:
    """The initial carry, marked where what the body returns varies along more axes of a mesh; None if
    unchanged."""
    is_more = any(out.varying - aval.varying for aval, out in zip(avals, out_avals))
    if not is_more or len(avals) != len(out_avals):
        return None
    return [mark(leaf, out.varying) for leaf, out in zip(leaves, out_avals)]


def widen_outputs(traced: TracedFunction, wanted: Sequence[ShapedArray]) -> TracedFunction:
    """The function, whose outputs take the wider dtypes of the same kind that are wanted of the first of
    them, where they are weakly typed, as a Python float of 32 bits beside float64, or differ in width
    alone."""
    pairs = list(zip(traced.out_avals, wanted))
    if not any(_widens(aval, aim) for aval, aim in pairs):
        return traced
    count = len(traced.consts)

    def run(*operands):
        outs = eval_jaxpr(traced.jaxpr, operands[:count], operands[count:])
        wide = [cast(out, aval, aim.dtype, aval.weak_type) if _widens(aval, aim) else out
                for out, (aval, aim) in zip(outs, pairs)]
        return [*wide, *outs[len(pairs) :]]

    avals = [var.aval for var in (*traced.jaxpr.constvars, *traced.jaxpr.invars)]
    jaxpr, _ = trace_to_jaxpr(run, avals, traced.jaxpr.debug_info)
    jaxpr = jaxpr.replace(constvars=jaxpr.invars[:count], invars=jaxpr.invars[count:])
    return traced._replace(jaxpr=jaxpr, out_example=traced.out_tree.unflatten(jaxpr.out_avals))


def _widens(aval: ShapedArray, wanted: ShapedArray) -> bool:
    if aval.dtype == wanted.dtype or not (
            aval.weak_type or dtypes.differ_in_width(aval.dtype, wanted.dtype)):
        return False
    is_same_kind = dtypes.kind_of(aval.dtype) == dtypes.kind_of(wanted.dtype)
    return is_same_kind and dtypes.promote_types(aval.dtype, wanted.dtype) == wanted.dtype


def check_carry(loop: str, fun: Callable, parameter: int, in_tree: PyTreeDef, in_avals, out_example) -> None:
    """Raises: TypeError naming the component of the carry whose structure, shape or dtype the body changes.

    Args:
        parameter: which parameter of `fun` is the carry.
        out_example: the carry that the body returned, with avals as leaves."""
    out_leaves, out_tree = tree_flatten(out_example)
    example = in_tree.unflatten(in_avals)
    root = root_name(name_parameters(fun), parameter)
    if out_tree != in_tree:
        path, difference = find_structure_difference(example, out_example)
        part = f"component {root}{path}" if path else root
        names = (part, "the corresponding component of the carry output")
        raise arguments.carry_structure_error(loop, "The input carry " + difference.format(*names))
    for (path, aval), out in zip(tree_flatten_with_path(example)[0], out_leaves):
        if (aval.shape, aval.dtype) != (out.shape, out.dtype):
            component = f"carry component {root}{keystr(path)}" if path else f"carry {root}"
            raise arguments.carry_types_error(
                loop, component, (aval.long(), out.long()), describe_type_difference(aval, out))


def describe_type_difference(a: ShapedArray, b: ShapedArray) -> str:
    if a.dtype == b.dtype:
        return "the shapes do not match"
    return "the dtypes do not match" if a.shape == b.shape else "the shapes and dtypes do not match"


def find_structure_difference(first, second, path: str = "") -> tuple[str, str]:
    """Where two trees of avals first differ: (path, sentence with two blanks for the names of the trees)."""
    one, other = flatten_one_level(first), flatten_one_level(second)
    if one is None or other is None or type(first) is not type(second):
        kinds = _name_node(first), _name_node(second)
        return path, f"{{}} is {kinds[0]} but {{}} is {kinds[1]}, so their Python types differ."
    if len(one[0]) != len(other[0]):
        name = type(first).__name__
        return path, (f"{{}} is a {name} of length {len(one[0])} but {{}} is a {name} of length "
                      f"{len(other[0])}, so the lengths do not match.")
    for (key, child), (other_key, other_child) in zip(one[0], other[0]):
        if str(key) != str(other_key):
            return path, (f"{{}} is a {type(first).__name__} with the key {key} where {{}} has {other_key}, "
                          "so the pytree node metadata does not match.")
        if tree_flatten(child)[1] != tree_flatten(other_child)[1]:
            return find_structure_difference(child, other_child, path + keystr((key,)))
    return path, "{} and {} differ in pytree node metadata."


def _name_node(tree) -> str:
    return "a pytree leaf" if flatten_one_level(tree) is None and tree is not None else f"a {type(tree)}"


# -- rules that the three primitives share ----------------------------------------------------------------


def effects_of_jaxprs(**params) -> frozenset:
    """A control-flow equation has the effects of the jaxprs it may run."""
    return frozenset().union(*(inner.effects for inner in sub_jaxprs(params)))


def batch_loop_body(body: ClosedJaxpr, axis: BatchAxis, consts: Flags, carry: Flags,
                    xs: Flags = ()) -> tuple[ClosedJaxpr, list[bool], list[bool]]:
    """The body of a loop for all elements of a batch. A carry that the body makes different for each element
    is so from the start.

    Args:
        body: inputs are constants, carry, elements; outputs carry and others.
        consts, carry, xs: which inputs have a batch axis before the first iteration.

    Returns: (jaxpr, which carries have a batch axis, which other outputs have one)."""
    count, carry = len(carry), list(carry)
    rest = [False] * (len(body.out_avals) - count)
    while True:
        jaxpr, outs = batch_jaxpr(body, axis, [*consts, *carry, *xs], [*carry, *rest])
        if outs[:count] == carry:
            return jaxpr, carry, outs[count:]
        carry = outs[:count]
