"""The errors of `grad` and its company: what they were given, what functions gave back, missing rules.

In: facts as plain strings and numbers. Out: an exception instance for the caller to raise, laid out by the
eight-line rule of `errors`, which is the only import. The first line is JAX's where JAX has the same error.
`name` is the public function that was called: "grad", "jacfwd".
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.errors import Lines, build_error

# --- arguments ----------------------------------------------------------------------------------------------


def argnums_count_error(argnums: object, needed: int, given: int) -> Exception:
    """`grad(f, argnums=1)` was called with one argument."""
    return build_error(
        TypeError,
        f"differentiating with respect to {argnums=} requires at least {needed} positional arguments to be "
        f"passed by the caller, but got only {given} positional arguments.",
        fix="pass the argument by position, not by keyword, or change argnums; positions count from 0.",
    )


def argnums_bounds_error(argnum: int, given: int) -> Exception:
    """A position, or a negative one, that the call does not have."""
    return build_error(
        ValueError,
        "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to "
        f"-len(args) and less than len(args), but got value {argnum} for len(args) == {given}.",
        fix="count from 0, or from -1 backwards, in argnums.",
    )


def argument_not_array_error(value_text: str, type_text: str) -> Exception:
    """An argument to differentiate is no array. type_text: the repr of its class."""
    return build_error(
        TypeError,
        f"Argument {value_text} of type {type_text} is not a valid jitcore type.",
        fix="differentiate with respect to numbers and arrays only; argnums says with respect to which "
        "arguments, and the others may be anything.",
    )


def input_dtype_error(name: str, dtype: str, *, holomorphic: bool = False) -> Exception:
    """Reverse mode by an argument of integers, or a holomorphic derivative by real numbers."""
    if holomorphic:
        return build_error(
            TypeError,
            f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype}.",
            fix="convert the argument with x.astype(complex), or drop holomorphic=True.",
        )
    return build_error(
        TypeError,
        f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), "
        f"but got {dtype}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to "
        "True.",
        fix="pass a float (3.0 for 3, x.astype(float) for x), or choose other arguments with argnums.",
    )


def forward_input_dtype_error(name: str, dtype: str) -> Exception:
    """A forward-mode Jacobian by an argument that is not real."""
    return build_error(
        TypeError,
        f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
        f"{dtype}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
        "non-holomorphic functions involving complex inputs or integer inputs, use jitcore.jvp directly.",
        fix="pass a float (3.0 for 3, x.astype(float) for x), or choose other arguments with argnums.",
    )


# --- results ------------------------------------------------------------------------------------------------


def aux_pair_error(value_text: str, type_text: str) -> Exception:
    """A function with `has_aux=True` returned no pair."""
    return build_error(
        TypeError,
        "expected function with aux output to return a two-element tuple, but got type "
        f"{type_text} with value {value_text}",
        fix="return (value, aux), or drop has_aux=True.",
    )


def scalar_output_error(shape: Sequence[object] | None, text: str = "") -> Exception:
    """`grad` of a function whose result is no scalar. shape: of an array; text: of anything else."""
    found = f"was {text}" if shape is None else f"had shape: {tuple(shape)}"
    fix = "return one number; has_aux=True allows a second, undifferentiated result; jacrev takes any result."
    if shape is not None:
        fix = "reduce the result, e.g. with .sum(); vmap(grad(f)) differentiates row by row, jacrev(f) all."
    return build_error(TypeError, f"Gradient only defined for scalar-output functions. Output {found}.",
                       fix=fix)


def output_dtype_error(name: str, dtype: str, *, holomorphic: bool, is_complex: bool) -> Exception:
    """A result of the wrong kind: complex without `holomorphic`, real with it, or of integers."""
    if holomorphic:
        return build_error(
            TypeError,
            f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype}.",
            fix="drop holomorphic=True: the function is not holomorphic.",
        )
    further = "For differentiation of functions with integer outputs, use jitcore.vjp directly."
    fix = "return a float: comparisons, argmax and casts to integers have no slope."
    if is_complex:
        further = (
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
            "functions involving complex outputs, use jitcore.vjp directly."
        )
        fix = "return a real number, such as abs(z) or z.real."
    return build_error(
        TypeError,
        f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
        f"{dtype}. {further}",
        fix=fix,
    )


# --- tangents and cotangents --------------------------------------------------------------------------------


def jvp_containers_error(primals: str, tangents: str) -> Exception:
    """primals, tangents: names of the types that were given."""
    return build_error(
        TypeError,
        "primal and tangent arguments to jitcore.jvp must be tuples or lists; "
        f"found {primals} and {tangents}.",
        fix="write jvp(f, (x,), (t,)): one entry for each argument of f.",
    )


def jvp_structure_error(primals: str, tangents: str) -> Exception:
    """primals, tangents: the treedefs as text."""
    return build_error(
        TypeError,
        "primal and tangent arguments to jitcore.jvp must have the same tree structure; primals have tree "
        f"structure {primals} whereas tangents have tree structure {tangents}.",
        fix="give one tangent for each array of the primals, in the same containers.",
    )


def jvp_dtypes_error(primal: str, expected: str, given: str) -> Exception:
    """primal, expected, given: dtypes as text."""
    return build_error(
        TypeError,
        "primal and tangent arguments to jitcore.jvp do not match; dtypes must be equal, or in case of "
        "int/bool primal dtype the tangent dtype must be float0."
        f"Got primal dtype {primal} and so expected tangent dtype {expected}, but got tangent dtype {given} "
        "instead.",
        fix="np.zeros(x.shape, jitcore.dtypes.float0) is the tangent of integers and bools."
        if expected == "float0"
        else f"convert the tangent with t.astype({expected!r}).",
    )


def jvp_shapes_error(primal: tuple, tangent: tuple) -> Exception:
    return build_error(
        ValueError,
        "jvp called with different primal and tangent shapes;"
        f"Got primal shape {primal} and tangent shape as {tangent}",
        fix="a tangent has the shape of its primal.",
    )


def linearized_structure_error(expected: str, given: str) -> Exception:
    """The function that `linearize` returned got other containers. expected, given: treedefs as text."""
    return build_error(
        TypeError,
        f"expected {expected}, got {given}",
        fix="call it with one tangent for each argument of the linearized function, in the same containers.",
    )


def linearized_type_error(primal: str, expected: str, given: str) -> Exception:
    """primal, expected, given: avals as text."""
    return build_error(
        ValueError,
        "linearized function called on tangent values inconsistent with the original primal values:",
        detail=f"Got tangent aval {given} for primal aval {primal} but expected {expected}.",
        fix="a tangent has the shape and dtype of its primal.",
    )


def vjp_count_error(function: str, given: int) -> Exception:
    """The function that `vjp` returned got several arguments. function: the name of the original one."""
    return build_error(
        TypeError,
        f"The function returned by `jitcore.vjp` applied to {function} was called with {given} arguments,",
        detail="but functions returned by `jitcore.vjp` must be called with a single argument corresponding "
        "to the single value returned by the function being differentiated (even if that returned value is "
        "a tuple or other container).",
        fix="pass one tuple: f_vjp((ct0, ct1)) for a function that returns (y0, y1).",
    )


def vjp_structure_error(function: str, difference: str) -> Exception:
    """function: "f at file:line"; difference: where the containers differ, in words."""
    return build_error(
        ValueError,
        "unexpected tree structure.",
        detail="The argument to a VJP function returned by `jitcore.vjp` must match the pytree structure of "
        f"the differentiated function {function}. But the tree structures differ: {difference}",
        fix="give one cotangent for each array that the function returned, in the same containers.",
    )


def vjp_type_error(output: str, expected: str, given: str) -> Exception:
    """output, expected, given: avals as text."""
    return build_error(
        ValueError,
        f"unexpected jitcore type (e.g. shape/dtype) for argument to VJP function: got {given}, but "
        f"expected {expected} because the corresponding output of the differentiated function had jitcore "
        f"type {output}",
        fix="a cotangent has the shape and dtype of the output; np.ones_like(output) sums its elements.",
    )


# --- linear functions ---------------------------------------------------------------------------------------


def linear_dtypes_error(inputs: str, outputs: str) -> Exception:
    """inputs, outputs: lists of dtypes as text."""
    return build_error(
        TypeError,
        "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer "
        f"functions, but got {inputs} -> {outputs}.",
        fix="describe the arguments by values or ShapeDtypeStructs of the dtypes that the function maps.",
    )


def linear_cotangent_error(what: str, expected: str, given: str) -> Exception:
    """what: "tree" or "type"; expected, given: as text."""
    return build_error(
        TypeError,
        f"cotangent {what} does not match function output, expected {expected} but got {given}",
        fix="the argument of the transposed function is like the result of the function.",
    )


# --- rules --------------------------------------------------------------------------------------------------


def missing_jvp_error(primitive: str, where: Lines = ()) -> Exception:
    """A primitive without a rule of differentiation got an operand that has a tangent."""
    return build_error(
        NotImplementedError,
        f"Differentiation rule for '{primitive}' not implemented",
        where=where,
        fix="give the function around it a rule with jitcore.custom_jvp or custom_vjp, or keep it out of the "
        "derivative with lax.stop_gradient.",
    )


def missing_transpose_error(primitive: str, where: Lines = ()) -> Exception:
    """A primitive cannot be transposed: it is not linear, or has no rule."""
    return build_error(
        NotImplementedError,
        f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not implemented",
        where=where,
        fix="only linear functions have a transpose; give the function around it a rule with "
        "jitcore.custom_vjp, or use forward mode: jvp, jacfwd.",
    )
