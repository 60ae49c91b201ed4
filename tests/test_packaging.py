"""What is installed: every package folder, one version, entry points that load."""

import configparser
from importlib import metadata
from pathlib import Path

import pytest

import jitcore

ROOT = Path(__file__).parents[1]
PACKAGE_OF_FOLDER = {"jitcore": "jitcore", "backends": "jitcore.backends"}


def read_setup():
    setup = configparser.RawConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup


def test_every_package_folder_is_listed():
    found = {
        ".".join((package, *path.parent.relative_to(ROOT / folder).parts))
        for folder, package in PACKAGE_OF_FOLDER.items()
        for path in (ROOT / folder).rglob("__init__.py")
    }
    listed = read_setup()["options"]["packages"].split()
    assert found == set(listed)
    assert len(listed) == len(set(listed))


def test_one_version():
    assert jitcore.__version__ == read_setup()["metadata"]["version"] == metadata.version("jitcore")


@pytest.mark.parametrize("group", ["console_scripts", "jitcore.backends"])
def test_entry_points_load(group):
    ours = [entry for entry in metadata.entry_points(group=group) if entry.dist.name == "jitcore"]
    assert ours and all(callable(entry.load()) for entry in ours)


def test_package_is_typed():
    assert (ROOT / "jitcore" / "py.typed").exists()
