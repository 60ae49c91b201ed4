"""Where samples lie: the argument `out_sharding` of the functions that draw arrays.

In: a function that draws. Out: the function with one more argument, a sharding of its result.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from jitcore.lax.parallel.partitioning import with_sharding_constraint


def accept_sharding(draw: Callable) -> Callable:
    """A function that also takes `out_sharding`, by name."""

    @functools.wraps(draw)
    def placed(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        samples = draw(*args, **kwargs)
        return samples if out_sharding is None else with_sharding_constraint(samples, out_sharding)

    placed.__module__ = "jitcore.random"  # where pickle finds it
    signature = inspect.signature(draw)
    option = inspect.Parameter("out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None)
    placed.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option])
    return placed
