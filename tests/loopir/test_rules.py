"""Rules: decisions stand in the loop program, in the words of `loopir.ways`."""

import numpy as np

import jitcore.numpy as jnp
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.mapping.rules import RULES
from jitcore.loopir.program import Reduce
from jitcore.loopir.text import format_program
from jitcore.loopir.ways import KINDS, Rule, apply_rules
from tests.loop_program import schedule

X = np.ones((100, 200))


def test_each_rule_has_a_word_and_a_reason():
    assert {rule.name for rule in RULES} - {"long"} == set(KINDS)
    assert all(rule.reason for rule in RULES)


def test_decisions_are_told_and_what_is_computed_stays():
    program = schedule(lambda x: jnp.sum(x, 1), (X,))
    without, with_ways = format_program(program), format_program(apply_rules(program, RULES, host.MACHINE))
    assert "# 4 registers" in with_ways and "to and fro" in with_ways
    lines = with_ways.replace(", to and fro", "").splitlines()
    assert [line.partition("  #")[0] for line in lines] == without.splitlines()


def test_rules_are_asked_in_their_order_about_each_kernel():
    asked = []

    def find(name):
        def applies(nest):
            asked.append((name, [dict(s.ways) for s in nest.sweeps]))
            return [(s, True) for s in nest.sweeps if isinstance(s, Reduce)]
        return applies

    rules = (Rule("search", find("search"), "first"), Rule("halves", find("halves"), "second"))
    text = format_program(apply_rules(schedule(lambda x: jnp.sum(x), (X,)), rules, None))
    assert asked == [("search", [{}]), ("halves", [{"search": True}])]
    assert "# searched, rows in halves" in text
