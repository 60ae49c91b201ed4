"""Loops of scripts over lists of objects: compiled, and what Python does."""

from __future__ import annotations

import textwrap

import pytest

from tests.scripts.test_scripts import run, run_sampled

SCRIPTS = {
    "bodies that attract each other": """
        import math
        class Body:
            def __init__(self, k):
                self.x, self.v, self.mass, self.label = math.cos(k) * k, 0.0, 1.0 + k, None
            def attract(self, other, dt):
                d = other.x - self.x
                self.v += other.mass * d / (abs(d) ** 3 + 0.5) * dt
        bodies = [Body(k) for k in range(24)]
        for step in range(4_000):
            for a in bodies:
                for b in bodies:
                    if a is not b:
                        a.attract(b, 0.001)
            for a in bodies:
                a.x += a.v * 0.001
        found = [(body.x, body.v, body.mass, body.label) for body in bodies]
    """,
    "the nearest object": """
        import math
        class Node:
            def __init__(self, x, y):
                self.x, self.y, self.hits = x, y, 0
        nodes = [Node(math.cos(k * 3.7) * 5, math.sin(k * 2.3) * 5) for k in range(40)]
        total = 0.0
        for step in range(40_000):
            px, py = math.cos(step * 0.7) * 4, math.sin(step * 0.3) * 4
            best, least = None, 3.0
            for node in nodes:
                d = math.hypot(node.x - px, node.y - py)
                if d < least:
                    best, least = node, d
            if best is not None:
                best.hits += 1
                total += least
        found = total, [node.hits for node in nodes], [type(node.hits) for node in nodes]
    """,
    "an arm of links": """
        import math
        class Link:
            def __init__(self, length, angle):
                self.length, self.angle, self.x, self.y = length, angle, 0.0, 0.0
        class Arm:
            def __init__(self, n):
                self.links = [Link(1.0 + 0.01 * k, 0.01 * k) for k in range(n)]
            def update(self):
                x = y = a = 0.0
                for link in self.links:
                    a += link.angle
                    x += link.length * math.cos(a)
                    y += link.length * math.sin(a)
                    link.x, link.y = x, y
                return x, y
        arm = Arm(16)
        error = 0.0
        for step in range(40_000):
            ex, ey = arm.update()
            error = math.hypot(3.0 - ex, 4.0 - ey)
            px = py = 0.0
            for link in arm.links:
                link.angle += 1e-8 * ((ex + px) * (40.0 - ey) + (ey + py) * (30.0 - ex))
                px, py = link.x, link.y
        found = error, [(link.angle, link.x, link.y) for link in arm.links]
    """,
}


#: Those that stand in no function.
OF_MODULES = {"an arm of links"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_loops_over_objects(name):
    source = textwrap.dedent(SCRIPTS[name])
    if name not in OF_MODULES:
        source = f"def main():\n{textwrap.indent(source, '    ')}    return found\n\nfound = main()\n"
    names, _, sampler = run_sampled(source)
    _assert_close(run(source)[0]["found"], names["found"])
    fates = [unit.fate for unit in sampler.units if unit.fate is not None]
    assert any(fate.entries for fate in fates), [fate.reason for fate in fates]


def _assert_close(one, other):
    assert type(one) is type(other)
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for pair in zip(one, other):
            _assert_close(*pair)
    else:
        assert one == pytest.approx(other, rel=1e-9) if isinstance(one, float) else one == other
