"""Which functions of Python and of libraries traced code may call, and what it calls instead of others.

In: what the user's code is about to call. Out: nothing for functions whose result depends on their arguments
alone; the traced form of the user's own functions; for all else a function that raises `NotTraceable`,
because a program that is compiled once would print, read a clock or draw a random number once.

Code of the user's that runs unseen, in functions and objects with special methods that are handed to code
that is not traced, ends the trace before its first instruction (`EffectGuard`): what it does could not be
taken back, and later calls of the program would not do it. Python's profiling events tell of each call; they
cost time, so they are asked for only once something was met that can be called in this way.
"""

from __future__ import annotations

import bisect
import builtins
import collections
import contextlib
import functools
import heapq
import itertools
import math
import operator
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitcore import tree_util
from jitcore.autojitted.inputs.attributes import Attributes
from jitcore.autojitted.inputs.captures import Captures, Namespace
from jitcore.numpy_semantics.errors import not_traceable
from jitcore.numpy_semantics.functions.mapping import find_vectorized
from jitcore.numpy_semantics.functions.streams import Stream
from jitcore.numpy_semantics.mode import Redirects
from jitcore.numpy_semantics.values.conversions import define_next, type_of
from jitcore.numpy_semantics.values.numbers import Number
from jitcore.process.streams import is_generator
from jitcore.rewriter.control_flow.arms import make_final
from jitcore.rewriter.functions import rewrite_function
from jitcore.rewriter.handles import Handle, current
from jitcore.rewriter.objects import (BOUND_METHODS, OWNERLESS, find_in_class, find_owner, find_special,
                                      is_compiled_by_numba, is_library_file, is_user_class, is_user_code,
                                      is_user_function)
from jitcore.rewriter.operations.redirects import REDIRECTS

#: Attribute of the function that `autojit` returns: the function that it was given.
ORIGINAL = "__jitcore_autojit__"

#: Packages and modules whose functions have no effect but their result.
_PURE = frozenset(
    """_abc _bisect _collections _collections_abc _functools _heapq _operator _statistics abc array bisect
    builtins cmath collections copy dataclasses enum fractions functools heapq itertools jitcore math
    numbers numba numpy operator re scipy statistics string types typing""".split()
)
_IMPURE_BUILTINS = frozenset(
    """breakpoint compile eval exec exit globals help id input locals memoryview open print quit
    __import__""".split()
)
#: Modules of jitcore whose functions take traced arrays of NumPy's semantics.
_OWN = ("jitcore.numpy_semantics.", "jitcore.rewriter.", "jitcore.autojitted.")
_IMPURE_MODULES = ("numpy.random", "scipy.io", "numpy.ctypeslib")
_IMPURE_NUMPY = frozenset(
    """fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez savez_compressed printoptions
    set_printoptions seterr seterrcall setbufsize""".split()
)


#: Functions that call functions which they are given, and keep none of them where the user sees it.
_HIGHER_ORDER = frozenset([
    sorted, min, max, map, filter, functools.reduce, functools.cmp_to_key, itertools.accumulate,
    itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.starmap, itertools.groupby,
    heapq.nlargest, heapq.nsmallest, heapq.merge, bisect.bisect_left, bisect.bisect_right, bisect.insort_left,
    bisect.insort_right, collections.defaultdict, re.sub, re.subn])


#: Functions of Python's that do what a special method of their argument says; what that has to give.
_OF_SPECIAL_METHODS = {
    len: "__len__", abs: "__abs__", iter: "__iter__", next: "__next__", reversed: "__reversed__",
    round: "__round__", bool: "__bool__", int: "__int__", float: "__float__", complex: "__complex__",
    math.floor: "__floor__", math.ceil: "__ceil__", operator.index: "__index__"}
_GIVEN_TYPES = {len: int, bool: bool, int: int, float: float, complex: complex, operator.index: int}

#: Functions whose result depends on what was set before.
_STATE_READERS = frozenset((np.get_printoptions, np.geterr, np.getbufsize, os.getenv))


def find_original(function: types.FunctionType) -> types.FunctionType:
    """The function that `autojit` was given, for one that it returned."""
    state = function.__dict__.get("__jitcore_autojit_state__")
    if state is None or all(function.__code__ is not code for code in state.wrapper_codes):
        return function  # its code was exchanged
    state.following.catch_up()
    return state.function


# -- code that runs unseen ----------------------------------------------------------------------------------
#: Special methods that do not let C code in: traced code calls them by their traced form.
_ENTERED = frozenset("__init__ __call__ __post_init__".split())


class EffectGuard:
    """Args: whether the global names of a frame are those of code that is traced.

    Attributes:
        error: what was raised; code of a library may have caught it.
    """

    def __init__(self, is_entered):
        self._is_entered = is_entered
        self.error: Exception | None = None
        self._is_armed = False
        self._hook = self._notice  # CPython frees one that it alone knows while it runs

    def meet_class(self, kind: type) -> None:
        """A class whose objects traced code has."""
        if not self._is_armed and can_be_called(kind):
            self.arm()

    def arm(self) -> None:
        """From now on each call is looked at. Raises: NotTraceable where a profiler is active."""
        if self._is_armed:
            return
        if sys.getprofile() is not None:
            raise not_traceable("code that is not traced may call code of yours, and a profiler is active")
        self._is_armed = True
        sys.setprofile(self._hook)

    def _notice(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call" or self._is_entered(frame.f_globals) or not is_user_code(frame.f_code):
            return
        if frame.f_code.co_filename[0] == "<" and _is_made(frame.f_globals):
            return
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
        self.error = not_traceable(f"{name}() is called by code that is not traced")
        make_final(self.error)  # nothing looks any more, so that no other way may be tried
        raise self.error

    def check(self) -> None:
        """Raises: NotTraceable again, where somebody caught it."""
        if self.error is not None:
            raise self.error

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Around a trace. Raises: NotTraceable, where it was raised within and did not come through."""
        try:
            yield
        finally:
            if self._is_armed:
                sys.setprofile(None)
        self.check()

    @contextlib.contextmanager
    def look_away(self) -> Iterator[None]:
        """Within, code of the user may run that has a trace of its own."""
        previous = sys.getprofile() if self._is_armed else None
        if previous is None:
            yield
            return
        sys.setprofile(None)
        try:
            yield
        finally:
            sys.setprofile(previous)


def can_be_called(kind: type) -> bool:
    """Whether C code may call a method of a class: it has special methods of the user's."""
    for base in kind.__mro__:
        if is_user_class(base):
            made = "<string>" if "__dataclass_fields__" in base.__dict__ else None  # of the fields
            for name, value in base.__dict__.items():
                code = find_code(value)
                if code is not None and name[:2] == "__" and name not in _ENTERED:
                    if is_user_code(code) and code.co_filename != made:
                        return True
    return type(kind) is not type and is_user_class(type(kind))


def _is_made(names: dict[str, Any]) -> bool:
    """Whether code without a file was made by a library: the methods of named tuples and dataclasses."""
    path = names.get("__file__")
    return path is not None and is_library_file(path) or names.get("__name__", "").startswith("namedtuple_")


def find_code(value: Any) -> types.CodeType | None:
    """The code of a function, or of one in a static or class method."""
    value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return getattr(value, "__code__", None)


# -- what is called -----------------------------------------------------------------------------------------
class Callables:
    """What traced code calls instead of a function; asked by `get`.

    Args:
        redirects: of NumPy's semantics.
        captures: where functions of the user are entered.
        attributes: how attributes are read.
    """

    def __init__(self, redirects: Redirects, captures: Captures, attributes: Attributes):
        self._redirects, self._captures, self._resolve = redirects, captures, attributes.resolve
        self._attributes = attributes
        self._own = {
            object.__getattribute__: self._read_plainly,
            getattr: attributes.get, hasattr: attributes.has,
            setattr: attributes.store, delattr: attributes.delete,
            vars: attributes.list_variables, hash: self._call_hash,
            **{function: functools.partial(self._call_special, function, name)
               for function, name in _OF_SPECIAL_METHODS.items()}}

    def get(self, callee: Any, default: Any = None) -> Any:
        self._captures.effects.check()
        kind = type(callee)
        if is_user_class(kind):
            return default  # the traced form of its `__call__` is called
        if _is_made_of_python(callee):
            return functools.partial(_refuse, f"a ufunc of a Python function is called: {callee.__name__}")
        try:
            found = self._find_reader(callee) or self._own.get(callee) or self._redirects.get(callee)
            if callee in _HIGHER_ORDER:
                return functools.partial(self._call_with_functions, found or callee)
            if callee is next:
                return define_next(found)
        except TypeError:  # not hashable
            found = None
        if found is not None:
            return found
        if kind in BOUND_METHODS and is_generator(callee.__self__):
            return getattr(self._captures.adopt(callee.__self__), callee.__name__)
        if kind is types.MethodType and isinstance(callee.__self__, Stream):  # of `random.Random`
            return getattr(callee.__self__, callee.__name__)
        if kind is types.FunctionType:
            if isinstance(callee.__globals__, Namespace):
                return default
            original = find_original(callee)
            if callee in _STATE_READERS:
                return functools.partial(self._captures.call, callee)
            if not is_library_file(original.__code__.co_filename):
                return rewrite_function(self._captures.enter(original, callee))
        elif issubclass(kind, type) and is_user_class(callee):
            return functools.partial(self._construct, callee)
        elif kind is np.vectorize:
            return functools.partial(self._call_vectorized, callee)
        elif is_compiled_by_numba(callee):
            return self.get(callee.py_func, default)
        module = getattr(callee, "__module__", None) if kind is types.FunctionType else kind.__module__
        if isinstance(module, str) and module.startswith("jitcore."):
            return default if module.startswith(_OWN) else functools.partial(self._call_on_arrays, callee)
        problem = find_effect(callee)
        if isinstance(callee, functools._lru_cache_wrapper) and may_enter(callee.__wrapped__):
            problem = f"{callee.__qualname__}() is called, which keeps what it returned before"
        if problem:
            return functools.partial(_refuse, problem)
        if kind is types.BuiltinFunctionType and callee.__name__ == "sort":
            return functools.partial(self._call_with_functions, callee)
        if kind in (types.MethodType, functools.partial):
            return default  # the traced form of its function is called
        return functools.partial(self._call_watched, callee) if _may_call_back(callee) else default

    def _find_reader(self, callee: Any) -> Callable | None:
        """What is called instead of an object that reads attributes."""
        kind = type(callee)
        if kind is operator.attrgetter:
            return functools.partial(self._get_attributes, callee.__reduce__()[1])
        if kind is operator.methodcaller:
            return functools.partial(self._call_method, *_take_apart(callee))
        if kind is types.MethodWrapperType and callee.__name__ == "__getattribute__":
            return functools.partial(self._read_plainly, callee.__self__)
        return None

    def _get_attributes(self, paths: tuple[str, ...], owner: Any, /) -> Any:
        """What an `operator.attrgetter` gives."""
        found = tuple(functools.reduce(self._attributes.read, path.split("."), owner) for path in paths)
        return found if len(found) > 1 else found[0]

    def _call_method(self, name: str, args: tuple, kwargs: dict[str, Any], owner: Any, /) -> Any:
        """What an `operator.methodcaller` gives."""
        return self._resolve(self._attributes.read(owner, name))(*args, **kwargs)

    def _read_plainly(self, owner: Any, name: str, /) -> Any:
        """`object.__getattribute__(owner, name)`."""
        if type(owner) is super or find_in_class(type(owner), "__getattr__")[0]:
            raise not_traceable("__getattribute__() is called")
        return self._attributes.read(owner, name)

    def _call_special(self, function: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function of Python's that does what a special method of its argument says."""
        method = find_special(args[0], name) if len(args) == 1 and not kwargs else None
        if method is not None:
            found = self._resolve(method)()
            wanted = _GIVEN_TYPES.get(function)
            if wanted and type_of(found) is not wanted or function is iter and not hasattr(found, "__next__"):
                raise not_traceable(f"{name}() gives a value of type {type_of(found).__name__}")
            return found
        function = self._redirects.get(function) or REDIRECTS.get(function) or function
        return self._call_with_functions(function, *args, **kwargs)  # `iter(function, sentinel)`

    def _call_hash(self, value: Any, /) -> Any:
        if _hashes_place(value):
            raise not_traceable("hash() of an object depends on its place in memory")
        return self._call_special(hash, "__hash__", value)

    def _construct(self, kind: type, /, *args: Any, **kwargs: Any) -> Any:
        """What `type.__call__` does, where the methods are those of a class of the user's."""
        self._captures.effects.meet_class(kind)
        if find_in_class(kind, "__del__")[0]:
            raise not_traceable(f"an object of type {kind.__qualname__}, which has a __del__(), is made")
        new, initialize = kind.__new__, kind.__init__
        has_new, has_initializer = (isinstance(method, types.FunctionType) for method in (new, initialize))
        if not (has_new or has_initializer) or find_in_class(type(kind), "__call__")[0] is not type:
            return self._call_watched(kind, *args, **kwargs)
        if new is object.__new__:
            made = new(kind)
        else:
            made = (self._resolve(new) if has_new else new)(kind, *args, **kwargs)
        if isinstance(made, kind):
            (self._resolve(initialize) if has_initializer else initialize)(made, *args, **kwargs)
        return made

    def _call_vectorized(self, callee: np.vectorize, /, *args: Any, **kwargs: Any) -> Any:
        self._captures.guard(callee, "{owner}.pyfunc", callee.pyfunc)
        if may_enter(callee.pyfunc):
            self._captures.effects.arm()
        return find_vectorized(callee)(*args, **kwargs)

    def _call_watched(self, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls code that is not traced; what it is given it may call."""
        if may_enter(callee) or any(map(may_enter, (*args, *kwargs.values()))):
            self._captures.effects.arm()
        return callee(*args, **kwargs)

    def _call_with_functions(self, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls one that gets functions, with their traced form."""
        given = {name: self._enter(value) for name, value in kwargs.items()}
        return callee(*map(self._enter, args), **given)

    def _enter(self, value: Any) -> Any:
        """The traced form of a function; the guard looks after all else in which code of the user's is."""
        if isinstance(value, (types.FunctionType, types.MethodType)):
            return self._resolve(value)
        if may_enter(value):
            self._captures.effects.arm()
        if isinstance(value, functools.partial):
            return self._resolve(value)
        is_reader = type(value) in (types.BuiltinFunctionType, types.WrapperDescriptorType)
        return self._find_reader(value) or (self._own.get(value) if is_reader else None) or value

    def _call_on_arrays(self, callee: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a function of jitcore's, which takes Arrays where NumPy's arrays are traced."""

        def enter(leaf: Any) -> Any:
            if isinstance(leaf, Number):
                raise not_traceable("a function of jitcore is called with a traced Python number")
            return leaf.read() if isinstance(leaf, Handle) else leaf

        with plain_semantics(), self._captures.effects.look_away():
            return callee(*tree_util.tree_map(enter, args), **tree_util.tree_map(enter, kwargs))


def _take_apart(caller: operator.methodcaller) -> tuple[str, tuple, dict[str, Any]]:
    """The name of the method that an `operator.methodcaller` calls, and what it passes."""
    made, given = caller.__reduce__()
    return (given[0], given[1:], {}) if made is operator.methodcaller else (*made.args, given, made.keywords)


def _is_made_of_python(callee: Any) -> bool:
    """Whether it is what `np.frompyfunc` makes, or a method of that."""
    owner = getattr(callee, "__self__", None) if type(callee) is types.BuiltinMethodType else callee
    return type(owner) is np.ufunc and all(set(kinds) <= set("O->") for kinds in owner.types)


def _may_call_back(callee: Any) -> bool:
    """Whether code that is not traced may call what it is given, or what it holds."""
    kind = type(callee)
    if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, np.ufunc,
                types.MethodWrapperType):
        return False
    return not (kind is type and (callee.__module__ == "builtins" or issubclass(callee, np.generic)))


def may_enter(value: Any, depth: int = 2) -> bool:
    """Whether code of the user's runs when a value is called, or what it holds is."""
    if is_user_class(value if issubclass(type(value), type) else type(value)):
        return True
    if isinstance(value, types.FunctionType):
        if is_user_code(value.__code__) or "__wrapped__" in value.__dict__:
            return True
        return any(may_enter(cell.cell_contents, depth - 1) for cell in value.__closure__ or ()
                   if depth and cell != types.CellType())
    if isinstance(value, types.MethodType):
        return may_enter(value.__func__) or may_enter(value.__self__)
    if isinstance(value, functools.partial):
        return any(map(may_enter, (value.func, *value.args, *value.keywords.values())))
    if isinstance(value, types.GeneratorType) or hasattr(value, "__wrapped__"):
        return True
    if isinstance(value, (list, tuple, set, dict)):
        parts = value.values() if isinstance(value, dict) else value
        return depth > 0 and any(may_enter(part, depth - 1) for part in parts)
    return False


def _hashes_place(value: Any) -> bool:
    """Whether a hash depends on which object it is, which traced code does not have."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(_hashes_place, value))
    if isinstance(value, BOUND_METHODS):
        return not isinstance(value.__self__, OWNERLESS)
    return type(value).__hash__ is object.__hash__ and is_user_class(type(value))


@contextlib.contextmanager
def plain_semantics():
    """No mode: what runs now is not code of the user with NumPy's semantics."""
    previous, current.mode = current.mode, None
    try:
        yield
    finally:
        current.mode = previous


def find_effect(callee: Any) -> str:
    """Why a call may do more than give a result, as the middle of a sentence; "" if it does not."""
    if isinstance(callee, types.MethodType):
        callee = callee.__func__
    owner, module = find_owner(callee)
    name = getattr(callee, "__name__", type(callee).__name__)
    if getattr(builtins, name, None) is callee:
        module = "builtins"  # `open` names the module that defines it, in its own way in each version
    if module == "builtins":
        return f"{name}() is called" if owner is None and name in _IMPURE_BUILTINS else ""
    root = module.partition(".")[0]
    if module.startswith(_IMPURE_MODULES) or root == "numpy" and owner is None and name in _IMPURE_NUMPY:
        return f"{module}.{name}() is called"
    if root in _PURE or is_user_function(callee) or not is_library_module(module):
        return ""
    return f"{module}.{name}() is called, which may do more than give a result"


#: Names of modules that only another process has, whose objects were told to this one.
OWN_MODULES: set[str] = set()


def is_library_module(name: str) -> bool:
    """Whether a module is no code of the user."""
    if name in OWN_MODULES:
        return False
    found = sys.modules.get(name)
    return found is None or name != "__main__" and is_library_file(getattr(found, "__file__", None))


def _refuse(problem: str, *args: Any, **kwargs: Any) -> Any:
    raise not_traceable(problem)
