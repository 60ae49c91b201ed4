"""How many files of the product a first call enters: less is easier to follow."""

import pytest

from tests.files_entered import list_files


@pytest.mark.parametrize("program, most", [("selu", 70), ("loop", 119)])
def test_a_first_call_enters_few_files(program, most):
    found = list_files(program)
    assert 40 < len(found) <= most, found
