"""What notebooks show of jaxprs, loop programs, stages, reports and arrays: well-formed, escaped, of bounded size,
and true to the text, which stays what it was."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import autojit, compare, hypertext, jit, lax, make_jaxpr, tree, vmap
from jitcore.autojitted.tiers.report import Reason, Report
from jitcore.core.jaxpr import list_equations, sub_jaxprs
from jitcore.loopir.picture import make_graph
from jitcore.loopir.program import Call, Kernel, LibraryCall
from jitcore.loopir.traversal import flatten
from jitcore.sharding import Device, Mesh, NamedSharding, P, SingleDeviceSharding
from tests.backends.python.programs import PROGRAMS
from tests.notebooks.html_tree import Tree

X, W = np.ones((40, 20), np.float32), np.eye(20, dtype=np.float32)


def normalize(x):
    return (x - x.mean()) / x.std()


def standardize(x):  # a < b & c
    return jnp.where(x < 1, normalize(x), jit(normalize)(x))


def settle(x):
    return lax.while_loop(lambda v: v.sum() < 100, lambda v: v + jnp.cumsum(v), jnp.sort(x[0]))


def choose(x):
    return lax.cond(x.sum() > 0, lambda v: lax.fori_loop(0, 3, lambda i, u: jnp.sort(u) + 1, v), lambda v: v, x[0])


def solve(x):
    return jnp.linalg.inv(x.T @ x + jnp.eye(20)), jnp.tanh(x @ W)


FUNCTIONS = (normalize, standardize, settle, choose, solve, vmap(settle))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_jaxpr(function):
    argument = X[None] if function is FUNCTIONS[-1] else X
    closed = make_jaxpr(function)(argument)
    tree = Tree(closed._repr_html_())
    text = str(closed)
    assert tree.tags["details"] == sum(bool(sub_jaxprs(eqn.params)) for eqn in list_equations(closed.jaxpr))
    assert set(re.findall(r"\b\w+:\w+\[[\d,]*\]", text)) == set(re.findall(r"\b\w+:\w+\[[\d,]*\]", tree.text))
    assert sorted(re.findall(r" = (\w+)", text)) == sorted(re.findall(r" = (\w+)", tree.text))
    assert tree.hints and all(re.fullmatch(r"\w+\.py:\d+ \(.*\)\n.+", hint) for hint in tree.hints)
    assert repr(closed) == str(closed) == str(closed.jaxpr) and closed.jaxpr._repr_html_() == closed._repr_html_()


def test_the_users_line_is_shown():
    tree = Tree(make_jaxpr(standardize)(X)._repr_html_())
    assert any(hint.endswith("(standardize)\nreturn jnp.where(x < 1, normalize(x), jit(normalize)(x))")
               for hint in tree.hints)


def test_a_long_jaxpr_is_cut():
    def long(x):
        for _ in range(3000):
            x = x + 1
        return x

    page = make_jaxpr(long)(X)._repr_html_()
    assert "2,500 more equations" in Tree(page).text and len(page) < 200_000


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_loop_program(function):
    jitted = jit(function)
    jitted(X[None] if function is FUNCTIONS[-1] else X)
    shown = jitted.inspect("loop program")
    program = shown.of
    statements = flatten(program.steps)
    graph, page = make_graph(program), shown._repr_html_()
    for kind, classes in (("kernel", Kernel), ("call", (Call, LibraryCall))):
        assert graph.count(kind) == sum(isinstance(one, classes) for one in statements), kind
    assert graph.count("kernel") == len(re.findall(r"^\s*kernel\b", shown, re.MULTILINE))
    tree = Tree(page)
    assert tree.tags["svg"] == 1 and tree.tags["rect"] == count_nodes(graph)
    edges = count_edges(graph)
    assert tree.tags["path"] == 2 * edges and edges >= len(program.outputs)
    for path in tree.paths:  # data goes downwards
        if "C" in path:
            numbers = list(map(float, re.findall(r"-?\d+", path)))
            assert numbers[-1] > numbers[1]
    assert shown in tree.text and repr(shown) == repr(str(shown)) and type(pickle.loads(pickle.dumps(shown))) is str


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_of_the_backends(name):
    function, arguments = PROGRAMS[name]
    compiled = jit(function, compiler_options={"codegen": "python"}).lower(*arguments).compile()
    shown = compiled.as_text("loop program")
    graph, tree = make_graph(shown.of), Tree(shown._repr_html_())
    assert tree.tags["rect"] == count_nodes(graph) and tree.tags["path"] == 2 * count_edges(graph)
    assert graph.count("kernel") == len(re.findall(r"^\s*kernel\b", shown, re.MULTILINE))
    Tree(compiled._repr_html_())


def count_nodes(graph) -> int:
    return len(graph.nodes) + sum(count_nodes(inner) for node in graph.nodes for inner in node.inner)


def count_edges(graph) -> int:
    return len(graph.edges) + sum(count_edges(inner) for node in graph.nodes for inner in node.inner)


#: Function -> (source, target, array) of each edge outside of loops.
EDGES = {
    lambda x: jnp.tanh(x) * 2: [("in0", "kernel", "in0"), ("kernel", "out0", "out0")],
    lambda x: jnp.sort(x[0]): [("in0", "kernel", "in0"), ("kernel", "routine", "tmp0"), ("routine", "out0", "out0")],
    lambda x: (x + 1, x.sum(axis=0)): None,
}


@pytest.mark.parametrize("function", EDGES)
def test_the_edges_of_a_graph(function):
    jitted = jit(function)
    jitted(X)
    program = jitted.inspect("loop program").of
    graph = make_graph(program)
    names = [node.lines[0].split()[0].rstrip(",") for node in graph.nodes]
    found = sorted((names[edge.source], names[edge.target], edge.buffer.name) for edge in graph.edges)
    if EDGES[function] is not None:
        assert [edge[:2] for edge in found] == sorted(edge[:2] for edge in EDGES[function])
    assert {name for _, name, _ in found} >= {buffer.name for buffer in program.outputs}


def test_a_program_of_many_kernels_is_text():
    def many(x):
        for _ in range(120):
            x = jnp.sort(x)
        return x

    jitted = jit(lambda x: many(x[0]))
    jitted(X)
    tree = Tree(jitted.inspect("loop program")._repr_html_())
    assert tree.tags["svg"] == 0 or tree.tags["rect"] <= 110


def test_stages():
    jitted = jit(standardize)
    traced, lowered = jitted.trace(X), jitted.lower(X)
    compiled = lowered.compile()
    for stage, folds, pictures in ((traced, 1, 0), (lowered, 2, 0), (compiled, 4, 1)):
        assert type(stage).__repr__ is object.__repr__
        tree = Tree(stage._repr_html_())
        titles = re.findall(r"^(?:optimized )?jaxpr$|^loop program$", tree.text, re.MULTILINE)
        assert len(titles) == folds and tree.tags["svg"] == pictures
        assert f"{type(stage).__name__}: standardize(f32[40,20]) -> (f32[40,20])" in tree.text
    assert Tree(jitted.lower(X).compile(target="cpu")._repr_html_()).tags["svg"] == 1


def test_stages_of_other_backends():
    for backend in ("reference", "xla"):
        try:
            compiled = jit(normalize, backend=backend).lower(X).compile()
        except (ImportError, ValueError, RuntimeError) as error:
            pytest.skip(str(error))
        assert "optimized jaxpr" in Tree(compiled._repr_html_()).text


@pytest.mark.parametrize("make, line, elements", [
    (lambda: jnp.arange(3.0), "float32 [3] on cpu:0, 12 bytes", "[0. 1. 2.]"),
    (lambda: jnp.zeros((0, 2)), "float32 [0, 2] on cpu:0, 0 bytes", "[]"),
    (lambda: jnp.asarray(2), "int32 [] on cpu:0, 4 bytes, weakly typed", "2"),
    (lambda: jnp.ones((1000, 1000), bool), "bool [1000, 1000] on cpu:0, 1,000,000 bytes", "..."),
    (lambda: jnp.arange(3, dtype=jnp.bfloat16), "bfloat16 [3] on cpu:0, 6 bytes", "[0 1 2]"),
    (lambda: jnp.ones((1,) * 20), "float32 " + str([1] * 20), "1."),
])
def test_an_array(make, line, elements):
    array = make()
    page = array._repr_html_()
    tree = Tree(page)
    assert line in tree.texts[0] and elements in tree.text and len(page) < 6000
    array.delete()
    assert "# deleted" in Tree(array._repr_html_()).text


def test_reports_are_escaped():
    @autojit
    def total(x):
        s = 0.0
        for v in x:
            s += v
        return s

    total(np.ones(10))
    tree = Tree(total.report()._repr_html_())
    assert tree.tags["tr"] == 3 and "traced" in tree.texts and "total: 100 % of its operations are compiled" in tree.text
    hostile = '<script>alert("&")</script>'
    page = Report(hostile, (), 0.0, (Reason(hostile, 3, hostile),))._repr_html_()
    assert Tree(page).text.count(hostile) >= 3 and "<script" not in page
    comparison = compare(lambda x: x + 1, np.ones(3, np.float32), backends=["cpu"])
    assert Tree(comparison._repr_html_()).tags["tr"] == 2 and "cpu" in repr(comparison)


def test_tables_and_texts_are_bounded():
    rows = [("a" * 10_000, "b")] * 3000
    page = hypertext.show_table(("x", "y"), rows, "many")
    assert Tree(page).tags["tr"] == 502 and "2,500 more rows" in page and len(page) < 700_000
    assert len(hypertext.show_text("x" * 10**6)) < 30_000
    assert Tree(hypertext.show_table(("a", "b", "c"), [("1", "why & how")])).tags["td"] == 2
    assert hypertext.format_table([("a", "bb"), ("ccc", "d"), ("only",)]) == "a     bb\nccc   d\nonly"


def test_a_pytree():
    found = tree.show({"w": np.ones((2, 3)), "b": [np.zeros(3), None], "n": (1, {"k": np.ones(2, np.float32)})})
    assert repr(found) == """\
leaf           type          bytes
['b'][0]       float64[3]    24
['n'][0]       int           0
['n'][1]['k']  float32[2]    8
['w']          float64[2,3]  48
4 leaves, 80 bytes"""
    html = Tree(found._repr_html_())
    assert html.tags["details"] == 4
    for text in ("dict: 4 leaves, 80 bytes", "['n']: 2 leaves, 8 bytes", "['k']: float32[2], 8 bytes", "[1]: None"):
        assert text in html.texts
    assert repr(tree.show(3)).endswith("1 leaf, 0 bytes") and "int" in tree.show(3)._repr_html_()
    assert repr(tree.show({})).endswith("0 leaves, 0 bytes") and Tree(tree.show([])._repr_html_()).tags["details"] == 1


def test_a_sharding():
    devices = [Device("cpu", number) for number in range(8)]
    grid = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    for spec, rows, cells in ((P("x", "y"), 4, 8), (P("x"), 1, 4), (P(None, "y"), 1, 2), (P(), 1, 1), (P("y", "x"), 2, 8)):
        sharding = NamedSharding(grid, spec)
        html = Tree(sharding._repr_html_())
        assert (html.tags["tr"], html.tags["td"]) == (rows, cells) and html.texts[0] == repr(sharding)
    assert Tree(NamedSharding(grid, P("x"))._repr_html_()).texts[1:] == ["CPU 0,1", "CPU 2,3", "CPU 4,5", "CPU 6,7"]
    assert "table" not in NamedSharding(grid, P(None, None, "x"))._repr_html_()
    assert Tree(SingleDeviceSharding(devices[3])._repr_html_()).texts[1:] == ["CPU 3"]
