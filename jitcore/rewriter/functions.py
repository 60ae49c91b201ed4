"""Rewritten functions: from a Python function to one whose control flow may depend on traced values.

In: a function, method, partial or callable object. Out: a function of the same signature, which runs its own
code, behind a question, where nothing is traced. Each code object is analysed once; what a rewritten function
calls is rewritten when it is called.
"""

from __future__ import annotations

import functools
import gc
import inspect
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from jitcore.core.source import locate_function
from jitcore.core.trace import Tracer, context, eval_trace
from jitcore.process.effort import spend, spend_on_call
from jitcore.process.generated import remake
from jitcore.rewriter.bytecode.assembler import Assembler, Label, insert_code
from jitcore.rewriter.bytecode.flow import find_assigned
from jitcore.rewriter.bytecode.graph import Graph
from jitcore.rewriter.bytecode.instructions import (Unsupported, count_arguments, find_first_position,
                                                    is_generator)
from jitcore.rewriter.bytecode.versions import OPCODES, SUPPORTED, VERSION
from jitcore.rewriter.control_flow.driver import Driver
from jitcore.rewriter.control_flow.iterators import TracedIterator
from jitcore.rewriter.control_flow.loops import trace_loop
from jitcore.rewriter.handles import UNDEFINED, Mode, current
from jitcore.rewriter.journal import logs
from jitcore.rewriter.objects import (find_special, is_compiled_by_numba, is_user_class, is_user_code,
                                      is_wrapper)
from jitcore.rewriter.operations import texts
from jitcore.rewriter.operations.hooks import Hooks
from jitcore.rewriter.operations.redirects import REDIRECTS
from jitcore.rewriter.operations.texts import find_method
from jitcore.rewriter.writing.folded import count_sites, write_fold
from jitcore.rewriter.writing.resumable import HookedWriter, Suspended, Template

_KEPT = "__jitcore_rewritten__"
#: A function with this attribute is never rewritten.
_MARK = "__jitcore_original__"
#: Where a generator function with hooks has the one without.
_HOOKED = "__jitcore_hooked__"
#: Steps of finding what is called, and of a call of rewritten code.
_CALL, _ACTIVATION = 8, 20


def rewrite_function(fun: Callable) -> Callable:
    """The same function, whose `if`, `while` and `for` work on traced values, as `cond` and `while_loop`.

    On values that Python can read it runs as it always did. A function that cannot be rewritten (a generator,
    a coroutine, C code) is returned unchanged, with a warning.
    """
    resolved = resolve(fun, is_asked_for=True)
    if resolved is fun and isinstance(fun, types.FunctionType) and not {_KEPT, _MARK} & fun.__dict__.keys():
        reason = _find_template(fun.__code__, fun.__code__.co_filename)
        name, place = locate_function(fun)
        if isinstance(reason, str):
            warnings.warn(f"{name} at {place} is not rewritten: {reason}", RuntimeWarning, stacklevel=2)
    return resolved


def rewrite_source(function: types.FunctionType) -> types.FunctionType:
    """The rewritten form of a function of a library, whatever the mode calls instead of it."""
    return _rewrite(function, True)


def resolve(callee: Any, *, is_asked_for: bool = False) -> Any:
    """What a rewritten function calls instead of a callable: its rewritten form, a redirect, or itself."""
    spend_on_call(_CALL)
    kind = type(callee)
    if kind is types.BuiltinFunctionType and type(callee.__self__) is str:
        return find_method(callee) or callee
    if current.mode is not None:
        found = _find_redirect(callee)
        if found is not None:
            return found
    if kind is types.FunctionType:
        return _rewrite_wrapped(callee) if is_wrapper(callee) else _rewrite(callee, is_asked_for)
    if kind is types.MethodType:
        function = resolve(callee.__func__, is_asked_for=is_asked_for)
        return callee if function is callee.__func__ else types.MethodType(function, callee.__self__)
    if kind is functools.partial:
        function = resolve(callee.func, is_asked_for=is_asked_for)
        if function is callee.func:
            return callee
        return functools.partial(function, *callee.args, **callee.keywords)
    found = _find_redirect(callee)
    if found is not None:
        return found
    if is_compiled_by_numba(callee):
        return functools.partial(_call_compiled, callee)
    call = find_special(callee, "__call__")
    return callee if call is None else resolve(call, is_asked_for=is_asked_for)


texts.resolve = resolve


def _call_compiled(callee: Any, *args: Any, **kwargs: Any) -> Any:
    """A function of Numba's, whose Python form serves traced values, and what only kernels may call."""
    is_of_kernels = callee.targetoptions.get("device", False)
    if is_of_kernels or any(isinstance(x, Tracer) for x in (*args, *kwargs.values())):
        return resolve(callee.py_func)(*args, **kwargs)
    return callee(*args, **kwargs)


def _find_redirect(callee: Any) -> Any:
    """What the mode, or else Python's own functions, have in place of a callable; None where nothing."""
    if is_user_class(type(callee)):
        return None  # its hash may be code of the user's
    try:
        found = None if current.mode is None else current.mode.redirects.get(callee)
        return REDIRECTS.get(callee) if found is None else found
    except TypeError:  # not hashable
        return None


@functools.lru_cache(maxsize=1000)
def _find_template(code: types.CodeType, path: str) -> tuple[Template, Entry] | str:
    """The template and the entry of a code object, or why it has none.

    path: of the file, which messages show; Python calls code of two files equal where it is alike."""
    try:
        if VERSION not in SUPPORTED:
            raise Unsupported(f"Python {VERSION[0]}.{VERSION[1]} is not supported")
        template = Template(code, HOOKS)
    except Unsupported as reason:
        return str(reason)
    return template, Entry(code, template.arguments)


def _rewrite(function: types.FunctionType, is_asked_for: bool) -> types.FunctionType:
    kept = function.__dict__.get(_KEPT)
    if kept is not None and (function is kept.original and kept.is_current() or function is kept.made):
        return kept.made
    if _MARK in function.__dict__ or not (is_asked_for or is_user_code(function.__code__)):
        return function
    if current.mode is not None and is_generator(function.__code__):
        return hook_generator(function)
    found = _find_template(function.__code__, function.__code__.co_filename)
    if isinstance(found, str):
        if current.mode is not None:
            current.mode.refuse_unhooked(function, found)
        return function
    template, entry = found
    kept = _Kept(function)
    kept.made = remake(function, entry.make_code(_Runner(template, kept)))
    kept.made.__dict__[_KEPT] = function.__dict__[_KEPT] = kept
    return kept.made


def hook_generator(function: types.FunctionType) -> types.FunctionType:
    """A generator function with hooks, under a mode."""
    code = function.__code__
    try:
        made = remake(function, _hook_generator(code, code.co_filename))
    except Unsupported as reason:
        current.mode.refuse_unhooked(function, str(reason))
        return function
    made.__dict__[_HOOKED] = function
    return made


def find_fold(generator: Any, consumer: Callable) -> Callable[[Any], Any] | None:
    """What a builtin does with all of a generator, as a function of the result of no element whose loops may
    be those of a program; the generator is at its end then. None where the builtin can go through it, or has
    to: one that has begun, is sent values, or handles exceptions; and for all else than generators.

    consumer: a key of `folded.FOLDS`."""
    if type(generator) is not types.GeneratorType:
        return None
    functions = [one for one in gc.get_referents(generator) if type(one) is types.FunctionType]
    own = [one for one in functions if one.__code__ is generator.gi_code]
    function = own[0].__dict__.get(_HOOKED) if own else None
    if function is None or inspect.getgeneratorstate(generator) != inspect.GEN_CREATED:
        return None
    code, given = function.__code__, generator.gi_frame.f_locals
    is_short = not isinstance(given.get(".0", function), (TracedIterator, types.FunctionType))
    try:
        if is_short and count_sites(code, code.co_filename) == 1:
            return None
        folded = write_fold(code, code.co_filename, consumer)
    except Unsupported:
        return None
    made = types.FunctionType(folded, function.__globals__, function.__name__, None, function.__closure__)
    arguments = [given[name] for name in code.co_varnames[: count_arguments(code)]]
    generator.close()

    def fold(result: Any) -> Any:
        try:
            return _rewrite(made, True)(*arguments, result)
        except StopIteration as error:
            raise RuntimeError("generator raised StopIteration") from error

    return fold


def _rewrite_wrapped(wrapper: types.FunctionType) -> types.FunctionType:
    """What a transformation such as `vmap` or `grad` made of a function: the same of its rewritten form,
    which stands in the closure. Under a mode it stays as it is: there, operands have other types."""
    if current.mode is not None or _MARK in wrapper.__dict__:
        return wrapper
    held = [cell.cell_contents for cell in wrapper.__closure__]
    found = [resolve(x) if type(x) is types.FunctionType else x for x in held]
    if all(new is old for new, old in zip(found, held)):
        return wrapper
    return remake(wrapper, wrapper.__code__, tuple(map(types.CellType, found)))


@functools.lru_cache(maxsize=1000)
def _hook_generator(code: types.CodeType, path: str) -> types.CodeType:
    """The code of a generator function with hooks in place of operations, so that what it calls and stores is
    known as in all traced code. It has one entry: a traced value that decides in it raises, as its frame
    cannot be entered twice. path: of the file; Python calls code of two files equal where it is alike.

    Raises: Unsupported for `yield from`."""
    graph = Graph(code)
    arguments = code.co_varnames[: count_arguments(code)]
    names = [name for name in code.co_varnames if name in arguments or name not in code.co_cellvars]
    out = Assembler(code, names, code.co_freevars, code.co_cellvars)
    out.begin(find_first_position(code), is_generator=True)
    assigned = find_assigned(graph, frozenset(arguments))
    HookedWriter(graph, out, HOOKS, assigned).write_blocks(graph.in_order())
    return out.assemble(graph.max_depth + 6)


class _Kept:
    """A function, the code that it had, its rewritten form, and the function with many entries that this
    runs. It is an attribute of the first two, so that all live as long as each other; `functools.wraps`
    copies it to other functions, for which it says nothing."""

    __slots__ = ("original", "code", "made", "function", "__weakref__")

    def __init__(self, original: types.FunctionType | None = None):
        self.original, self.made, self.function = original, None, None
        self.code = None if original is None else original.__code__

    def is_current(self) -> bool:
        """Whether the function has the code that it had, or that of its rewritten form."""
        return self.original.__code__ is self.code or self.original.__code__ is self.made.__code__

    def __reduce__(self):
        return _Kept, ()


def make_function(template: Template, original: types.FunctionType, cells: tuple, mode: Mode | None):
    """The function with many entries of one activation. cells: of its own variables."""
    namespace = original.__globals__ if mode is None else mode.namespace_of(original)
    closure = (*(original.__closure__ or ()), *cells) or None
    made = types.FunctionType(template.code, namespace, original.__name__, None, closure)
    made.__qualname__ = original.__qualname__
    return made


class _Runner:
    """Runs a function's code with many entries, given the tuple of its arguments. It is a constant of the
    entry's code, in which the garbage collector sees no references: so it refers weakly to the function."""

    __slots__ = ("template", "kept")

    def __init__(self, template: Template, kept: _Kept):
        self.template, self.kept = template, weakref.ref(kept)

    def __call__(self, arguments: tuple) -> Any:
        spend(_ACTIVATION)
        template, kept = self.template, self.kept()
        function = kept.function
        if function is None or current.mode is not None:  # a mode has global names and cells of its own
            function = make_function(template, kept.original, self._make_cells(arguments), current.mode)
            if not template.cells and current.mode is None:
                kept.function = function
        state = arguments
        if template.places is not None:
            state = tuple([arguments[place] if place >= 0 else UNDEFINED for place in template.places])
        first = arguments[0] if arguments else None
        result = function(first, template.entry, state, None)
        if type(result) is not Suspended:
            return result
        return Driver(template, function, arguments, trace_loop).finish(result)

    def _make_cells(self, arguments: tuple) -> tuple:
        given = dict(zip(self.template.arguments, arguments))
        return tuple([types.CellType(given[name]) if name in given else types.CellType()
                      for name in self.template.cells])


# -- the function's own code, behind a question --------------------------------------------------------------
class _Probe:
    """`None in self`: whether rewritten code has to look out for traced values in this thread.

    is_forced: looks out always, so that tests reach the code that does on ordinary values."""

    __slots__ = ("is_forced",)

    def __init__(self):
        self.is_forced = False

    def __contains__(self, _) -> bool:
        return (context.trace is not eval_trace or current.mode is not None or bool(logs.stack)
                or self.is_forced)


PROBE = _Probe()


class Entry:
    """The entries of all functions with one code object. arguments: the names of its parameters.

    The code is the function's own with some instructions in front, which ask whether anything is being
    traced. Where nothing is, no variable holds a traced value, and the function's own instructions run as
    they always did: same speed, same frames, same lines. Otherwise a runner gets the arguments, and what it
    returns is the result."""

    def __init__(self, code: types.CodeType, arguments: tuple[str, ...]):
        out, runner = Assembler(code, code.co_varnames, code.co_freevars, code.co_cellvars), object()
        own_code = Label()
        out.load_const(None)
        out.branch_in(PROBE, own_code, holds=False)
        out.position = find_first_position(code)
        out.push_callee(runner)  # each function puts its own in its place
        for name in arguments:
            out.load(name)
        out.emit("BUILD_TUPLE", len(arguments))
        out.call(1)
        out.emit("RETURN_VALUE")
        out.place(own_code)
        self._code = insert_code(code, out, _find_begin(code), len(arguments) + 4)
        self._place = out.const(runner)

    def make_code(self, runner: Callable[[tuple], Any]) -> types.CodeType:
        """The code with a runner, which is called with the tuple of all arguments."""
        consts = list(self._code.co_consts)
        consts[self._place] = runner
        return self._code.replace(co_consts=tuple(consts))


def _find_begin(code: types.CodeType) -> int:
    """The offset behind RESUME; what stands before it makes cells."""
    data = code.co_code
    return next(at for at in range(0, len(data), 2) if data[at] == OPCODES["RESUME"]) + 2


HOOKS = Hooks(resolve)
