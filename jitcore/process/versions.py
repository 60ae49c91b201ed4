"""CPython's versions of classes: numbers that change as soon as a class or one of its bases does.

In: a class. Out: its version, as it is whenever it is looked at.
"""

from __future__ import annotations

import ctypes

__all__ = ["HAS_VERSIONS", "read_version"]

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
