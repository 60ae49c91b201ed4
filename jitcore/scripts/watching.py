"""Loops of a code object once more, each with a back edge that asks: a frame is watched where it runs there.

In: the instructions of a loop. Out: a copy of them, in which control comes to the loop's entry (see
`entries`) at the end of each iteration, and beside it to where the loop itself would go. A frame comes into a
copy only from the entry: for iterations that are compared or timed, or for the rest of one that a program has
left. What stands behind an opaque statement that each iteration comes to is not copied: control goes on in
the loop itself, whose entry is asked at the end of each iteration. A run of statements tells when it is over.
"""

from __future__ import annotations

from collections.abc import Callable

from jitcore.rewriter.bytecode.assembler import Assembler, Label
from jitcore.rewriter.bytecode.instructions import Raw
from jitcore.rewriter.bytecode.versions import LOOP_ENDS
from jitcore.scripts.gates import OVER, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jitcore.scripts.entries import Flow

__all__ = ["LoopCopy"]


class LoopCopy:
    """Args: what the copy is written with; the loop's code; the loop; labels of its instructions by offset;
        resume: of a run of statements is called at its end, with `OVER`.

    Attributes:
        labels: of the copy's instructions, by offset.
    """

    def __init__(self, out: Assembler, flow: Flow, loop: Loop, originals: dict[int, Label], resume: Callable):
        self.out, self.flow, self.loop, self.originals, self.resume = out, flow, loop, originals, resume
        self.labels = {offset: Label() for offset in loop.body - loop.sides.get(loop.stop, frozenset())}
        self._pads: dict[tuple[int, bool], Label] = {}

    def write(self, entry: Label, set_handler: Callable[[Raw], None]) -> None:
        """Args: where the end of an iteration leads to; sets the handler and position of an instruction."""
        items = [item for item in self.flow.raw if item.offset in self.labels]
        for item, behind in zip(items, [*(one.offset for one in items[1:]), -1]):
            set_handler(item)
            self.out.place(self.labels[item.offset])
            if item.target is None:
                self.out.emit(item.name, item.arg)
            else:
                self._write_jump(item, entry)
            following = [target for target, jumps in self.flow.list_successors(item) if not jumps]
            if following and following[0] != behind:
                self.out.emit("JUMP_FORWARD", self._find(following[0], entry))
        self._write_pads()

    def _write_jump(self, item: Raw, entry: Label) -> None:
        name, target = item.name, item.target  # the entry, and pads, stand behind
        if target not in self.labels or target > item.offset or target == self.loop.head:
            name = name.removesuffix("_NO_INTERRUPT").replace("BACKWARD", "FORWARD")
        self.out.emit(name, self._find(item.target, entry, item.name == "FOR_ITER"))

    def _find(self, offset: int, entry: Label, is_exhausted: bool = False) -> Label:
        if offset == self.loop.head:
            return entry
        return self.labels.get(offset) or self._pads.setdefault((offset, is_exhausted), Label())

    def _write_pads(self) -> None:
        """Jumps to what is behind the loop, or around it."""
        self.out.handler = self.out.position = None
        for (offset, is_exhausted), pad in self._pads.items():
            self.out.place(pad)
            for name in LOOP_ENDS if is_exhausted else ():
                self.out.emit(name)
                offset = self.flow.following[offset]
            if self.loop.is_run:
                self.out.push_callee(self.resume)
                self.out.load_const(OVER)
                self.out.call(1)
                self.out.pop()
            self.out.emit("JUMP_BACKWARD_NO_INTERRUPT", self.originals[offset])
