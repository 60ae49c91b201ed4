"""Shows or empties the folder of compiled programs.

In: `stats` or `clear`. Out: what the folder holds, or what is left of it; exit code 1 when it cannot be
emptied.
"""

from __future__ import annotations

import argparse
import time

from jitcore.config import config
from jitcore.dispatch.disk_cache import DiskCache, open_cache

HELP = "show or empty the folder of compiled programs"

_OFF = "off (config.cache_dir is empty): compiled programs are kept in memory only"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("stats", "clear"), help="what to do with the folder")


def execute(options: argparse.Namespace) -> int:
    """Returns: 0, or 1 when the folder cannot be emptied."""
    cache = open_cache()
    if cache is None:
        print(_OFF)
        return 0
    return show(cache) if options.action == "stats" else clear(cache)


def show(cache: DiskCache) -> int:
    """Prints what the folder holds. Returns: 0."""
    held = cache.count()
    print(f"folder  {cache.folder}")
    print(f"files   {held.files}")
    print(f"bytes   {held.size} of at most {config.cache_disk_bytes}")
    if held.files:
        print(f"oldest  {format_time(held.oldest)}")
        print(f"newest  {format_time(held.newest)}")
    return 0


def clear(cache: DiskCache) -> int:
    """Empties the folder. Returns: 0, or 1 when files are left."""
    before = cache.count()
    left = cache.clear()
    files, size = before.files - left.files, before.size - left.size
    print(f"removed {files} files with {size} bytes from {cache.folder}")
    if left.files:
        print(f"{left.files} files cannot be removed")
    return 1 if left.files else 0


def format_time(seconds: float) -> str:
    """A time since 1970 as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
