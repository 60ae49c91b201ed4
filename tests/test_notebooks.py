"""The notebooks: each runs from beginning to end and prints what is stored in it.

A cell tagged `raises-exception` is about an error and has to raise it; what a cell tagged `varies` prints
differs from run to run.
"""

from pathlib import Path

import pytest

from tests.own_files import shows_own_file

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def read_tags(cell):
    return cell.metadata.get("tags", ())


def read_text(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def read_errors(cell):
    return [output.ename for output in cell.outputs if output.output_type == "error"]


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    """(as stored, as executed now): the code cells of both."""
    stored = nbformat.read(request.param, as_version=4)
    executed = nbformat.read(request.param, as_version=4)
    # As the command line does, stop at the first cell that fails without being meant to.
    nbclient.NotebookClient(executed, timeout=60, kernel_name="python3").execute()
    return tuple([cell for cell in page.cells if cell.cell_type == "code"] for page in (stored, executed))


def test_there_is_a_notebook():
    assert NOTEBOOKS


def test_output_is_the_stored_one(notebook):
    compared = 0
    for stored, executed in zip(*notebook, strict=True):
        if "varies" not in read_tags(stored):
            assert read_text(executed) == read_text(stored), stored.source
            compared += bool(read_text(stored))
    assert compared >= 5


def test_errors_are_those_shown_and_hide_the_inside(notebook):
    for stored, executed in zip(*notebook, strict=True):
        assert read_errors(executed) == read_errors(stored)
        assert bool(read_errors(executed)) == ("raises-exception" in read_tags(stored)), stored.source
        for output in executed.outputs:
            if output.output_type == "error":
                assert not list(filter(shows_own_file, output.traceback)), stored.source


def test_there_is_a_plot(notebook):
    outputs = [output for cell in notebook[1] for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
