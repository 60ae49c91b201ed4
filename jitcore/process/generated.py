"""Functions that are made of source text; and wrappers: functions with the parameters of another one.

In: lines, and the objects that they name. Out: a function. A wrapper hands its arguments on to what runs in
the place of a function: to a dispatcher, which gets one value for each parameter as Python has bound it; or
to the function itself, watched for calls of more than so many seconds, at the cost of two readings of the
clock.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

_VARIADIC, _OPTIONS = 4, 8  # CO_VARARGS, CO_VARKEYWORDS
_NO_COLUMNS = 0x80 | 13 << 3  # the kind of an entry in a table of lines; a signed difference of lines follows


class Constants:
    """Objects that generated source refers to by name, so that equal source serves different objects."""

    def __init__(self):
        self.values: list[Any] = []
        self._places: dict[int, int] = {}

    def add(self, value: Any) -> str:
        """The name of this object in the source."""
        place = self._places.setdefault(id(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return f"c{place}"

    @property
    def names(self) -> str:
        """The names, each followed by a comma."""
        return "".join(f"c{k}, " for k in range(len(self.values)))

    def define(self, name: str, parameters: str, lines: Sequence[str], module: str, **given: Any) -> Callable:
        """A function with this body. module: who wrote it, under whose name tracebacks leave out its frames;
        given: more objects, by the names that the lines have for them."""
        body = "".join(f"        {line}\n" for line in lines)
        outer = "".join(f"{key}, " for key in given)
        source = f"def make({outer}{self.names}):\n    def {name}({parameters}):\n{body}\n    return {name}\n"
        return compile_function(source, "make", module, "")(*given.values(), *self.values)


@functools.lru_cache(maxsize=64)
def compile_function(source: str, name: str, module: str, names_of: str) -> Callable:
    """The function `name` that the source defines. names_of: the module whose names it uses; "" for none."""
    names = {**(vars(sys.modules[names_of]) if names_of else {}), "__name__": module}
    exec(compile(source, f"<{module}>", "exec"), names)
    return names[name]


# -- functions with the parameters of others ----------------------------------------------------------------
class Parameters:
    """The parameters of a code object.

    Attributes:
        names: in the order in which values are handed on: those by position, then keywords, *args, **kwargs.
        header, passed: source of the parameter list, and of the arguments of a call that passes them on."""

    def __init__(self, code: types.CodeType):
        n_by_position, n_keywords = code.co_argcount, code.co_kwonlyargcount
        plain = code.co_varnames[:n_by_position]
        keywords = code.co_varnames[n_by_position : n_by_position + n_keywords]
        rest = list(code.co_varnames[n_by_position + n_keywords :])
        variadic = rest.pop(0) if code.co_flags & _VARIADIC else ""
        options = rest.pop(0) if code.co_flags & _OPTIONS else ""
        self.names = (*plain, *keywords, *filter(None, (variadic, options)))
        header = list(plain)
        if code.co_posonlyargcount:
            header.insert(code.co_posonlyargcount, "/")
        if variadic or keywords:
            header.append(f"*{variadic}")
        header += [*keywords, f"**{options}"] if options else keywords
        self.header = ", ".join(header)
        self._variadic, self._options = variadic, options
        self._n_bare = code.co_posonlyargcount
        self._plain, self._keywords = plain, keywords
        self.passed = self._pass({name: name for name in self.names})

    def _pass(self, values: dict[str, str]) -> str:
        given = [values[name] for name in self._plain]
        given += [f"*{values[self._variadic]}"] if self._variadic else []
        given += [f"{name}={values[name]}" for name in self._keywords]
        given += [f"**{values[self._options]}"] if self._options else []
        return ", ".join(given)

    def split(self, values: Sequence[Any], *holders: Any) -> tuple[tuple, dict[str, Any]]:
        """The arguments of a call that a wrapper has bound to these values, without the defaults of any of
        these functions."""
        named = dict(zip(self.names, values))
        rest, options = named.pop(self._variadic, ()), named.pop(self._options, {})
        given = [named.pop(name) for name in self._plain]
        old: dict[str, list] = {name: [] for name in self.names}
        for holder in holders:
            defaults = holder.__defaults__ or ()
            items = zip(self._plain[len(given) - len(defaults) :], () if rest else defaults)
            for name, value in (*items, *(holder.__kwdefaults__ or {}).items()):
                old.setdefault(name, []).append(value)
        is_given = [all(value is not one for one in old[name]) for name, value in zip(self._plain, given)]
        n_given = len(given) if all(is_given) else is_given.index(False)
        n_given = max(n_given, sum(is_given[: self._n_bare]))
        later = {self._plain[k]: given[k] for k in range(n_given, len(given)) if is_given[k]}
        keywords = {name: value for name, value in named.items()
                    if all(value is not one for one in old[name])}
        return (*given[:n_given], *rest), later | keywords | options

    @functools.cached_property
    def call(self) -> Callable:
        """(function, values) -> its result."""
        passed = self._pass({name: f"values[{i}]" for i, name in enumerate(self.names)})
        return Constants().define("call", "function, values", [f"return function({passed})"], __name__)


class Defaults:
    """Those of a function, as a constant of code: they may have no hash."""

    __slots__ = ("__defaults__", "__kwdefaults__")

    def __init__(self, function: types.FunctionType):
        self.__defaults__, self.__kwdefaults__ = function.__defaults__, function.__kwdefaults__


def make_code(function: types.FunctionType, parameters: Parameters, body: str, constants: dict[str, Any],
              follow: Callable[..., Any]):
    """A code object that may take the place of the function's own, with other instructions.

    Args:
        body: its source, indented by 8; what is to be a constant stands in it as 'name'.
        constants: by name.
        follow: serves calls when the function's defaults are others than now."""
    own = function.__code__
    for name in ("__defaults__", "__kwdefaults__"):
        if getattr(function, name) is not None:
            values = "".join(f"{value}, " for value in parameters.names)
            body = _FOLLOWING.format(name=name, values=values) + body
            constants = {**constants, "defaults of jitcore": Defaults(function),
                         "function of jitcore": function, "follow of jitcore": follow}
    # It has the free variables of the function's, so that either may be the code of one function object.
    names = "".join(f"{name}, " for name in own.co_freevars)
    source = _CODE.format(header=parameters.header, body=body, names=names or "()",
                          variables="".join(f"{name} = " for name in own.co_freevars))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # constants that are called are replaced below
        code = compile(source, "<jitcore autojit>", "exec")
    for _ in range(2):
        code = next(const for const in code.co_consts if isinstance(const, types.CodeType))
    consts = [constants.get(const, const) if type(const) is str else const for const in code.co_consts]
    return code.replace(co_consts=tuple(consts), co_name=own.co_name, co_qualname=own.co_qualname,
                        co_filename=own.co_filename, co_firstlineno=own.co_firstlineno)


_FOLLOWING = """\
        if 'function of jitcore'.{name} is not 'defaults of jitcore'.{name}:
            return 'follow of jitcore'(({values}), 'defaults of jitcore')
"""
_CODE = """\
def outer():
    {variables}None

    def wrapper({header}):
{body}
        {names}
"""


def make_watching_code(function: types.FunctionType, parameters: Parameters, follow: Callable, run: Callable,
                       limit: float, note: Callable[[float], None]) -> types.CodeType:
    """Code that runs `run` in place of the function, and tells `note` the seconds of a call that takes longer
    than the limit. A call that raises is not noted."""
    constants = {"clock of jitcore": perf_counter, "run of jitcore": run, "note of jitcore": note,
                 "limit of jitcore": limit}
    return make_code(function, parameters, _WATCHING.format(passed=parameters.passed), constants, follow)


# The names of its variables are no parameters' names.
_WATCHING = """\
        __jitcore_start = 'clock of jitcore'()
        __jitcore_result = 'run of jitcore'({passed})
        __jitcore_start = 'clock of jitcore'() - __jitcore_start
        if __jitcore_start > 'limit of jitcore':
            'note of jitcore'(__jitcore_start)
        return __jitcore_result"""


class Conversion:
    """What generated source makes values with that may be of several types: of an output, and the number of
    its type.

    kinds: types of Python, None's among them, or of NumPy's scalars."""

    def __init__(self, kinds: Sequence[type]):
        self._kinds = kinds
        self._are_complex = ["complex" in kind.__name__ for kind in kinds]
        self._are_whole = [kind.__name__ in ("int", "int64") for kind in kinds]

    def __call__(self, value: Any, tag: Any, whole: Any = None) -> Any:
        place = int(tag)
        if self._kinds[place] is types.NoneType:
            return None
        chosen = whole if whole is not None and self._are_whole[place] else value
        return self._kinds[place]((chosen if self._are_complex[place] else chosen.real).item())


def remake(function: types.FunctionType, code: types.CodeType, closure: tuple | None = None
           ) -> types.FunctionType:
    """A function with the parameters, defaults and names of another one, but other code."""
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              closure or function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function)


class Dispatch(NamedTuple):
    """What serves calls: each of `recent` in turn, until one gives something else than `miss`, then
    `serve(values)`. note_error: is given what they raise."""

    recent: Sequence[Callable]
    serve: Callable[[tuple], Any]
    miss: Any
    note_error: Callable[[BaseException], None]

    def write(self, names: Mapping[str, str], values: Sequence[str]) -> list[str]:
        """The lines of a call of these values, with names for what is above."""
        given = ", ".join(values)
        return ["try:", f"    for __jitcore_call in {names['recent']}:",
                f"        __jitcore_result = __jitcore_call({given})",
                f"        if __jitcore_result is not {names['miss']}:", "            return __jitcore_result",
                f"    return {names['serve']}(({given}{',' if given else ''}))",
                "except Exception as __jitcore_error:", f"    {names['note_error']}(__jitcore_error)",
                "    raise"]

    def make_function(self, count: int, module: str) -> Callable:
        """A function of so many values."""
        values, parts = [f"p{i}" for i in range(count)], self._asdict()
        lines = self.write({name: name for name in parts}, values)
        return Constants().define("dispatch", ", ".join(values), lines, module, **parts)


def make_wrapper(function: types.FunctionType, parameters: Parameters, dispatch: Dispatch,
                 follow: Callable[..., Any]) -> types.FunctionType:
    """A function with the parameters, defaults and names of `function` that serves calls in its place."""
    return remake(function, make_dispatching_code(function, parameters, dispatch, follow))


def make_dispatching_code(function: types.FunctionType, parameters: Parameters, dispatch: Dispatch,
                          follow: Callable[..., Any]):
    """Code for such a wrapper: all of it is of one line."""
    names = {name: f"'{name} of jitcore'" for name in Dispatch._fields}
    body = "\n".join(f"        {line}" for line in dispatch.write(names, parameters.names))
    constants = {f"{name} of jitcore": value for name, value in dispatch._asdict().items()}
    code = make_code(function, parameters, body, constants, follow)
    table, left = bytearray(), len(code.co_code) // 2
    while left > 0:  # entries of a line without columns, each for 8 instructions at most
        table += bytes((_NO_COLUMNS | min(left, 8) - 1, 0 if table else 2))
        left -= 8
    return code.replace(co_linetable=bytes(table))
