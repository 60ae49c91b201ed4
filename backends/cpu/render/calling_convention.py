"""Where the entry point of a program finds what it works on.

In: a loop program. Out: slots of its buffers and sizes. Stage: between scheduling and rendering; a program
whose code comes from disk needs it too, so it loads no compiler.
"""

from __future__ import annotations

from jitcore.backends.llvm.options import SizeTable
from jitcore.loopir.program import LibraryCall, Program
from jitcore.loopir.traversal import flatten


class ProgramLayout:
    """Where buffers and sizes are found: slots of the pointer table and of the array of sizes.

    dims = [offset of each temporary in the arena..., sizes...]; the entry point gets inputs, outputs, what
    library calls between native steps make, the arena if there is one, and the cell of the Python function
    that `host_calls` (number of each library call within a native step) go to, if there are any.
    """

    def __init__(self, program: Program):
        aliases = program.aliases
        steps = [step for step in program.steps if isinstance(step, LibraryCall)]
        made = {buffer for step in steps for buffer in step.outputs}
        self.made = [buffer for buffer in program.temps if buffer in made]
        outputs = [buffer for buffer in program.outputs if buffer not in aliases]
        self.given = [*program.inputs, *outputs, *self.made]
        self.arena = [buffer for buffer in program.temps if buffer.kind == "temp" and buffer not in made]
        calls = [s for s in flatten(program.steps) if isinstance(s, LibraryCall) and s not in steps]
        self.host_calls = {call: number for number, call in enumerate(calls)}
        self.stack = [buffer for buffer in program.temps if buffer.kind == "scalar"]
        self.table = {buffer: k for k, buffer in enumerate([*self.given, *self.arena, *self.stack])}
        self.table |= {output: self.table[source] for output, source in aliases.items()}
        self.aliases = aliases
        self.sizes = SizeTable()
        #: Whether Python is called between or within native steps.
        self.calls_python = bool(self.host_calls) or bool(steps)
