"""The folder of compiled code: what is found is what was added, whatever happens to files, folder and disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from jitcore.config import config
from jitcore.dispatch import disk_cache
from jitcore.dispatch.disk_cache import DiskCache

KEY, OTHER_KEY = bytes(range(32)), bytes(range(32, 64))
CONTENT = bytes(range(256)) * 5

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and permissions of POSIX")


@pytest.fixture
def cache(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield DiskCache(str(tmp_path / "folder" / "jitcore"))


def list_files(cache: DiskCache) -> list[Path]:
    return sorted(Path(cache.folder).iterdir())


def find_again(cache: DiskCache, key: bytes = KEY) -> bytes | None:
    """What another process would find."""
    return DiskCache(cache.folder).find(key)


def test_finds_what_was_added(cache):
    assert cache.find(KEY) is None
    cache.add(KEY, CONTENT)
    cache.add(OTHER_KEY, b"")
    assert (cache.find(KEY), cache.find(OTHER_KEY)) == (CONTENT, b"")
    assert find_again(cache) == CONTENT
    cache.add(KEY, b"new")
    assert (cache.find(KEY), find_again(cache)) == (b"new", b"new")
    assert [path.suffix for path in list_files(cache)] == [".code", ".code"]


@posix
def test_nobody_else_can_read_or_write(cache):
    cache.add(KEY, CONTENT)
    assert os.stat(cache.folder).st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in list_files(cache)] == [0o600]


def test_every_cut_file_is_a_miss_and_is_replaced(cache):
    cache.add(KEY, CONTENT)
    (path,) = list_files(cache)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert cache.find(KEY) is None
    path.write_bytes(whole + b"\0")
    assert cache.find(KEY) is None
    cache.add(KEY, CONTENT)
    assert cache.find(KEY) == CONTENT and path.read_bytes() == whole


def test_every_flipped_bit_is_a_miss(cache):
    cache.add(KEY, CONTENT)
    (path,) = list_files(cache)
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1 << position % 8
        path.write_bytes(bytes(changed))
        assert cache.find(KEY) is None
    path.write_bytes(whole)
    assert cache.find(KEY) == CONTENT


def test_a_file_under_another_name_is_a_miss(cache):
    cache.add(KEY, CONTENT)
    (path,) = list_files(cache)
    path.rename(path.with_name(OTHER_KEY.hex() + ".code"))
    assert cache.find(OTHER_KEY) is None


def test_a_folder_in_place_of_a_file_is_a_miss(cache):
    os.makedirs(Path(cache.folder, KEY.hex() + ".code"), mode=0o700)
    os.chmod(cache.folder, 0o700)
    assert cache.find(KEY) is None


# -- folders that cannot be used ----------------------------------------------------------------------------
def check_warns_once(cache: DiskCache, text: str) -> None:
    """Adding warns with this text, once; later uses stay silent."""
    with pytest.warns(RuntimeWarning, match=text) as warned:
        cache.add(KEY, CONTENT)
        cache.add(OTHER_KEY, CONTENT)
        cache.find(KEY)
    assert len(warned) == 1


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_takes_nothing_costs_one_warning(cache, monkeypatch, number):
    cache.add(OTHER_KEY, b"before")

    def refuse(path, flags):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk_cache, "_open_private", refuse)
    check_warns_once(cache, f"cannot keep compiled programs in .*{os.strerror(number)}")
    assert cache.find(OTHER_KEY) == b"before"  # what is there can still be read


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    check_warns_once(DiskCache(str(tmp_path / "file" / "jitcore")), "cannot keep compiled programs")


def test_a_disk_that_becomes_full_leaves_no_part(tmp_path):
    """The limit on the size of files stops the writer in the middle, as a full disk does."""
    code = f"""
import resource, warnings
from jitcore.dispatch.disk_cache import DiskCache
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
cache = DiskCache({str(tmp_path)!r})
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    cache.add(bytes(32), bytes(1000))
    cache.add(bytes(32), bytes(1000))
print(len(warned), cache.find(bytes(32)))
"""
    pytest.importorskip("resource")
    os.chmod(tmp_path, 0o700)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["1", "None"], "")
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_can_write_is_not_used(cache, mode):
    cache.add(KEY, CONTENT)
    os.chmod(cache.folder, mode)
    fresh = DiskCache(cache.folder)
    check_warns_once(fresh, "does not load .* into which other users can write: chmod go-w")
    assert fresh.find(KEY) is None and len(list_files(cache)) == 1


@posix
def test_a_file_that_others_can_write_is_not_loaded(cache):
    cache.add(KEY, CONTENT)
    list_files(cache)[0].chmod(0o622)
    with pytest.warns(RuntimeWarning, match="into which other users can write"):
        assert cache.find(KEY) is None


@posix
def test_what_belongs_to_another_user_is_not_loaded(cache, monkeypatch):
    cache.add(KEY, CONTENT)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(cache.folder).st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert cache.find(KEY) is None  # the file's owner
    fresh = DiskCache(cache.folder)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert fresh.find(KEY) is None  # the folder's owner


# -- size ---------------------------------------------------------------------------------------------------
def make_key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_the_least_recently_used_files_go(cache):
    with config.override(cache_disk_bytes=50_000):
        for number in range(40):
            cache.add(make_key(number), bytes(1000))
            os.utime(cache._path(make_key(number)), (number, number))  # long ago, one after the other
        assert cache.find(make_key(0)) is not None  # used: that makes it new
        for number in range(40, 60):
            cache.add(make_key(number), bytes(1000))
        held = cache.count()
        assert held.size <= 50_000 and held.files >= 30
        found = [number for number in range(60) if cache.find(make_key(number)) is not None]
        assert found == [0, *range(61 - held.files, 60)]


def test_the_limit_holds_for_what_several_processes_wrote(cache):
    others = [DiskCache(cache.folder) for _ in range(4)]
    with config.override(cache_disk_bytes=20_000):
        for number in range(100):
            others[number % 4].add(make_key(number), bytes(1000))
    assert cache.count().size <= 20_000 * (1 + 4 / 16)


def test_what_exceeds_the_limit_alone_is_not_kept(cache):
    for limit in (0, 1000):
        with config.override(cache_disk_bytes=limit):
            cache.add(KEY, bytes(1000))
    assert not os.path.exists(cache.folder)


def test_a_hit_is_noted_once_a_day(cache):
    cache.add(KEY, CONTENT)
    (path,) = list_files(cache)
    for age, is_noted in ((3600, False), (90_000, True)):
        used = time.time() - age
        os.utime(path, (used, used))
        assert cache.find(KEY) == CONTENT
        assert (path.stat().st_mtime > used + 1) == is_noted


def test_files_that_nobody_finished_are_removed(cache):
    cache.add(KEY, CONTENT)
    old, new = (Path(cache.folder, f"{name}.part") for name in ("old", "new"))
    for path, age in ((old, 7200), (new, 60)):
        path.write_bytes(b"begun")
        os.utime(path, (time.time() - age,) * 2)
    assert cache.count().files == 1
    assert (old.exists(), new.exists()) == (False, True)


def test_count_and_clear(cache):
    assert cache.count() == (0, 0, None, None) == cache.clear()
    cache.add(KEY, CONTENT)
    cache.add(OTHER_KEY, CONTENT)
    held = cache.count()
    assert held.files == 2 and held.size == sum(path.stat().st_size for path in list_files(cache))
    assert abs(held.newest - time.time()) < 60 and held.oldest <= held.newest
    Path(cache.folder, "notes.txt").write_text("not ours")
    assert cache.clear().files == 0
    assert [path.name for path in list_files(cache)] == ["notes.txt"]


# -- several processes --------------------------------------------------------------------------------------
WRITER = """
import sys
from jitcore.dispatch.disk_cache import DiskCache
cache = DiskCache(sys.argv[1])
for turn in range(150):
    for number in range(5):
        key = number.to_bytes(32, "big")
        cache.add(key, bytes([number]) * (1000 * number + turn))
        found = cache.find(key)
        assert found is not None and set(found) <= {number} and len(found) >= 1000 * number, (number, found)
"""


def test_concurrent_writers_and_readers_see_whole_files(tmp_path):
    folder = str(tmp_path / "jitcore")
    command = [sys.executable, "-W", "error", "-c", WRITER, folder]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [writer.communicate(timeout=100)[1] for writer in writers] == [""] * 4
    assert [path.suffix for path in Path(folder).iterdir()] == [".code"] * 5


# -- where it is --------------------------------------------------------------------------------------------
def test_the_folder_follows_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    with config.override(cache_dir="auto"):
        assert disk_cache.find_folder() == str(tmp_path / "xdg" / "jitcore")
        for useless in ("", "relative"):
            monkeypatch.setenv("XDG_CACHE_HOME", useless)
            assert disk_cache.find_folder() == str(tmp_path / ".cache" / "jitcore")
    with config.override(cache_dir="~/mine"):
        assert disk_cache.find_folder() == str(tmp_path / "mine")
    with config.override(cache_dir=""):
        assert disk_cache.find_folder() == "" and disk_cache.open_cache() is None
    with config.override(cache_dir=tmp_path):
        assert disk_cache.open_cache() is disk_cache.open_cache()
        assert disk_cache.open_cache().folder == str(tmp_path)
