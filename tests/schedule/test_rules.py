"""The rules that end scheduling: decisions stand in the program, in the words of `loopir.ways`."""

import numpy as np

import jitcore
import jitcore.numpy as jnp
from jitcore.backends.cpu.mapping.rules import RULES
from jitcore.backends.cpu.target import CpuTarget
from jitcore.loopir.program import Reduce
from jitcore.loopir.text import format_program
from jitcore.loopir.ways import KINDS
from jitcore.schedule import lower_program
from jitcore.schedule.rules import Rule

X = np.ones((100, 200))


def lower(function, target, *args):
    return lower_program(jitcore.jit(function).trace(*args)._program.compiled_jaxpr, target)


def test_each_rule_has_a_word_and_a_reason():
    assert {rule.name for rule in RULES} - {"long"} == set(KINDS)
    assert all(rule.reason for rule in RULES)


def test_decisions_are_told_and_what_is_computed_stays():
    plain = type("Plain", (CpuTarget,), {"rules": ()})
    with_ways, without = (format_program(lower(lambda x: jnp.sum(x, 1), target, X)) for target in (CpuTarget, plain))
    assert "# 4 registers" in with_ways and "to and fro" in with_ways
    assert [line.partition("  #")[0] for line in with_ways.replace(", to and fro", "").splitlines()] == without.splitlines()


def test_rules_are_asked_in_their_order_about_each_kernel():
    asked = []

    def find(name):
        def applies(nest):
            asked.append((name, [dict(s.ways) for s in nest.sweeps]))
            return [(s, True) for s in nest.sweeps if isinstance(s, Reduce)]
        return applies

    rules = (Rule("search", find("search"), "first"), Rule("halves", find("halves"), "second"))
    target = type("Own", (CpuTarget,), {"rules": rules, "machine": None})
    text = format_program(lower(lambda x: jnp.sum(x), target, X))
    assert asked == [("search", [{}]), ("halves", [{"search": True}])]
    assert "# searched, rows in halves" in text
