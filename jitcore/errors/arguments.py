"""The errors about what a function was given or gave back: arguments, options, shapes, structures.

In: facts as plain strings and numbers. Out: an exception instance for the caller to raise, laid out by the
eight-line rule of `errors`, which holds the classes and is the only import. The first line is JAX's where JAX
has the same error. `where` is what `core.source.format_snippet` returns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

from jitcore.errors import (BackendNotFoundError, ConcretizationTypeError, DonatedArrayError,
                            InconclusiveDimensionOperation, JitcoreIndexError, JitcoreTypeError, Lines,
                            NonConcreteBooleanIndexError, Origin, StaticArgumentError, Template,
                            TracerMutationError, UnknownCompilerOptionError, build_error,
                            concretization_error, fold_line, suggest_static)

# --- arguments and results of a transformed function --------------------------------------------------------


def unhashable_static_error(type_text: str, value_text: str, reason: str, name: str = "") -> Exception:
    """A static argument cannot be hashed. reason: the text of the TypeError that `hash` raised."""
    value = " ".join(value_text.split())
    headline = (
        "Non-hashable static arguments are not supported. An error occurred while trying to hash an "
        f"object of type {type_text}, {value if len(value) <= 80 else value[:77] + '...'}.")
    detail = f"The error was: {reason}" + (f" (argument {name})" if name else "")
    return build_error(StaticArgumentError, headline, detail=detail,
                       fix="pass a hashable value (a tuple for a list), or do not mark the argument static.")
#: Two arguments of one call lie on different devices. first, second: "x of type float32[3] on cpu:0".
devices_differ_error = Template(
    ValueError, "Received incompatible devices for jitted computation. Got argument {0}, and argument {1}.",
    "bring them together with jitcore.device_put(x, device), or say jit(..., device=...).")
#: A program names shardings on different devices, or an argument lies on others. first: "a sharding on
#: cpu:0" or "argument x of type float32[3] on cpu:0"; second: as "cpu:1".
meshes_differ_error = Template(
    ValueError, "Received incompatible devices for jitted computation. Got {0}, and a sharding on {1}.",
    "use one mesh in one program; jitcore.device_put(x, sharding) brings an array there.")
#: A program of several devices for a backend that runs on one, or has other devices.
mesh_backend_error = Template(
    ValueError, "backend {0!r} cannot run a program on a mesh of {1} devices.",
    "make the mesh of jitcore.devices('xla'), and run the program there: backend='xla'.")
#: An argument lies otherwise than `in_shardings` says.
sharding_differs_error = Template(
    ValueError, "Sharding passed to jit does not match the sharding on the respective arg. Got jit "
    "sharding: {2}, arg sharding: {3} for arg {0} of type {1}.",
    "bring it there by jitcore.device_put(x, sharding), or leave in_shardings out.")
#: The host asks for an array of which other processes have parts. aval_text: "float32[3]".
unaddressable_array_error = Template(
    RuntimeError, "Fetching an array of type {0}, of which other processes have parts, is not possible.",
    "read what this process has (x.addressable_shards), or bring all elements to each device first, by "
    "jit(lambda x: x, out_shardings=NamedSharding(mesh, P())).")


def argnums_range_error(option: str, argnums: Sequence[int], accepted: int) -> Exception:
    """`static_argnums=3` for a function of one argument. accepted: how many positional parameters it has."""
    headline = (
        f"Jitted function has {option}={tuple(argnums)!r}, but only accepts {accepted} positional arguments.")
    return build_error(StaticArgumentError, headline, fix=f"count from 0, or from -1 backwards, in {option}.")


def argnames_unknown_error(option: str, unknown: Collection[str], parameters: Sequence[str]) -> Exception:
    """`static_argnames='y'` for a function that has no y. parameters: the names that it has."""
    headline = (
        f"Jitted function has invalid argnames {_quote_set(unknown)} in {option}. "
        "Function does not take these args.")
    close = difflib.get_close_matches(min(unknown, default=""), parameters, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return build_error(StaticArgumentError, headline,
                       fix=f"{guess}It takes {', '.join(parameters) or 'no arguments'}.")


def argnames_overlap_error(names: Collection[str]) -> Exception:
    """An argument is marked static and donated."""
    headline = (
        "static_argnames and donate_argnames cannot intersect. "
        f"Argument names {_quote_set(names)} appear in both static_argnames and donate_argnames")
    return build_error(StaticArgumentError, headline,
                       fix="a static argument has no buffer to donate: remove it from one of them.")
#: What to do instead of passing a masked array.
_WITHOUT_MASK = "use x.filled(value), or x.data and x.mask as two arrays; the mask would be lost."
#: A masked array of NumPy is an operand.
masked_array_error = Template(
    JitcoreTypeError, "numpy masked arrays are not supported as operands.", _WITHOUT_MASK)


def argument_type_error(fun_text: str, type_text: str, path: str, is_masked: bool = False) -> Exception:
    """A string or another non-array was passed. fun_text: the function's repr; path: "x", "x['k']"."""
    headline = (
        f"Error interpreting argument to {fun_text} as an abstract array. The problematic value is of "
        f"type {type_text} and was passed to the function at path {path}.")
    root = re.split(r"[\[.]", path, maxsplit=1)[0]
    remedy = f"pass numbers or arrays, or mark the argument static with static_argnames={root!r}."
    return build_error(JitcoreTypeError, headline, fix=_WITHOUT_MASK if is_masked else remedy)


def chunks_error(function: str, operation: str, where: Lines) -> Exception:
    """A jitted function of Dask's arrays needs all of an axis that is in several chunks: this operation."""
    return build_error(
        JitcoreTypeError,
        f"{function} is called with a dask.array, and {operation} needs more than its chunks have",
        where=where, fix="put the axis in one chunk, x.rechunk({axis: -1}), or say what becomes of chunks: "
                         "x.map_blocks(f), x.map_overlap(f, depth=1), da.apply_gufunc.")


def traced_chunks_error(function: str) -> Exception:
    """A jitted function is called with an array of Dask and a traced value."""
    return build_error(JitcoreTypeError, f"{function} is called with a dask.array while it is being traced",
                       fix="jit the outermost function: jit(grad(f))(w, x) instead of grad(jit(f))(w, x).")


def unknown_chunks_error(function: str) -> Exception:
    """A jitted function is called with an array of Dask whose shape is not known."""
    return build_error(JitcoreTypeError, f"{function} is called with a dask.array of unknown shape",
                       fix="call x.compute_chunk_sizes() before.")


def result_type_error(origin: Origin, type_text: str, path: str = "") -> Exception:
    """The traced function returned something that is no array. path: of the output component, "['a']"."""
    component = f" at output component {path}" if path else ""
    headline = (
        f"function {origin.function} traced for {origin.transform} returned a value of type "
        f"{type_text}{component}, which is not a valid jitcore type")
    return build_error(JitcoreTypeError, headline,
                       fix="return arrays, numbers, None, or containers of these.")


#: An Array was used after donation or `delete()`: "float32[3]".
deleted_array_error = Template(
    DonatedArrayError, "Array has been deleted with shape={0}.",
    "use the result instead of the argument, donate a copy, or drop donate_argnums.")


# --- mapped axes --------------------------------------------------------------------------------------------


#: `in_axes` is a tuple that has not one entry for each positional argument.
axes_count_error = Template(
    ValueError, "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
    "arguments passed to the function, but got len(in_axes)={0}, len(args)={1}",
    "write one entry for each positional argument, None for those that are not mapped.")


def mapped_axis_error(axis: int, shape: Sequence[object]) -> Exception:
    """An argument lacks the axis along which it shall be mapped."""
    rank = axis + 1 if axis >= 0 else -axis
    return build_error(
        ValueError,
        f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at "
        f"least {rank}, but is only {len(shape)} (its shape is {tuple(shape)})",
        fix="write None in in_axes for an argument that is the same for all elements.")


def unknown_axis_size_error(has_leaves: bool, args_text: str, kwargs_text: str) -> Exception:
    """No argument is mapped and no `axis_size` is given."""
    headline = "vmap must have at least one non-None value in in_axes or axis_size must be specified"
    if not has_leaves:
        headline = (
            "vmap wrapped function must be passed at least one argument containing an array or axis_size "
            f"must be specified, got empty *args={args_text} and **kwargs={kwargs_text}")
    return build_error(ValueError, headline, fix="say how many elements there are: vmap(..., axis_size=n).")


def axis_sizes_error(places: Mapping[object, Sequence[str]], axis_size: object = None) -> Exception:
    """Mapped axes differ in size. places: for each size the axes that have it, as text."""
    lines = [] if axis_size is None else [f"the `axis_size` argument was {axis_size}"]
    for size, names in sorted(places.items(), key=lambda item: -len(item[1])):
        if len(names) == 1:
            lines.append(f"one axis had size {size}: {names[0]}")
        else:
            amount = "some" if lines else "most"
            lines.append(f"{amount} axes ({len(names)} of them) had size {size}, e.g. {names[0]}")
    shown = [*lines[:2], "; ".join(lines[2:])] if len(lines) > 3 else lines
    last = len(shown) - 1
    return build_error(
        ValueError, "vmap got inconsistent sizes for array axes to be mapped:",
        where=[f"  * {fold_line(line)}{';' if i < last else ''}" for i, line in enumerate(shown)],
        fix="pass arrays of one size along the mapped axes, or write None in in_axes for what is not mapped.")


#: `out_axes` is None for a result that differs from element to element. path: of the result, "[0]".
unmapped_output_error = Template(
    ValueError, "at vmap out_axes{0}, got axis spec None but output was batched on axis 0",
    "write 0, or where else the axis shall stand, in out_axes.")


# --- options ------------------------------------------------------------------------------------------------


def backend_not_found_error(requested: str, present: Sequence[str], reason: str = "",
                            install: str = "") -> Exception:
    """reason: why the backend is absent, "" if unknown; install: what to do to get it, "pip install ..."."""
    headline = f"Unknown backend {requested}. Available backends are {list(present)!r}"
    fix = f"{install}, or choose one of the available backends" if install else "choose an available backend"
    return build_error(BackendNotFoundError, headline, detail=reason,
                       fix=f"{fix}; `python -m jitcore doctor` says more.")


def double_precision_error(dtype: str, what: str, where: Lines = ()) -> Exception:
    """A program for a TPU has a value in double precision. what: which one."""
    narrow = {"complex128": "complex64"}.get(dtype, "float32")
    return build_error(JitcoreTypeError, f"TPUs do not compute in {dtype}: {what}.", where=where,
                       fix=f'convert to {narrow}, `x.astype("{narrow}")`, or use backend="cpu" or '
                           'backend="xla".')


def compiler_option_error(option: str, known: Sequence[str]) -> Exception:
    """`compiler_options` has a key that no stage reads. known: all keys that are read."""
    close = difflib.get_close_matches(option, known, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return build_error(UnknownCompilerOptionError, f"No such compile option: {option!r}",
                       fix=f"{guess}The options are {', '.join(sorted(known))}.")


# --- shapes and dtypes --------------------------------------------------------------------------------------


def broadcast_error(shapes: Sequence[Sequence[object]], where: Lines = ()) -> Exception:
    """Shapes that do not broadcast: a ValueError, as in NumPy."""
    listed = ", ".join("(" + ", ".join(map(str, s)) + ("," if len(s) == 1 else "") + ")" for s in shapes)
    return build_error(ValueError, f"Incompatible shapes for broadcasting: shapes=[{listed}]", where=where,
                       fix="trailing sizes must be equal or 1; insert axes with x[:, None] or reshape.")


def inconclusive_dimension_error(question: str, bounds: Sequence[str]) -> Exception:
    """question: "n > 3"; bounds: what is known of the variables, "1 <= n"."""
    return build_error(InconclusiveDimensionOperation,
                       f"Symbolic dimension comparison {question} is inconclusive.",
                       detail=f"Known: {', '.join(bounds)}." if bounds else "",
                       fix="give the dimension bounds that decide it, or use concrete shapes.")


# --- structured control flow --------------------------------------------------------------------------------


def branch_types_error(primitive: str, names: tuple[str, str], locations: tuple[str, str],
                       types: tuple[str, str], difference: str, where: Lines = ()) -> Exception:
    """Branches whose outputs differ in shape or dtype.

    primitive: "cond" or "switch"; names: ("true_fun", "false_fun"); locations: "f at file:line" of both;
    types: "float32[]" of the first output that differs; difference: "the dtypes do not match"."""
    first, second = names
    return build_error(
        JitcoreTypeError, f"{primitive} branches must have equal output types but they differ.",
        detail=f"{first} is {locations[0]}; {second} is {locations[1]}. The output of {first} has type "
        f"{types[0]} but the corresponding output of {second} has type {types[1]}, so {difference}.",
        where=where,
        fix=f"revise {first} and/or {second} so that all output types match, e.g. with astype.")


def branch_structure_error(primitive: str, names: tuple[str, str], locations: tuple[str, str],
                           difference: str, where: Lines = ()) -> Exception:
    """Branches whose outputs differ in pytree structure. difference: "true_fun output is a tuple but ..."."""
    first, second = names
    return build_error(JitcoreTypeError,
                       f"{primitive} branch outputs must have the same pytree structure, but they differ:",
                       detail=f"{first} is {locations[0]}; {second} is {locations[1]}. {difference}",
                       where=where,
                       fix=f"revise {first} and/or {second} so that they have the same pytree structure.")


def carry_types_error(primitive: str, component: str, types: tuple[str, str], difference: str,
                      where: Lines = ()) -> Exception:
    """A loop body changes the type of its carry.

    primitive: "scan", "while_loop", "fori_loop"; component: "carry c[0]"; types: (input, output);
    difference: "the shapes do not match"."""
    return build_error(
        JitcoreTypeError,
        f"{primitive} body function carry input and carry output must have equal types, but they differ:",
        detail=f"The input {component} has type {types[0]} but the corresponding output carry component has "
        f"type {types[1]}, so {difference}.",
        where=where,
        fix=f"start with {types[1]} or convert what the body returns with astype."
        if "shapes" not in difference
        else "keep the shape: allocate the final size before the loop and write parts with .at[i].set(...).")


def carry_structure_error(primitive: str, difference: str, where: Lines = ()) -> Exception:
    """A loop body changes the pytree structure of its carry. difference: "The carry c is a ... but ..."."""
    return build_error(
        JitcoreTypeError, f"{primitive} body function carry input and carry output must have the same pytree "
        "structure, but they differ:",
        detail=difference,
        where=where,
        fix="revise the function so that the carry output has the same pytree structure as the carry input.")


def _quote_set(names: Collection[str]) -> str:
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"


# --- traced values as extents, places and items -------------------------------------------------------------


def argument_value_error(function: str, argument: str, aval_text: str, origin: Origin | None = None,
                         where: Lines = ()) -> Exception:
    """`jnp.arange(tracer)`: an argument that decides the shape. function: "jnp.arange"; argument: "stop"."""
    detail = f"It arose in the {function} argument '{argument}'."
    fix = f"'{argument}' must be a Python value, for example from x.shape"
    return concretization_error(aval_text, detail, origin, where, fix=fix)


def size_required_error(function: str, aval_text: str, origin: Origin | None = None,
                        where: Lines = ()) -> Exception:
    """`jnp.nonzero(tracer)` without `size=`. function: "jnp.nonzero"."""
    detail = f"The size argument of {function} must be statically specified to use {function} while tracing."
    fix = f"{function}(..., size=n, fill_value=...) gives the result a fixed size"
    return concretization_error(aval_text, detail, origin, where, fix=fix)


def shape_value_error(shape_text: str, origin: Origin | None = None, where: Lines = ()) -> Exception:
    """`jnp.zeros(tracer)`, `x.reshape(tracer, 2)`. shape_text: the shape as given, tracers included."""
    headline = f"Shapes must be 1D sequences of concrete values of integer type, got {shape_text}."
    fix = f"take sizes from x.shape, which is known while tracing{suggest_static(origin)}."
    return build_error(ConcretizationTypeError, headline, origin=origin, where=where, fix=fix)


def boolean_index_error(aval_text: str, origin: Origin | None = None, where: Lines = ()) -> Exception:
    """`x[mask]` with a traced mask. aval_text: the mask's."""
    headline = f"Array boolean indices must be concrete; got {aval_text}"
    fix = ("jnp.where(mask, x, 0) keeps the shape; x.at[mask].set(v) writes; "
           "x[jnp.nonzero(mask, size=n)] bounds the size.")
    return build_error(NonConcreteBooleanIndexError, headline, origin=origin, where=where, fix=fix)


def slice_bound_error(slice_text: str, position: int, origin: Origin | None = None,
                      where: Lines = ()) -> Exception:
    """`x[:tracer]`. slice_text: "slice(None, Tracer(int32[]), None)"; position: which index it was."""
    headline = f"Slice entries must be static integers. Got {slice_text} at position {position}"
    fix = f"use lax.dynamic_slice with a fixed size, or a mask and jnp.where{suggest_static(origin)}."
    return build_error(JitcoreIndexError, headline, origin=origin, where=where, fix=fix)


def item_assignment_error(where: Lines = (), *, verb: str = "assignment") -> Exception:
    """`x[i] = v` on an Array or a tracer; verb="deletion" for `del x[i]`."""
    headline = (f"jitcore arrays are immutable and do not support in-place item {verb}. "
                "Instead of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method.")
    fix = "write that, or compile NumPy-style code with @autojit, which assigns items as NumPy does."
    return build_error(TracerMutationError, headline, where=where, fix=fix)
