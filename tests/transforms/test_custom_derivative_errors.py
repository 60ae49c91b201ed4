"""What users' derivative rules may do wrong: the messages are JAX's."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import jitcore
from jitcore import custom_jvp, custom_vjp, grad, jit


def first_lines(package, build) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        build(package)
    return type(caught.value), str(caught.value).splitlines()[0]


def no_jvp(package):
    package.custom_jvp(lambda x: x)(1.0)


def no_vjp(package):
    package.custom_vjp(lambda x: x)(1.0)


def with_jvp(rule):
    def build(package):
        f = package.custom_jvp(abs)
        f.defjvp(rule)
        package.grad(f)(1.0)

    return build


def with_vjp(fwd, bwd):
    def build(package):
        f = package.custom_vjp(abs)
        f.defvjp(fwd, bwd)
        package.grad(f)(1.0)

    return build


def good_fwd(x):
    return x, None


MESSAGES = {
    "no jvp": no_jvp,
    "no vjp": no_vjp,
    "jvp: no pair": with_jvp(lambda p, t: p[0]),
    "jvp: trees": with_jvp(lambda p, t: (p[0], (t[0], t[0]))),
    "jvp: shape": with_jvp(lambda p, t: (p[0], np.ones(3, np.float32))),
    "jvp: dtype": with_jvp(lambda p, t: (p[0], t[0].astype("int32"))),
    "fwd: no pair": with_vjp(lambda x: x, lambda r, ct: (ct,)),
    "bwd: no tuple": with_vjp(good_fwd, lambda r, ct: ct),
    "bwd: length": with_vjp(good_fwd, lambda r, ct: (ct, ct)),
    "bwd: shape": with_vjp(good_fwd, lambda r, ct: (np.ones(3, np.float32),)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name):
    kind, line = first_lines(jitcore, MESSAGES[name])
    wanted_kind, wanted = first_lines(jax, MESSAGES[name])
    assert issubclass(kind, wanted_kind)
    traced = re.compile(r"Traced<.*?>with<\S+>(\(.*?\))?|Array\(.*?\)|[\d.]+$|JVPTracer.*|0x\w+")
    assert traced.sub("", line)[:150] == traced.sub("", wanted)[:150]


def test_rules_that_differ_from_the_function():
    f = custom_jvp(lambda x: (x, x))
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    g = custom_jvp(lambda x: x)
    g.defjvp(lambda primals, tangents: (np.ones(2, np.float32), np.ones(2, np.float32)))
    h = custom_vjp(lambda x: (x, x))
    h.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    for function in (f, g, h):
        with pytest.raises(
            TypeError, match="must produce a pair .* where the first element represents the primal"
        ):
            grad(jit(lambda x, function=function: sum(jitcore.tree.leaves(function(x)))))(1.0)


def test_defjvps_takes_all_arguments():
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``."):
        custom_jvp(lambda x, y: x, nondiff_argnums=0).defjvps(None, None)
