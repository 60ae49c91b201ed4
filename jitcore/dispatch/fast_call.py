"""Calls whose form is known: a function written for it reads the arguments, looks up and runs.

In: arguments. Out: the result, or what another dispatcher, in the end the general path, makes of the call.
What counts here is Python's overhead, so a dispatcher is straight-line code for one form of call: how many
arguments, which keywords, their structure as pytrees, the class of each leaf. It takes the arguments apart,
builds one key of shapes and dtypes, looks up once, runs the program, makes the result. No lock, no signature
binding, no pytree library; and it is the `__call__` of what the user calls, with no frame before it.

Pytrees are taken apart and put together by source written for their structure: flattening by optree costs 200
to 300 ns a leaf, this code 30 ns.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar

import numpy as np
import optree
from numpy import array  # noqa: F401  named by dispatchers

from jitcore import dtypes
from jitcore.array import ConcreteArray, DeviceArray, DeviceForm  # noqa: F401  named by dispatchers
from jitcore.config import config
from jitcore.core.source import filter_traceback, raise_interruption  # noqa: F401  named by dispatchers
from jitcore.core.trace import context, eval_trace  # noqa: F401  named by dispatchers
from jitcore.dispatch.call_facts import MISS
from jitcore.dispatch.signature import READABLE_FLAGS, CallSignature
from jitcore.process.concurrency import Lock, drop_oldest, stop_at_end
from jitcore.process.generated import Constants, compile_function
from jitcore.tree_util import PyTreeDef
from jitcore.tree_util.nodes import NAMESPACE

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


new = object.__new__  # named by dispatchers
#: Combinations of a number of arguments and keywords for which dispatchers are written.
MAX_FORMS = 64
#: Dispatchers for one of them, tried one after the other.
MAX_VARIANTS = 16
#: Leaves of a call for which a dispatcher is written at once; for twice as many at the second call, and so
#: on. Compiling it takes 20 us a leaf and saves half of one in each call.
LEAVES_PER_CALL = 64
#: Bytes up to which an ndarray is copied for a program that may read it after its call has returned. Larger
#: ones are waited for: their owner may change them.
COPIED_BYTES = 1 << 14


def miss(*args: Any, **kwargs: Any) -> Any:
    """The dispatcher that knows no call."""
    return MISS


class FastCallable(Generic[P, R]):
    """What is called by its dispatchers, and by `call_slowly` where none of them knows the call.

    Each object has a `__call__` of its own: the dispatchers one behind the other, so that a call which they
    know enters one Python function only. Errors leave it without the frames of jitcore.

    Args:
        fast: the dispatchers, which others may share.
        call_slowly: function of the tuple of arguments and the dict of keywords."""

    if TYPE_CHECKING:  # of which one takes the slot for an attribute, and its first parameter for the object

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:
        __slots__ = ("__call__", "_fast", "_call_slowly", "__dict__", "__weakref__")

    def __init__(self, fast: FastCalls, call_slowly: Callable[[tuple, dict], Any]):
        self._fast, self._call_slowly = fast, call_slowly
        self._put_newest_first()

    def _put_newest_first(self) -> None:
        fast, call_slowly, newest = self._fast, self._call_slowly, self._fast.newest
        find = weakref.ref(self)  # an object does not keep itself alive

        def call_any(*args, **kwargs):
            try:
                form = (len(args), frozenset(kwargs)) if kwargs else len(args)
                result = fast.dispatchers.get(form, miss)(*args, **kwargs)
                if result is MISS:
                    result = call_slowly(args, kwargs)
                    if fast.newest is not newest and find() is not None:
                        find()._put_newest_first()
                return result
            except Exception as error:
                filter_traceback(error)
                raise

        self.__call__ = fast.chain(newest, call_any)  # type: ignore[method-assign]


class _LeafCode(NamedTuple):
    """Source that reads the leaf x{i} of one class into the ndarray v{i}.

    Attributes:
        check: holds when the leaf cannot be read so; {kind} is its class.
        key: what the key says of the leaf: the first members of its `signature.Part`; of one on a device its
            form.
        read: statement before the look-up, or "".
        convert: statement after the look-up, which finds the dtype t{i} of a scalar, or ""."""

    check: str
    key: tuple[str, ...]
    read: str = ""
    convert: str = ""


_IS_OTHER = "x{i}.__class__ is not {kind}"
_CODE_OF_CLASS = {
    ConcreteArray: _LeafCode(_IS_OTHER, ("v{i}.shape", "v{i}.dtype", "x{i}._weak_type"),
                             read="v{i} = x{i}._data"),
    np.ndarray: _LeafCode(f"{_IS_OTHER} or x{{i}}.flags.num & {READABLE_FLAGS} != {READABLE_FLAGS}",
                          ("v{i}.shape", "v{i}.dtype"), read="v{i} = x{i}"),
}
_SCALAR_CODE = _LeafCode(_IS_OTHER, (), convert="v{i} = array(x{i}, t{i})")
_CODE_OF_CLASS |= dict.fromkeys((*dtypes.PYTHON_SCALARS, *(dtype.type for dtype in dtypes.SUPPORTED)),
                                _SCALAR_CODE)

_DEVICE_CODE = _LeafCode(_IS_OTHER, ("x{i}._form",), read="v{i} = x{i}._buffer")


def _find_code(kind: type) -> _LeafCode | None:
    return _DEVICE_CODE if issubclass(kind, DeviceArray) else _CODE_OF_CLASS.get(kind)


class _Variant(NamedTuple):
    """What makes a dispatcher out of the one for all other calls; its form and its table, key -> how to run;
    and how to read its number of hits."""

    form: Any
    make: Callable[[Callable], Callable]
    table: dict[tuple, tuple]
    read_hits: Callable[[], int]


class FastCalls:
    """The dispatchers of one function.

    Attributes:
        dispatchers: the number of positional arguments, or (that number, keywords), -> function of the
            arguments. Always the same dict.
        newest: the variant that was written last."""

    def __init__(self):
        self._lock = Lock()
        self._variants: dict[Any, dict[tuple, _Variant]] = {}
        self.dispatchers: dict[Any, Callable] = {}
        self.newest: _Variant | None = None

    def clear(self) -> None:
        with self._lock:
            for variant in self.list_variants():
                variant.table.clear()
            self.newest = None
            self.dispatchers.clear()
            self._variants.clear()

    def list_variants(self) -> list[_Variant]:
        """All of them, the oldest of each form first."""
        with self._lock:
            return [variant for known in self._variants.values() for variant in known.values()]

    def count_hits(self) -> int:
        return sum(variant.read_hits() for variant in self.list_variants())

    def chain(self, newest: _Variant | None, otherwise: Callable) -> Callable:
        """The dispatchers for calls of this form one behind the other, the newest first, then `otherwise`."""
        with self._lock:
            known = self._variants.get(newest.form, {}) if newest is not None else {}
            for variant in known.values():
                otherwise = variant.make(otherwise)
        return otherwise

    def learn(self, call: CallSignature, kwargs: dict, entry) -> None:
        """Serves later calls like this one, if code can read all its leaves. kwargs: with the static ones."""
        classes = tuple([leaf.__class__ for leaf in call.leaves])
        if not all(map(_find_code, {*classes})):
            return
        if any(place.backend != entry.backend for _, place, _ in call.shardings):
            return
        form = (call.n_args, frozenset(kwargs)) if kwargs else call.n_args
        with self._lock:
            pays = len(classes) <= LEAVES_PER_CALL * entry.slow_calls
            variant = self._find_variant(form, call, classes, tuple(kwargs), may_write=pays)
            if variant is not None:
                scalar_dtypes = tuple(part[1] for part, kind in zip(call.parts, classes)
                                      if _find_code(kind).convert)
                run = entry.call if call.donated else entry.run
                found = run, entry.wait, entry.single, entry.finish, scalar_dtypes
                variant.table[_make_key(call, classes)] = found
                drop_oldest(variant.table, config.cache_size)

    def _find_variant(self, form, call: CallSignature, classes, keywords, *, may_write) -> _Variant | None:
        """The variant for calls like this one; where none is known, a new one if there may be one more."""
        known = self._variants.get(form, {})
        variant = known.get((call.structure, classes))
        has_room = len(known) < MAX_VARIANTS and (known or len(self._variants) < MAX_FORMS)
        if variant is None and may_write and has_room and is_small(call):
            table: dict[tuple, tuple] = {}
            make_maker, constants = _write_dispatcher(call, classes, keywords)
            variant = _Variant(form, *make_maker(table, *constants))
            self.newest = known[call.structure, classes] = variant
            self._variants[form] = known
            self.dispatchers[form] = variant.make(self.dispatchers.get(form, miss))
        return variant


def _make_key(call: CallSignature, classes: Sequence[type]) -> tuple:
    """The key that the dispatcher for such a call builds."""
    key: list = [config.trace_key]
    for _, kind, value in call.statics:
        key += (kind, value)
    for leaf, kind, part in zip(call.leaves, classes, call.parts):
        key += [leaf._form] if issubclass(kind, DeviceArray) else part[: len(_find_code(kind).key)]
    return tuple(key)


def _write_dispatcher(call: CallSignature, classes: Sequence[type], keywords: Sequence[str]):
    """A function that gives a variant's members behind its form, and the constants to give to it."""
    constants = Constants()
    name_of = {place: f"a{k}" for k, place in enumerate((*range(call.n_args), *keywords))}
    parameters, given, names, is_other = _write_parameters(call.n_args, keywords)
    lines = [f"{name_of[keyword]} = kwargs[{keyword!r}]" for keyword in keywords]
    key = ["config.trace_key"]
    for place, _, _ in call.statics:
        name = name_of.pop(place)
        key += [f"{name}.__class__", name]
    unread = iter([f"x{i}" for i in range(len(classes))])
    for name, spec in zip(_order_dynamic(name_of), call.list_specs()):
        lines += write_taking_apart(spec, name, list(islice(unread, spec.num_leaves)), constants)
    converted, found = [], []
    for i, kind in enumerate(classes):
        code = _find_code(kind)
        lines.append(f"if {code.check.format(i=i, kind=constants.add(kind))}: break")
        lines.append(code.read.format(i=i))
        key += [part.format(i=i) for part in code.key]
        if code.convert:
            found.append(f"t{i}, ")
            converted.append(code.convert.format(i=i))
    lines.append(f"run, wait, single, finish, ({''.join(found)}) = table[{', '.join(key)},]")
    arrays = [f"v{i}" for i, kind in enumerate(classes) if kind is np.ndarray]
    converted += [f"if wait is not None and {v}.nbytes <= {COPIED_BYTES}: {v} = {v}.copy()" for v in arrays]
    body = "".join(f"                        {line}\n" for line in lines + converted if line)
    is_large = " or ".join(f"{v}.nbytes > {COPIED_BYTES}" for v in arrays)
    waiting = f"if wait is not None and ({is_large}): wait(outs)" if arrays else "pass"
    leaves, values = (", ".join(f"{x}{i}" for i in range(len(classes))) for x in "xv")
    finish = (_DONATING if call.donated else _KEEPING).format(leaves=leaves, values=values, waiting=waiting)
    source = _DISPATCHER.format(constants=constants.names, parameters=parameters, given=given, names=names,
                                is_other=is_other, body=body, finish=finish)
    return compile_function(source, "make_maker", __name__, __name__), constants.values


def _write_parameters(n_args: int, keywords: Sequence[str]) -> tuple[str, str, str, str]:
    """Parameters that take any call; the arguments that were given; those of a call of this form; and what
    holds for other calls. Defaults cost less than a tuple that is taken apart."""
    names = [f"a{k}" for k in range(n_args)]
    parameters = "".join(f"{name}=MISS, " for name in names) + ("/, " if names else "")
    given = f"*[x for x in ({', '.join(names)},) if x is not MISS], " if names else ""
    is_other = [f"len(kwargs) != {len(keywords)}" if keywords else "kwargs", "rest",
                *[f"{name} is MISS" for name in names[-1:]]]
    known = ", ".join([*names, *["**kwargs"] * bool(keywords)])
    return f"{parameters}*rest, **kwargs", f"{given}*rest, **kwargs", known, " or ".join(is_other)


def _order_dynamic(name_of: dict[int | str, str]) -> list[str]:
    """The variables in the order of the leaves: positional arguments, then keywords by name."""
    return [name_of[place] for place in sorted(name_of, key=lambda place: (isinstance(place, str), place))]


# `break` leads to the other dispatchers. So does an error while the arguments are read: a deleted array has
# no shape, a dict not this key, a static value no hash, an integer may not fit, and methods of registered
# types may raise anything. The general path raises what the user should see. Errors of the program stay.
_DISPATCHER = """\
def make_maker(table, {constants}):
    hits = 0

    def make(otherwise):
        def dispatch({parameters}):
            nonlocal hits
            try:
                if {is_other}: return otherwise({given})
                while context.trace is eval_trace:
                    try:
{body}                    except Exception as error:
                        raise_interruption(error)
                        break
                    hits += 1
{finish}                return otherwise({names})
            except Exception as error:
                filter_traceback(error)
                raise

        return dispatch

    return make, table, lambda: hits
"""
_KEEPING = """\
                    outs = run({values})
                    {waiting}
                    if single is None:
                        return finish(outs)
                    if single.__class__ is DeviceForm:
                        result = new(DeviceArray)
                        result._buffer, = outs
                        result._form = single
                    else:
                        result = new(ConcreteArray)
                        result._data, = outs
                        result._weak_type = single
                    return result
"""
# Memory that somebody else refers to is not reused: the variables must let go of it.
_DONATING = """\
                    values = [{values}]
                    {values} = [None] * len(values)
                    return run(({leaves},), values)
"""


#: Structures of more nodes and leaves are left to optree: compiling the code takes 20 us for each.
MAX_NODES = 4096


def is_small(structure: PyTreeDef | CallSignature) -> bool:
    """Whether code for this structure is worth compiling."""
    return structure.num_nodes <= MAX_NODES


def write_taking_apart(spec: optree.PyTreeSpec, root: str, leaves: Sequence[str], constants: Constants
                       ) -> list[str]:
    """Lines that assign the leaves of the object named `root` to the names `leaves`.

    Where the object has another structure they `break`, or raise an error of any class."""
    blocks: list[list[str]] = []

    def add_node(kind: type | None, data: Any, children: tuple[str, ...]) -> str:
        node = f"{root}_{len(blocks)}"
        blocks.append(_take_apart(node, kind, data, children, constants))
        return node

    stop_at_end()
    top = spec.walk(leaves, add_node)
    # The walk visits children before their parents.
    return [f"{top} = {root}", *(line for block in reversed(blocks) for line in block)]


def _take_apart(node: str, kind: type | None, data: Any, children: Sequence[str], constants: Constants):
    targets = "".join(f"{child}, " for child in children)
    if kind is None or kind is type(None):
        return [f"if {node} is not None: break"]
    check = f"if {node}.__class__ is not {constants.add(kind)}: break"
    if kind in (tuple, list) or data is kind and optree.is_namedtuple_class(kind):
        return [check, f"{targets or '()'} = {node}"]
    if kind is dict:
        items = [f"{child} = {node}[{constants.add(key)}]" for key, child in zip(data, children)]
        return [check, f"if len({node}) != {len(children)}: break", *items]
    flatten = constants.add(_find_handler(kind).flatten_func)
    return [check, f"{node} = {flatten}({node})", f"if {node}[1] != {constants.add(data)}: break",
            f"{targets or '()'} = {node}[0]"]


def _find_handler(kind: type) -> Any:
    """How optree takes values of this class apart and puts them together."""
    return optree.register_pytree_node.get(kind, namespace=NAMESPACE)


def make_rebuilder(structure: PyTreeDef, weak_types: Sequence[bool],
                   wrap: Callable = ConcreteArray) -> Callable[[Sequence], Any]:
    """A function that puts Arrays of these ndarrays into the structure. weak_types: one for each leaf; wrap:
    makes an Array of a value and its weak type, or of what stands there in the place of that."""
    if not is_small(structure):
        return lambda values: structure.unflatten(map(wrap, values, weak_types))
    constants = Constants()
    lines: list[str] = []

    def add_node(kind: type | None, data: Any, children: tuple[str, ...]) -> str:
        node = f"n{len(lines)}"
        lines.append(f"{node} = {_put_together(kind, data, children, constants)}")
        return node

    stop_at_end()
    leaves = [f"x{i}" for i in range(structure.num_leaves)]
    top = structure.spec.walk(leaves, add_node)
    targets = "".join(f"{leaf}, " for leaf in leaves) or "()"
    lines = [f"{targets} = map(wrap, values, weak_types)", *lines, f"return {top}"]
    return constants.define("rebuild", "values", lines, __name__, weak_types=weak_types, wrap=wrap)


def _put_together(kind: type | None, data: Any, children: Sequence[str], constants: Constants) -> str:
    listed = "".join(f"{child}, " for child in children)
    if kind is None or kind is type(None):
        return "None"
    if kind is tuple:
        return f"({listed})"
    if kind is list:
        return f"[{listed}]"
    if kind is dict:
        items = ", ".join(f"{constants.add(key)}: {child}" for key, child in zip(data, children))
        return "{" + items + "}"
    if data is kind and optree.is_namedtuple_class(kind):
        return f"{constants.add(kind)}({listed})"
    unflatten = constants.add(_find_handler(kind).unflatten_func)
    return f"{unflatten}({constants.add(data)}, ({listed}))"
