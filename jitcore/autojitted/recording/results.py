"""What a call returns and writes, as code.

In: the result of the traced function, and what became of the stand-ins of its arguments. Out: `Effects`: the
outputs of the program, and lines that make the result of them and write what was changed. In the code, `x3`
is the value at place 3 and `outs` holds the outputs.
"""

from __future__ import annotations

import enum
import functools
import types
from typing import Any, NamedTuple

import numpy as np

from jitcore.array import Array, ConcreteArray
from jitcore.autojitted.inputs.captures import ModuleView, Namespace
from jitcore.autojitted.inputs.specs import is_constant_key
from jitcore.autojitted.recording.replaying import Replay
from jitcore.core.trace import Tracer
from jitcore.dispatch.call_facts import ABSENT
from jitcore.numpy_semantics.dynamic_extents.joining import pack
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.values.equality import is_visible
from jitcore.numpy_semantics.values.letters import Letter
from jitcore.numpy_semantics.values.lists import Run, TracedList, find_runs
from jitcore.numpy_semantics.values.mixed import Mixed, make_conversion
from jitcore.numpy_semantics.values.ndarray import FlatArray, NDArray
from jitcore.numpy_semantics.values.number_lists import NumberList
from jitcore.numpy_semantics.values.numbers import Number, NumberKind
from jitcore.numpy_semantics.values.object_lists import Arrays, Element, ObjectList, Tuples
from jitcore.numpy_semantics.values.scalars import Scalar
from jitcore.numpy_semantics.values.views import is_same_view
from jitcore.process.effort import spend
from jitcore.process.generated import Constants
from jitcore.process.lists import make, unpack
from jitcore.process.objects import unstack, write_column, write_tuples
from jitcore.rewriter.control_flow.iterators import TracedIterable
from jitcore.rewriter.handles import Handle
from jitcore.rewriter.objects import BOUND_METHODS, OWNERLESS, is_changeable, module_of
from jitcore.rewriter.operations.texts import Text, prepare
from jitcore.rewriter.values import Poison


class Effects(NamedTuple):
    """Attributes:
    outputs: of the program; scalars: their types, where these are numbers.
    written: place of each array that is written -> number of the output that is its new contents.
    failed: number of the output that says whether plain Python must run the call instead, or None.
    writes: lines that change containers and variables.
    result: lines that make the result.
    value: expression of the result.
    constants: what the lines refer to as c0, c1, ...
    """

    outputs: list[Array]
    scalars: dict[int, type]
    written: dict[int, int]
    failed: int | None
    writes: list[str]
    result: list[str]
    value: str
    constants: Constants

    def without_failure(self) -> Effects:
        """Those of a program without the output `failed`, the last one."""
        return self._replace(outputs=self.outputs[:-1], failed=None)


#: Types of objects that are returned as they are.
_UNCHANGING = (
    type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.dtype, np.ufunc, range,
    enum.Enum)
#: Steps of an output of a program: thousands, such as the numbers in a long text, take long to compile.
_OUTPUT = 150
#: Where classes are made whose objects stand for others while a call is traced.
_STAND_INS = ("jitcore.numpy_semantics.", "jitcore.rewriter.", "jitcore.autojitted.")


class ResultWriter:
    """Args: session, after the function has returned."""

    def __init__(self, session):
        self.session = session
        self.constants = Constants()
        self.outputs: list[Array] = []
        self.scalars: dict[int, type] = {}
        self.lines: list[str] = []
        self._names: dict[int, str] = {}  # id of a stand-in or made object -> its variable
        self._keep: list[Any] = []  # objects whose ids are known stay alive
        self._count = 0
        self._returned: list[Any] = []  # storages whose memory is new in each call
        self._bases: dict[int, str] = {}  # id of a storage -> the variable of its ndarray
        self._wholes: dict[int, str] = {}  # the same -> that of the array which was made there
        self._owners: set[int] = set()  # ids of storages whose ndarray itself is among what was expressed
        for place, stand_in in enumerate(session.builder.stand_ins):
            self._name(stand_in, f"x{place}")
        for place, storage in session.storages.items():
            self._bases[id(storage)] = f"x{place}{session.builder.places[place].turn}"

    def write(self, result: Any, mode: Any) -> Effects:
        """Raises: NotTraceable for a result that cannot be made again in later calls."""
        writes = self._write_changes()  # first: a part of what it stores shares its memory
        value = self._express(result)
        written = {}
        for place, storage in self.session.storages.items():
            if storage.value is not self.session.initial[place]:
                written[place] = self._add_output(storage.value)
        failed = self._add_output(mode.failed) if mode.can_fail else None
        return Effects(self.outputs, self.scalars, written, failed, writes, self.lines, value, self.constants)

    def _add_output(self, raw: Array) -> int:
        spend(_OUTPUT)
        self.outputs.append(raw)
        return len(self.outputs) - 1

    def _add_scalar(self, raw: Array, kind: type) -> str:
        number = self._add_output(raw)
        self.scalars[number] = kind
        return f"outs[{number}]"

    def _name(self, value: Any, name: str) -> str:
        self._keep.append(value)
        self._names[id(value)] = name
        return name

    def _assign(self, value: Any, expression: str) -> str:
        """A variable that holds the value of an expression, for all places where the object appears."""
        return self._name(value, self._bind(expression))

    def _bind(self, expression: str) -> str:
        """A new variable that holds the value of an expression."""
        self._count += 1
        self.lines.append(f"r{self._count} = {expression}")
        return f"r{self._count}"

    # -- values ----------------------------------------------------------------------------------------------
    def _express(self, value: Any) -> str:
        """The expression of a value; adds the lines that it needs."""
        known = self._names.get(id(value))
        if known is not None:
            return known
        if isinstance(value, NDArray):
            return self._assign(value, self._express_array(value))
        if type(value) is Mixed:
            outputs = [f"outs[{self._add_output(raw)}]" for raw in value.children()]
            made = self.constants.add(make_conversion(value.kinds))
            return self._assign(value, f"{made}({', '.join(outputs)})")
        if type(value) is Text:
            outputs = ", ".join([f"outs[{self._add_output(raw)}]" for raw in value.operands])
            return self._assign(value, f"{self.constants.add(prepare(value.recipe))}({outputs})")
        if isinstance(value, Number):
            return self._assign(value, self._add_scalar(value.read(), value.python_type))
        if isinstance(value, Scalar):
            return self._assign(value, self._add_scalar(value.read(), value.dtype.type))
        if type(value) is Letter:
            return self._assign(value, f"{self.constants.add(chr)}(outs[{self._add_output(value.read())}])")
        if type(value) is NumberList:
            return self._assign(value, self._express_numbers(value))
        if isinstance(value, Element):
            return self._assign(value, self._express_element(value))
        if type(value) is TracedList:
            return self._assign(value, self._express_list(value))
        kind = type(value)
        if kind is Poison:
            value.raise_reason()
        if kind is TracedIterable:
            value.refuse()
        if isinstance(value, ModuleView):
            return self.constants.add(object.__getattribute__(value, "__dict__")["_jitcore_view"][1])
        if isinstance(value, Tracer):
            made = self.constants.add(ConcreteArray)
            return self._assign(value, f"{made}(outs[{self._add_output(value)}], {value.weak_type})")
        if value is None or kind in (bool, int, float, complex, str, bytes) or value is Ellipsis:
            return self.constants.add(value)
        if kind is tuple and is_constant_key(value):
            return self.constants.add(value)
        if isinstance(value, tuple):
            return self._assign(value, self._express_tuple(value, kind))
        return self._express_object(value, kind)

    def _express_list(self, values: TracedList) -> str:
        """The elements that there are, each from its rows."""
        count = f"outs[{self._add_output(values.count.read())}]"
        rows = [f"outs[{self._add_output(frame.read())}][:{count}]" for frame in values.frames]
        columns = [f"{row}.tolist()" if isinstance(leaf_type.kind, NumberKind) else row
                   for row, leaf_type in zip(rows, values.types)]
        if values.template.structure == "*":
            return f"[*{columns[0]}]"
        if values.template.structure == ("tuple", *["*"] * len(columns)):
            return f"[*zip({', '.join(columns)})]"
        raise not_traceable("a list of traced length whose elements are no numbers is returned")

    def _express_element(self, element: Element) -> str:
        """An object of a list of the caller's."""
        owner, (place,) = self._names[id(vars(element)["owner"])], element.children()
        index = self.constants.add(place) if type(place) is int else f"outs[{self._add_output(place.read())}]"
        found = f"{owner}[{index}]"
        return f"({found} if {index} >= 0 else None)" if vars(element)["is_optional"] else found

    def _express_numbers(self, values: NumberList) -> str:
        """A list of the caller's, a row of one, or a new one."""
        array = values.array
        for place, storage in self.session.storages.items():
            if storage is array.storage and not array.steps:
                return f"x{place - 1}"
        if array.storage.is_shared or array.steps or array.ndim > 1 or id(array.storage) in self._bases:
            raise not_traceable("a list is returned that may be another one, or a part of one")
        self._keep.append(array.storage)
        self._bases[id(array.storage)] = base = self._bind(f"outs[{self._add_output(array.storage.value)}]")
        return f"{self.constants.add(functools.partial(make, values.kind))}({base})"

    def _express_array(self, array: NDArray) -> str:
        if type(array) is FlatArray:
            raise not_traceable("x.flat is returned")
        if array.is_padded:
            return self._express_padded(array)
        if array.objects is not None:
            return self._express_choice(*array.objects)
        storage = array.storage
        steps, base = array.steps, self._bases.get(id(storage))
        is_fixed = not any(step.list_values() for step in steps)
        aliases = self._find_aliases(storage) if base is None else []
        if base is None and not is_fixed and not aliases:  # nothing else can be seen of this memory
            return f"outs[{self._add_output(array.read())}]"
        if not is_fixed:
            raise not_traceable("a part of an argument at a position that is not known is returned")
        if base is None:
            self._keep.append(storage)
            self._returned.append(storage)
            base = f"outs[{self._add_output(storage.value)}]"
            if storage.is_read_only:
                base = f"{self.constants.add(_freeze)}({base})"
            base = self._bind_new(storage, base, aliases)
        is_whole = is_same_view(steps, storage.home)
        if is_whole and storage in self._returned and id(storage) not in self._owners:
            self._owners.add(id(storage))
            return self._wholes[id(storage)]
        return f"{self.constants.add(Replay(steps, array.shape))}({base})"

    def _bind_new(self, storage: Any, base: str, aliases: list[tuple[Any, str]]) -> str:
        """The variable of a storage's ndarray, and that of the array which was made in it."""
        whole = base = self._bind(base)
        if storage.home:
            shape = storage.home[-1].shape
            whole = self._bind(f"{self.constants.add(Replay(storage.home, shape))}({base})")
        for predicate, known in aliases:
            whole = self._bind(f"{known} if outs[{self._add_output(predicate)}] else {whole}")
        if aliases:
            order = tuple(map(int, np.argsort(storage.home[-1].dims))) if storage.home else None
            base = self._bind(f"{whole}.transpose({order})") if storage.home else whole
        self._wholes[id(storage)], self._bases[id(storage)] = whole, base
        return base

    def _express_choice(self, predicate: Any, one: NDArray, other: NDArray) -> str:
        """One of two objects that are the same view of the same memory."""
        if not is_visible(predicate):
            raise not_traceable("an array is returned that may be one of the arguments, or a view of one")
        first, second = self._express(one), self._express(other)
        return f"({first} if outs[{self._add_output(predicate)}] else {second})"

    def _find_aliases(self, storage: Any) -> list[tuple[Any, str]]:
        """When a storage has the memory of another array, and the expression of that.

        Raises: NotTraceable where it may be one that the caller knows, and that cannot be said."""
        if not storage.is_shared or not self._may_be_known(storage):
            return []
        aliases = storage.aliases
        if aliases is None or not all(is_visible(alias.predicate) for alias in aliases):
            raise not_traceable("an array is returned that may be one of the arguments, or a view of one")
        handles = [(alias.predicate, alias.handle) for alias in aliases if alias.handle is not None]
        known = [(predicate, self._express(handle)) for predicate, handle in handles]
        for other in self._returned:
            for alias in other.aliases or ():
                if alias.handle is not None and alias.handle.memory is storage:
                    if alias.handle.steps:
                        raise not_traceable("an array is returned that may be a view of another one")
                    known.append((alias.predicate, self._wholes[id(other)]))
        return known

    def _may_be_known(self, storage: Any) -> bool:
        """Whether the caller has, or gets, another array that may share this memory."""
        others = [*self.session.storages.values(), *self._returned]
        return any(other.is_shared for other in others if other is not storage)

    def _express_padded(self, array: NDArray) -> str:
        storage = array.frame.storage
        if id(storage) in self._bases or self._find_aliases(storage):
            raise not_traceable("a part of an argument whose extent is not known is returned")
        values, extents = pack(array)
        slices = [f":outs[{self._add_output(extent.read())}]" if isinstance(extent, Number) else f":{extent}"
                  for extent in extents]
        return f"outs[{self._add_output(values)}][{', '.join(slices)}].copy()"

    def _express_tuple(self, value: tuple, kind: type) -> str:
        items = "".join([f"{self._express(item)}, " for item in value])
        if kind is tuple:
            return f"({items})"
        if not hasattr(kind, "_fields") or not self.session.captures.is_old(kind):
            raise not_traceable(f"an object of type {kind.__qualname__} is returned")
        return f"{self.constants.add(tuple.__new__)}({self.constants.add(kind)}, ({items}))"

    def _express_object(self, value: Any, kind: type) -> str:
        if id(value) in self.session.captures.owners:
            owner = self._express(self.session.captures.owners[id(value)][1])
            return self._assign(value, f"{owner}.__dict__")
        if kind in (list, dict, set):
            name = self._assign(value, f"{kind.__name__}()")
            self.lines += self._fill(name, value)
            return name
        if isinstance(value, types.FunctionType) and isinstance(value.__globals__, Namespace):
            raise not_traceable("a function that is made in the traced code is returned")
        if kind in (slice, frozenset):
            return self._express_hidden(value, kind)
        if isinstance(value, BOUND_METHODS) and not isinstance(value.__self__, OWNERLESS):
            return self._assign(value, self._express_method(value))
        if not self.session.captures.is_old(value if isinstance(value, type) else kind):
            raise not_traceable(f"the class {value.__name__ if isinstance(value, type) else kind.__name__}, "
                                "which is made in the traced code, is returned")
        if isinstance(value, _UNCHANGING) or value is ABSENT:
            self._keep.append(value)
            return self.constants.add(value)
        if isinstance(value, np.generic):
            return self.constants.add(value)
        if isinstance(value, np.ndarray):
            return self._assign(value, f"{self.constants.add(value)}.copy()")
        if module_of(kind).startswith(_STAND_INS):
            raise not_traceable(f"an object is returned for which a {kind.__name__} stands")
        is_plain = kind.__new__ is object.__new__ and is_changeable(kind)
        has_slots = any(vars(base).get("__slots__") for base in kind.__mro__)
        if is_plain and hasattr(value, "__dict__") and not has_slots:
            name = self._assign(value, f"new({self.constants.add(kind)})")
            self.lines += self._fill(name, value)
            return name
        raise not_traceable(f"an object of type {kind.__module__}.{kind.__qualname__} is returned")

    def _express_hidden(self, value: slice | frozenset, kind: type) -> str:
        """What cannot change itself; what it holds may."""
        parts = [value.start, value.stop, value.step] if kind is slice else list(value)
        if all(map(is_constant_key, parts)):
            self._keep.append(value)
            return self.constants.add(value)
        items = ", ".join(map(self._express, parts))
        return self._assign(value, f"slice({items})" if kind is slice else f"frozenset([{items}])")

    def _express_method(self, method: Any) -> str:
        owner, function = self._express(method.__self__), getattr(method, "__func__", None)
        if isinstance(method.__self__, Handle) or function is None:
            return f"{owner}.{method.__name__}"
        if not isinstance(function, types.FunctionType) or isinstance(function.__globals__, Namespace):
            raise not_traceable("a method that is made in the traced code is returned")
        return f"{self.constants.add(types.MethodType)}({self.constants.add(function)}, {owner})"

    def _express_run(self, items: list, run: Run) -> str:
        """Elements of a list, which lie side by side in one array if there are several."""
        first = items[0]
        is_known = any(id(item) in self._names for item in items)
        if len(items) == 1 or is_known or len(set(map(type, items))) > 1:
            return ", ".join(map(self._express, items))
        rows = f"outs[{self._add_output(run.stack)}][{run.first}:{run.first + len(items)}]"
        if isinstance(first, Scalar):
            return f"*{rows}"
        if isinstance(first, Number):
            return f"*{rows}.tolist()"
        if type(first) is not NDArray or any(self._is_known_array(item) for item in items):
            return ", ".join(map(self._express, items))
        made = self._bind(f"[row.copy() for row in {rows}]")
        for place, item in enumerate(items):
            self._name(item, f"{made}[{place}]")
            self._bases[id(item.storage)] = f"{made}[{place}]"
            self._returned.append(item.storage)
            self._owners.add(id(item.storage))
        return f"*{made}"

    def _is_known_array(self, array: NDArray) -> bool:
        """Whether it is more than memory of its own that nothing that was expressed has."""
        storage = array.storage
        return array.objects is not None or storage.is_shared or id(storage) in self._bases

    def _fill(self, name: str, value: Any) -> list[str]:
        """Lines that give an empty container its contents. Adds what these need to `self.lines`."""
        if type(value) is list:
            parts = [self._express_run(value[run.start : run.stop], run) for run in find_runs(value)]
            return [f"{name}[:] = [{', '.join(parts)}]"]
        if type(value) is set:
            return [f"{name}.update([{', '.join([self._express(item) for item in value])}])"]
        items = value if type(value) is dict else vars(value)
        target = name if type(value) is dict else f"{name}.__dict__"
        pairs = [f"{self._express_key(key)}: {self._express(item)}" for key, item in items.items()]
        return [f"{target}.update({{{', '.join(pairs)}}})"]

    def _express_key(self, key: Any) -> str:
        return self.constants.add(key) if is_constant_key(key) else self._express(key)

    # -- what was changed ----------------------------------------------------------------------------------
    def _write_changes(self) -> list[str]:
        lines: list[str] = []
        session = self.session
        for place, stand_in in enumerate(session.builder.stand_ins):
            lines += self._write_container(f"x{place}", stand_in, session.contents[place])
            if type(stand_in) is NumberList:
                is_same = stand_in.array.storage.value is session.initial[place + 1]
                lines += [] if is_same else [self._write_numbers(place, stand_in)]
        for place, stand_in in enumerate(session.builder.stand_ins):
            if type(stand_in) is ObjectList:
                lines += self._write_objects(f"x{place}", stand_in)
        for namespace in session.captures.namespaces.values():
            for name, value in namespace.given.items():
                if value is not namespace.initial.get(name, ABSENT):
                    owner = self.constants.add(namespace.variables)
                    if value is ABSENT:
                        lines.append(f"del {owner}[{name!r}]")
                    else:
                        lines.append(f"{owner}[{name!r}] = {self._express(value)}")
        for cell, made, before in session.captures.cells.values():
            try:
                value = made.cell_contents
            except ValueError:
                value = ABSENT
            if value is not before:
                if value is ABSENT:
                    lines.append(f"del {self.constants.add(cell)}.cell_contents")
                else:
                    lines.append(f"{self.constants.add(cell)}.cell_contents = {self._express(value)}")
        return lines

    def _write_numbers(self, place: int, stand_in: NumberList) -> str:
        unpacks = self.constants.add(functools.partial(unpack, stand_in.kind))
        return f"{unpacks}(x{place}, x{place + 1})"

    def _write_objects(self, items: str, stand_in: ObjectList) -> list[str]:
        """Lines that set the attributes of objects of a list, behind those that fill lists of the values."""
        lines: list[str] = []
        for name, column in stand_in.columns.items():
            if type(column) is Arrays:
                place = int(self._names[id(column)][1:])
                if self._is_written(place + 1):
                    lines.append(f"{self.constants.add(unstack)}(x{place}, x{place + 1})")
                continue
            parts = column.columns if type(column) is Tuples else [column]
            values = [self._names[id(part)] for part in parts if type(part) is NumberList
                      and part.array.ndim == 1 and self._is_written(int(self._names[id(part)][1:]) + 1)]
            if values:
                every = [self._names[id(part)] for part in parts]
                write = write_tuples if type(column) is Tuples else write_column
                writes = self.constants.add(functools.partial(write, name))
                lines.append(f"{writes}({items}, {', '.join(every)})")
        return lines

    def _is_written(self, place: int) -> bool:
        return self.session.storages[place].value is not self.session.initial[place]

    def _write_container(self, name: str, stand_in: Any, before: Any) -> list[str]:
        if isinstance(stand_in, NDArray):
            is_same = stand_in.shape == before
            return [] if is_same else [f"{name}.shape = {self.constants.add(stand_in.shape)}"]
        if before is None:
            return []
        if type(stand_in) is list:
            changed = [i for i, pair in enumerate(zip(before, stand_in)) if pair[0] is not pair[1]]
            if len(before) != len(stand_in) or 2 * len(changed) > len(stand_in):
                return self._fill(name, stand_in)
            return [f"{name}[{i}] = {self._express(stand_in[i])}" for i in changed]
        now = stand_in if type(stand_in) is dict else vars(stand_in)
        target = name if type(stand_in) is dict else f"{name}.__dict__"
        kept = [*(key for key in before if key in now), *(key for key in now if key not in before)]
        if kept != list(now):  # a key that was taken out and set again is the last one
            return [f"{target}.clear()", *self._fill(name, stand_in)]
        lines = [f"del {target}[{self._express_key(key)}]" for key in before if key not in now]
        for key, value in now.items():
            if key not in before or before[key] is not value:
                lines.append(f"{target}[{self._express_key(key)}] = {self._express(value)}")
        return lines


def _freeze(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
