"""What is installed and distributed: every package folder, one version, entry points that load, the tests."""

import configparser
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import jitcore

ROOT = Path(__file__).parents[1]
PACKAGE_OF_FOLDER = {"jitcore": "jitcore", "backends": "jitcore.backends"}  # linked to by jitcore/backends


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


def test_entry_points_load():
    ours = [one for one in metadata.entry_points(group="console_scripts") if one.dist.name == "jitcore"]
    assert ours and all(callable(entry.load()) for entry in ours)


def test_package_is_typed():
    assert (ROOT / "jitcore" / "py.typed").exists()


def list_tracked_files():
    git = shutil.which("git")
    listed = git and subprocess.run([git, "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if not listed or listed.returncode or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    return [Path(line) for line in listed.stdout.splitlines()]


def test_source_distribution_has_what_the_tests_read():
    # setuptools adds the packages, its own files and these by itself.
    shipped = {*PACKAGE_OF_FOLDER, "LICENSE", "README.md", "MANIFEST.in", "pyproject.toml", "setup.cfg"}
    for line in (ROOT / "MANIFEST.in").read_text().splitlines():
        command, *names = line.split() or [""]
        if command in ("graft", "include"):
            shipped.update(names)
    assert {path.parts[0] for path in list_tracked_files()} - shipped == {".gitignore"}


def test_only_modules_stubs_and_the_typing_marker_stand_in_package_folders():
    # Anything else would need a line in setup.cfg's package_data to be installed, as the stubs have.
    assert read_setup()["options.package_data"]["*"] == "*.pyi"
    tracked = [path for path in list_tracked_files() if not (ROOT / path).is_symlink()]
    inside = [path for path in tracked if path.parts[0] in PACKAGE_OF_FOLDER]
    assert {path.name for path in inside if path.suffix not in (".py", ".pyi")} == {"py.typed"}


def test_a_clone_in_a_folder_of_the_packages_name(tmp_path):
    """From the folder around such a clone, and from inside of it, the package is found, backends included: it
    stands on the path, as an editable install puts it there."""
    assert read_setup()["options"]["package_dir"].strip() == "= ."  # by which setuptools makes it so
    (tmp_path / "jitcore").symlink_to(ROOT)
    code = "import sys; sys.path.append(sys.argv[1]); import jitcore.backends.cpu as cpu; print(cpu.__file__)"
    for folder in (tmp_path, tmp_path / "jitcore"):
        printed = subprocess.run([sys.executable, "-c", code, tmp_path / "jitcore"], cwd=folder, capture_output=True,
                                 text=True, check=True).stdout
        assert Path(printed.strip()).resolve() == ROOT / "backends" / "cpu" / "__init__.py"
