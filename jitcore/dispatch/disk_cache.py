"""Compiled code on disk, for the processes to come.

In: a key and the bytes that a backend wants to find again under it. Out: these bytes, or None. Stage: beneath
compilation; what the bytes mean, and what has to be part of a key, is the backend's affair.

One file holds one entry: magic, key, checksum, bytes. Files are written aside and renamed, so that a reader
sees all of one or nothing; writers of one key replace each other's equal file. Whatever is wrong with a file
counts as its absence. A folder that cannot be written, or in which others could put code, costs a warning and
is done without. When the folder outgrows `config.cache_disk_bytes`, files that were not used for longest go.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from importlib.util import source_hash

from jitcore.config import config
from jitcore.events.publishing import publish

_MAGIC = b"jitcore\x02"
_KEY_BYTES = 32
_CHECKSUM_AT = len(_MAGIC) + _KEY_BYTES
_CONTENT_AT = _CHECKSUM_AT + 8
_SUFFIX, _UNFINISHED = ".code", ".part"

_DAY = 86400.0
_HOUR = 3600.0

#: Part of the limit that remains after old files went: some room, so that not every new file makes a scan.
_KEPT_PART = 0.75
#: Part of the limit that a process writes before it looks what others have written.
_UNWATCHED_PART = 1 / 16

_numbers = itertools.count()


class Statistics(namedtuple("Statistics", "files size oldest newest")):
    """What a folder holds. files: entries; size: their bytes; oldest, newest: when one of them was last used,
    to within a day, in seconds since 1970, or None without files."""

    __slots__ = ()


_File = namedtuple("_File", "used size path")


def find_folder() -> str:
    """The folder that `config.cache_dir` names; "" for none.

    "auto" is the folder `jitcore` in the system's place for caches: on Linux $XDG_CACHE_HOME or ~/.cache."""
    if config.cache_dir != "auto":
        return os.path.abspath(os.path.expanduser(config.cache_dir)) if config.cache_dir else ""
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        parent = os.path.expanduser("~/Library/Caches")
    else:
        parent = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(parent):  # the specification says to ignore relative ones
            parent = os.path.expanduser("~/.cache")
    return os.path.join(parent, "jitcore") if os.path.isabs(parent) else ""


_caches: dict[str, DiskCache] = {}


def open_cache() -> DiskCache | None:
    """The cache in the folder that the configuration names now, or None."""
    named = config.cache_dir
    cache = _caches.get(named)
    if cache is None:
        folder = find_folder()
        if not folder:
            return None
        cache = _caches.setdefault(named, DiskCache(folder))
    return cache


def find_or_make(key: bytes, make: Callable[[], bytes | None]) -> bytes | None:
    """What is on disk under a key, or else made, and kept there unless it is None."""
    cache = open_cache()
    found = None if cache is None else cache.find(key)
    if found is None:
        found = make()
        if cache is not None and found is not None:
            cache.add(key, found)
    return found


def find_on_disk(path: str) -> str:
    """The path, or that of the archive which the module or package there is imported from."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def stamp_sources(root: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of each module below a folder, or of the archive that it is in."""
    root = find_on_disk(root)
    if not os.path.isdir(root):
        state = os.stat(root)
        return [(root, state.st_size, state.st_mtime_ns)]
    stamps, folders = [], [root]
    for folder in folders:
        for item in os.scandir(folder):
            if item.name.endswith(".py"):
                state = item.stat()
                stamps.append((item.name, state.st_size, state.st_mtime_ns))
            elif item.name != "__pycache__" and item.is_dir():
                folders.append(item.path)
    return sorted(stamps)


class DiskCache:
    """The entries of one folder, which need not exist yet. Safe with any number of threads and processes.

    Keys are digests of 32 bytes."""

    def __init__(self, folder: str):
        self.folder = folder
        self._is_trusted: bool | None = None  # None until the folder was there to be looked at
        self._is_writable = True
        self._is_warned = False
        self._size: int | None = None  # of the folder, as far as this process knows
        self._unwatched = 0  # bytes written since the folder was last looked through

    # -- entries -------------------------------------------------------------------------------------------
    def find(self, key: bytes) -> bytes | None:
        """What was added under a key; None when nothing was, and when it is damaged or not to be trusted."""
        found = self._read(key)
        publish("disk cache", outcome="miss" if found is None else "hit", key=key.hex()[:16],
                bytes=None if found is None else len(found))
        return found

    def _read(self, key: bytes) -> bytes | None:
        if not self._check_folder():
            return None
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                state = os.fstat(file.fileno())
                if not self._check_owner(state, path):
                    return None
                data = file.read()
        except OSError:
            return None
        if not _is_intact(data, key):
            return None
        if time.time() - state.st_mtime > _DAY:
            _touch(path)
        return data[_CONTENT_AT:]

    def add(self, key: bytes, content: bytes) -> None:
        """Keeps bytes under a key, in place of others; where that fails, warns once and does no more."""
        size = _CONTENT_AT + len(content)
        if not self._is_writable or size > config.cache_disk_bytes:
            return
        name = f"{os.getpid()}-{next(_numbers)}-{time.time_ns()}{_UNFINISHED}"
        unfinished = os.path.join(self.folder, name)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not self._check_folder():
                return
            try:
                with open(unfinished, "xb", opener=_open_private) as file:
                    file.write(b"".join((_MAGIC, key, _sum(content), content)))
                os.replace(unfinished, self._path(key))
            except OSError:
                _remove(unfinished)
                raise
            self._limit_size(size)
            publish("disk cache", outcome="written", key=key.hex()[:16], bytes=size)
        except OSError as failure:
            self._is_writable = False
            self._warn(f"cannot keep compiled programs in {self.folder} ({failure.strerror or failure}); "
                       "they will be compiled again in the next process")

    def _path(self, key: bytes) -> str:
        return os.path.join(self.folder, key.hex() + _SUFFIX)

    # -- trust ---------------------------------------------------------------------------------------------
    def _check_folder(self) -> bool:
        """Whether the folder is there and nobody else can put code into it."""
        if self._is_trusted is None:
            try:
                state = os.stat(self.folder)
            except OSError:
                return False
            self._is_trusted = self._check_owner(state, self.folder)
        return self._is_trusted

    def _check_owner(self, state: os.stat_result, path: str) -> bool:
        if not hasattr(os, "geteuid"):
            return True
        if state.st_uid != os.geteuid():
            self._warn(f"does not load compiled programs from {path}, which belongs to another user")
        elif state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._warn(f"does not load compiled programs from {path}, into which other users can write: "
                       f"chmod go-w {path}")
        else:
            return True
        return False

    def _warn(self, text: str) -> None:
        if not self._is_warned:
            self._is_warned = True
            warnings.warn(f"jitcore {text}. JITCORE_CACHE_DIR names another folder; empty, it means none.",
                          RuntimeWarning, stacklevel=2)

    # -- size ----------------------------------------------------------------------------------------------
    def _limit_size(self, added: int) -> None:
        """Accounts for a new file; when the folder has become too large, removes what is oldest."""
        limit = config.cache_disk_bytes
        self._unwatched += added
        if self._size is not None and self._unwatched < limit * _UNWATCHED_PART:
            self._size += added
        else:
            self._size = sum(file.size for file in self._list_files())
            self._unwatched = 0
        if self._size > limit:
            self._size = self._remove_oldest(int(limit * _KEPT_PART))

    def _remove_oldest(self, limit: int) -> int:
        """Removes files until the others have `limit` bytes. Returns: their bytes."""
        files = sorted(self._list_files())
        size = sum(file.size for file in files)
        for file in files:
            if size <= limit:
                break
            _remove(file.path)
            size -= file.size
        return size

    def _list_files(self) -> Iterator[_File]:
        """The entries. Files that a process began and did not finish are removed in passing."""
        try:
            found = list(os.scandir(self.folder))
        except OSError:
            return
        for item in found:
            try:
                state = item.stat(follow_symlinks=False)
            except OSError:  # removed by another process
                continue
            if item.name.endswith(_SUFFIX):
                yield _File(state.st_mtime, state.st_size, item.path)
            elif item.name.endswith(_UNFINISHED) and time.time() - state.st_mtime > _HOUR:
                _remove(item.path)

    def count(self) -> Statistics:
        """What the folder holds now."""
        files = list(self._list_files())
        times = [file.used for file in files]
        size = sum(file.size for file in files)
        return Statistics(len(files), size, min(times, default=None), max(times, default=None))

    def clear(self) -> Statistics:
        """Removes every entry. Returns: what is left: nothing, unless the folder cannot be changed."""
        for file in list(self._list_files()):
            _remove(file.path)
        self._size = None
        return self.count()


def _is_intact(data: bytes, key: bytes) -> bool:
    """Whether a file holds what was written under this key."""
    is_of_key = data[:_CHECKSUM_AT] == _MAGIC + key
    return is_of_key and _sum(data[_CONTENT_AT:]) == data[_CHECKSUM_AT:_CONTENT_AT]


def _sum(content: bytes) -> bytes:
    """Tells a damaged file; against people there are owners and permissions."""
    return source_hash(content)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _touch(path: str) -> None:
    try:
        os.utime(path)
    except OSError:  # a folder that is only read
        pass


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:  # another process was faster, or the folder cannot be changed
        pass
