"""Eager operations on arrays that lie on a device, and those that run on a mesh: each is a program of one
equation.

In: a primitive, operands, parameters. Out: arrays on the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jitcore.dispatch.function import find_function
from jitcore.dispatch.options import DEFAULT_OPTIONS


def run_on_device(primitive: Any, args: tuple, params: dict) -> Any:
    try:
        fun = _find_application(primitive, tuple(sorted(params.items())))
    except TypeError:  # a parameter that has no hash
        fun = _make_application(primitive, tuple(params.items()))
    return find_function(fun, DEFAULT_OPTIONS).call(fun, args, {})


def _make_application(primitive: Any, params: tuple) -> Callable:
    given = dict(params)

    def apply(*operands):
        return primitive.bind(*operands, **given)

    return apply


_find_application = functools.lru_cache(maxsize=2048)(_make_application)
