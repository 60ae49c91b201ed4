"""Numbers whose type depends on the way that was taken: `0` on one side of a condition, `x[i]` on the other,
or None.

In: two numbers or NumPy scalars of other types, as sides of a decision and iterations of a loop leave them;
None is one more type. Out: `Mixed`: the value in a dtype that holds both, and a tag that says which type it
has. Operations whose result does not depend on that use the value; others are done for each type, and their
results mixed again. What None cannot do is done for the number, and where it is None, plain Python raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore import dtypes, lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.algebra import COMPARISONS
from jitcore.core.jaxpr import ShapedArray
from jitcore.numpy_semantics.errors import NotTraceable, needs_identity, not_traceable
from jitcore.numpy_semantics.values import arithmetic
from jitcore.numpy_semantics.values.arithmetic import fail
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array
from jitcore.numpy_semantics.values.numbers import RANKS, Number, NumberKind
from jitcore.numpy_semantics.values.operators import WithoutValue
from jitcore.numpy_semantics.values.promotion import cast_raw, to_raw
from jitcore.numpy_semantics.values.scalars import SCALAR, Scalar
from jitcore.process.effort import spend
from jitcore.process.generated import Conversion
from jitcore.rewriter.handles import CompoundHandle, Handle, Kind, LeafType, current

_MAX_KINDS = 4
Kinds = tuple[LeafType, ...]


class NoneKind(Kind):
    """What None is beside numbers: false, and of no value."""

    __slots__ = ()
    python_type = type(None)

    def wrap(self, raw: Array, aval: ShapedArray) -> None:
        return None


NONE = LeafType(ShapedArray((), dtypes.bool_), NoneKind())


def type_of(value: Any) -> LeafType | None:
    """The type of a number, a NumPy scalar or None; None for all else."""
    if value is None:
        return NONE
    if isinstance(value, (Number, Scalar)):
        return value.leaf_type
    if isinstance(value, (Handle, Array)) or current.mode is None:
        return None
    return current.mode.type_of(value)


def _is_python(kind: LeafType) -> bool:
    return type(kind.kind) is NumberKind


def _order(kind: LeafType) -> tuple:
    if kind == NONE:
        return False, -1  # the first of all, where `may_be_none` looks for it
    return (kind.kind == SCALAR, RANKS[kind.kind.python_type] if _is_python(kind) else kind.aval.dtype.num)


def join_kinds(one: Any, other: Any) -> Join | None:
    """What gives two values a common form, if they are numbers of different types; None otherwise."""
    found: set[LeafType] = set()
    for value in (one, other):
        kinds = value.kinds if type(value) is Mixed else (type_of(value),)
        if None in kinds:
            return None
        found.update(kinds)
    if not 1 < len(found) <= _MAX_KINDS + (NONE in found):
        return None
    join = Join(tuple(sorted(found, key=_order)))
    is_lossy = join.dtype.kind in "fc" and any(kind.aval.dtype == dtypes.uint64 for kind in found)
    return None if is_lossy else join


class Join:
    """Gives numbers of some kinds the form that holds all of these.

    Attributes:
        kinds; dtype: of the value; has_whole: whether ints of 64 bits are carried beside floats."""

    def __init__(self, kinds: Kinds):
        self.kinds = kinds
        self.dtype = np.result_type(*[kind.aval.dtype for kind in kinds])
        self.has_whole = self.dtype.kind in "fc" and any(kind.aval.dtype == dtypes.int64 for kind in kinds)

    def __call__(self, value: Any) -> Mixed:
        return as_mixed(value, self)


def as_mixed(value: Any, join: Join) -> Mixed:
    """A number as one of several kinds, of which its own is one."""
    kinds = join.kinds
    if type(value) is not Mixed:
        raw = to_raw(False if value is None else value)
        whole = None
        if join.has_whole:
            whole = raw if raw.dtype == dtypes.int64 else ConcreteArray(np.asarray(0, dtypes.int64))
        return Mixed(kinds, cast_raw(raw, join.dtype), _make_tag(kinds.index(type_of(value))), whole)
    if value.kinds == kinds:
        return value
    tag = lax.full((), kinds.index(value.kinds[-1]), dtypes.int32)
    for place, kind in enumerate(value.kinds[:-1]):
        tag = lax.select(value.is_kind(place), _make_tag(kinds.index(kind)), tag)
    whole = value.whole
    if join.has_whole and whole is None:
        is_whole = value.raw.dtype == dtypes.int64
        whole = value.raw if is_whole else ConcreteArray(np.asarray(0, dtypes.int64))
    return Mixed(kinds, cast_raw(value.raw, join.dtype), tag, whole)


def _make_tag(place: int) -> Array:
    return ConcreteArray(np.asarray(place, dtypes.int32))


class Mixed(WithoutValue, CompoundHandle):
    """A traced number of one of several types; immutable.

    Attributes:
        kinds: the types; raw: the value; tag: the place of its type among `kinds`, int32.
        whole: the value, if it is an int, where floats that do not hold each int are among the types."""

    __slots__ = ("kinds", "raw", "tag", "whole")
    __array_priority__ = 400
    leaf_type = None
    is_padded = False

    def __init__(self, kinds: Kinds, raw: Array, tag: Array, whole: Array | None = None):
        self.kinds, self.raw, self.tag, self.whole = kinds, raw, tag, whole

    # -- as a handle ----------------------------------------------------------------------------------------
    def children(self) -> list:
        return [self.raw, self.tag] if self.whole is None else [self.raw, self.tag, self.whole]

    def structure(self) -> Any:
        return "mixed", self.kinds

    def rebuild(self, children: Sequence) -> Any:
        made = Mixed(self.kinds, *children)
        tag = made.tag
        return made.value(int(tag.data)) if isinstance(tag, ConcreteArray) else made

    def join_structure(self, other: Any) -> Callable[[Any], Any] | None:
        return join_kinds(self, other)

    def read(self) -> Array:
        """The value in the common dtype."""
        self.narrow()
        return self.raw

    def is_object(self, other: Any) -> Any:
        if other is None:
            return self.kinds[0] == NONE and self.is_kind(0)
        kinds = other.kinds if type(other) is Mixed else (type_of(other),)
        places = [place for place, kind in enumerate(self.kinds) if kind in kinds and kind != NONE]
        if self is other or not places:
            return self is other
        if type(other) is Mixed:
            raise needs_identity(float)
        found: Any = np.False_
        for place in places:
            is_one = to_raw(self.value(place).is_object(other))
            found = lax.bitwise_or(found, lax.bitwise_and(self.is_kind(place), is_one))
        return found

    def is_same(self, other: Handle) -> bool:
        return type(other) is Mixed and self.structure() == other.structure() and all(
            one is own for one, own in zip(other.children(), self.children()))

    def is_made_in(self, trace) -> bool:
        return any(getattr(raw, "owner", None) is trace for raw in self.children())

    def as_predicate(self):
        return self.raw if self.raw.dtype == np.bool_ else lax.ne(self.raw, self.raw.dtype.type(0))

    # -- its types -------------------------------------------------------------------------------------------
    def narrow(self) -> Any:
        """The number, for what None cannot do. Where it is None, plain Python says what comes of that."""
        if self.kinds[0] == NONE:
            fail(self.is_kind(0), TypeError("None where a number is needed"))
        return self.as_number()

    def as_number(self) -> Any:
        """What it is where it is not None."""
        if self.kinds[0] != NONE:
            return self
        if len(self.kinds) == 2:
            return self.value(1)
        return Mixed(self.kinds[1:], self.raw, lax.sub(self.tag, dtypes.int32.type(1)), self.whole)

    def is_kind(self, place: int) -> Array:
        return lax.eq(self.tag, dtypes.int32.type(place))

    def value(self, place: int) -> Any:
        """The number, if it is of that kind."""
        kind = self.kinds[place]
        is_whole = self.whole is not None and kind.aval.dtype == dtypes.int64
        return kind.kind.wrap(cast_raw(self.whole if is_whole else self.raw, kind.aval.dtype), kind.aval)

    def as_index(self) -> Any:
        """As an index of an axis: ints of every type are one, floats an error where it is one. Raises:
        NotTraceable for others."""
        letters = {kind.aval.dtype.kind for kind in self.kinds if kind != NONE}
        if not letters & set("iu") or not letters <= set("iuf"):
            raise not_traceable("a number is an int on one way only, and used as an index")
        self.narrow()
        for place, kind in enumerate(self.kinds):
            if kind.aval.dtype.kind == "f":
                fail(self.is_kind(place), IndexError("only integers are valid indices"))
        return Number(int, cast_raw(self.raw if self.whole is None else self.whole, dtypes.int64))

    def __repr__(self) -> str:
        return f"Traced<{' or '.join(map(_name_kind, self.kinds))}>"

    # -- operators -------------------------------------------------------------------------------------------
    def __getattr__(self, name: str):
        if self.kinds[0] == NONE:
            return getattr(self.narrow(), name)
        found = [getattr(self.value(place), name) for place in range(len(self.kinds))]
        if not any(map(callable, found)):
            return choose(self, found)
        return lambda *args, **kwargs: distribute(lambda x: getattr(x, name)(*args, **kwargs), self)


def _name_kind(kind: LeafType) -> str:
    if kind == NONE:
        return "None"
    return kind.kind.python_type.__name__ if _is_python(kind) else f"np.{kind.aval.dtype}"


# -- operations ---------------------------------------------------------------------------------------------
_FLOAT_ARITHMETIC = frozenset("add sub mul truediv floordiv mod divmod".split())


def apply_arithmetic(name: str, x: Any, y: Any) -> Any:
    """What Python computes for `x op y` of numbers."""
    widened = _see_through(name, (x, y))
    if widened is not None:
        return arithmetic.BINARY[name](*widened)
    return distribute(find_operator(name), x, y)


def find_operator(name: str) -> Callable:
    """What Python calls for an operator, by the name of its method."""
    return divmod if name == "divmod" else getattr(operator, f"{name}_" if name in ("and", "or") else name)


def may_be_none(x: Any) -> bool:
    """Whether it is a number on one way, and None on another one."""
    return type(x) is Mixed and x.kinds[0] == NONE


def narrow(x: Any) -> Any:
    """A number that may be None as what it is otherwise, see `Mixed.narrow`; all else as it is."""
    return x.narrow() if may_be_none(x) else x


def _see_through(name: str, operands: tuple) -> tuple | None:
    """Operands of Python's arithmetic whose types make no difference to the result, as floats or ints."""
    mixed = [x for x in operands if type(x) is Mixed]
    if not all(_is_python(kind) and kind.kind.python_type is not complex for x in mixed for kind in x.kinds):
        return None
    others = [arithmetic.kind_of(x) for x in operands if type(x) is not Mixed]
    if complex in others:
        return None
    is_exact = all(x.whole is None for x in mixed)  # an int beyond 2**53 is compared as what it is
    if name in COMPARISONS and is_exact or name in _FLOAT_ARITHMETIC and float in others:
        return tuple([_widen(x) if type(x) is Mixed else x for x in operands])
    return None


def _widen(x: Mixed) -> Number:
    return Number(float if x.raw.dtype.kind == "f" else int, x.raw)


def see_through_ufunc(ufunc: np.ufunc, inputs: Sequence, resolve: Callable) -> list | None:
    """Operands for a ufunc that computes in the same dtypes whatever the types are; None where it does not.

    resolve: (operands) -> dtypes of the loop."""
    found = [inputs]
    for x in dict.fromkeys(place for place, x in enumerate(inputs) if type(x) is Mixed):
        found = [[*given[:x], inputs[x].value(k), *given[x + 1 :]]
                 for given in found for k in range(len(inputs[x].kinds))]
    if all(type(v) is Number for v in (v for given in found for v in given)):
        return None
    try:
        loops = {tuple(resolve(given)) for given in found}
        if len(loops) > 1:
            return None
        loop = loops.pop()
        has_whole = [type(x) is Mixed and x.whole is not None for x in inputs]
        if any(whole and dtype not in _WIDE for whole, dtype in zip(has_whole, loop)):
            return None  # an int would be rounded twice
        wide = [Scalar(cast_raw(x.raw, dtype)) if type(x) is Mixed else x for x, dtype in zip(inputs, loop)]
        return wide if tuple(resolve(wide)) == loop else None
    except TypeError:
        return None


_WIDE = (dtypes.float64, dtypes.complex128)
#: Steps of looking at an item of an operand.
_ITEM = 0.1


def find_mixed(values: Any) -> Mixed | None:
    """A mixed number among values and the items of sequences."""
    for x in values:
        if type(x) is Mixed:
            return x
        if type(x) in (list, tuple):
            spend(_ITEM * len(x))
            found = find_mixed(x)
            if found is not None:
                return found
    return None


def distribute(function: Callable, *operands: Any) -> Any:
    """`function(*operands)` for each type that a mixed number among them may have."""
    found = find_mixed(operands)
    if found is None:
        return function(*operands)
    places, results, problem = [], [], None
    guards = current.mode.guards
    for place in range(len(found.kinds)):
        guards.append(found.is_kind(place))
        try:
            results.append(distribute(function, *_replace(operands, found, found.value(place))))
            places.append(place)
        except Exception as error:  # Python raises it if the number is of this type
            if isinstance(error, NotTraceable) and found.kinds[place] != NONE:
                raise
            problem = error
            fail(True, error)
        finally:
            guards.pop()
    if not results:
        raise problem
    return choose(found, results, places)


def _replace(values: Any, old: Mixed, new: Any) -> Any:
    items = [new if x is old else _replace(x, old, new) if type(x) in (list, tuple) else x for x in values]
    return type(values)(items)


def distributing(function: Callable) -> Callable:
    """A function of handles that takes mixed numbers too, where it has no effect but its result."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if find_mixed(args) is None and find_mixed(kwargs.values()) is None:
            return function(*args, **kwargs)
        names = list(kwargs)
        if "out" in names:
            raise not_traceable("an array is changed by a number whose type depends on a traced value")
        return distribute(lambda args, options: function(*args, **dict(zip(names, options))), tuple(args),
                          tuple(kwargs.values()))

    call.__name__ = getattr(function, "__name__", "call")
    return call


# -- results ------------------------------------------------------------------------------------------------
def choose(mixed: Mixed, results: Sequence, places: Sequence[int] | None = None) -> Any:
    """What an operation gives, of its results for the kinds at some places of a mixed number."""
    places = range(len(results)) if places is None else places
    chosen = results[-1]
    for place, result in zip(places[-2::-1], results[-2::-1]):
        chosen = select(mixed.is_kind(place), result, chosen)
    return chosen


def select(predicate: Array, one: Any, other: Any) -> Any:
    """`one if predicate else other` of numbers, arrays, and tuples of them."""
    if one is other:
        return one
    if type(one) is type(other) is tuple and len(one) == len(other):
        return tuple([select(predicate, *pair) for pair in zip(one, other)])
    if type(one) is type(other) is NDArray and one.dtype == other.dtype and one.shape == other.shape:
        chosen = lax.select(lax.broadcast_in_dim(predicate, one.shape, ()), one.read(), other.read())
        return new_array(chosen, one.order if one.order == other.order else None)
    types = type_of(one), type_of(other)
    if types[0] is not None and types[0] == types[1]:
        if not isinstance(one, Handle) and not isinstance(other, Handle) and one == other:
            return one
        raws = [to_raw(x, types[0].aval.dtype) for x in (one, other)]
        chosen = types[0].kind.wrap(lax.select(predicate, *raws), types[0].aval)
        if type(chosen) is Number and chosen.python_type is int:
            (low, high), (least, most) = map(arithmetic.interval_of, (one, other))
            return Number(int, chosen.read(), interval=(min(low, least), max(high, most)))
        return chosen
    convert = join_kinds(one, other)
    if convert is None and type(one) is type(other) is Mixed:
        convert = lambda value: value  # noqa: E731  of the same kinds
    if convert is None:
        raise not_traceable("a result has another type or shape for each type that a number may have")
    pair = convert(one), convert(other)
    chosen = [lax.select(predicate, *parts) for parts in zip(pair[0].children(), pair[1].children())]
    return Mixed(pair[0].kinds, *chosen)


def make_conversion(kinds: Kinds) -> Conversion:
    """Makes the result of a call of an output and its tag."""
    return Conversion([getattr(kind.kind, "python_type", kind.aval.dtype.type) for kind in kinds])
