"""What is installed and distributed: every package folder, one version, entry points that load, the tests."""

import configparser
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
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


def read_tox():
    tox = configparser.RawConfigParser()
    tox.read(ROOT / "tox.ini")
    return tox


def test_environments_have_extras_that_there_are():
    known = read_setup()["options.extras_require"]
    named = [name for section in read_tox().values() for name in re.split(r"[,\s]+", section.get("extras", "")) if name]
    assert named and {*named} <= {*known}


def test_the_lowest_versions_are_tested():
    """tox -e lowest has each version that setup.cfg calls the lowest."""
    lowest = dict(line.split(" == ") for line in read_tox()["testenv:lowest"]["deps"].split("\n") if line)
    required = read_setup()["options"]["install_requires"].split("\n")
    assert lowest == dict(line.split(" >= ") for line in required if " >= " in line)


def test_one_version():
    assert jitcore.__version__ == read_setup()["metadata"]["version"] == metadata.version("jitcore")


def test_releases_are_told_alike():
    version = jitcore.__version__
    date = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text()
    assert date and f"\nversion: {version}\n" in citation and f"\ndate-released: {date[1]}\n" in citation


def test_released_files_have_addresses(tmp_path):
    list_tracked_files()  # of a checkout
    runpy.run_path(ROOT / "scripts" / "release.py")["write_tree"](tmp_path, "https://example.org/jitcore")
    setup = configparser.RawConfigParser()
    setup.read(tmp_path / "setup.cfg")
    assert setup["metadata"]["url"] == "https://example.org/jitcore"
    tag = f"v{jitcore.__version__}"
    assert f"Changelog = https://example.org/jitcore/blob/{tag}/CHANGELOG.md" in setup["metadata"]["project_urls"]
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text())
    assert links and all(link.startswith(("https://", "#")) for link in links)
    assert f"https://example.org/jitcore/blob/{tag}/docs/features.md#jit" in links
    assert (tmp_path / "jitcore" / "backends").is_symlink()


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
    assert read_setup()["options.package_data"]["jitcore.docstrings"] == "*.txt"
    others = [path for path in inside if path.suffix not in (".py", ".pyi") and path.parent.name != "docstrings"]
    assert {path.name for path in others} == {"py.typed"}


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


def test_import_from_an_archive(tmp_path):
    """All of it runs, what is kept on disk too, and is made anew when the archive changes."""
    archive = tmp_path / "jitcore.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for folder, package in PACKAGE_OF_FOLDER.items():
            for path in sorted((ROOT / folder).rglob("*.py")):
                inside = path.relative_to(ROOT / folder)
                if folder == "backends" or inside.parts[0] != "backends":
                    out.write(path, Path(*package.split("."), inside))
    code = """if True:
        import numpy as np, jitcore, jitcore.numpy as jnp
        from jitcore import autojit, jit
        from jitcore.scripts.learned import _stamp_folders
        from jitcore.scripts.texts import _stamp_writers
        print(jitcore.__file__, *jit(jnp.cumsum)(np.ones(3)), autojit(lambda x: np.where(x > 0, x, 0).sum())(np.ones(3)))
        print(jitcore.default_backend())
        print(_stamp_folders(), set(_stamp_writers()))
    """
    env = os.environ | {"PYTHONPATH": str(archive), "JITCORE_CACHE_DIR": str(tmp_path / "cache")}
    printed = [subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True,
                              check=True).stdout.splitlines() for _ in range(2)]
    time = archive.stat().st_mtime_ns
    assert printed[0] == printed[1] == [
        f"{archive / 'jitcore' / '__init__.py'} 1.0 2.0 3.0 3.0", "cpu", f"[({str(archive)!r}, {time})] {{{time}}}"]
    assert list((tmp_path / "cache").iterdir())
