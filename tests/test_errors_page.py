"""docs/errors.md: complete, and the same as the docstrings and the golden texts that it is made from."""

import importlib.util
from pathlib import Path

from jitcore import errors

DOCS = Path(__file__).parents[1] / "docs"


def load_renderer():
    spec = importlib.util.spec_from_file_location("render_errors", DOCS / "render_errors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date():
    assert (DOCS / "errors.md").read_text() == load_renderer().render_page()


def test_each_class_has_its_section():
    page = (DOCS / "errors.md").read_text()
    for name in (kind.__name__ for kind in load_renderer().list_classes()):
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "```python\n" in section and "**Fix.**" in section, name
    assert "## TracerBoolConversionError" in page and errors.TracerBoolConversionError.__doc__


def test_most_sections_show_a_message():
    renderer = load_renderer()
    without = {kind.__name__ for kind in renderer.list_classes() if renderer.find_case(kind) is None}
    assert without <= {"KeyReuseError", "JaxprTypeError", "InconclusiveDimensionOperation"}
