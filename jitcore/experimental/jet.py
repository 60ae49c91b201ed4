"""Taylor mode: `jet`, all derivatives along a path up to some order at once.

In: a function, a point, and the Taylor series of a path through it. Out: the series of what the function does
to the path. Inside, a series is a `Series`: the value and its coefficients, divided by factorials. Most
primitives need nothing but the rule of their jvp: by y' = dp(x) x', the coefficients of a result are those of
a function of lower order. Linear and bilinear ones and those of which programs are full have rules of their
own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jitcore.numpy as jnp
from jitcore import dtypes, lax
from jitcore.core import source
from jitcore.core.jaxpr import ClosedJaxpr, Equation, aval_of, eval_jaxpr
from jitcore.core.primitive import Primitive
from jitcore.core.trace import trace_to_jaxpr
from jitcore.lax.control_flow import control
from jitcore.lax.control_flow.loops import Loop, keep_stopped
from jitcore.transforms.jvp import run_jvp
from jitcore.transforms.tangents import instantiate, is_zero, zero_like
from jitcore.tree_util import tree_structure, treedef_is_leaf

__all__ = ["jet"]


class Series(NamedTuple):
    """A value along a path. terms: its coefficients of t, t**2, ...; None where it does not move."""

    value: Any
    terms: list | None

    def fill(self, order: int) -> list:
        """All coefficients, the value first; zeros where there are none."""
        zero = None if self.terms is not None else jnp.zeros_like(self.value)
        return [self.value, *([zero] * order if self.terms is None else self.terms)]

    @property
    def slope(self) -> Series:
        """The derivative of the path, of one order less."""
        first, *rest = [jnp.multiply(x, k) for k, x in enumerate(self.terms, 1)]
        return Series(first, rest)


# -- rules --------------------------------------------------------------------------------------------------
def _convolve(xs: Sequence, ys: Sequence, k: int, product: Callable = lax.mul) -> Any:
    """The coefficient of t**k in a product."""
    return sum((product(xs[j], ys[k - j]) for j in range(1, k + 1)), product(xs[0], ys[k]))


def _multiply(primitive: Primitive, x: Series, y: Series, order: int, **params) -> Series:
    """Of a primitive that is linear in each of its two operands."""
    def product(a, b):
        return primitive.bind(a, b, **params)

    if x.terms is None or y.terms is None:
        pairs = zip([x.value] * order if x.terms is None else x.terms, [y.value] * order if y.terms is None
                    else y.terms)
        return Series(product(x.value, y.value), [product(a, b) for a, b in pairs])
    xs, ys = x.fill(order), y.fill(order)
    return Series(product(x.value, y.value), [_convolve(xs, ys, k, product) for k in range(1, order + 1)])


def _divide(primitive: Primitive, x: Series, y: Series, order: int) -> Series:
    if y.terms is None:
        return Series(lax.div(x.value, y.value), [lax.div(term, y.value) for term in x.terms])
    xs, ys = x.fill(order), y.fill(order)
    found = [lax.div(x.value, y.value)]
    for k in range(1, order + 1):
        found.append((xs[k] - sum(ys[j] * found[k - j] for j in range(1, k + 1))) / ys[0])
    return Series(found[0], found[1:])


def _take_log(primitive: Primitive, x: Series, order: int) -> Series:
    xs, found = x.fill(order), [lax.log(x.value)]
    for k in range(1, order + 1):
        known = sum((j / k) * found[j] * xs[k - j] for j in range(1, k))
        found.append((xs[k] - known) / xs[0])
    return Series(found[0], found[1:])


def _take_root(primitive: Primitive, x: Series, order: int) -> Series:
    xs, found = x.fill(order), [lax.sqrt(x.value)]
    for k in range(1, order + 1):
        found.append((xs[k] - sum(found[j] * found[k - j] for j in range(1, k))) / (2 * found[0]))
    return Series(found[0], found[1:])


def _integrate(slope_of: Callable[[list, int], Any]) -> Callable[..., Series]:
    """The rule of y = f(x) with y' = w x'. slope_of: w's coefficient of t**k, of those of y up to it."""

    def rule(primitive: Primitive, x: Series, order: int, **params) -> Series:
        xs, ys, ws = x.fill(order), [primitive.bind(x.value, **params)], []
        for k in range(1, order + 1):
            ws.append(slope_of(ys, k - 1))
            ys.append(sum((j / k) * xs[j] * ws[k - j] for j in range(1, k + 1)))
        return Series(ys[0], ys[1:])

    return rule


def _turn(sign: int, sine: Callable, cosine: Callable, wanted: int) -> Callable[..., Series]:
    """The rule of one of two functions that are each other's derivative, but for the sign of the second."""

    def rule(primitive: Primitive, x: Series, order: int) -> Series:
        xs, s, c = x.fill(order), [sine(x.value)], [cosine(x.value)]
        for k in range(1, order + 1):
            parts = [(j / k) * xs[j] for j in range(1, k + 1)]
            s.append(sum(part * c[k - j] for j, part in enumerate(parts, 1)))
            c.append(sign * sum(part * s[k - j] for j, part in enumerate(parts, 1)))
        found = (s, c)[wanted]
        return Series(found[0], found[1:])

    return rule


def _one_minus_square(ys: list, k: int):
    return (1 if k == 0 else 0) - _convolve(ys, ys, k)


_RULES: dict[str, Callable[..., Series]] = {
    "mul": _multiply, "dot_general": _multiply, "conv_general_dilated": _multiply,
    "div": _divide, "log": _take_log, "sqrt": _take_root,
    "exp": _integrate(lambda ys, k: ys[k]),
    "tanh": _integrate(_one_minus_square),
    "tan": _integrate(lambda ys, k: (1 if k == 0 else 0) + _convolve(ys, ys, k)),
    "logistic": _integrate(lambda ys, k: ys[k] - _convolve(ys, ys, k)),
    "sin": _turn(-1, lax.sin, lax.cos, 0), "cos": _turn(-1, lax.sin, lax.cos, 1),
    "sinh": _turn(1, lax.sinh, lax.cosh, 0), "cosh": _turn(1, lax.sinh, lax.cosh, 1),
}
#: Linear in what is differentiated, besides those whose jvp says so.
_LINEAR = frozenset(("add", "sub", "neg", "add_any", "select_n", "convert_element_type", "gather"))


def _apply_linear(primitive: Primitive, operands: Sequence[Series], order: int, params: dict) -> list[Series]:
    """Its jvp, with each coefficient as the tangent."""
    values = [x.value for x in operands]
    found: list[list] = []
    for k in range(order):
        tangents = [zero_like(x.value) if x.terms is None else x.terms[k] for x in operands]
        outs, terms = primitive.jvp(primitive, values, tangents, **params)
        found.append(terms if primitive.multiple_results else [terms])
    outs = outs if primitive.multiple_results else [outs]
    return [Series(out, None if is_zero(terms[0]) else list(map(instantiate, terms)))
            for out, terms in zip(outs, zip(*found))]


def _apply_derivative(primitive: Primitive, operands: Sequence[Series], order: int,
                      params: dict) -> list[Series]:
    """By y' = dp(x) x': the tangent of the result is a function of the path and its slope, of lower order."""
    count = len(operands)
    moves = [x.terms is not None for x in operands]
    nonzero: list[bool] = []

    def slope(*values):
        given = iter(values[count:])
        tangents = [next(given) if flag else zero_like(x) for x, flag in zip(values, moves)]
        _, found = run_jvp(lambda *xs: primitive.bind_all(*xs, **params), values[:count], tangents)
        nonzero[:] = [not is_zero(t) for t in found]
        return [t for t in found if not is_zero(t)]

    values = [x.value for x in operands]
    outs = primitive.bind_all(*values, **params)
    path = [*(Series(x.value, None if x.terms is None else x.terms[: order - 1]) for x in operands),
            *(x.slope for x in operands if x.terms is not None)]
    jaxpr, consts = trace_to_jaxpr(slope, [aval_of(x.value) for x in path])
    found = iter(evaluate(ClosedJaxpr(jaxpr, consts), path, order - 1))
    result = []
    for out, flag in zip(outs, nonzero):
        terms = next(found).fill(order - 1) if flag else None
        result.append(Series(out, terms and [jnp.multiply(term, 1 / k) for k, term in enumerate(terms, 1)]))
    return result


# -- jaxprs -------------------------------------------------------------------------------------------------
def evaluate(closed: ClosedJaxpr, operands: Sequence[Series], order: int) -> list[Series]:
    """Runs a jaxpr on series of this order.

    Raises: NotImplementedError for a primitive that has no derivative."""
    outs = eval_jaxpr(closed.jaxpr, closed.consts, operands, functools.partial(_apply, order))
    return list(map(_to_series, outs))


def _to_series(x) -> Series:
    """A constant does not move."""
    return x if isinstance(x, Series) else Series(x, None)


def _apply(order: int, eqn: Equation, values: list) -> list[Series]:
    primitive, params, operands = eqn.primitive, eqn.params, list(map(_to_series, values))
    if order == 0 or all(x.terms is None for x in operands):
        outs = primitive.bind_all(*[x.value for x in operands], **params)
        return [Series(out, [] if order == 0 else None) for out in outs]
    name = primitive.name
    if name in _CALLS:
        return _CALLS[name](operands, order, **params)
    if name in _RULES:
        return [_RULES[name](primitive, *operands, order, **params)]
    if name in ("custom_vjp_call", "remat2"):
        closed, _ = primitive.traits["inline"](params, [])
        return evaluate(closed, operands, order)
    if primitive.jvp is None:
        raise NotImplementedError(f"jet: no Taylor rule for '{primitive}', which has no derivative")
    is_linear = name in _LINEAR or getattr(primitive.jvp, "is_linear", False)
    return (_apply_linear if is_linear else _apply_derivative)(primitive, operands, order, params)


def _moves(aval) -> bool:
    """Whether a value that a loop carries has coefficients: all that may have."""
    return dtypes.is_inexact(aval.dtype)


def _close(operands: Sequence[Series], order: int) -> list[tuple]:
    """As pytrees for control flow: values with all coefficients, or alone."""
    return [tuple(x.fill(order)) if _moves(aval_of(x.value)) else (x.value,) for x in operands]


def _open(values: Sequence[tuple]) -> list[Series]:
    return [Series(value[0], list(value[1:]) if _moves(aval_of(value[0])) else None) for value in values]


def _cond(operands: list[Series], order: int, *, branches) -> list[Series]:
    index, *rest = operands

    def make(branch: ClosedJaxpr) -> Callable:
        return lambda *values: _close(evaluate(branch, _open(values), order), order)

    return _open(lax.switch(index.value, list(map(make, branches)), *_close(rest, order)))


def _scan(operands: list[Series], order: int, *, jaxpr, length, reverse, num_consts, num_carry,
          unroll) -> list[Series]:
    consts, init, xs = control.split_operands(operands, num_consts, num_carry)

    def step(carry, elements):
        outs = evaluate(jaxpr, [*consts, *_open(carry), *_open(elements)], order)
        closed = _close(outs, order)
        return closed[:num_carry], closed[num_carry:]

    carry, ys = lax.scan(step, _close(init, order), _close(xs, order), length=length, reverse=reverse,
                         unroll=unroll)
    return _open([*carry, *ys])


def _while(operands: list[Series], order: int, **params) -> list[Series]:
    """A loop over batches, where elements stop one by one, is one over all of them."""
    loop = Loop(**params)
    cond_consts, body_consts, init = loop.split(operands)

    def holds(values):
        (active,) = evaluate(loop.cond_jaxpr, [Series(x.value, None) for x in (*cond_consts, *_open(values))],
                             order)
        return active.value

    def step(carry):
        active, values = carry
        after = _close(evaluate(loop.body_jaxpr, [*body_consts, *_open(values)], order), order)
        after = [tuple(keep_stopped(active, *pair)) for pair in zip(after, values)]
        return active & holds(after), after

    start = _close(init, order)
    return _open(lax.while_loop(lambda carry: jnp.any(carry[0]), step, (holds(start), start))[1])


_CALLS = {"jit": lambda operands, order, *, jaxpr, **_: evaluate(jaxpr, operands, order), "cond": _cond,
          "scan": _scan,
          "while": _while}


# -- public -------------------------------------------------------------------------------------------------
@source.api_boundary
def jet(fun: Callable, primals: Sequence, series: Sequence[Sequence], factorial_scaled: bool = True,
        **options: Any) -> tuple[Any, Any]:
    """The Taylor series of `fun` along a path that is given by its own.

    Same as, for one argument and x(t) = primals[0] + t * series[0][0] + t**2 / 2 * series[0][1] + ...:
        return fun(x(0)), [the k-th derivative of fun(x(t)) at 0, for k = 1, 2, ...]

    Args:
        fun: a function of arrays; its result is a pytree of arrays.
        primals: the point, an array of real or complex numbers for each argument.
        series: for each argument, a sequence of the derivatives of the path, of orders 1, 2, ..., each of the
            argument's shape; of the same length for all arguments.
        factorial_scaled: whether series in and out are derivatives; else they are coefficients, derivatives
            divided by factorials.
        options: accepted for compatibility.

    Returns: (result, its series): the structure of the result with a list in place of each array.
    Raises: ValueError for arguments that are pytrees, or series of different lengths or shapes; TypeError for
        integers; NotImplementedError for an operation that has no derivative.
    Cost: about the square of the order times that of `fun`, where nested `jvp`s take its exponential.
    Source: `jax.experimental.jet.jet`; A. Griewank, A. Walther, "Evaluating derivatives" (2008), chapter 13.

    Example:
        >>> import jitcore.numpy as jnp
        >>> from jitcore.experimental.jet import jet
        >>> value, (first, second, third) = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
        >>> float(third)
        1.0"""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals, but series for {len(series)} of them")
    paths = [_read_path(place, *pair) for place, pair in enumerate(zip(primals, series))]
    orders = {len(path.terms) for path in paths}
    if len(orders) > 1:
        raise ValueError("jet: series have inconsistent lengths for different arguments, "
                         f"{[len(path.terms) for path in paths]}")
    order = orders.pop() if orders else 0
    if factorial_scaled:
        paths = [path._replace(terms=_scale(path.terms, lambda k: 1 / math.factorial(k))) for path in paths]
    leaves, in_tree, avals = control.flatten_operands(tuple(path.value for path in paths))
    traced = control.trace_function(fun, in_tree, avals, "jet")
    outs = evaluate(ClosedJaxpr(traced.jaxpr, traced.consts), paths, order)
    terms = [out.fill(order)[1:] for out in outs]
    if factorial_scaled:
        terms = [_scale(each, math.factorial) for each in terms]
    return traced.out_tree.unflatten([out.value for out in outs]), traced.out_tree.unflatten(terms)


def _scale(terms: Sequence, factor: Callable[[int], float]) -> list:
    return [jnp.multiply(term, factor(k)) for k, term in enumerate(terms, 1)]


def _read_path(place: int, value: Any, terms: Sequence) -> Series:
    """Raises: ValueError, TypeError."""
    for tree in (value, *terms):
        if not treedef_is_leaf(tree_structure(tree)):
            raise ValueError(f"jet: argument {place} must be an array, and each term of its series, got "
                             f"{tree!r}")
    value = jnp.asarray(value)
    if not dtypes.is_inexact(value.dtype):
        raise TypeError(f"jet: argument {place} has no derivatives, its dtype is {value.dtype.name}.\n"
                        "To fix: pass numbers of a floating or complex dtype.")
    terms = [jnp.asarray(term, value.dtype) for term in terms]
    for term in terms:
        if term.shape != value.shape:
            raise ValueError(f"jet: a term of the series of argument {place} has shape {term.shape}, the "
                             f"argument {value.shape}")
    return Series(value, terms)
