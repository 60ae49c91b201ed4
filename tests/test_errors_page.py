"""docs/errors.md: complete, and the same as the docstrings and the golden texts that it is made from."""

from pathlib import Path

from jitcore import errors
from tests.docs_scripts import load_script

DOCS = Path(__file__).parents[1] / "docs"


def test_page_is_up_to_date():
    assert (DOCS / "errors.md").read_text() == load_script("render_errors").render_page()


def test_each_class_has_its_section():
    page = (DOCS / "errors.md").read_text()
    for name in (kind.__name__ for kind in load_script("render_errors").list_classes()):
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "```python\n" in section and "**Fix.**" in section, name
    assert "## TracerBoolConversionError" in page and errors.TracerBoolConversionError.__doc__


def test_most_sections_show_a_message():
    renderer = load_script("render_errors")
    without = {kind.__name__ for kind in renderer.list_classes() if renderer.find_case(kind) is None}
    assert without <= {"KeyReuseError", "JaxprTypeError", "InconclusiveDimensionOperation"}
