"""Chinese study notes on tracing, cell by cell; their older jaxprs in the current format."""

import pytest

from tests.seeds import cells
from tests.seeds.replay import Notebook, check_cell

NOTEBOOK = Notebook("study notes", [cells.LOG2, cells.LOG2_WITH_PRINT, cells.LOG2_IF_RANK_2])


@pytest.mark.parametrize("index", range(len(NOTEBOOK.cells)))
def test_cell(index):
    check_cell(NOTEBOOK, index)


def test_jaxpr_knows_only_the_branch_taken():
    """A matrix takes the other branch of the third cell than the vector it shows."""
    NOTEBOOK.run(2)
    names = NOTEBOOK.namespace
    text = str(names["jitcore"].make_jaxpr(names["log2_if_rank_2"])(names["jnp"].ones((2, 3))))
    assert text.splitlines()[0] == "{ lambda ; a:f32[2,3]. let"
    assert "b:f32[2,3] = log a" in text and "in (a,)" not in text
