"""The map of the house: the picture and the tables are those of the code, and rooms and files are not too large."""

from pathlib import Path

import pytest

from tests.docs_scripts import load_script

ROOT = Path(__file__).parents[1]


MAP = load_script("draw_map")


@pytest.mark.parametrize("path, text", MAP.render().items(), ids=lambda x: str(x.relative_to(ROOT)) if isinstance(x, Path) else "")
def test_picture_and_tables_are_up_to_date(path, text):
    assert path.read_text(encoding="utf-8") == text, "run python docs/draw_map.py --write"


def test_each_package_says_what_comes_in_and_what_goes_out():
    for path in MAP.list_files():
        if path.name == "__init__.py":
            text = path.read_text(encoding="utf-8")
            assert "In:" in text or path.parent.name in ("jitcore", "backends"), path


def test_no_room_has_more_than_25_modules():
    for folder in {path.parent for path in MAP.list_files()}:
        most = 30 if folder.name == "stats" else 25  # one module for each distribution, as SciPy names them
        assert len(list(folder.glob("*.py"))) <= most, folder


def test_no_file_is_longer_than_500_lines():
    assert not [path for path in MAP.list_files() if len(path.read_text(encoding="utf-8").splitlines()) > 500]
