"""Cells of notebooks whose hot loops and functions are compiled: `%%autojit` in the first line of a cell, or
`%autojit on` for all that follow.

In: the shell of IPython, and the code of its cells. Out: the same code with entries, sampled while a cell
runs.
"""

from __future__ import annotations

import atexit
import re
from types import CodeType
from typing import TYPE_CHECKING, Any

from jitcore.process.lazy import LazyModule
from jitcore.scripts.learned import marshal_code
from jitcore.scripts.sessions.report import format_report
from jitcore.scripts.sessions.runner import Session, can_sample, has_units, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

source = LazyModule("jitcore.core.source")

__all__ = ["Cells", "name_cells"]

_FIRST_LINE = "%%autojit"
_MAGIC = "get_ipython().run_line_magic('autojit', 'cell')\n"


class Cells:
    """Args: the shell.

    Attributes:
        scope: which cells are compiled: "off"; "on"; "cell", only this one.
    """

    def __init__(self, shell: Any):
        self.shell, self.scope = shell, "off"
        self.session: Session | None = None
        self._run_code: Callable = shell.run_code

    def install(self) -> None:
        self.shell.run_code = self.run_code
        self.shell.input_transformers_cleanup.append(read_first_line)
        self.shell.events.register("post_run_cell", self.rest)
        atexit.register(self.close)

    def remove(self) -> None:
        self.close()
        self.shell.run_code = self._run_code
        self.shell.input_transformers_cleanup.remove(read_first_line)
        self.shell.events.unregister("post_run_cell", self.rest)
        atexit.unregister(self.close)

    def autojit(self, line: str) -> None:
        """%autojit on: the hot loops and functions of the cells that follow are compiled while they run.
        %autojit off: they are not any more.  %autojit report: what became of them.
        %%autojit, as the first line of a cell: for this cell only."""
        word = line.strip()
        if word in ("on", "off", "cell"):
            self.scope = "on" if word == "cell" and self.scope == "on" else word
            if word == "off":
                self.close()
        elif word == "report":
            print(name_cells(format_report(None if self.session is None else self.session.sampler)))
        else:
            print(f"%autojit is {self.scope}. Use: %autojit on, off, or report; %%autojit in a cell")

    async def run_code(self, code: CodeType, result: Any = None, *, async_: bool = False) -> Any:
        """What the shell does with each statement of a cell."""
        if self.scope != "off" and can_sample():
            code = self.prepare(code)
        return await self._run_code(code, result, async_=async_)

    def prepare(self, code: CodeType) -> CodeType:
        """The code with entries; sampling begins."""
        if self.session is None or self.session.is_over:
            self.close()
            self.session = open_session()
            if self.session is None:  # of somebody else
                return code
            self.session.__enter__()
        if has_units(code):
            code = self.session.add(code, marshal_code(forget_place(code)))
        self.session.start()
        return code

    def rest(self, *result: Any) -> None:
        """Called when a cell has ended."""
        if self.scope == "cell":
            self.scope = "off"
        if self.session is not None:
            self.session.pause()

    def close(self) -> None:
        if self.session is not None:
            self.session.__exit__()
            self.session = None


def read_first_line(lines: list[str]) -> list[str]:
    """Has a cell that begins with the magic turn it on itself: its lines keep their numbers."""
    return [_MAGIC, *lines[1:]] if lines and lines[0].strip() == _FIRST_LINE else lines


def name_cells(text: str) -> str:
    """A text of the process that compiles, which knows cells by the names of their files."""
    return re.sub(r"(\S+):(\d+)(?=: )", lambda place: source.format_place(place[1], place[2]), text)


def forget_place(code: CodeType) -> CodeType:
    """Code as it is in every kernel."""
    consts = tuple([forget_place(one) if isinstance(one, CodeType) else one for one in code.co_consts])
    return code.replace(co_consts=consts, co_filename="")
