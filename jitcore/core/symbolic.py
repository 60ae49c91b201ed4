"""Symbolic dimensions: integer expressions over named sizes, usable wherever an extent of a shape is.

In: `DimVar("n", lower=1)` and ordinary arithmetic. Out: an int when the result is one, otherwise a `DimExpr`
whose equality is decided by value: `n + n == 2*n`, `(n + 1)*(n - 1) == n*n - 1`, `2*n//2 == n`. Stage: avals.

Every expression is a polynomial with integer coefficients over atoms; an atom is a variable or an application
of floordiv, mod, max or min. Expressions are numbered by value: building an expression again gives the object
that stands in the table already. What prints best is not always what compares best, so an expression also has
a normal form, in which `mod(e, k)` is `e - k*floordiv(e, k)` and one of the equal `floordiv(e, k)` and
`-floordiv(k - 1 - e, k)` stands for both. A divisor is taken to be non-zero.
"""

from __future__ import annotations

import itertools
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

import numpy as np

from jitcore.core.polynomial import (Monomial, Terms, divide_terms, format_terms, multiply_terms, order_atom,
                                     order_monomial)
from jitcore.core.size_bounds import Interval, as_interval, find_interval
from jitcore.errors import InconclusiveDimensionOperation
from jitcore.errors.arguments import inconclusive_dimension_error
from jitcore.process.concurrency import Lock
from jitcore.process.lazy import LazyModule

Dim = Union[int, "DimExpr"]

shapes = LazyModule("jitcore.lax.shape")  # of which dimensions as numbers are

_numbers = itertools.count()
_interned: weakref.WeakValueDictionary[tuple, DimExpr] = weakref.WeakValueDictionary()
_lock = Lock()


def _make_operators(find: Callable[[], Callable]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator, and that of operands the other way round. find: gives the function, which follows."""
    return (lambda self, other: _apply(find(), self, other),
            lambda self, other: _apply(find(), other, self))


class DimExpr:
    """A symbolic dimension: a polynomial, or an atom (`DimVar`, `DimOp`). Immutable and hashable.

    `==` never raises: it is False unless the two are equal for every size. `<`, `<=`, `>` and `>=` are
    decided by the bounds of the variables.
    Raises: InconclusiveDimensionOperation for an order that the bounds do not decide, and where an int or a
    truth value is needed."""

    __slots__ = ("__weakref__", "_bounds", "_normal", "number", "terms")

    __array_ufunc__ = None  # NumPy's scalars leave arithmetic with a dimension to the dimension.
    kind = "polynomial"
    number: int
    terms: tuple[tuple[Monomial, int], ...]  # Empty for an atom, which would otherwise hold itself.
    _normal: DimExpr | None  # What equality compares; None stands for the expression itself.
    _bounds: Interval | None

    __add__, __radd__ = _make_operators(lambda: add_dims)
    __sub__, __rsub__ = _make_operators(lambda: subtract_dims)
    __mul__, __rmul__ = _make_operators(lambda: multiply_dims)
    __floordiv__, __rfloordiv__ = _make_operators(lambda: floordiv_dims)
    __mod__, __rmod__ = _make_operators(lambda: mod_dims)

    def __lt__(self, other: Any) -> bool:
        return _order(self, "<", other)

    def __le__(self, other: Any) -> bool:
        return _order(self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return _order(self, ">", other)

    def __ge__(self, other: Any) -> bool:
        return _order(self, ">=", other)

    def __divmod__(self, other: Any) -> tuple[Dim, Dim]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Dim, Dim]:
        return other // self, other % self

    def __pow__(self, exponent: int) -> Dim:
        if not isinstance(exponent, int) or exponent < 0:
            return NotImplemented
        return math.prod([self] * exponent)

    def __truediv__(self, other: Any) -> Any:
        return self.__jax_array__() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.__jax_array__()

    def __neg__(self) -> Dim:
        return multiply_dims(-1, self)

    def __jax_array__(self) -> Any:
        """The dimension as a number in a traced function."""
        return shapes.dimension_size(self)

    def __pos__(self) -> DimExpr:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DimExpr) and self.normal is other.normal)

    def __hash__(self) -> int:
        return hash(self.normal.number)

    def __index__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension {self} used where an int is needed; its value is known only when the "
            "compiled function is called."
        )

    __int__ = __index__

    def __bool__(self) -> bool:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension {self} used as a truth value; compare it, for example {self} >= 1."
        )

    @property
    def normal(self) -> DimExpr:
        """The form in which equal expressions are one object."""
        return self if self._normal is None else self._normal

    def __repr__(self) -> str:
        return format_terms(self.terms)

    def __reduce__(self) -> tuple:
        return (_from_terms, (dict(self.terms),))


class DimVar(DimExpr):
    """A named size. Equal name and bounds mean the same variable.

    Args:
        name: how it prints.
        lower, upper: the sizes that it may have, both included; None means unlimited."""

    __slots__ = ("lower", "name", "upper")
    kind = "variable"

    def __new__(cls, name: str, lower: int | None = 1, upper: int | None = None) -> DimVar:
        if lower is not None and upper is not None and lower > upper:
            raise ValueError(f"DimVar({name!r}): lower bound {lower} exceeds upper bound {upper}.")
        variable = _create(cls, bounds=as_interval(lower, upper))
        variable.name, variable.lower, variable.upper = name, lower, upper
        return _intern(("variable", name, lower, upper), variable)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return (DimVar, (self.name, self.lower, self.upper))


class DimOp(DimExpr):
    """An application of "floordiv", "mod", "max" or "min" that arithmetic could not remove."""

    __slots__ = ("kind", "left", "right")

    def __repr__(self) -> str:
        return f"{self.kind}({self.left}, {self.right})"

    def __reduce__(self) -> tuple:
        return (_OPERATIONS[self.kind], (self.left, self.right))


# Building ---------------------------------------------------------------------------------------------------


def _create(cls: type, terms: tuple = (), bounds: Interval | None = None) -> Any:
    expression = object.__new__(cls)
    expression.number, expression.terms = next(_numbers), terms
    expression._normal, expression._bounds = None, bounds
    return expression


def _intern(key: tuple, expression: Any) -> Any:
    with _lock:
        return _interned.setdefault(key, expression)


def _from_terms(terms: Terms) -> Dim:
    """The value-numbered expression with these terms; an int when no atom is left."""
    terms = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    if not terms.keys() - {()}:
        return terms.get((), 0)
    if len(terms) == 1:
        ((monomial, coefficient),) = terms.items()
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            return monomial[0][0]
    ordered = tuple(sorted(terms.items(), key=lambda term: order_monomial(term[0])))
    key = tuple((tuple((atom.number, power) for atom, power in monomial), c) for monomial, c in ordered)
    if (known := _interned.get(key)) is not None:
        return known
    expression = _create(DimExpr, ordered)
    if any(atom._normal is not None for monomial in terms for atom, _ in monomial):
        normal = sum(c * math.prod(atom.normal**power for atom, power in m) for m, c in ordered)
        if isinstance(normal, int):
            return normal
        expression._normal = normal
    return _intern(key, expression)


def _from_operation(kind: str, left: Dim, right: Dim) -> Dim:
    """The value-numbered application of `kind`, whose arguments the caller has reduced."""
    operation = _create(DimOp)
    operation.kind, operation.left, operation.right = kind, left, right
    normal_left, normal_right = _normalize(left), _normalize(right)
    normal: Dim
    if kind == "mod":
        normal = normal_left - normal_right * floordiv_dims(normal_left, normal_right)
    elif normal_left is not left or normal_right is not right:
        normal = _normalize(_OPERATIONS[kind](normal_left, normal_right))
    elif kind == "floordiv" and isinstance(right, int) and _rounds_up_canonically(left, right):
        normal = -floordiv_dims(right - 1 - left, right)
    else:
        normal = operation
    if isinstance(normal, int):
        return normal
    if normal is not operation:
        operation._normal = normal.normal
    return _intern((kind, *map(_number_dim, (left, right))), operation)


def _rounds_up_canonically(left: DimExpr, k: int) -> bool:
    """Whether -floordiv(k - 1 - left, k), which is equal to floordiv(left, k), is the normal form of the two.

    `left` is reduced: its coefficients are at least 0 and below k."""
    terms = _get_terms(left)
    constant = terms.pop((), 0)
    coefficients = list(terms.values())
    return [*(k - c for c in coefficients), k - 1 - constant] < [*coefficients, constant]


def _number_dim(dim: Dim) -> tuple[bool, int]:
    return (False, dim) if isinstance(dim, int) else (True, dim.number)


def _normalize(dim: Dim) -> Dim:
    return dim if isinstance(dim, int) else dim.normal


def _get_terms(dim: Dim) -> Terms:
    if isinstance(dim, int):
        return {(): dim}
    return dict(dim.terms) or {((dim, 1),): 1}


# Arithmetic -------------------------------------------------------------------------------------------------


def _apply(operation: Callable[[Dim, Dim], Any], left: Any, right: Any) -> Any:
    """`operation` on operands that are dimensions; NotImplemented for others, which may know what to do."""
    operands = []
    for operand in (left, right):
        if isinstance(operand, DimExpr):
            operands.append(operand)
        elif isinstance(operand, int | np.integer):
            operands.append(int(operand))
        elif isinstance(operand, float | complex) and operation in _OF_NUMBERS:
            return _OF_NUMBERS[operation](*(x.__jax_array__() if isinstance(x, DimExpr) else x
                                            for x in (left, right)))
        else:
            return NotImplemented
    return operation(*operands)


def add_dims(left: Dim, right: Dim) -> Dim:
    terms = _get_terms(left)
    for monomial, coefficient in _get_terms(right).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _from_terms(terms)


def subtract_dims(left: Dim, right: Dim) -> Dim:
    return add_dims(left, multiply_dims(-1, right))


def multiply_dims(left: Dim, right: Dim) -> Dim:
    return _from_terms(multiply_terms(_get_terms(left), _get_terms(right)))


#: What an operation is called where a float takes part, which makes the dimension a number.
_OF_NUMBERS = {add_dims: operator.add, subtract_dims: operator.sub, multiply_dims: operator.mul}


def _has_negative_lead(dim: Dim) -> bool:
    return next(iter(_get_terms(dim).values())) < 0


def floordiv_dims(left: Dim, right: Dim) -> Dim:
    """`left // right`, rounding down."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if right == 0:
        raise ZeroDivisionError(f"floordiv({left}, 0)")
    if _has_negative_lead(right):
        left, right = -left, -right
    quotient, remainder = divide_terms(_get_terms(left), _get_terms(right))
    return _from_terms(quotient) + _floordiv_remainder(_from_terms(remainder), right)


def _floordiv_remainder(left: Dim, right: Dim) -> Dim:
    """`left // right` where no multiple of `right` can be taken out of `left`."""
    if is_known(left, ">=", 0) and is_known(left, "<", right):
        return 0
    if is_known(left, "<", 0) and is_known(left, ">=", -right):
        return -1
    if isinstance(right, int):
        # Rounding up instead may leave a remainder whose bounds decide.
        quotient, remainder = divide_terms(_get_terms(right - 1 - left), {(): right})
        if is_known(_from_terms(remainder), ">=", 0) and is_known(_from_terms(remainder), "<", right):
            return -_from_terms(quotient)
        common, constant, reduced = _split_common_factor(left, right)
        if common > 1:
            return floordiv_dims(reduced + constant // common, right // common)
        terms = _get_terms(left)
        terms.pop((), None)
        inner = _from_terms(terms)
        if isinstance(inner, DimOp) and inner.kind == "floordiv" and isinstance(inner.right, int):
            return floordiv_dims(inner.left + constant * inner.right, right * inner.right)
    return _from_operation("floordiv", left, right)


def mod_dims(left: Dim, right: Dim) -> Dim:
    """`left % right`, with the sign of `right`."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if right == 0:
        raise ZeroDivisionError(f"mod({left}, 0)")
    if _has_negative_lead(right):
        return -mod_dims(-left, -right)
    left = _from_terms(divide_terms(_get_terms(left), _get_terms(right))[1])
    if is_known(left, ">=", 0) and is_known(left, "<", right):
        return left
    if is_known(left, "<", 0) and is_known(left, ">=", -right):
        return left + right
    if isinstance(right, int):
        common, constant, reduced = _split_common_factor(left, right)
        if common > 1:
            return common * mod_dims(reduced + constant // common, right // common) + constant % common
    return _from_operation("mod", left, right)


def _split_common_factor(left: Dim, divisor: int) -> tuple[int, int, Dim]:
    """(g, c, e) with left == g*e + c, where g divides `divisor` and e has no constant term."""
    terms = _get_terms(left)
    constant = terms.pop((), 0)
    common = math.gcd(divisor, *terms.values())
    return common, constant, _from_terms({m: coefficient // common for m, coefficient in terms.items()})


def dim_max(first: Dim, *others: Dim) -> Dim:
    """The largest of the dimensions."""
    for other in others:
        first = _choose("max", first, other)
    return first


def dim_min(first: Dim, *others: Dim) -> Dim:
    """The smallest of the dimensions."""
    for other in others:
        first = _choose("min", first, other)
    return first


def _choose(kind: str, left: Dim, right: Dim) -> Dim:
    for chosen, other in ((left, right), (right, left)):
        if is_known(chosen, ">=" if kind == "max" else "<=", other):
            return chosen
    # One order, whichever way it was written; a constant last.
    left, right = sorted((left, right), key=lambda dim: (isinstance(dim, int), str(dim), _number_dim(dim)))
    return _from_operation(kind, left, right)


_OPERATIONS = {"floordiv": floordiv_dims, "mod": mod_dims, "max": dim_max, "min": dim_min}


# Bounds and comparison --------------------------------------------------------------------------------------


def bounds(dim: Dim) -> tuple[int | None, int | None]:
    """A lower and an upper bound that hold for every size; None where none is known."""
    low, high = find_interval(dim)
    return (None if low == -math.inf else int(low), None if high == math.inf else int(high))


# What is at least 0 exactly where the comparison holds.
_MARGINS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "<": lambda left, right: right - left - 1,
    "<=": lambda left, right: right - left,
    ">": lambda left, right: left - right - 1,
    ">=": lambda left, right: left - right,
}


def is_known(left: Dim, symbol: str, right: Dim) -> bool:
    """Whether `left symbol right` is known to hold for every size."""
    return find_interval(_MARGINS[symbol](left, right))[0] >= 0


def _order(left: Dim, symbol: str, right: Any) -> Any:
    return _apply(lambda left, right: _decide(left, symbol, right), left, right)


def _decide(left: Dim, symbol: str, right: Dim) -> bool:
    margin = _MARGINS[symbol](left, right)
    low, high = find_interval(margin)
    if low >= 0 or high < 0:
        return low >= 0
    variables = sorted(free_variables(margin), key=order_atom)
    raise inconclusive_dimension_error(f"{left} {symbol} {right}", [_describe_bounds(v) for v in variables])


def _describe_bounds(variable: DimVar) -> str:
    low = "" if variable.lower is None else f"{variable.lower} <= "
    high = "" if variable.upper is None else f" <= {variable.upper}"
    return f"{low}{variable}{high}"


def definitely_equal(left: Dim, right: Dim) -> bool:
    """Whether the two are equal for every size."""
    return left == right


# Use --------------------------------------------------------------------------------------------------------


def free_variables(dim: Dim) -> frozenset[DimVar]:
    """The variables that the dimension depends on."""
    if isinstance(dim, int):
        return frozenset()
    if isinstance(dim, DimVar):
        return frozenset((dim,))
    if isinstance(dim, DimOp):
        return free_variables(dim.left) | free_variables(dim.right)
    return frozenset().union(*(free_variables(atom) for monomial, _ in dim.terms for atom, _ in monomial))


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """The dimension with variables replaced by name; one that `values` lacks stays.

    Raises: ValueError when a value is outside the bounds of its variable."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, DimVar):
        return _check_bounds(dim, values[dim.name]) if dim.name in values else dim
    if isinstance(dim, DimOp):
        return _OPERATIONS[dim.kind](substitute(dim.left, values), substitute(dim.right, values))
    return sum(c * math.prod(substitute(atom, values) ** p for atom, p in m) for m, c in dim.terms)


def _check_bounds(variable: DimVar, value: Dim) -> Dim:
    least, most = find_interval(variable)
    if isinstance(value, int) and not least <= value <= most:
        raise ValueError(f"{variable.name} = {value} is outside its bounds {_describe_bounds(variable)}.")
    return value


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The size for given sizes of the variables.

    Raises: KeyError for a variable without a value, ValueError for a value outside the bounds."""
    result = substitute(dim, {name: operator.index(value) for name, value in values.items()})
    if isinstance(result, int):
        return result
    missing = sorted(variable.name for variable in free_variables(result))
    raise KeyError(f"no value for {', '.join(missing)} in {dim}")


def shape_str(shape: Iterable[Dim]) -> str:
    """A shape as avals print it: `n,3`."""
    return ",".join(map(str, shape))
