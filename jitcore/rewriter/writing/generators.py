"""Generators: their own code with hooks, so that what they call and store is known as in all traced code.

In: the code object of a generator function. Out: the same with hooks in place of operations. It has one
entry: a traced value that decides in it raises, as its frame cannot be entered twice.
"""

from __future__ import annotations

import functools
from types import CodeType

from jitcore.rewriter.bytecode.assembler import Assembler
from jitcore.rewriter.bytecode.flow import find_assigned
from jitcore.rewriter.bytecode.graph import Graph
from jitcore.rewriter.writing.emission import count_arguments, find_first_position
from jitcore.rewriter.writing.hooked import HookedWriter


@functools.lru_cache(maxsize=1000)
def hook_generator(code: CodeType, path: str, hooks) -> CodeType:
    """path: of the file; Python calls code of two files equal where it is alike.

    Raises: Unsupported for `yield from`."""
    graph = Graph(code)
    arguments = code.co_varnames[: count_arguments(code)]
    names = [name for name in code.co_varnames if name in arguments or name not in code.co_cellvars]
    out = Assembler(code, names, code.co_freevars, code.co_cellvars)
    out.begin(find_first_position(code), is_generator=True)
    HookedWriter(graph, out, hooks, find_assigned(graph, frozenset(arguments))).write_blocks()
    return out.assemble(graph.max_depth + 6)
