"""Machine code of programs, by key: in this process, and on disk from an earlier one.

In: the key of a canonical program. Out: `NativeProgram`, which programs of other sizes may share. No compiler
is needed.
"""

from __future__ import annotations

from jitcore.backends.cpu.native import libraries
from jitcore.config import RecentlyUsed

__all__ = ["NAME", "NativeProgram", "code_cache", "find_program", "name_entry"]


class NativeProgram:
    """Machine code of the native steps of one canonical program.

    Attributes:
        library: that holds it; None for a program without native steps.
        addresses: an entry point per native step.
        key: under which it is kept on disk, if it is; None without a library.
        plans: how many call plans for it this process has read or written.
    """

    __slots__ = ("library", "addresses", "key", "plans")

    def __init__(self, library: libraries.Library | None = None, key: bytes | None = None):
        self.library, self.key, self.plans = library, key, 0
        names = [] if library is None else [name_entry(number) for number in range(len(library.symbols))]
        self.addresses = [library.address(name) for name in names]


#: Machine code of programs, by the key of their text.
code_cache = RecentlyUsed()

#: Of the libraries.
NAME = "program"


def name_entry(number: int) -> str:
    return f"entry{number}"


def find_program(key: bytes, opt_level: int) -> NativeProgram | None:
    """The machine code of an earlier `compile_program`, from memory or disk, or None."""
    found = code_cache.find(key)
    if found is None:
        library = libraries.find_stored(NAME, key, opt_level=opt_level)
        if library is None:
            return None
        found = NativeProgram(library, key)
        code_cache.add(key, found)
    return found
