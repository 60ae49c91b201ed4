"""Code objects taken apart into blocks and put together again, unchanged in meaning.

`python -m tests.rewrite.library MODULE` is the larger run of this kind: CPython's own tests on its library.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator

from jitcore.rewriter.bytecode.assembler import Assembler, BlockWriter
from jitcore.rewriter.bytecode.graph import Graph
from jitcore.rewriter.functions import PROBE


def rebuild_code(code: types.CodeType, change=lambda graph: None) -> types.CodeType:
    """The code object, by way of a graph that `change` may have changed. Its cells are free variables."""
    graph = Graph(code)
    change(graph)
    cells = (*code.co_freevars, *code.co_cellvars)
    arguments = arguments_of(code)
    variables = [name for name in code.co_varnames if name not in cells or name in arguments]
    writer = BlockWriter(graph, Assembler(code, variables, cells), graph.blocks)
    writer.out.begin((code.co_firstlineno, code.co_firstlineno, 0, 0))
    ordered = graph.in_order()
    if ordered[0].number != graph.entry:
        writer.out.jump(writer.labels[graph.entry])
    writer.write_blocks(ordered)
    return writer.out.assemble(graph.max_depth + 2)


def arguments_of(code: types.CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[:count]


def rebuild(function: types.FunctionType, change=lambda graph: None) -> types.FunctionType:
    """A function of the rebuilt code. Raises: ValueError for one whose arguments are in cells."""
    code = function.__code__
    if set(code.co_cellvars) & set(arguments_of(code)):
        raise ValueError("an argument is in a cell")
    cells = (*(function.__closure__ or ()), *(types.CellType() for _ in code.co_cellvars))
    made = types.FunctionType(rebuild_code(code, change), function.__globals__, function.__name__,
                              function.__defaults__, cells or None)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


@contextlib.contextmanager
def look_out_always() -> Iterator[None]:
    """Within, rewritten functions run the code that looks out for traced values, although there are none."""
    previous, PROBE.is_forced = PROBE.is_forced, True
    try:
        yield
    finally:
        PROBE.is_forced = previous
