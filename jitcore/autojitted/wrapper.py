"""A function with the parameters of another one, which hands their values on.

In: a function. Out: `Wrapper`: Python binds arguments to parameters as it would for the function itself, with
its defaults and its errors; what is bound arrives as one value for each parameter.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from jitcore.process.watched import Parameters, make_code


def make_wrapper(
    function: types.FunctionType, parameters: Parameters, dispatch: Callable
) -> types.FunctionType:
    """A function with the parameters, defaults and names of `function` that calls `dispatch(*values)`."""
    code = make_dispatching_code(function, parameters, dispatch)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__,
                              function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    return made


def make_dispatching_code(function: types.FunctionType, parameters: Parameters, dispatch: Callable):
    """Code for a wrapper that calls `dispatch(*values)`."""
    body = f"        return 'dispatch of jitcore'({', '.join(parameters.names)})"
    return make_code(function, parameters, body, {"dispatch of jitcore": dispatch})


def unwrap(made: types.FunctionType, function: types.FunctionType) -> None:
    """Makes a wrapper run the function's own code from now on, at the cost of the function itself."""
    made.__code__ = function.__code__


def is_plain_function(function: Any) -> bool:
    """Whether a function runs from its call to its return: no generator, no coroutine."""
    flags = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return isinstance(function, types.FunctionType) and not function.__code__.co_flags & flags
