"""The script's own modules: those below its folder, the working folder, or one that it adds to `sys.path`,
installed ones excepted.

In: folders. Out: while the hook is installed, such modules are loaded as always, and their code gets entries.
Only what stands in these folders meets the hook: the finder of a folder is made once, by a path hook.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (BYTECODE_SUFFIXES, EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader,
                                 FileFinder, SourceFileLoader, SourcelessFileLoader)
from types import CodeType

import jitcore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    #: Gives code with entries: of code and its source, and the parts of its key.
    Prepare = Callable[..., CodeType]

__all__ = ["Hook"]

#: Folders of installed packages.
_INSTALLED = frozenset({"site-packages", "dist-packages"})


class Hook:
    """Args: folders of the script; what prepares code."""

    def __init__(self, folders: Iterable[str], prepare: Prepare):
        whole = {resolve(folder) for folder in folders}
        self._folders = [folder for folder in whole if os.path.dirname(folder) != folder]
        self._before = {one: resolve(one) for one in sys.path if isinstance(one, str)}
        own = os.path.dirname(jitcore.__file__)  # in a work tree, backends stand beside it
        others = (os.path.dirname(os.__file__), own, os.path.join(own, "backends"))
        self._others = [resolve(one) for one in others]

        class Loader(SourceFileLoader):
            """Loads a module of the script. Source, compiled file, name and place are as always."""

            is_of_script = True

            def get_code(self, fullname: str) -> CodeType | None:
                make = super().get_code
                state = self.path_stats(self.path)

                def read() -> tuple[CodeType, bytes]:
                    return make(fullname), self.get_data(self.path)

                return prepare(read, self.path, state["mtime"], state["size"])

        self._make_finder = FileFinder.path_hook(
            (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES))

    def _find(self, path: str) -> FileFinder:
        if not self._is_own(resolve(path), self._list_added()):
            raise ImportError
        return self._make_finder(path)

    def _list_added(self) -> set[str]:
        """Folders that the script has added. What else stands in `sys.path` is passed over, as imports do."""
        added = [one for one in sys.path if isinstance(one, str)
                 and not (one in self._before and os.path.isabs(one))]
        return {resolve(one) for one in added}.difference(self._before.values()) if added else set()

    def _is_own(self, path: str, added: set[str]) -> bool:
        return (any(is_below(path, folder) for folder in (*self._folders, *added))
                and not any(is_below(path, folder) for folder in self._others)
                and _INSTALLED.isdisjoint(path.split(os.sep)))

    def install(self) -> None:
        sys.path_hooks.insert(0, self._find)
        self._forget()

    def remove(self) -> None:
        if self._find in sys.path_hooks:
            sys.path_hooks.remove(self._find)
            self._forget()

    def _forget(self) -> None:
        added = self._list_added()
        for path in list(sys.path_importer_cache):
            if isinstance(path, str) and self._is_own(resolve(path), added):
                del sys.path_importer_cache[path]


def resolve(path: str) -> str:
    """Where a path leads to; what can be none is as it is."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # there is a null in it; the working folder is gone
        return path


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
