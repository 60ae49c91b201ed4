"""A function with the parameters of another one, which hands their values on.

In: a function. Out: `Wrapper`: Python binds arguments to parameters as it would for the function itself, with
its defaults and its errors; what is bound arrives as one value for each parameter.
"""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable
from typing import Any

from jitcore.dispatch.tree_code import compile_function


class Parameters:
    """The parameters of a code object.

    Attributes:
        names: in the order in which values are handed on: those by position, then keywords, *args, **kwargs.
        header, arguments: source of the parameter list, and of a call that passes them on.
    """

    def __init__(self, code: types.CodeType):
        n_by_position, n_keywords = code.co_argcount, code.co_kwonlyargcount
        plain = code.co_varnames[:n_by_position]
        keywords = code.co_varnames[n_by_position : n_by_position + n_keywords]
        rest = list(code.co_varnames[n_by_position + n_keywords :])
        variadic = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
        options = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else ""
        self.names = (*plain, *keywords, *filter(None, (variadic, options)))
        header = list(plain)
        if code.co_posonlyargcount:
            header.insert(code.co_posonlyargcount, "/")
        if variadic or keywords:
            header.append(f"*{variadic}")
        header += [*keywords, f"**{options}"] if options else keywords
        self.header = ", ".join(header)
        self._variadic, self._options = variadic, options
        self._plain, self._keywords = plain, keywords

    @functools.cached_property
    def call(self) -> Callable:
        """(function, values) -> its result."""
        values = {name: f"values[{i}]" for i, name in enumerate(self.names)}
        given = [values[name] for name in self._plain]
        given += [f"*{values[self._variadic]}"] if self._variadic else []
        given += [f"{name}={values[name]}" for name in self._keywords]
        given += [f"**{values[self._options]}"] if self._options else []
        source = f"def call(function, values):\n    return function({', '.join(given)})\n"
        return compile_function(source, "call", __name__)


def make_wrapper(
    function: types.FunctionType, parameters: Parameters, dispatch: Callable
) -> types.FunctionType:
    """A function with the parameters, defaults and names of `function` that calls `dispatch(*values)`."""
    values, own = ", ".join(parameters.names), function.__code__
    # The code has the free variables of the function's, so that either may be the code of one function
    # object.
    names = "".join(f"{name}, " for name in own.co_freevars)
    source = _WRAPPER.format(header=parameters.header, values=values, names=names or "()",
                             variables="".join(f"{name} = " for name in own.co_freevars))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # the constant that is called is replaced below
        code = compile(source, "<jitcore autojit>", "exec")
    for _ in range(2):
        code = next(const for const in code.co_consts if isinstance(const, types.CodeType))
    code = code.replace(
        co_consts=tuple([dispatch if const == "dispatch" else const for const in code.co_consts]),
        co_name=own.co_name, co_qualname=own.co_qualname, co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno)  # fmt: skip
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              function.__closure__)  # fmt: skip
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    return made


_WRAPPER = """\
def outer():
    {variables}None

    def wrapper({header}):
        return 'dispatch'({values})
        {names}
"""


def unwrap(made: types.FunctionType, function: types.FunctionType) -> None:
    """Makes a wrapper run the function's own code from now on, at the cost of the function itself."""
    made.__code__ = function.__code__


def is_plain_function(function: Any) -> bool:
    """Whether a function runs from its call to its return: no generator, no coroutine."""
    flags = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return isinstance(function, types.FunctionType) and not function.__code__.co_flags & flags
