"""Texts of traced values: `f"{x:.3f}"`, `"%d of %d" % (i, n)`, `str(x)`.

In: what Python would make a str of, and cannot read yet. Out: a `Text`: the Arrays that it needs, and a
recipe that makes the str of these when the program runs. A program can print a `Text` and return it. All else
that Python does with a str needs its letters while tracing, and raises.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore.array import Array, ConcreteArray
from jitcore.process.generated import Constants
from jitcore.rewriter import errors
from jitcore.rewriter.handles import CompoundHandle, Handle, current
from jitcore.rewriter.objects import walk
from jitcore.rewriter.values import Poison, is_traced

# -- recipes ------------------------------------------------------------------------------------------------
#: Types whose values are equal where their type and their repr are.
_PLAIN = (str, int, float, complex, bool, bytes, type(None), np.dtype, range)


def resolve(callee: Any) -> Any:
    """What traced code calls instead of a callable. `functions`, which needs texts, puts its own here."""
    raise NotImplementedError


class Constant:
    """What Python knows while tracing."""

    __slots__ = ("value", "key")

    def __init__(self, value: Any):
        self.value = value
        self.key = type(value), repr(value) if type(value) in _PLAIN else id(value)

    def __eq__(self, other) -> bool:
        return type(other) is Constant and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


class Leaf(NamedTuple):
    """make: the Python object of `count` ndarrays; key: equal for the same kind of object."""

    make: Callable
    count: int
    key: Any


class Call(NamedTuple):
    function: Callable
    parts: tuple


class Items(NamedTuple):
    """A container. keys: of a dict."""

    kind: type
    parts: tuple
    keys: tuple = ()


class Shown:
    """An object as it is printed."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Code(Constants):
    """Python expressions of recipes, one after the other, over the variables a0, a1, ... of the operands.

    count: of the operands that they have taken."""

    def __init__(self, count: int = 0):
        super().__init__()
        self.count = count

    def write(self, recipe: Any) -> str:
        """The expression of what a recipe makes."""
        if type(recipe) is Constant:
            return self.add(recipe.value)
        if type(recipe) is Leaf:
            operands = [f"a{self.count + k}" for k in range(recipe.count)]
            self.count += recipe.count
            return f"{self.add(recipe.make)}({', '.join(operands)})"
        parts = [self.write(part) for part in recipe.parts]
        if type(recipe) is Call:
            return f"{self.add(recipe.function)}({', '.join(parts)})"
        if recipe.kind is dict:
            pairs = zip(map(self.add, recipe.keys), parts)
            return f"{{{', '.join(f'{key}: {part}' for key, part in pairs)}}}"
        items = "".join(f"{part}, " for part in parts)
        if recipe.kind is tuple:
            return f"({items})"
        return f"{self.add(recipe.kind)}({items if hasattr(recipe.kind, '_fields') else f'[{items}]'})"

    def define_on_operands(self, lines: Sequence[str], **given: Any) -> Callable:
        """The function of the operands with this body."""
        operands = ", ".join(f"a{k}" for k in range(self.count))
        return self.define("run", operands, lines, __name__, **given)


def prepare(recipe: Any) -> Callable:
    """The function of ndarrays that makes what a recipe says."""
    code = Code()
    return code.define_on_operands([f"return {code.write(recipe)}"])


# -- what values are made of --------------------------------------------------------------------------------
def holds_traced(value: Any) -> bool:
    """Whether a value is traced, or something in it."""
    return any(is_traced(one) or type(one) is Poison for one in walk([value]))


def express(value: Any, operands: list[Array], *, is_item: bool = False) -> Any:
    """The recipe of a value; adds its operands. is_item: whether Python shows its `repr`."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, ConcreteArray):
        return Constant(value)
    if kind is Poison:
        value.raise_reason()
    if isinstance(value, np.ndarray) and current.mode is not None:
        value = current.mode.adopt(value)
    if kind is Text:
        operands += value.operands
        return value.recipe
    if isinstance(value, Handle):
        raws, leaf = current.mode.express(value)
        operands += raws
        return leaf
    if isinstance(value, Array):
        operands.append(value)
        return _ARRAYS[bool(value.weak_type)]
    if isinstance(value, np.ndarray):
        return Constant(value.copy())
    if kind in (list, tuple, set, frozenset, dict) or isinstance(value, tuple) and hasattr(kind, "_fields"):
        items = value.values() if kind is dict else value
        keys = tuple(map(Constant, value)) if kind is dict else ()
        parts = tuple([express(item, operands, is_item=True) for item in items])
        return Items(kind, parts, tuple([key.value for key in keys]))
    return _express_object(value, operands, is_item)


_ARRAYS = [
    Leaf(lambda value: ConcreteArray(np.asarray(value), False), 1, "array"),
    Leaf(lambda value: ConcreteArray(np.asarray(value), True), 1, "weak array")]


def _express_object(value: Any, operands: list[Array], is_item: bool) -> Any:
    """What the text of an object of another class is made of."""
    kind = type(value)
    names = ("__repr__",) if is_item or kind.__str__ is object.__str__ else ("__str__", "__repr__")
    is_error = isinstance(value, BaseException) and kind.__str__ is BaseException.__str__
    if is_error and not is_item and len(value.args) == 1:
        return express(value.args[0], operands)
    method = getattr(kind, names[0])
    if isinstance(method, types.FunctionType):
        text = resolve(method)(value)
        if not isinstance(text, (str, Text)):
            raise TypeError(f"{names[0]} returned non-string (type {type(text).__name__})")
        return Call(Shown, (express(text, operands),))
    if method is object.__repr__ and not isinstance(value, type) and current.mode is not None:
        raise _needs_place(kind)
    if holds_traced(value):
        raise _needs_value(value, f"str() of a {kind.__name__}")
    return Constant(Shown(repr(value) if is_item else str(value)))


def _needs_value(value: Any, wanted: str) -> Exception:
    if current.mode is not None:
        return current.mode.refuse(f"{wanted} needs the value of what is traced in it", value)
    return errors.text_error(wanted, None)


# -- texts --------------------------------------------------------------------------------------------------
class Text(CompoundHandle):
    """A str that the program makes; immutable.

    Attributes:
        recipe: of the str; operands: the Arrays that it takes, in order."""

    __slots__ = ("recipe", "operands")
    leaf_type = None
    is_padded = False

    def __init__(self, recipe: Any, operands: Sequence[Array]):
        self.recipe, self.operands = recipe, list(operands)

    # -- as a handle ----------------------------------------------------------------------------------------
    def children(self) -> list:
        return self.operands

    def structure(self) -> Any:
        return "text", self.recipe

    def rebuild(self, children: Sequence) -> Text:
        return Text(self.recipe, children)

    def is_same(self, other: Handle) -> bool:
        return type(other) is Text and self.recipe == other.recipe and all(
            one is own for one, own in zip(other.operands, self.operands))

    def is_made_in(self, trace) -> bool:
        return any(getattr(raw, "owner", None) is trace for raw in self.operands)

    def read(self) -> Array:
        raise _needs_value(self, "a number made of a text")

    def as_predicate(self):
        raise _needs_value(self, "bool() of a text")

    # -- as a str -------------------------------------------------------------------------------------------
    def __getattr__(self, name: str):
        if name in _METHODS:
            return functools.partial(make_text, getattr(str, name), self)
        if hasattr(str, name):
            raise _needs_value(self, f"str.{name}() of a text")
        raise AttributeError(f"'str' object has no attribute '{name}'")

    def __add__(self, other):
        return make_text(operator.add, self, other) if isinstance(other, (str, Text)) else NotImplemented

    def __radd__(self, other):
        return make_text(operator.add, other, self) if isinstance(other, str) else NotImplemented

    def __mul__(self, count):
        return make_text(operator.mul, self, count)

    __rmul__ = __mul__

    def __getitem__(self, place):
        return make_text(operator.getitem, self, place) if type(place) is int else make_text(
            _slice, self, place.start, place.stop, place.step)

    def __mod__(self, values):
        return remainder((self, values))

    def __str__(self) -> str:
        if current.mode is not None:
            raise _needs_value(self, "the text")
        return self.preview()

    def preview(self) -> str:
        """The text with traced values shown as such."""
        try:
            return prepare(self.recipe)(*map(_Unknown, self.operands))
        except (TypeError, ValueError):
            return "<text of traced values>"

    def __repr__(self) -> str:
        return "a text of traced values"


def _slice(text: str, start: Any, stop: Any, step: Any) -> str:
    return text[start:stop:step]


#: Methods of str that give a str.
_METHODS = frozenset(
    """capitalize casefold center expandtabs ljust lower lstrip removeprefix removesuffix replace rjust rstrip
    strip swapcase title upper zfill""".split()
)


def _refuse(name: str) -> Callable:
    def method(self, *args):
        raise _needs_value(self, f"{name}() of a text")

    return method


for _name in "bool len iter contains hash eq ne lt le gt ge int float index".split():
    setattr(Text, f"__{_name}__", _refuse(_name))


class _Unknown:
    """Stands for a traced value in a text that is made before the program runs."""

    def __init__(self, raw: Array):
        self.raw = raw

    def __format__(self, spec: str) -> str:
        return repr(self.raw)

    def __repr__(self) -> str:
        return repr(self.raw)

    def item(self):
        return self

    def __getitem__(self, place):
        return self


# -- what makes texts ---------------------------------------------------------------------------------------
def make_text(function: Callable[..., str], *values: Any) -> Text:
    """The text that a function gives of some values."""
    operands: list[Array] = []
    parts = tuple([express(value, operands, is_item=function is repr) for value in values])
    return Text(Call(function, parts), operands)


def _make_text_of(function: Callable[..., str], values: Sequence, named: dict[str, Any]) -> Text:
    """function: of a tuple and a dict."""
    operands: list[Array] = []
    parts = [tuple([express(value, operands) for value in group]) for group in (values, named.values())]
    return Text(Call(function, (Items(tuple, parts[0]), Items(dict, parts[1], tuple(named)))), operands)


def _find_own_format(value: Any) -> Callable | None:
    """The `__format__` that the class of an object has in Python; None where it has none."""
    if isinstance(value, (Array, Handle, Poison, np.ndarray)):
        return None
    method = type(value).__format__
    return method if isinstance(method, types.FunctionType) else None


_CONVERSIONS = {1: str, 2: repr, 3: ascii}


def find_formatter(conversion: int) -> Callable[[Sequence], Any]:
    """What formats (value, specification) as a part of an f-string. conversion: `!s`, `!r`, `!a` as 1, 2, 3;
    0 for none."""
    convert = _CONVERSIONS.get(conversion)

    def format_value(pair: Sequence) -> Any:
        value, spec = pair
        if convert is not None:
            value = show_value(convert, value)
        if type(value) is Text and spec == "":
            return value
        if holds_traced(value) and (method := _find_own_format(value)) is not None:
            return resolve(method)(value, spec)
        if holds_traced(value) or type(spec) is Text:
            _check_format(type(spec) is Text or spec.endswith("c"))
            return rehearse(make_text(format, value, spec))
        return make_now(format, value, spec)

    return format_value


def find_converter(conversion: int) -> Callable[[Any], Any]:
    """`!s`, `!r` or `!a` of a value."""
    return functools.partial(show_value, _CONVERSIONS[conversion])


def show_value(function: Callable[[Any], str], value: Any) -> Any:
    """`str(value)`, `repr(value)` or `ascii(value)`."""
    return make_text(function, value) if holds_traced(value) else make_now(function, value)


def make_now(function: Callable[..., str], *values: Any) -> Any:
    """What a function gives of values of which nothing is traced.

    Raises: under a mode, where the text says at which place in memory an object is, which is a stand-in."""
    text = function(*values)
    if current.mode is not None and type(text) is str and _PLACE in text:
        for value in values:
            if type(value) not in _PLAIN:
                raise _needs_place(type(value))
    return text


def _needs_place(kind: type) -> Exception:
    text = f"the text of an object of type {kind.__qualname__} depends on its place in memory"
    return current.mode.refuse(text)


#: What stands in texts of objects that have no text of their own.
_PLACE = " at 0x"


def join_parts(parts: Sequence) -> Any:
    """The parts of an f-string, one behind the other."""
    return _define_join("".join)(parts)


def remainder(pair: Sequence, operate: Callable = operator.mod) -> Any:
    """`text % values`, and any other `%`."""
    one, other = pair
    if not isinstance(one, (str, Text)) or not (type(one) is Text or holds_traced(other)):
        return make_now(operate, one, other)
    _check_format(type(one) is Text or _CHARACTERS.search(one))
    if type(one) is Text:
        return make_text(operator.mod, one, other)
    if type(other) is tuple:
        return rehearse(_make_text_of(Filled("%", one), other, {}))
    return rehearse(make_text(operator.mod, one, other))


#: What stands for a character of a number, or a width that is one of the values.
_CHARACTERS = re.compile(r"%[^%a-zA-Z]*[c*]|:[^{}]*c\}|:[^}]*\{")


def _check_format(needs_values: Any) -> None:
    """Raises: under a mode, where only values can tell whether a format fits."""
    if needs_values and current.mode is not None:
        raise current.mode.refuse("whether a number can be formatted depends on values")


def rehearse(text: Text) -> Text:
    """The text, once it was made of ones: formats that do not fit the types of values raise here what they
    raise in Python, and not while the program runs."""
    if current.mode is not None:
        ones = [np.ones((), raw.dtype) for raw in text.operands]
        prepare(text.recipe)(*[one if not raw.shape else np.broadcast_to(one, raw.shape)
                               for one, raw in zip(ones, text.operands)])
    return text


_WAYS = {"%": lambda text, values, named: text % values,
         "join": lambda text, values, named: text.join(values),
         "format": lambda text, values, named: text.format(*values, **named)}


@dataclasses.dataclass(frozen=True)
class Filled:
    """A text into which values are put: a function of a tuple and a dict. way: one of `_WAYS`."""

    way: str
    text: str

    def __call__(self, values: tuple, named: dict) -> str:
        return _WAYS[self.way](self.text, values, named)


def find_method(method: types.BuiltinMethodType) -> Callable | None:
    """What is called instead of a method of a str that puts values into it; None for others."""
    return _METHODS_OF_STR[method.__name__](method) if method.__name__ in _METHODS_OF_STR else None


def _define_format(method: Callable) -> Callable:
    def call(*values: Any, **named: Any) -> Any:
        if not any(map(holds_traced, (*values, *named.values()))):
            return make_now(lambda *_: method(*values, **named), *values, *named.values())
        for value in (*values, *named.values()):
            if holds_traced(value) and _find_own_format(value) is not None:
                raise _needs_value(value, f"str.format() of a {type(value).__name__}")
        _check_format(_CHARACTERS.search(method.__self__))
        return rehearse(_make_text_of(Filled("format", method.__self__), values, named))

    return call


def _define_join(method: Callable) -> Callable:
    def call(parts: Any) -> Any:
        parts = list(parts)
        if not any(type(part) is Text for part in parts):
            return method(parts)
        return _make_text_of(Filled("join", method.__self__), parts, {})

    return call


_METHODS_OF_STR = {"format": _define_format, "join": _define_join}
