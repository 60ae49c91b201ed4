"""The errors of `grad` and its company: what they were given, what functions gave back, missing rules.

In: facts as plain strings and numbers. Out: an exception instance for the caller to raise, laid out by the
eight-line rule of `errors`, which is the only import. The first line is JAX's where JAX has the same error.
`name` is the public function that was called: "grad", "jacfwd".
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore.errors import Template, build_error

# --- arguments ----------------------------------------------------------------------------------------------


#: `grad(f, argnums=1)` was called with one argument.
argnums_count_error = Template(
    TypeError, "differentiating with respect to argnums={0!r} requires at least {1} positional arguments to "
    "be passed by the caller, but got only {2} positional arguments.",
    "pass the argument by position, not by keyword, or change argnums; positions count from 0.")
#: A position, or a negative one, that the call does not have.
argnums_bounds_error = Template(
    ValueError, "Positional argument indices, e.g. for `static_argnums`, must have value greater than or "
    "equal to -len(args) and less than len(args), but got value {0} for len(args) == {1}.",
    "count from 0, or from -1 backwards, in argnums.")
#: An argument to differentiate is no array. type_text: the repr of its class.
argument_not_array_error = Template(
    TypeError, "Argument {0} of type {1} is not a valid jitcore type.",
    "differentiate with respect to numbers and arrays only; argnums says with respect to which arguments, "
    "and the others may be anything.")


def input_dtype_error(name: str, dtype: str, *, holomorphic: bool = False) -> Exception:
    """Reverse mode by an argument of integers, or a holomorphic derivative by real numbers."""
    if holomorphic:
        return build_error(
            TypeError, f"{name} with holomorphic=True requires inputs with complex dtype, but got {dtype}.",
            fix="convert the argument with x.astype(complex), or drop holomorphic=True.")
    return build_error(
        TypeError,
        f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), "
        f"but got {dtype}. If you want to use Boolean- or integer-valued inputs, use vjp or set allow_int to "
        "True.",
        fix="pass a float (3.0 for 3, x.astype(float) for x), or choose other arguments with argnums.")


#: A forward-mode Jacobian by an argument that is not real.
forward_input_dtype_error = Template(
    TypeError, "{0} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
    "{1}. For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
    "functions involving complex inputs or integer inputs, use jitcore.jvp directly.",
    "pass a float (3.0 for 3, x.astype(float) for x), or choose other arguments with argnums.")


# --- results ------------------------------------------------------------------------------------------------


#: A function with `has_aux=True` returned no pair.
aux_pair_error = Template(
    TypeError, "expected function with aux output to return a two-element tuple, but got type {1} with "
    "value {0}", "return (value, aux), or drop has_aux=True.")


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
            TypeError, f"{name} with holomorphic=True requires outputs with complex dtype, but got {dtype}.",
            fix="drop holomorphic=True: the function is not holomorphic.")
    further = "For differentiation of functions with integer outputs, use jitcore.vjp directly."
    fix = "return a float: comparisons, argmax and casts to integers have no slope."
    if is_complex:
        further = (
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
            "functions involving complex outputs, use jitcore.vjp directly.")
        fix = "return a real number, such as abs(z) or z.real."
    return build_error(
        TypeError,
        f"{name} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got "
        f"{dtype}. {further}",
        fix=fix)


# --- tangents and cotangents --------------------------------------------------------------------------------


#: primals, tangents: names of the types that were given.
jvp_containers_error = Template(
    TypeError, "primal and tangent arguments to jitcore.jvp must be tuples or lists; found {0} and {1}.",
    "write jvp(f, (x,), (t,)): one entry for each argument of f.")
#: primals, tangents: the treedefs as text.
jvp_structure_error = Template(
    TypeError, "primal and tangent arguments to jitcore.jvp must have the same tree structure; primals have "
    "tree structure {0} whereas tangents have tree structure {1}.",
    "give one tangent for each array of the primals, in the same containers.")


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
        else f"convert the tangent with t.astype({expected!r}).")


jvp_shapes_error = Template(
    ValueError, "jvp called with different primal and tangent shapes;Got primal shape {0} and tangent shape "
    "as {1}", "a tangent has the shape of its primal.")
#: The function that `linearize` returned got other containers. expected, given: treedefs as text.
linearized_structure_error = Template(
    TypeError, "expected {0}, got {1}",
    "call it with one tangent for each argument of the linearized function, in the same containers.")
#: primal, expected, given: avals as text.
linearized_type_error = Template(
    ValueError, "linearized function called on tangent values inconsistent with the original primal values:",
    "a tangent has the shape and dtype of its primal.",
    "Got tangent aval {2} for primal aval {0} but expected {1}.")
#: The function that `vjp` returned got several arguments. function: the name of the original one.
vjp_count_error = Template(
    TypeError, "The function returned by `jitcore.vjp` applied to {0} was called with {1} arguments,",
    "pass one tuple: f_vjp((ct0, ct1)) for a function that returns (y0, y1).",
    "but functions returned by `jitcore.vjp` must be called with a single argument corresponding to the "
    "single value returned by the function being differentiated (even if that returned value is a tuple or "
    "other container).")
#: function: "f at file:line"; difference: where the containers differ, in words.
vjp_structure_error = Template(
    ValueError, "unexpected tree structure.",
    "give one cotangent for each array that the function returned, in the same containers.",
    "The argument to a VJP function returned by `jitcore.vjp` must match the pytree structure of the "
    "differentiated function {0}. But the tree structures differ: {1}")
#: output, expected, given: avals as text.
vjp_type_error = Template(
    ValueError, "unexpected jitcore type (e.g. shape/dtype) for argument to VJP function: got {2}, but "
    "expected {1} because the corresponding output of the differentiated function had jitcore type {0}",
    "a cotangent has the shape and dtype of the output; np.ones_like(output) sums its elements.")


# --- linear functions ---------------------------------------------------------------------------------------


#: inputs, outputs: lists of dtypes as text.
linear_dtypes_error = Template(
    TypeError, "linear_transpose only supports [float or complex] -> [float or complex], and integer -> "
    "integer functions, but got {0} -> {1}.",
    "describe the arguments by values or ShapeDtypeStructs of the dtypes that the function maps.")
#: what: "tree" or "type"; expected, given: as text.
linear_cotangent_error = Template(
    TypeError, "cotangent {0} does not match function output, expected {1} but got {2}",
    "the argument of the transposed function is like the result of the function.")


# --- rules --------------------------------------------------------------------------------------------------


#: A primitive without a rule of differentiation got an operand that has a tangent.
missing_jvp_error = Template(
    NotImplementedError, "Differentiation rule for '{0}' not implemented",
    "give the function around it a rule with jitcore.custom_jvp or custom_vjp, or keep it out of the "
    "derivative with lax.stop_gradient.")
#: A primitive cannot be transposed: it is not linear, or has no rule.
missing_transpose_error = Template(
    NotImplementedError, "Transpose rule (for reverse-mode differentiation) for '{0}' not implemented",
    "only linear functions have a transpose; give the function around it a rule with jitcore.custom_vjp, or "
    "use forward mode: jvp, jacfwd.")
