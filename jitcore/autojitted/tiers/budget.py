"""What compiling a function may cost, whether it can pay, and whether it did.

Budgets. In: the seconds that calls have taken in plain Python, and the steps (`effort.py`) that attempts have
cost. Out: whether one may be made, and its limit. A function and its loops have one `Account`: something is
free, and beyond that attempts may cost a share of what the calls have cost so far. An attempt that used up
its limit multiplies the price of the next one: what never succeeds costs that share in the end, and no more.

Prospects, before anything is traced. In: a function and the specs of its arguments. Out: whether arrays occur
in it; and what speaks against a trace: functions that call themselves would be written out call by call, and
what Python does with texts, large ints, heaps and generators would be done once, by code that takes many
times as long.

Probing. In: the first calls of a program. Out: the program serves on, or gives way to plain Python, which
took less time. What the function calls is not compiled for the comparison.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitcore.autojitted.entry import Entry, Signature
from jitcore.autojitted.inputs.specs import (ArraySpec, DictSpec, InstanceSpec, ScalarSpec, SequenceSpec,
                                             Spec, StaticSpec, TextSpec)
from jitcore.autojitted.recording.purity import ORIGINAL
from jitcore.autojitted.recording.recorder import silence
from jitcore.autojitted.tiers.native import copy_values
from jitcore.autojitted.tiers.tuning import Tuning
from jitcore.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, sub_jaxprs
from jitcore.core.source import raise_interruption
from jitcore.dispatch.call_facts import MISS
from jitcore.process.effort import SLACK, STEPS_PER_SECOND, Meter, TooMuchEffort, metered
from jitcore.rewriter.bytecode.instructions import read_raw
from jitcore.rewriter.objects import is_library_file, is_user_class, walk

if TYPE_CHECKING:
    from jitcore.autojitted.function import AutojitFunction


class Account:
    """Args: seconds that are free; the share of the calls' seconds. Without them as `Tuning` says.

    Attributes:
        seconds: that calls have taken in plain Python; spent: that attempts have cost, as counted, and at
            least a share of what they took.
        price: seconds that have to be there before the next attempt.
    """

    def __init__(self, tuning: Tuning, free: float | None = None, share: float | None = None):
        self.tuning = tuning
        self.free = tuning.free if free is None else free
        self.share = tuning.share if share is None else share
        self.spent = self._ended = 0.0
        self.price = tuning.least
        self._started: float | None = None

    @property
    def seconds(self) -> float:
        running = self._started
        return self._ended + (0.0 if running is None else perf_counter() - running)

    def note_call(self, seconds: float) -> None:
        self._ended += seconds

    def time_call(self, function: Callable, *args: Any) -> Any:
        """Runs a call in plain Python. What attempts take meanwhile is not the call's."""
        if self._started is not None:  # recursion, another thread: the time is that of the call around
            return function(*args)
        self._started = perf_counter()
        try:
            return function(*args)
        finally:
            self._ended, self._started = self.seconds, None

    @property
    def funds(self) -> float:
        """Seconds that attempts may cost now."""
        return self.free + self.share * self.seconds - self.spent

    def can_afford(self) -> bool:
        return self.funds >= self.price

    @contextlib.contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Within, work is counted. Raises: TooMuchEffort where it exceeds the limit."""
        start = perf_counter()
        with metered(self.funds / 2 * STEPS_PER_SECOND) as meter:
            attempt = Attempt(self, meter)
            try:
                yield attempt
            except TooMuchEffort:
                wanted = meter.spent / STEPS_PER_SECOND
                self.price = wanted if attempt.is_traced else self.tuning.rise * wanted
                if attempt.is_traced:
                    self.share = max(self.share, self.tuning.share_when_traced)
                raise
            finally:
                counted = min(meter.spent, meter.limit) / STEPS_PER_SECOND
                self.spent += max(counted, meter.seconds_of_work / SLACK)  # not everything is counted
                if self._started is not None:
                    self._started += perf_counter() - start  # no time of the call's


class Attempt:
    """One attempt. Half of the funds is for tracing, so that something is left for the loops of a function
    that cannot be traced. A traced program may cost the rest, and half of what it saves in its first call;
    but for one that is known to be short no compiler is loaded before its calls have taken long.

    is_traced: whether the program is known."""

    def __init__(self, account: Account, meter: Meter):
        self._account, self._meter = account, meter
        self.is_traced = False

    def note_traced(self, jaxpr: Jaxpr) -> None:
        self.is_traced = True
        tuning = self._account.tuning
        saved = min(estimate_python(jaxpr, tuning), tuning.long_program)
        if saved < tuning.short_program:
            return
        self._meter.extend((self._account.funds / 2 + saved / 2) * STEPS_PER_SECOND)


def estimate_python(jaxpr: Jaxpr, tuning: Tuning) -> float:
    """The seconds that plain Python would need for a program, roughly."""
    return sum(_estimate_equation(eqn, tuning) for eqn in jaxpr.eqns)


def _estimate_equation(eqn, tuning: Tuning) -> float:
    inner = [estimate_python(sub.jaxpr, tuning) for sub in sub_jaxprs(eqn.params)
             if isinstance(sub, ClosedJaxpr)]
    if eqn.primitive.name == "scan":
        return sum(inner) * eqn.params["length"]
    if eqn.primitive.name == "while":
        return sum(inner) * tuning.python_iterations
    if inner:
        return sum(inner) / len(inner)
    size = max((atom.aval.size for atom in eqn.invars if not isinstance(atom, Literal)), default=0)
    return tuning.python_scalar if size <= 1 else tuning.python_call + size * tuning.python_element


#: Packages whose functions work on arrays.
_ARRAYS = frozenset({"numpy", "scipy", "jitcore", "numba"})
#: Modules whose functions work on Python's own objects.
_OBJECTS = frozenset(
    "heapq _heapq collections _collections bisect _bisect re string json csv decimal fractions queue".split())


def uses_arrays(function: types.FunctionType, specs: Sequence[Spec]) -> bool:
    """Whether arrays or NumPy's numbers are passed, or a function of NumPy is named."""
    if any(isinstance(spec, ArraySpec) or isinstance(spec, ScalarSpec) and not spec.is_number
           for spec in _walk_specs(specs)):
        return True
    methods = [method for spec in _walk_specs(specs) if isinstance(spec, InstanceSpec)
               for method in _list_methods(spec.kind)]
    return any(isinstance(value, np.ndarray) or _find_package(value) in _ARRAYS
               for one in walk([function, *methods], _list_functions) for value in _list_named(one))


def find_hindrance(function: types.FunctionType, specs: Sequence[Spec], tuning: Tuning) -> str:
    """What speaks against a trace of a function without arrays, in words; "" if nothing does."""
    values = list(_walk_specs(specs))
    if len(values) > tuning.max_values:
        return "it works on many Python values"
    for spec in values:
        is_text = isinstance(spec, StaticSpec) and spec.kind in (str, bytes)
        if is_text and len(spec.value) > tuning.max_letters:
            return "it works on a text"
        if isinstance(spec, TextSpec) and not any(map(_reads_items, walk([function], _list_functions))):
            return "it works on a text"
        if isinstance(spec, StaticSpec) and spec.kind is int and abs(spec.value) >= 1 << 62:
            return "it works on ints of more than 64 bits"
    for one in walk([function], _list_functions):
        if one in walk(_list_called(one), _list_called):
            return f"{one.__name__} calls itself"
        if one.__code__.co_flags & inspect.CO_GENERATOR:
            return f"{one.__name__} is a generator"
        for value in _list_named(one):
            if _find_package(value) in _OBJECTS:
                return f"it calls {_find_package(value)}, which works on Python's own objects"
    return ""


def _reads_items(function: types.FunctionType) -> bool:
    """Whether a function reads items of something, such as the letters of a text."""
    codes = walk([function.__code__], lambda code: [one for one in code.co_consts if inspect.iscode(one)])
    names = {one.name for code in codes for one in read_raw(code)}
    return not names.isdisjoint(("BINARY_SUBSCR", "FOR_ITER"))


def may_vary(function: types.FunctionType) -> bool:
    """Whether the work of a call may depend on its arguments: it loops, or calls what may do so."""
    code = function.__code__
    known = {"LOAD_GLOBAL", "LOAD_DEREF"}
    before = ""
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if "JUMP_BACKWARD" in name or name == "LOAD_METHOD":
            return True
        if name in known:
            before = instruction.argval
            value = function.__globals__.get(before)
            if isinstance(value, (types.FunctionType, types.MethodType)):
                return True
    return any(isinstance(const, types.CodeType) for const in code.co_consts)


def _walk_specs(specs: Sequence[Spec]) -> Iterator[Spec]:
    waiting = list(specs)
    while waiting:
        spec = waiting.pop()
        yield spec
        if isinstance(spec, (SequenceSpec, DictSpec, InstanceSpec)):
            waiting += spec.children


def _list_functions(function: types.FunctionType) -> list[types.FunctionType]:
    """The functions of the user that a function names, and the methods of classes that it names."""
    found: list[types.FunctionType] = []
    for value in _list_named(function):
        if isinstance(value, type):
            found += _list_methods(value)
        elif isinstance(value, types.FunctionType):
            found.append(value.__dict__.get(ORIGINAL, value))
    return [one for one in found if not is_library_file(one.__code__.co_filename)]


def _list_called(function: types.FunctionType) -> list[types.FunctionType]:
    """Those of `_list_functions` that the function may call: methods of a class of which it mentions the
    names, and the initializer, where it makes objects of the class; else what it names as `Class.method`."""
    names, found = _list_names(function.__code__), []
    for name, value in _find_named(function):
        if isinstance(value, types.FunctionType):
            found.append(value.__dict__.get(ORIGINAL, value))
        elif isinstance(value, type):
            attributes = names.attributes | _MAKERS if name in names.used else names.owned.get(name, ())
            found += [method for method in _list_methods(value) if method.__name__ in attributes]
    return [one for one in found if not is_library_file(one.__code__.co_filename)]


#: Methods that run where an object is made.
_MAKERS = frozenset(("__init__", "__new__", "__post_init__"))


def _list_methods(kind: type) -> list[types.FunctionType]:
    return [value for value in vars(kind).values() if isinstance(value, types.FunctionType)]


def _list_named(function: types.FunctionType) -> list[Any]:
    return [value for _, value in _find_named(function)]


def _find_named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function finds under the global names and in the cells that its code mentions, without objects
    of the user's classes: looking at one may run code of the user's."""
    variables, found = function.__globals__, []
    names = _list_names(function.__code__).variables
    found += [(name, variables[name]) for name in names if name in variables]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            pass  # not assigned yet
    for name, value in found:  # `super()` calls what other classes define
        if name != "__class__" and not is_user_class(type(value)):
            yield name, value


class _Names(NamedTuple):
    """What code mentions: variables that are not its own; those of them that are more than the owner of an
    attribute; attributes, and of which variables."""

    variables: tuple[str, ...]
    used: frozenset[str]
    attributes: frozenset[str]
    owned: dict[str, set[str]]


@functools.lru_cache(maxsize=1000)
def _list_names(code: types.CodeType) -> _Names:
    variables: list[str] = []
    used: set[str] = set()
    attributes: set[str] = set()
    owned: dict[str, set[str]] = {}
    before = ""
    for instruction in dis.get_instructions(code):
        name, is_attribute = instruction.argval, instruction.opname in _ATTRIBUTES
        if before and instruction.opname == "COPY":  # `owner.name += 1`
            continue
        if before and is_attribute:
            owned.setdefault(before, set()).add(name)
        elif before:
            used.add(before)
        before = name if instruction.opname in _VARIABLES else ""
        variables += [before] if before else []
        attributes |= {name} if is_attribute else set()
    for inner in [_list_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]:
        variables += inner.variables
        used |= inner.used
        attributes |= inner.attributes
        for name, found in inner.owned.items():
            owned.setdefault(name, set()).update(found)
    return _Names(tuple(dict.fromkeys(variables)), frozenset(used), frozenset(attributes), owned)


_VARIABLES = frozenset("LOAD_GLOBAL LOAD_NAME LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF".split())
_ATTRIBUTES = frozenset("LOAD_ATTR LOAD_METHOD STORE_ATTR DELETE_ATTR".split())


def _find_package(value: Any) -> str:
    """The package that a module, function or class belongs to; "" for other values."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0]
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) or callable(value):
        name = getattr(value, "__module__", None)
        return name.partition(".")[0] if isinstance(name, str) else ""
    return ""


class _Comparison(threading.local):
    is_running = False


_comparison = _Comparison()


def is_comparing() -> bool:
    """Whether plain Python is being timed, in which nothing is compiled."""
    return _comparison.is_running


@contextlib.contextmanager
def comparing() -> Iterator[None]:
    before, _comparison.is_running = _comparison.is_running, True
    try:
        yield
    finally:
        _comparison.is_running = before


class Probe:
    """The first calls of a program: they are timed, and the last of them is compared with plain Python."""

    def __init__(self, owner: AutojitFunction, signature: Signature, entry: Entry):
        self.owner, self.signature, self.entry = owner, signature, entry
        self.count, self.best = 0, float("inf")

    def __call__(self, *values: Any) -> Any:
        tuning = self.owner.tuning
        limit = tuning.probed_seconds / (5 if self.entry.loops else 1)
        limit = tuning.probed_printing if self.entry.prints else limit
        compares = self.count == tuning.probed_calls - 1 and self.best < limit and self.entry.is_local
        copies = copy_values(values) if compares else None
        failures, start = self.entry.failures, perf_counter()
        result = self.entry.call(*values)
        seconds = perf_counter() - start
        if self.entry.failures > failures:  # plain Python ran, which may do what the program does not
            copies = None
        if result is MISS:
            return MISS
        self.count += 1
        self.best = min(self.best, seconds)
        if self.count >= tuning.probed_calls or self.best >= limit and self.count > 1:
            self.owner.signatures.settle(self.signature, self.entry.call)
            if copies is not None and self._is_slower(copies):
                self.owner.give_way(self.signature, self.best)
        return result

    def _is_slower(self, copies: Sequence[Any]) -> bool:
        """Whether plain Python takes less time than the program does; both run in turns on the copies."""
        with comparing(), np.errstate(all="ignore"):  # arguments may grow from call to call
            if self.entry.prints:
                with silence():
                    return self._is_slower_silently(copies, float("inf"))
            return self._is_slower_silently(copies, self.best)

    def _is_slower_silently(self, copies: Sequence[Any], own: float) -> bool:
        """own: seconds that the program takes at most."""
        plain, tuning, began = float("inf"), self.owner.tuning, perf_counter()
        for number in range(tuning.most_comparisons):
            failures = self.entry.failures
            start = perf_counter()
            if number >= tuning.comparisons and start - began > tuning.comparing_seconds:
                break
            try:
                self.owner.parameters.call(self.owner.function, copies)
                middle = perf_counter()
                self.entry.call(*copies)
            except Exception as error:  # on arguments that an earlier call changed
                raise_interruption(error)
                return False
            if self.entry.failures > failures:
                self.entry.failures = failures
                return False
            plain, own = min(plain, middle - start), min(own, perf_counter() - middle)
            if plain > max(10 * own, tuning.sure_seconds):
                break
        return plain < own
