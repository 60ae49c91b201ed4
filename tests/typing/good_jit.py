"""A user's file, type-checked (never run): jitted functions keep their parameters and result."""

from functools import partial
from typing import assert_type

import jitcore
from jitcore.core.jaxpr import ClosedJaxpr


@jitcore.jit
def scale(x: jitcore.Array, factor: float = 2.0) -> jitcore.Array:
    return x


@jitcore.jit(static_argnames="n")
def repeat(x: jitcore.Array, n: int) -> tuple[jitcore.Array, int]:
    return x, n


@partial(jitcore.jit, static_argnums=0)
def count(n: int) -> int:
    return n


def use(x: jitcore.Array) -> None:
    assert_type(scale(x, factor=3.0), jitcore.Array)
    assert_type(repeat(x, n=2), tuple[jitcore.Array, int])
    assert_type(scale.cache_info().traces, int)
    assert_type(scale.lower(x).compile().as_text(), str)
    closed: ClosedJaxpr = jitcore.make_jaxpr(scale)(x)
    print(closed)
