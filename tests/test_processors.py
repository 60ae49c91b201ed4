"""How many threads are the default: OMP_NUM_THREADS, affinity, limits of the control group."""

import os

import pytest

from jitcore.process import concurrency

#: proc/self/cgroup, files below sys/fs/cgroup, the limit.
GROUPS = {
    "none": ("0::/\n", {}, None),
    "version 2, unlimited": ("0::/a/b\n", {"a/b/cpu.max": "max 100000"}, None),
    "version 2": ("0::/a/b\n", {"a/b/cpu.max": "300000 100000"}, 3),
    "a part of a processor counts": ("0::/a\n", {"a/cpu.max": "150000 100000"}, 2),
    "less than one": ("0::/a\n", {"a/cpu.max": "20000 100000"}, 1),
    "the group around it": ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "400000 100000"}, 4),
    "the smallest": ("0::/a/b\n", {"a/b/cpu.max": "600000 100000", "a/cpu.max": "400000 100000"}, 4),
    "the mount is the group": ("0::/docker/x\n", {"cpu.max": "200000 100000"}, 2),
    "version 1": ("4:memory:/m\n3:cpu,cpuacct:/a\n", {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}, 3),
    "version 1, unlimited": ("3:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, None),
    "both": ("3:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "500000", "cpu/cpu.cfs_period_us": "100000"}, 5),
    "damaged": ("0::/a\n", {"a/cpu.max": "100000 0"}, None),
}


@pytest.mark.parametrize("name", GROUPS)
def test_control_groups(name, tmp_path):
    lines, files, expected = GROUPS[name]
    for path, text in {"proc/self/cgroup": lines, **{f"sys/fs/cgroup/{path}": text for path, text in files.items()}}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert concurrency.read_group_limit(str(tmp_path)) == expected


def test_systems_without_groups(tmp_path):
    assert concurrency.read_group_limit(str(tmp_path)) is None


def test_the_limit_bounds_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(concurrency.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for limit, expected in ((None, 8), (3, 3), (20, 8)):
        monkeypatch.setattr(concurrency, "read_group_limit", lambda limit=limit: limit)
        assert concurrency.available_cores() == concurrency.default_threads() == expected


@pytest.mark.parametrize("text, expected", [("3", 3), ("4,2", 4), (" 2 ", 2), ("0", None), ("", None), ("many", None), ("-1", None)])
def test_openmp_variable(text, expected, monkeypatch):
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", text)
    assert concurrency.default_threads() == (expected or concurrency.available_cores())
