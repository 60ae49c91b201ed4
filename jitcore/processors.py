"""How many processors this process may keep busy, by its affinity, its control group and OMP_NUM_THREADS.

In: what the operating system says. Out: numbers. No setting of jitcore's is read here: those come first.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

__all__ = ["available_cores", "default_threads", "read_group_limit"]


def default_threads() -> int:
    """Threads where no setting of jitcore's says how many: OMP_NUM_THREADS, else one for each core."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # the others are of nested loops
    return int(first) if first.isdecimal() and int(first) > 0 else available_cores()


def available_cores() -> int:
    """Cores this process may use: those of its affinity, and of them as many as its control group may keep
    busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = read_group_limit()
    return cores if limit is None else min(cores, limit)


@functools.cache
def read_group_limit(root: str = "/") -> int | None:
    """Processors' worth of time that this process's control group may use, rounded up; None: no limit.

    root: the folder in which proc and sys are found."""
    groups = _read(os.path.join(root, "proc/self/cgroup")).splitlines()
    mount = os.path.join(root, "sys/fs/cgroup")
    shares = [share for group in groups for share in _read_shares(mount, group)]
    return max(-int(-min(shares) // 1), 1) if shares else None


def _read_shares(mount: str, line: str) -> Iterator[float]:
    """The limits, in processors, that one line `number:controllers:path` leads to: of the group and of those
    around it."""
    _, controllers, path = line.split(":", 2)
    if not controllers:  # version 2
        for folder in _list_folders(mount, path):
            yield from _divide(*_read(f"{folder}/cpu.max").split())
    elif "cpu" in controllers.split(","):  # version 1, whose controllers have mounts of their own
        for folder in _list_folders(f"{mount}/{controllers}", path):
            quota, period = (_read(f"{folder}/cpu.cfs_{name}_us").split() for name in ("quota", "period"))
            yield from _divide(*quota, *period)


def _list_folders(mount: str, path: str) -> Iterator[str]:
    """A group's folder and those around it; in a container the mount itself may be the group's."""
    names = [name for name in path.split("/") if name]
    yield from ("/".join((mount, *names[:depth])) for depth in range(len(names), -1, -1))


def _read(path: str) -> str:
    """What a file holds; nothing where there is none that may be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _divide(*words: str) -> Iterator[float]:
    """Quota by period, where both are there: "max" and -1 are no limit."""
    if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
        yield int(words[0]) / int(words[1])
