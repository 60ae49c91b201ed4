"""Rewritten functions: from a Python function to one whose control flow may depend on traced values.

In: a function, method, partial or callable object. Out: a function of the same signature. Each code object is
analysed once; what a rewritten function calls is rewritten when it is called.
"""

from __future__ import annotations

import functools
import os
import sysconfig
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from jitcore.core.source import locate_function
from jitcore.rewrite.driver import Driver
from jitcore.rewrite.emission import UNDEFINED, Suspended, Template
from jitcore.rewrite.hooks import make_hooks
from jitcore.rewrite.instructions import Unsupported
from jitcore.rewrite.redirects import REDIRECTS
from jitcore.rewrite.versions import SUPPORTED, VERSION

_MARK = "__jitcore_original__"
_NO_EXITS = frozenset()

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})

_templates: weakref.WeakKeyDictionary[types.CodeType, Template | str] = weakref.WeakKeyDictionary()
_rewritten: weakref.WeakKeyDictionary[types.FunctionType, types.FunctionType] = weakref.WeakKeyDictionary()


def rewrite_function(fun: Callable) -> Callable:
    """The same function, whose `if`, `while` and `for` work on traced values, as `cond` and `while_loop`.

    On values that Python can read it runs as it always did. A function that cannot be rewritten (a generator,
    a coroutine, C code) is returned unchanged, with a warning.
    """
    resolved = resolve(fun, is_asked_for=True)
    if resolved is fun and isinstance(fun, types.FunctionType) and _MARK not in fun.__dict__:
        reason = _find_template(fun.__code__)
        name, place = locate_function(fun)
        warnings.warn(f"{name} at {place} is not rewritten: {reason}", RuntimeWarning, stacklevel=2)
    return resolved


def resolve(callee: Any, *, is_asked_for: bool = False) -> Any:
    """What a rewritten function calls instead of a callable: its rewritten form, a redirect, or itself."""
    kind = type(callee)
    if kind is types.FunctionType:
        return _rewrite(callee, is_asked_for)
    if kind is types.MethodType:
        function = resolve(callee.__func__, is_asked_for=is_asked_for)
        return callee if function is callee.__func__ else types.MethodType(function, callee.__self__)
    if kind is functools.partial:
        function = resolve(callee.func, is_asked_for=is_asked_for)
        if function is callee.func:
            return callee
        return functools.partial(function, *callee.args, **callee.keywords)
    try:
        found = REDIRECTS.get(callee)
    except TypeError:  # not hashable
        found = None
    if found is not None:
        return found
    call = kind.__dict__.get("__call__")
    if kind is not type and isinstance(call, types.FunctionType) and _is_user_code(call.__code__):
        return types.MethodType(_rewrite(call, is_asked_for), callee)
    return callee


def _is_user_code(code: types.CodeType) -> bool:
    return not code.co_filename.startswith((_PACKAGE, _LIBRARY, *_INSTALLED, "<frozen", "<jitcore"))


def _find_template(code: types.CodeType) -> Template | str:
    """The template of a code object, or why it has none."""
    found = _templates.get(code)
    if found is None:
        try:
            if VERSION not in SUPPORTED:
                raise Unsupported(f"Python {VERSION[0]}.{VERSION[1]} is not supported")
            found = Template(code, HOOKS)
        except Unsupported as reason:
            found = str(reason)
        _templates[code] = found
    return found


def _rewrite(function: types.FunctionType, is_asked_for: bool) -> types.FunctionType:
    found = _rewritten.get(function)
    if found is not None:
        return found
    if _MARK in function.__dict__ or not (is_asked_for or _is_user_code(function.__code__)):
        return function
    template = _find_template(function.__code__)
    if isinstance(template, str):
        return function
    consts = list(template.entry_code.co_consts)
    consts[template.runner_place] = _Runner(template, function)
    code = template.entry_code.replace(co_consts=tuple(consts))
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    made.__dict__[_MARK] = function
    _rewritten[function] = made
    return made


class _Runner:
    """Runs a function's code with many entries, given the tuple of its arguments."""

    __slots__ = ("template", "original", "function", "places")

    def __init__(self, template: Template, original: types.FunctionType):
        self.template, self.original = template, original
        self.function = None if template.cells else self._make_function(())
        names = template.vectors[template.entry.number]
        arguments = template.arguments
        places = [arguments.index(name) if name in arguments else -1 for name in names]
        self.places = None if places == list(range(len(arguments))) else places

    def _make_function(self, cells: tuple) -> types.FunctionType:
        code, original = self.template.code, self.original
        closure = (*(original.__closure__ or ()), *cells) or None
        made = types.FunctionType(code, original.__globals__, original.__name__, None, closure)
        made.__qualname__ = original.__qualname__
        return made

    def __call__(self, arguments: tuple) -> Any:
        template, function = self.template, self.function
        if function is None:
            function = self._make_function(self._make_cells(arguments))
        state = arguments
        if self.places is not None:
            state = tuple([arguments[place] if place >= 0 else UNDEFINED for place in self.places])
        first = arguments[0] if arguments else None
        result = function(first, template.entry, state, _NO_EXITS)
        if type(result) is not Suspended:
            return result
        return Driver(template, function, first).finish(result)

    def _make_cells(self, arguments: tuple) -> tuple:
        given = dict(zip(self.template.arguments, arguments))
        return tuple([types.CellType(given[name]) if name in given else types.CellType()
                      for name in self.template.cells])  # fmt: skip


HOOKS = make_hooks(resolve)
