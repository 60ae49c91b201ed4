"""Which tests a difference can touch: by a made-up graph of imports, by what is imported by name, by git; and that
the graph of this project knows the ways by which its modules reach each other."""

from __future__ import annotations

import subprocess

import grimp
import pytest

from tests import changed

#: importer -> what it imports.
IMPORTS = {
    "jitcore.api": ["jitcore.core"],
    "jitcore.backends.cpu.emit": ["jitcore.core"],
    "jitcore.lone": [],
    "tests.helper": ["jitcore.api"],
    "tests.test_api": ["tests.helper"],
    "tests.deep.test_emit": ["jitcore.backends.cpu.emit"],
    "tests.deep.conftest": ["jitcore.lone"],
    "tests.test_lone": ["jitcore.lone"],
}


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A project whose modules import each other as `IMPORTS` says."""
    graph = grimp.ImportGraph()
    for module in {*IMPORTS, *(name for names in IMPORTS.values() for name in names)}:
        graph.add_module(module)
        path = tmp_path.joinpath(*module.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text("")
    for importer, names in IMPORTS.items():
        for name in names:
            graph.add_import(importer=importer, imported=name)
    for readers in changed.READERS.values():
        for name in readers:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
    monkeypatch.setattr(changed, "build_graph", lambda: graph)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    return tmp_path


API, EMIT, LONE = "tests/test_api.py", "tests/deep/test_emit.py", "tests/test_lone.py"


@pytest.mark.parametrize(("files", "touched"), [
    ([], set()),
    (["jitcore/core.py"], {API, EMIT}),
    (["jitcore/api.py"], {API}),
    (["backends/cpu/emit.py"], {EMIT}),
    (["tests/helper.py"], {API}),
    ([API], {API}),
    (["jitcore/api.py", "jitcore/lone.py"], {API, LONE}),
    (["tests/deep/conftest.py"], {"tests/deep"}),
    (["tests/answers/deep.test_emit.xz"], {EMIT}),
    (["docs/any.md"], {"tests/test_docs.py", "tests/test_docs_examples.py", "tests/test_errors_page.py"}),
    ([".gitignore"], set()),
    (["setup.cfg"], {changed.ALL}),
    (["scripts/test.sh", "jitcore/api.py"], {changed.ALL}),
    (["jitcore/removed.py"], set()),
    (["tests/test_removed.py", "jitcore/lone.py"], {LONE}),
])
def test_what_files_touch(files, touched, made_up):
    assert changed.find_tests(files) == touched


NAMES = frozenset({"jitcore", "jitcore.lax", "jitcore.lax.scan", "jitcore.cli.run", "jitcore.__main__",
                   "benchmarks.__main__", "tests.helper", "jitcore.api"})


@pytest.mark.parametrize(("module", "text", "imported"), [
    ("tests.test_a", "import jitcore.lax as lax\nlax.scan.x\n", {"jitcore.lax.scan"}),
    ("tests.test_a", "import jitcore\njitcore.lax.scan.f(1)\n", {"jitcore.lax.scan"}),
    ("tests.test_a", "from jitcore import lax, missing\n", {"jitcore.lax"}),
    ("tests.test_a", "from jitcore import (\n    lax,\n)\n", {"jitcore.lax"}),
    ("tests.test_a", 'import subprocess\nrun(["-m", "jitcore"])\n', {"jitcore.__main__"}),
    ("tests.test_a", 'import subprocess\ncode = """\nfrom tests.helper import f\n"""\n', {"tests.helper"}),
    ("tests.test_a", 'run(["-m", "jitcore"])\n', set()),
    ("jitcore.__main__", 'import_module(f"jitcore.cli.{name}")\n', {"jitcore.cli.run"}),
])
def test_what_is_imported_by_name(module, text, imported, tmp_path, monkeypatch):
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    file = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert imported <= set(changed._list_imports_by_name(module, NAMES)) <= {*imported, "jitcore"}


def test_changed_files_are_those_of_the_work_tree(tmp_path, monkeypatch):
    def git(*command):
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(changed, "ROOT", tmp_path)
    git("init")
    for name in ("kept.py", "edited.py", "removed.py", "committed.py", ".gitignore"):
        (tmp_path / name).write_text("ignored.py" if name == ".gitignore" else "")
    git("add", "-A")
    git("commit", "-m", "first")
    (tmp_path / "committed.py").write_text("1")
    git("commit", "-am", "second")
    (tmp_path / "edited.py").write_text("1")
    (tmp_path / "removed.py").unlink()
    for name in ("new.py", "ignored.py"):
        (tmp_path / name).write_text("")
    assert changed.list_changed("HEAD") == ["edited.py", "new.py", "removed.py"]
    assert changed.list_changed("HEAD~1") == ["committed.py", "edited.py", "new.py", "removed.py"]


def test_ways_through_this_project(monkeypatch):
    graph = changed.build_graph()
    monkeypatch.setattr(changed, "build_graph", lambda: graph)
    for file, some, others in (
        ("backends/llvm/accumulator.py", {"tests/backends/cpu/test_long_sums.py"}, {"tests/test_tree.py"}),
        ("jitcore/cli/run.py", {"tests/scripts/test_runner.py"}, {"tests/lax/test_fft.py"}),
        ("benchmarks/scaling.py", {"tests/test_benchmarks.py"}, {"tests/lax/test_fft.py"}),
        ("tests/combinations.py", {"tests/backends/cpu/test_scans.py"}, {"tests/test_jit.py"}),
    ):
        found = changed.find_tests([file])
        assert some <= found and not others & found, (file, found)
