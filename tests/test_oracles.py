"""Each oracle finds the faults of its stage, and says so: one wrong pass, one wrong schedule, one wrong emitter."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import passes
from jitcore.backends.cpu import backend
from jitcore.backends.llvm import scalar_ops
from jitcore.core.jaxpr import ClosedJaxpr
from jitcore.loopir.program import Reduce
from jitcore.loopir.traversal import flatten
from tests import oracles
from tests.oracles import find_faults

X, Y = np.linspace(0.3, 2.0, 40), np.linspace(-1.0, 3.0, 40)


def program(x, y):
    return (jnp.sin(x) - y).sum(), x * y - x


@pytest.fixture(autouse=True)
def nothing_compiled():
    jitcore.clear_caches()
    yield
    jitcore.clear_caches()


def test_what_is_right_has_no_faults():
    assert find_faults(program, (X, Y)) == {}


def exchange_operands(closed: ClosedJaxpr) -> ClosedJaxpr:
    eqns = [
        eqn.replace(invars=eqn.invars[::-1]) if eqn.primitive.name == "sub" else eqn
        for eqn in closed.jaxpr.eqns
    ]
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


def test_a_wrong_pass_is_found_by_the_recorded_jaxpr(monkeypatch):
    wrong = passes.Pass("exchange", exchange_operands, "it is a fault")
    monkeypatch.setattr(passes, "PIPELINE", (*passes.PIPELINE, wrong))
    assert list(find_faults(program, (X, Y))) == ["passes"]


def test_a_wrong_schedule_is_found_by_the_optimised_jaxpr(monkeypatch):
    lower = backend.lower_program

    def lower_wrongly(*arguments):
        found = lower(*arguments)
        for statement in flatten(found.steps):
            if isinstance(statement, Reduce):
                statement.parts = [(result, "max", expr) for result, _, expr in statement.parts]
        return found

    for module in (backend, oracles):
        monkeypatch.setattr(module, "lower_program", lower_wrongly)
    assert list(find_faults(program, (X, Y))) == ["schedule"]


def test_a_wrong_emitter_is_found_by_the_loop_program(monkeypatch):
    monkeypatch.setitem(scalar_ops._FLOAT, "sub", lambda b, x, y: b.fsub(y, x))
    assert list(find_faults(program, (X, Y))) == ["emitter"]
