"""The picture of a loop program, as notebooks show it: kernels and calls as boxes, arrays as edges.

In: a program. Out: its graph; SVG with its boxes in layers, each below what it reads, and the text beneath. A
loop or switch around kernels is a box with graphs of its own inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jitcore import dtypes
from jitcore.core.algebra import COMPARISONS
from jitcore.hypertext import cut, escape, fold, show_text
from jitcore.loopir.expr import Buffer, walk
from jitcore.loopir.program import Call, Kernel, LibraryCall, Program, Statement
from jitcore.loopir.text import format_program, format_statement
from jitcore.loopir.traversal import (flatten, list_outermost, list_reads, list_roots, list_writes,
                                      outside_kernels)

__all__ = ["Edge", "Graph", "Node", "make_graph", "show_program"]

#: Statements of a program that is drawn; one of more is text alone.
_MOST_NODES = 100
#: Pixels: a character, a line, the space in and between boxes and layers.
_CHARACTER, _LINE, _PADDING, _SPACE, _LAYER_SPACE = 6.7, 15, 8, 26, 46
_FONT = 'font-family="monospace" font-size="11" fill="currentColor"'
_FILLS = {"kernel": "#4c9be8", "call": "#e8a24c", "array": "#888", "control": "none"}
#: Nodes of expressions that are no operations.
_NO_OPERATIONS = {"const", "load", "index", "result"}


class Edge(NamedTuple):
    """An array: from the node that wrote it last to one that reads it or writes it again, by number."""

    source: int
    target: int
    buffer: Buffer


class Node(NamedTuple):
    """kind: "kernel", "call", "control", or "array" for an input or output. lines: what stands in the box;
    hint: what a pointer over it shows; inner: of a loop or switch, a graph for each of its bodies."""

    kind: str
    lines: Sequence[str]
    hint: str = ""
    inner: Sequence[Graph] = ()


class Graph(NamedTuple):
    nodes: list[Node]
    edges: list[Edge]

    def count(self, kind: str) -> int:
        """How many nodes of a kind there are, those inside of others among them."""
        return sum((node.kind == kind) + sum(graph.count(kind) for graph in node.inner)
                   for node in self.nodes)


def make_graph(program: Program) -> Graph:
    """The statements of a program between its inputs and outputs."""
    body = list_outermost(program.steps)
    read = list_reads(body)
    inputs = [buffer for buffer in program.inputs if buffer in read]
    nodes = [Node("array", [_describe(buffer)]) for buffer in inputs]
    writers = {buffer: number for number, buffer in enumerate(inputs)}
    edges = _connect(body, nodes, writers)
    for buffer in program.outputs:
        if buffer in writers:
            edges.append(Edge(writers[buffer], len(nodes), buffer))
            nodes.append(Node("array", [_describe(buffer)]))
    return Graph(nodes, edges)


def _connect(body: Sequence[Statement], nodes: list[Node], writers: dict[Buffer, int]) -> list[Edge]:
    """Adds a node for each statement; writers: of each array the last one, which this brings up to date."""
    edges = []
    for statement in body:
        scratch = {buffer for inner in flatten([statement]) for buffer in getattr(inner, "scratch", ())}
        written = list_writes([statement]) - scratch
        touched = (list_reads([statement]) | written) - scratch
        edges += [Edge(writers[buffer], len(nodes), buffer)
                  for buffer in sorted(touched & writers.keys(), key=lambda buffer: buffer.name)]
        writers |= dict.fromkeys(written, len(nodes))
        nodes.append(_make_node(statement))
    return edges


def _make_node(statement: Statement) -> Node:
    if isinstance(statement, Kernel):
        return Node("kernel", list(_describe_kernel(statement)), format_statement(statement))
    inner = []
    for body in statement.bodies:
        nodes: list[Node] = []
        edges = _connect(body, nodes, {})
        inner.append(Graph(nodes, edges))
    if isinstance(statement, LibraryCall):
        return Node("call", ["call", statement.name], format_statement(statement))
    if isinstance(statement, Call):
        name = str(statement.routine).partition("(")[0]
        return Node("call", ["routine", cut(name, 30)], format_statement(statement), inner)
    return Node("control", [type(statement).__name__.lower()], "", inner)


def _describe(buffer: Buffer) -> str:
    return f"{buffer.name} {dtypes.SHORT_NAMES[buffer.dtype]}[{','.join(map(str, buffer.shape))}]"


def _describe_kernel(kernel: Kernel) -> Iterator[str]:
    """What it is, over which extents it runs, and what it computes."""
    yield "kernel, parallel" if kernel.parallel else "kernel"
    extents, body = [], kernel.body
    while body and body[0].axes:
        extents += [axis.extent for axis in body[0].axes]
        body = body[0].bodies[0] if body[0].bodies else []
    if extents:
        yield " x ".join(map(str, extents))
    statements = flatten(kernel.body)
    counts = Counter(node.op for node in walk(list_roots(kernel.body)) if node.op not in _NO_OPERATIONS)
    sweeps = [f"{type(one).__name__.lower()} {op}" for one in statements
              for op in ([op for _, op, _ in getattr(one, "parts", ())] or [getattr(one, "op", "")]) if op]
    functions = [name if count == 1 else f"{count} {name}" for name, count in counts.most_common()
                 if name not in COMPARISONS]
    for texts in (list(dict.fromkeys(sweeps)), functions):
        if texts:
            yield cut(", ".join(texts[:4]), 40) + (" ..." if len(texts) > 4 else "")


# -- drawing -------------------------------------------------------------------------------------------------
class _Drawing(NamedTuple):
    width: float
    height: float
    svg: str


def show_program(program: Program) -> str:
    """The picture, and the text below it."""
    text = fold("loop program", show_text(format_program(program)))
    count = len(outside_kernels(program.steps))
    if count > _MOST_NODES:
        return f"<p>{count} statements, more than are drawn</p>{text}"
    graph = make_graph(program)
    drawing = _draw_graph(graph)
    kernels, calls = graph.count("kernel"), graph.count("call")
    label = f"{kernels} kernel{'s' * (kernels != 1)}, {calls} call{'s' * (calls != 1)}"
    width, height = int(drawing.width) + 2, int(drawing.height) + 2
    size = f'width="{width}" height="{height}" viewBox="-1 -1 {width} {height}"'
    return ('<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{label}" {size} {_FONT}>'
            f"<title>{label}</title>{drawing.svg}</svg></div>{text}")


def _draw_graph(graph: Graph) -> _Drawing:
    boxes = [_draw_node(node) for node in graph.nodes]
    layers = _find_layers(graph)
    rows = [[number for number, layer in enumerate(layers) if layer == one]
            for one in range(max(layers, default=-1) + 1)]
    widths = [sum(boxes[number].width for number in row) + _SPACE * (len(row) - 1) for row in rows]
    places: dict[int, tuple[float, float]] = {}
    y, total = 0.0, max(widths, default=0.0)
    for row, width in zip(rows, widths):
        x = (total - width) / 2
        for number in sorted(row, key=lambda number: _find_middle(graph, boxes, places, number)):
            places[number] = x, y
            x += boxes[number].width + _SPACE
        y += max(boxes[number].height for number in row) + _LAYER_SPACE
    lines = [_draw_edge(graph, boxes, places, number) for number in range(len(graph.edges))]
    lines += [f'<g transform="translate({x:.0f} {y:.0f})">{boxes[number].svg}</g>'
              for number, (x, y) in places.items()]
    return _Drawing(total, max(y - _LAYER_SPACE, 0.0), "".join(lines))


def _find_layers(graph: Graph) -> list[int]:
    """Of each node: below all that it comes from; an input is right above what reads it."""
    layers = [0] * len(graph.nodes)
    for edge in graph.edges:  # which are sorted by their targets
        layers[edge.target] = max(layers[edge.target], layers[edge.source] + 1)
    targets = {edge.target for edge in graph.edges}
    for number, node in enumerate(graph.nodes):
        if node.kind == "array" and number not in targets:
            layers[number] = min(layers[edge.target] for edge in graph.edges if edge.source == number) - 1
    return layers


def _find_middle(graph: Graph, boxes: Sequence[_Drawing], places: dict, number: int) -> float:
    """Where the sources of a node are, on average."""
    found = [places[edge.source][0] + boxes[edge.source].width / 2 for edge in graph.edges
             if edge.target == number and edge.source in places]
    return sum(found) / len(found) if found else 0.0


def _draw_edge(graph: Graph, boxes: Sequence[_Drawing], places: dict, number: int) -> str:
    edge = graph.edges[number]
    x0, x1 = [_find_port(graph, boxes, places, number, end) for end in ("source", "target")]
    y0, y1 = places[edge.source][1] + boxes[edge.source].height, places[edge.target][1]
    bend = (y1 - y0) / 2
    curve = f"{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"
    return (f"<g><title>{escape(_describe(edge.buffer))}</title>"
            f'<path d="M{x0:.0f} {y0:.0f}C{curve}" fill="none" stroke="currentColor" stroke-opacity=".6"/>'
            f'<path d="M{x1 - 3:.0f} {y1 - 6:.0f}h6l-3 6z" fill-opacity=".6"/>'
            f'<text x="{x1 + 5:.0f}" y="{y1 - 8 - _LINE * (number % 2):.0f}">{escape(edge.buffer.name)}'
            "</text></g>")


def _find_port(graph: Graph, boxes: Sequence[_Drawing], places: dict, number: int, end: str) -> float:
    """Where an edge meets a box; the edges that it has there stand side by side."""
    node = getattr(graph.edges[number], end)
    others = [one for one, edge in enumerate(graph.edges) if getattr(edge, end) == node]
    return places[node][0] + boxes[node].width * (others.index(number) + 1) / (len(others) + 1)


def _draw_node(node: Node) -> _Drawing:
    """A box with its lines, and below these what is inside of it, side by side."""
    inner = [_draw_graph(graph) for graph in node.inner]
    width = max([len(line) * _CHARACTER for line in node.lines]
                + [sum(one.width for one in inner) + _SPACE * (len(inner) - 1)]) + 2 * _PADDING
    top = len(node.lines) * _LINE + _PADDING
    height = top + max([one.height + 2 * _PADDING for one in inner], default=0) + _PADDING / 2
    parts = [f"<title>{escape(cut(node.hint, 2000))}</title>"] if node.hint else []
    radius = height / 2 if node.kind == "array" else 3
    parts.append(f'<rect width="{width:.0f}" height="{height:.0f}" rx="{radius:.0f}" '
                 f'fill="{_FILLS[node.kind]}" fill-opacity=".25" stroke="currentColor" stroke-opacity=".5"/>')
    parts += [f'<text x="{_PADDING}" y="{_LINE * (row + 1)}">{escape(line)}</text>'
              for row, line in enumerate(node.lines)]
    x = float(_PADDING)
    for one in inner:
        parts.append(f'<g transform="translate({x:.0f} {top + _PADDING})">{one.svg}</g>')
        x += one.width + _SPACE
    return _Drawing(width, height, f"<g>{''.join(parts)}</g>")
