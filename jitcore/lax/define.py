"""What functions of lax are made of: constructors of primitives, and static arguments in canonical form.

In: an implementation and the few facts in which the members of a family differ. Out: a registered
`Primitive` and the public `lax` function that binds it. The family `elementwise` is here; the structured
primitives call `Primitive` through `define`. Shapes, axes and sizes come as a caller wrote them (ints, NumPy
integers, symbolic dimensions, sequences of them) and leave as tuples of ints and symbolic dimensions, or as
an error that says what was wrong.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

import numpy as np

from jitcore import dtypes, errors
from jitcore.array import Array, ConcreteArray
from jitcore.core.jaxpr import ShapedArray, aval_of
from jitcore.core.primitive import Primitive, registry
from jitcore.core.symbolic import DimExpr
from jitcore.core.trace import Tracer, origin_of, user_snippet
from jitcore.errors import arguments as argument_errors
from jitcore.lax.accuracy import check_accuracy
from jitcore.transforms.batch_rules import batch_elementwise
from jitcore.transforms.derivative_rules import jvp_elementwise, jvp_linear, transpose_elementwise

# What `accepts` of a family may say: a name of the error text and the dtype kinds behind it.
KIND_NAMES = {"b": "bool", "i": "integer", "u": "unsigned", "f": "floating", "c": "complexfloating"}

#: Of elementwise primitives, see `elementwise`.
ZERO_DERIVATIVE: tuple = ()
LINEAR = "linear"


def define(name: str, **rules) -> Callable:
    """Defines a structured primitive; decorates its public function, which gets the primitive as
    `.primitive`. rules: what `Primitive` takes."""
    primitive = Primitive(name, **rules)

    def attach(function):
        function.primitive = primitive
        return function

    return attach


def elementwise(*, impl: Callable, scalar_op: str | None = None, hlo: str | None = None, accepts: str = "fc",
                result: Callable[..., np.dtype] | np.dtype | None = None, name: str | None = None,
                domain: tuple[float, float] | None = None, compute_half_in_float32: bool = False,
                jvp: Callable | tuple[Callable | None, ...] | str | None = None,
                transpose: Callable | tuple[Callable | None, ...] | None = None,
                transpose_sparse: tuple[Callable | None, ...] = (), lower: Callable | None = None, **traits):
    """A primitive that works on each element. The decorated function only carries the docstring and the
    arity.

    Args:
        impl: ufunc-like on ndarrays of equal dtype.
        scalar_op: name of the loop program's scalar operation; the primitive's name by default.
        accepts: dtype kinds ("b", "i", "u", "f", "c", and "k" of keys) that it takes.
        result: dtype of the result given the operand's dtype: a function, a dtype, or None for the same.
        domain: interval of reals that tests sample. compute_half_in_float32: impl has no float16/bfloat16
        loop.
        jvp: for each operand `d(t, ans, *operands)`, the tangent of the result by its tangent t, or None
            where that is zero; one function for one operand; ZERO_DERIVATIVE for a result that is constant
            wherever it has a derivative; LINEAR for an operation that is linear in its operands together.
        transpose: of a linear operation, for each operand `f(ct, *operands)`, its cotangent; None for an
            operand in which it is not linear. One function for one operand.
        transpose_sparse: `sparse` of `transpose_elementwise`.
        lower: rule of lowering; by default, `scalar_op` of each element.
        traits: others, see `Primitive`; `cost`, see `loopir.expr`; `scipy`, the name of the function of
            `scipy.special` that it computes, under which it is public in `jitcore.scipy.special`, traced by
            autojit, and what Python and Numba call."""

    def attach(function):
        prim_name = name or function.__name__.rstrip("_")
        run = _in_float32(impl) if compute_half_in_float32 else impl
        primitive = Primitive(
            prim_name, impl=run, aval=functools.partial(_elementwise_aval, prim_name, accepts, result),
            lower=lower or functools.partial(_elementwise_lower, scalar_op or prim_name),
            jvp=None if jvp is None else jvp_linear() if jvp == LINEAR else jvp_elementwise(*_as_tuple(jvp)),
            transpose=None if transpose is None
            else transpose_elementwise(*_as_tuple(transpose), sparse=transpose_sparse),
            batch=batch_elementwise,
            hlo=hlo,
            scalar_op=scalar_op or prim_name, accepts=accepts, domain=domain,
            arity=function.__code__.co_argcount, family="elementwise",
            takes_masks=transpose is not None, **traits)

        arity = primitive.traits["arity"]

        @functools.wraps(function)
        def public(*args, **options):
            if options or len(args) != arity:
                function(*args, **options)  # has the signature, so that Python says what is wrong
                check_accuracy(options.get("accuracy"))
            operands = to_operands(prim_name, args)
            if options.get("out_dtype") is not None:
                convert, dtype = registry["convert_element_type"], dtypes.canonicalize(options["out_dtype"])
                operands = [convert.bind(x, new_dtype=dtype, weak_type=False) for x in operands]
            return primitive.bind(*(operands if arity == 1 else repeat_ones(prim_name, operands)))

        public.primitive = primitive
        public.__name__ = function.__name__
        return public

    return attach


def _as_tuple(functions: Callable | tuple) -> tuple:
    return functions if isinstance(functions, tuple) else (functions,)


def _in_float32(impl):
    """Runs impl in float32 for float16 and bfloat16, for which SciPy has no loops."""

    @functools.wraps(impl)
    def run(*args):
        if args[0].dtype.itemsize == 2 and dtypes.is_floating(args[0].dtype):
            return impl(*(arg.astype(np.float32) for arg in args)).astype(args[0].dtype)
        return impl(*args)

    return run


def to_operands(name: str, args) -> list:
    """Operands of one dtype: Python scalars and weakly typed arrays take the dtype of the others.

    Raises: TypeError for what is not an array; for operands of two distinct strong dtypes; where a scalar
        of a higher kind would change the dtype of an array, or Python scalars differ in kind."""
    if len(args) == 1:
        aval_of(args[0])
        return list(args)
    avals = [_operand_aval(name, arg) for arg in args]
    first = avals[0].dtype
    if all(aval.dtype == first for aval in avals):
        return list(args)
    strong = join_widths({aval.dtype for aval in avals if not aval.weak_type})
    if len(strong) > 1 or any(map(dtypes.is_key, strong)):
        raise _dtypes_differ(name, avals)
    target, weak = dtypes.join_types(*[(aval.dtype, aval.weak_type) for aval in avals])
    if target not in (strong or {aval.dtype for arg, aval in zip(args, avals) if isinstance(arg, Array)}):
        raise _dtypes_differ(name, avals)  # a Python scalar gives way, no array does
    return [cast(arg, aval, target, weak) for arg, aval in zip(args, avals)]


def join_widths(given: set[np.dtype]) -> set[np.dtype]:
    """Dtypes, without the narrower of two that differ in their width alone."""
    return {dtype for dtype in given
            if not any(dtypes.differ_in_width(dtype, other) and other.itemsize > dtype.itemsize
                       for other in given)}


def repeat_ones(name: str, operands: list) -> list:
    """Operands of one rank with axes of extent 1 repeated to the extents of the others; scalars stay.

    Raises: TypeError for other shapes."""
    shapes = dict.fromkeys(shape for x in operands if (shape := getattr(x, "shape", ())))
    if len(shapes) < 2:
        return operands
    shape = functools.reduce(functools.partial(_meet_shapes, name), shapes)
    axes = tuple(range(len(shape)))
    spread = registry["broadcast_in_dim"]
    return [x if getattr(x, "shape", ()) in ((), shape)
            else spread.bind(x, shape=shape, broadcast_dimensions=axes) for x in operands]


def _meet_shapes(name: str, a: tuple, b: tuple) -> tuple:
    """The shape of which a and b have all axes, or extent 1 instead."""
    if len(a) != len(b) or any(m != n and m != 1 and n != 1 for m, n in zip(a, b)):
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {a}, {b}.")
    return tuple(n if m == 1 else m for m, n in zip(a, b))


def _dtypes_differ(name: str, avals) -> TypeError:
    return TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                     f"{', '.join(aval.dtype.name for aval in avals)}. "
                     "(Tip: jnp functions promote dtypes.)")


def _operand_aval(name: str, arg) -> ShapedArray:
    try:
        return aval_of(arg)
    except TypeError:
        raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(arg)}: {arg!r}") from None


def cast(arg, aval: ShapedArray, dtype, weak: bool):
    """arg with this dtype: scalars are converted now, arrays by an equation."""
    if aval.dtype == dtype and aval.weak_type == weak:
        return arg
    if dtypes.is_key(dtype) and isinstance(arg, (int, np.integer)):
        word = np.array(arg).astype(np.uint32)
        return ConcreteArray(np.full(dtype.n_words, word).view(dtype.dtype).reshape(()))
    if not isinstance(arg, Array) and not aval.shape:
        if isinstance(arg, int) and not isinstance(arg, bool):
            arg = dtypes.wrap_integer(arg, dtype)
        if not weak:
            return np.asarray(arg).astype(dtype)[()]
        if isinstance(arg, dtypes.PYTHON_SCALARS):
            if dtype != dtypes.default_dtype(dtypes.kind_of(dtype)):
                return ConcreteArray(np.asarray(arg, dtype), True)  # a Python scalar has its default dtype
            return {"i": int, "u": int, "f": float, "c": complex}[dtypes.kind_of(dtype)](arg)
    return registry["convert_element_type"].bind(arg, new_dtype=np.dtype(dtype), weak_type=weak)


def _elementwise_aval(name: str, accepts: str, result, *avals: ShapedArray, **params) -> ShapedArray:
    first = avals[0]
    dtype, shape, weak = first.dtype, first.shape, first.weak_type
    if dtypes.kind_of(dtype) not in accepts:
        if not dtypes.is_key(dtype):
            dtypes.reject_narrow(name, dtype)
        accepted = ", ".join(KIND_NAMES[kind] for kind in accepts if kind in KIND_NAMES)
        raise TypeError(f"{name} does not accept dtype {dtype.name} at position 0. "
                        f"Accepted dtypes at position 0 are subtypes of {accepted}.")
    for aval in avals[1:]:
        if aval.dtype != dtype:
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, "
                            f"got {', '.join(a.dtype.name for a in avals)}.")
        shape = join_shapes(name, shape, aval.shape)
        weak = weak and aval.weak_type
    if result is not None:
        dtype = result(dtype) if callable(result) and not isinstance(result, np.dtype) else result
        weak = weak and dtype != dtypes.bool_
    return ShapedArray(shape, dtype, weak)


def join_shapes(name: str, a: tuple, b: tuple) -> tuple:
    """Equal shapes, or one of them a scalar. Raises: TypeError otherwise."""
    if a == b or not b:
        return a
    if not a:
        return b
    raise TypeError(f"{name} got incompatible shapes for broadcasting: {a}, {b}.")


def _elementwise_lower(scalar_op: str, builder, *values, **params):
    return builder.map(scalar_op, *values, **params)


# -- static arguments ----------------------------------------------------------------------------------------
def canonicalize_shape(shape) -> tuple:
    """A shape as a tuple of ints and symbolic dimensions.

    Raises: ConcretizationTypeError for a traced extent; TypeError for what is not an integer."""
    if isinstance(shape, (int, np.integer)) or isinstance(shape, DimExpr):
        shape = (shape,)
    try:
        return tuple(extent if isinstance(extent, DimExpr) else operator.index(extent) for extent in shape)
    except errors.TracerIntegerConversionError:
        tracer = next(extent for extent in shape if isinstance(extent, Tracer))
        raise argument_errors.shape_value_error(f"({', '.join(map(str, shape))})",
                                                origin_of(tracer.owner, tracer), user_snippet()) from None
    except TypeError:
        message = f"Shapes must be 1D sequences of concrete values of integer type, got {shape}."
        raise TypeError(message) from None


def canonicalize_axis(axis, ndim: int) -> int:
    """An axis counted from the front. Raises: AxisError, a ValueError, when there is no such axis."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis + ndim if axis < 0 else axis


def to_ints(values) -> tuple[int, ...]:
    return tuple(map(operator.index, values))


def check_nonnegative(name: str, what: str, shape: Sequence) -> None:
    """Raises: TypeError when an entry is negative."""
    if any(extent < 0 for extent in shape):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got {tuple(shape)}.")


def product(extents) -> int:
    """Number of elements of a shape; its extents may be symbolic."""
    return functools.reduce(operator.mul, extents, 1)


def to_extent(value):
    """An int or a symbolic dimension. Raises: TypeError for anything else."""
    return value if isinstance(value, DimExpr) else operator.index(value)
