"""CPython's versions of classes: numbers that change as soon as a class or one of its bases does.

In: a class. Out: its version, as it is whenever it is looked at; and `VersionGuard`, which compares a class
with what it was, but only when its version is another one.
"""

from __future__ import annotations

import ctypes

__all__ = ["HAS_VERSIONS", "VersionGuard", "read_version"]

#: Where CPython keeps the version of a class: behind 48 fields of a pointer's size each.
_OFFSET = 48 * ctypes.sizeof(ctypes.c_void_p)


def read_version(kind: type) -> ctypes.c_uint:
    """The version of a class now, and later; 0 while it has none. A class that is asked for something gets
    one."""
    return ctypes.c_uint.from_address(id(kind) + _OFFSET)


def _has_versions() -> bool:
    """Whether the versions of classes are where they are looked for: found out by changing some."""

    class Base:
        value = 0

    class Derived(Base):
        pass

    versions, seen = (read_version(Base), read_version(Derived)), set()
    for value in range(1, 4):
        Derived().value
        now = tuple([version.value for version in versions])
        if 0 in now or seen & set(now):
            return False
        seen |= set(now)
        Base.value = value
        if any(version.value in now for version in versions):
            return False
    return True


HAS_VERSIONS = _has_versions()


class VersionGuard:
    """Whether a class is what it was when this was made.

    Attributes:
        version: the class's version now. known: the one with which it was last found the same, in a list;
            before that none that a class can have.
    """

    def __init__(self, kind: type):
        self.kind, self.mro = kind, kind.__mro__
        self.version, self.known = read_version(kind), [-1]

    def is_same(self) -> bool:
        """Compares the variables of the class and of its bases."""
        raise NotImplementedError

    def check(self) -> bool:
        """Compares, and notes with which version it is the same."""
        if self.kind.__mro__ != self.mro:
            return False
        type.__getattribute__(self.kind, "__sizeof__")  # a class that is asked for something gets a version
        version = self.version.value
        if not self.is_same():
            return False
        if version and HAS_VERSIONS:
            self.known[0] = version
        return True
