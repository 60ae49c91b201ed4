"""Annotations of functions that are compiled: from Python 3.14 on they are evaluated when somebody asks."""

from __future__ import annotations

import inspect
import sys

import pytest
from numpy import ones

from jitcore import autojit, custom_jvp, jit, vmap
from jitcore.custom_batching import custom_vmap

LATER = """
def function(x: Later) -> Later:
    return x * 2
"""


def define(globals_of: dict):
    exec(compile(LATER, "<test>", "exec", dont_inherit=True), globals_of)
    return globals_of["function"]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at the definition")
@pytest.mark.parametrize("wrap", [jit, autojit, custom_jvp, custom_vmap, lambda f: jit(f, rewrite=True), lambda f: jit(vmap(f), static_argnames=())],
                         ids="jit autojit custom_jvp custom_vmap rewrite vmap".split())
def test_names_that_are_not_defined_yet(wrap):
    names: dict = {}
    wrapped = wrap(define(names))
    if wrap is custom_jvp:
        wrapped.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    assert (wrapped(ones(3)) == 2).all()
    with pytest.raises(NameError, match="Later"):
        inspect.get_annotations(names["function"])


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at the definition")
def test_annotations_are_those_of_the_function():
    names: dict = {}
    wrapped = jit(define(names))
    with pytest.raises(NameError, match="Later"):
        _ = wrapped.__annotations__
    names["Later"] = int
    assert wrapped.__annotations__ == {"x": int, "return": int}
