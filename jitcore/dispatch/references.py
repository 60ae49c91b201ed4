"""Mutable references as arguments of jitted functions, and as variables around them.

In: a call with references among the leaves of its arguments, or of a function that uses others. Out: its
result; and the references hold what the function wrote. The program is that of another function, of arrays
alone: it gets what the references hold as one more argument, and returns what has become of it.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from jitcore.core.refs import Ref, flatten_arguments, leave_out_same, lend, read_refs, replace_refs
from jitcore.core.source import locate_function
from jitcore.dispatch.fast_call import FastCallable
from jitcore.dispatch.options import ArgumentPlan
from jitcore.dispatch.signature import name_positions
from jitcore.tree_util import PyTreeDef, keystr, tree_leaves_with_path

__all__ = ["CapturedRefs", "References", "find_refs"]


class CapturedRefs(NotImplementedError):
    """Raised by an attempt to trace a function that uses references which it neither made nor was given; seen
    by users where nothing passes these on."""

    def __init__(self, refs: Sequence[Ref]):
        super().__init__(f"an array reference, {refs[0].aval}, is used in a traced function in which it was "
                         "not made: pass ref[...], return the new value, and assign it")
        self.refs = tuple(refs)


#: The keyword argument that has what references hold; no parameter has such a name.
_VALUES = "values of references"


def _flatten(plan: ArgumentPlan, args: tuple, kwargs: dict) -> tuple[list, PyTreeDef]:
    """The leaves of arguments that are not static, None among them, and their structure."""
    static = plan.find_static(len(args)) if plan.static_nums else ()
    by_position = {i: arg for i, arg in enumerate(args) if i not in static}
    by_name = {name: arg for name, arg in kwargs.items() if name not in plan.static_names}
    return flatten_arguments((by_position, by_name))


def _replace(args: tuple, kwargs: dict, structure: PyTreeDef, leaves: Sequence) -> tuple[tuple, dict]:
    by_position, by_name = structure.unflatten(leaves)
    return tuple([by_position.get(i, arg) for i, arg in enumerate(args)]), kwargs | by_name


def find_refs(plan: ArgumentPlan, args: tuple, kwargs: dict) -> list[Ref]:
    """The references among the leaves of arguments that are not static."""
    return [leaf for leaf in _flatten(plan, args, kwargs)[0] if isinstance(leaf, Ref)]


class References:
    """Calls of one jitted function that have to do with references.

    Args:
        plan: which of its arguments are static.
        make: gives the `JitFunction` of another function under the same options.

    Attributes:
        functions: those that it gave."""

    def __init__(self, plan: ArgumentPlan, make: Callable[[Callable], Any]):
        self._plan, self._make = plan, make
        self._pure: dict[tuple, Callable] = {}
        self.functions: list[Any] = []
        self._captured: dict[tuple, tuple[Ref, ...]] = {}

    def call(self, fun: Callable, args: tuple, kwargs: dict, captured: tuple[Ref, ...] = ()) -> Any:
        """Raises: ValueError where a reference is given twice, or given and captured."""
        leaves, structure = _flatten(self._plan, args, kwargs)
        places = tuple([i for i, leaf in enumerate(leaves) if isinstance(leaf, Ref)])
        passed = tuple([leaves[i] for i in places])
        for number, ref in enumerate(passed):
            if ref in passed[:number]:
                self._refuse_twice(fun, args, kwargs, ref)
            leaves[places[number]] = None
        replaced = _replace(args, kwargs, structure, leaves)
        form = structure, len(args), places
        captured = self._captured.get(form, captured)
        while True:
            for ref in passed:
                if ref in captured:
                    self._refuse_captured(fun, args, kwargs, ref)
            refs = (*passed, *captured)
            given = {**replaced[1], _VALUES: read_refs(refs)}
            try:
                result, values = self._find_pure(fun, form, captured)(*replaced[0], **given)
            except CapturedRefs as found:
                captured = (*captured, *found.refs)
                self._captured[form] = captured
                continue
            replace_refs(refs, values)
            return result

    def _find_pure(self, fun: Callable, form: tuple, captured: tuple[Ref, ...]) -> Callable:
        """The function of arrays, jitted."""
        key = *form, captured
        if key not in self._pure:
            pure = _make_pure(fun, self._plan, form[-1], captured)
            function = self._make(pure)
            self.functions.append(function)
            self._pure[key] = FastCallable(function.fast, functools.partial(function.call_on_arrays, pure))
        return self._pure[key]

    def _refuse_captured(self, fun: Callable, args: tuple, kwargs: dict, ref: Ref) -> None:
        name, place = locate_function(fun)
        raise ValueError(f"when tracing {name} at {place} for jit, a mutable array reference of type "
                         f"{ref.describe()} was both closed over and passed as the argument "
                         f"{self._name_places(fun, args, kwargs, ref)[0]}")

    def _refuse_twice(self, fun: Callable, args: tuple, kwargs: dict, ref: Ref) -> None:
        name, place = locate_function(fun)
        first, second, *_ = self._name_places(fun, args, kwargs, ref)
        raise ValueError("only one reference to a mutable array may be passed as an argument to a function, "
                         f"but when tracing {name} at {place} for jit the mutable array reference of type "
                         f"{ref.describe()} appeared at both {first} and {second}.")

    def _name_places(self, fun: Callable, args: tuple, kwargs: dict, ref: Ref) -> list[str]:
        named = [*zip(name_positions(fun, len(args)), args), *kwargs.items()]
        return [name + keystr(path) for name, arg in named
                for path, leaf in tree_leaves_with_path(arg) if leaf is ref]


def _make_pure(fun: Callable, plan: ArgumentPlan, places: Sequence[int], captured: tuple[Ref, ...]
               ) -> Callable:
    """The function of arrays: it is given what references hold, in one more keyword argument, in whose places
    None stands; it returns the result, and what each reference holds then, None where that is the same."""
    try:
        find: Callable = weakref.ref(fun)  # whose caches keep what is made here
    except TypeError:
        find = functools.partial(_give, fun)

    @functools.wraps(fun, updated=())
    def pure(*args: Any, **kwargs: Any) -> Any:
        values = kwargs.pop(_VALUES)
        refs = [Ref(value) for value in values[: len(places)]]
        leaves, structure = _flatten(plan, args, kwargs)
        for place, ref in zip(places, refs):
            leaves[place] = ref
        args, kwargs = _replace(args, kwargs, structure, leaves)
        with lend(captured, values[len(places) :]) as lent:
            result = find()(*args, **kwargs)
            now = read_refs((*refs, *captured))
            others = [ref for ref in lent if ref not in captured]
        if others:
            raise CapturedRefs(others)
        return result, leave_out_same(now, values)

    pure.__wrapped__ = _make_outline(fun)
    return pure


def _make_outline(fun: Callable) -> Callable:
    """A function with name and place of another one, that keeps nothing else of it alive."""
    fun = getattr(fun, "__func__", fun)
    if not isinstance(fun, types.FunctionType):
        return _give
    closure = tuple([types.CellType() for _ in fun.__code__.co_freevars])
    return types.FunctionType(fun.__code__, {}, fun.__name__, None, closure)


def _give(value: Any) -> Any:
    return value
