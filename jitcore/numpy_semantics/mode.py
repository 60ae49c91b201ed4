"""NumPy's semantics in force: a mode of the rewriter, what is called instead of functions, what operators do.

In: the values, operators and calls that rewritten code meets. Out: types for carries, redirects, `x + y`,
`x[i]`, `round(x)` and `x.item()` of handles, whose classes themselves only hold data; and a flag, which the
program returns: whether Python would have raised, so that the call has to be run by Python.
"""

from __future__ import annotations

import operator as python_operators
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore import lax
from jitcore.array import Array, ConcreteArray
from jitcore.core.algebra import COMPARISONS
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.trace import context
from jitcore.numpy_semantics.dynamic_extents import extents
from jitcore.numpy_semantics.dynamic_extents.joining import pack
from jitcore.numpy_semantics.errors import NeedsValue, needs_identity, not_traceable
from jitcore.numpy_semantics.functions import tables
from jitcore.numpy_semantics.functions.dispatch import apply_function
from jitcore.numpy_semantics.functions.memory import Flags
from jitcore.numpy_semantics.functions.scipy_table import find_scipy
from jitcore.numpy_semantics.functions.ufuncs import KERNELS, apply_in_place, apply_operator, apply_ufunc
from jitcore.numpy_semantics.values import arithmetic, sequences
from jitcore.numpy_semantics.values.arithmetic import bound_size
from jitcore.numpy_semantics.values.conversions import REDIRECTS, round_handle, to_python
from jitcore.numpy_semantics.values.equality import find_first
from jitcore.numpy_semantics.values.items import get_item, pick_item, set_item
from jitcore.numpy_semantics.values.lists import Element, make_list
from jitcore.numpy_semantics.values.mixed import (Mixed, apply_arithmetic, distribute, distributing,
                                                  find_operator, join_kinds, make_conversion, may_be_none,
                                                  narrow, select, type_of)
from jitcore.numpy_semantics.values.ndarray import NDArray, new_array, unwrap_array
from jitcore.numpy_semantics.values.number_lists import repeat_number
from jitcore.numpy_semantics.values.numbers import Number, bound_int, follow_int, is_large, number_type
from jitcore.numpy_semantics.values.operators import ACCEPTED, OPERATORS, UNARY
from jitcore.numpy_semantics.values.promotion import SUPPORTED, cast_raw, is_python_number, to_raw
from jitcore.numpy_semantics.values.scalars import SCALAR, Scalar
from jitcore.numpy_semantics.values.storage import Storage, StorageLocation
from jitcore.rewriter.handles import Handle, LeafType, Mode
from jitcore.rewriter.journal import AttributeLocation, record
from jitcore.rewriter.objects import find_owner
from jitcore.rewriter.operations.redirects import TEXT_REDIRECTS
from jitcore.rewriter.operations.texts import Leaf


class NumpyMode(Mode):
    """Plain Python and NumPy: 64 bits, NEP 50, mutable arrays.

    Attributes:
        flag: a storage that holds whether anything has failed; failures: the errors, in the order of tracing.
        checked: positions that were found inside of their axes, with the trace of that (`items`).
        guards: what has to hold for that which is computed now to count (`mixed`).
        elements: of the rows that loops gave, by id (`stacks`).
        loops: that are being traced, the outer ones first.
        mixes: whether lists that are made are of ints and floats."""

    unrolled = 1  # nests of short loops would multiply
    mixes = False

    def __init__(self):
        self.flag = Storage(ConcreteArray(np.asarray(False)))
        self.root = context.trace
        self.failures: list[BaseException] = []
        self.checked: dict[tuple, list] = {}
        self.guards: list[Array] = []
        self.elements: dict[int, Element] = {}

    @property
    def redirects(self) -> Redirects:
        return FORMS

    @property
    def failure(self) -> StorageLocation:
        return StorageLocation(self.flag)

    @property
    def failed(self) -> Array:
        """The flag's value, a bool scalar: an output of the program."""
        return self.flag.value

    @property
    def can_fail(self) -> bool:
        return not isinstance(self.flag.value, ConcreteArray)

    def type_of(self, leaf: Any) -> LeafType | None:
        if isinstance(leaf, Array):
            return LeafType(leaf.aval, None)
        if is_python_number(leaf):
            kind = next(kind for kind in (bool, int, float, complex) if isinstance(leaf, kind))
            if kind is int:
                return number_type(int, is_large((leaf, leaf))) if -(2**63) <= leaf < 2**63 else None
            return number_type(kind)
        if isinstance(leaf, np.generic) and leaf.dtype in SUPPORTED:
            return LeafType(ShapedArray((), leaf.dtype), SCALAR)
        return None

    def convert(self, leaf: Any, aval: ShapedArray) -> Array:
        if isinstance(leaf, (Handle, Array)):
            return cast_raw(leaf.read() if isinstance(leaf, Handle) else leaf, aval.dtype)
        return to_raw(leaf, aval.dtype)

    def express(self, handle: Handle) -> tuple[list[Array], Any]:
        found = express_handle(handle)
        if found is None:
            raise not_traceable(f"the text of a {type(handle).__name__} is made")
        return found

    def store_attribute(self, owner: Any, name: str, value: Any) -> None:
        record(AttributeLocation(owner, name))
        setattr(owner, name, value)

    def repeat(self, items: list, count: Any) -> Any:
        found = repeat_number(items, count, self.mixes) if self.grows else None
        self.has_grown |= found is not None
        return found

    def pick(self, values: list | tuple, place: Handle) -> Any:
        return pick_item(values, place)

    def select(self, predicate: Array, one: Any, other: Any) -> Any:
        return select(predicate, one, other)

    def refuse(self, reason: str, value: Any = None) -> Exception:
        return not_traceable(reason) if value is None else NeedsValue(str(not_traceable(reason)), value)

    def refuse_identity(self, kind: type) -> Exception:
        return needs_identity(kind)

    def find_failed(self) -> Array | None:
        return self.flag.value if self.can_fail else None

    def equality_key(self, value: Any) -> Hashable | None:
        if isinstance(value, Array):
            return id(find_first(value))
        is_int = type(value) is Number and value.python_type is int
        return extents.unify(value).form.key if is_int else None

    def find_joint(self, one: Any, other: Any) -> Callable[[Any], Any] | None:
        return join_kinds(one, other)

    def take_element(self, stack: Array, index: int) -> Array:
        found = lax.index_in_dim(stack, index, 0, keepdims=False)
        self.elements[id(found)] = Element(found, stack, index)
        return found

    def make_list(self, items: Sequence, item: Any, capacity: int) -> Any:
        return make_list(items, item, capacity)

    def as_bound(self, value: Any) -> Any:
        return bound_size(self.redirects.get(int, int)(value))

    def bound_index(self, element: Any, low: Any, high: Any) -> Any:
        return bound_int(element, low, high)

    def follow_index(self, place: Any) -> Any:
        return follow_int(place)

    def fail(self, predicate: Any, error: BaseException) -> bool:
        if isinstance(predicate, Handle):
            predicate = predicate.as_predicate()
        if isinstance(predicate, (bool, np.bool_)):
            if not predicate:
                return True
            if context.trace is self.root and not self.guards:
                return False  # nothing decides whether this is reached
            predicate = ConcreteArray(np.asarray(True))
        for guard in self.guards:
            predicate = lax.bitwise_and(guard, predicate)
        self.failures.append(error)
        before = self.flag.value
        is_first = isinstance(before, ConcreteArray) and not before.data
        self.flag.write(predicate if is_first else lax.bitwise_or(before, predicate))
        return True


#: Libraries whose functions have implementations over handles.
LIBRARIES = frozenset(("itertools", "math", "numpy", "scipy"))


class Redirects(dict):
    """What is called instead of functions, by function: each is found when code first calls it, and nothing
    of a library's functions is loaded before code calls one."""

    def get(self, callee: Any, default: Any = None) -> Any:
        found = super().get(callee)
        if found is None:
            found = _find_form(callee)
            if found is None:
                return default
            self[callee] = found
        return found


FORMS = Redirects(TEXT_REDIRECTS)


def _find_form(callee: Any) -> Callable | None:
    """What rewritten code calls instead of a function of Python's, NumPy's or SciPy's; None for others."""
    form = REDIRECTS.get(callee)
    if form is not None:
        return distributing(form)
    owner, module = find_owner(callee)
    library = module.partition(".")[0]
    if library not in LIBRARIES:
        return None
    tables.load()
    if library == "scipy":
        return find_scipy(callee)
    is_reduction = isinstance(owner, np.ufunc) and owner in KERNELS and callee == owner.reduce
    form = tables.CREATION.get(callee)
    if form is None and (callee in tables.FUNCTIONS or callee in KERNELS
                         or is_reduction and (owner.nin, owner.nout) == (2, 1)):
        form = sequences.define_form(callee)  # handles reach it as arguments, but not as elements of a list
    return form and distributing(form)


# -- operators ----------------------------------------------------------------------------------------------
_SEQUENCES = (list, tuple)


def _operate_on_arrays(name: str, x: Any, y: Any) -> Any:
    if type(x) is Mixed or type(y) is Mixed:
        return _operate_on_mixed(name, x, y)
    if isinstance(x, ACCEPTED) and isinstance(y, ACCEPTED):
        return apply_operator(name, x, y)
    other = y if isinstance(x, ACCEPTED) else x
    if name in ("eq", "ne") and (other is None or isinstance(other, str)):
        raise not_traceable(f"a comparison of a traced array with {other!r}")
    return NotImplemented


def _operate_on_scalars(name: str, x: Any, y: Any) -> Any:
    """A Python complex number takes an `np.float64` for the float that it is too, so that the result is
    Python's. Lists and tuples are repeated, which Python asks the scalar's value for."""
    if name == "mul" and isinstance(x, _SEQUENCES) | isinstance(y, _SEQUENCES):
        return NotImplemented
    if name in ("eq", "ne") and (x is None or y is None):
        return name == "ne"
    kind = x.python_type if isinstance(x, Number) else type(x)
    if kind is complex and name in ("add", "sub", "mul", "truediv", "pow") and y.dtype == np.float64:
        return getattr(python_operators, name)(x, y.item())
    return _operate_on_arrays(name, x, y)


def _operate_on_numbers(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, (np.generic, np.ndarray)) or isinstance(y, (np.generic, np.ndarray)):
        return apply_ufunc(OPERATORS[name], "__call__", (x, y), {})
    is_plain = all(isinstance(v, (Number, bool, int, float, complex)) for v in (x, y))
    return arithmetic.BINARY[name](x, y) if is_plain else NotImplemented


def _operate_on_mixed(name: str, x: Any, y: Any) -> Any:
    if name == "mul" and isinstance(x, _SEQUENCES) | isinstance(y, _SEQUENCES):
        return NotImplemented
    if may_be_none(x) or may_be_none(y):
        operate = find_operator(name)
        return distribute(operate, x, y) if name in ("eq", "ne") else operate(narrow(x), narrow(y))
    if all(isinstance(v, (Mixed, Number, bool, int, float, complex)) and not isinstance(v, np.generic)
           for v in (x, y)):
        return apply_arithmetic(name, x, y)
    others = (Handle, np.generic, np.ndarray, list, tuple)
    is_known = all(isinstance(v, others) or type_of(v) for v in (x, y))
    return apply_operator(name, x, y) if is_known else NotImplemented


class Family(NamedTuple):
    """How a class does its operators. what: it, in errors; binary: which operators of two operands it has;
    operate: (name, x, y) -> their results; unary: which of one operand; apply: (name, x) -> their results."""

    what: str
    binary: Iterable[str]
    operate: Callable
    unary: Iterable[str]
    apply: Callable
    round: Callable


def _apply_unary(name: str, x: Any) -> Any:
    return apply_ufunc(UNARY[name], "__call__", (x,), {})


def _round_mixed(self, digits=None):
    return distribute(lambda x: round(x) if digits is None else round(x, digits), self)


FAMILIES = {
    NDArray: Family("an array", OPERATORS, _operate_on_arrays, UNARY, _apply_unary, round_handle),
    Scalar: Family("an array", OPERATORS, _operate_on_scalars, UNARY, _apply_unary, round_handle),
    Number: Family("a traced number", arithmetic.BINARY, _operate_on_numbers, arithmetic.UNARY,
                   lambda name, x: arithmetic.UNARY[name](x), arithmetic.round_number),
    Mixed: Family("a traced number", OPERATORS, _operate_on_mixed, arithmetic.UNARY,
                  lambda name, x: distribute(lambda own: getattr(own, f"__{name}__")(), x), _round_mixed)}


def _install_operators(cls: type, family: Family) -> None:
    for name in family.binary:
        _set(cls, f"__{name}__", lambda self, other, name=name: family.operate(name, self, other))
        if name not in COMPARISONS:
            _set(cls, f"__r{name}__", lambda self, other, name=name: family.operate(name, other, self))
    for name in family.unary:
        _set(cls, f"__{name}__", lambda self, name=name: family.apply(name, self))

    def power(self, other, modulus=None):
        if modulus is not None:
            raise not_traceable(f"pow() of {family.what} with a modulus")
        return family.operate("pow", self, other)

    _set(cls, "__pow__", power)
    _set(cls, "__round__", lambda self, digits=None: family.round(self, digits))


def _set(cls: type, name: str, function: Callable) -> None:
    function.__name__ = name
    setattr(cls, name, function)


def _apply_hooked_ufunc(self, ufunc, method, *inputs, **kwargs):
    return apply_ufunc(ufunc, method, inputs, kwargs)


def _apply_hooked_function(self, function, types, args, kwargs):
    return apply_function(function, args, kwargs)


def _install_in_place(name: str) -> None:
    def operate(self, other):
        return apply_in_place(name, self, other) if isinstance(other, ACCEPTED) else NotImplemented

    _set(NDArray, f"__i{name}__", operate)


# -- arrays and scalars -------------------------------------------------------------------------------------
def _item_of_array(self, *args):
    """One element as a Python number."""
    if not args:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return to_python(Scalar(lax.reshape(self.read(), ())))
    place = args[0] if len(args) == 1 else args
    return to_python((self if isinstance(place, tuple) else self.flat)[place])


def _item_of_scalar(self, *args):
    """The Python number of this value."""
    if args not in ((), (0,), ((),)):
        raise IndexError("index out of bounds")
    return to_python(self)


def _is_integer(self):
    """Whether a float has no fraction."""
    if self.dtype.kind not in "fiu":
        raise AttributeError(f"'numpy.{self.dtype.type.__name__}' object has no attribute 'is_integer'")
    return to_python(self).is_integer()


def _as_array(self):
    """An array without axes that holds it."""
    return new_array(self.read())


def _find_attribute(self, name: str):
    """An attribute of a NumPy scalar: that of an array without axes."""
    if name.startswith("__") or not hasattr(np.dtype(self.dtype).type, name):
        raise AttributeError(f"'numpy.{self.dtype}' object has no attribute '{name}'")
    method = getattr(self.as_array(), name)
    if not callable(method):
        return method
    return lambda *args, **kwargs: unwrap_array(method(*args, **kwargs))


METHODS: dict[type, dict[str, Any]] = {
    NDArray: {"__getitem__": get_item, "__setitem__": set_item, "item": _item_of_array,
              "flags": property(Flags, doc="Its layout, as far as that is known.")},
    Scalar: {"__getattr__": _find_attribute, "as_array": _as_array, "is_integer": _is_integer,
             "item": _item_of_scalar, "tolist": _item_of_scalar}}


def install() -> None:
    """Puts operators, methods and NumPy's hooks on the classes of handles."""
    for cls, family in FAMILIES.items():
        _install_operators(cls, family)
        cls.__array_ufunc__, cls.__array_function__ = _apply_hooked_ufunc, _apply_hooked_function
        for name, method in METHODS.get(cls, {}).items():
            setattr(cls, name, method)
    for name in OPERATORS:
        if name not in COMPARISONS and name != "divmod":
            _install_in_place(name)


# -- what texts need of handles -----------------------------------------------------------------------------
def _make_number(value: np.ndarray) -> Any:
    return value.item()


def _make_scalar(value: np.ndarray) -> Any:
    return value[()]


def _make_array(value: np.ndarray) -> np.ndarray:
    return value


def _make_part(values: np.ndarray, *extents: np.ndarray) -> np.ndarray:
    return values[tuple([slice(extent.item()) for extent in extents])]


def express_handle(handle: Any) -> tuple[list[Array], Leaf] | None:
    """(Arrays, what makes the object); None for other handles."""
    if type(handle) is Mixed:
        children = handle.children()
        return children, Leaf(make_conversion(handle.kinds), len(children), ("mixed", handle.kinds))
    if isinstance(handle, Number):
        return [handle.read()], _LEAVES[_make_number]
    if isinstance(handle, Scalar):
        return [handle.read()], _LEAVES[_make_scalar]
    if not isinstance(handle, NDArray):
        return None
    if handle.is_padded:
        values, extents = pack(handle)
        raws = [extent.read() if isinstance(extent, Number) else np.asarray(extent) for extent in extents]
        return [values, *raws], Leaf(_make_part, 1 + len(raws), _make_part)
    return [handle.read()], _LEAVES[_make_array]


_LEAVES = {make: Leaf(make, 1, make) for make in (_make_number, _make_scalar, _make_array)}
