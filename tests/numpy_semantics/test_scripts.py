"""Functions as scripts have them, traced whole, against plain Python."""

from __future__ import annotations

import pytest

from tests.numpy_semantics.script_cases import CASES
from tests.numpy_semantics.tracing import check


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: x.__name__ if callable(x) else "")
def test_scripts(function, args):
    check(function, *args, rtol=1e-10)
