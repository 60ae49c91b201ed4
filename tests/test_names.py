"""No name of JAX's that is here goes away, and each that is not has its reason in docs/features.md."""

import pytest

from tests import names


@pytest.fixture(scope="module")
def compared():
    jax = pytest.importorskip("jax")
    if jax.__version__ != names.DATA["jax"]:
        pytest.skip(f"the list is of JAX {names.DATA['jax']}")
    return names.compare_all()


def test_numbers_do_not_fall(compared):
    assert {c.module: c.have for c in compared if c.have < names.DATA["least"][c.module]} == {}


def test_each_missing_name_has_a_reason(compared):
    reasons = {module: sorted(name for some in groups.values() for name in some)
               for module, groups in names.DATA["missing"].items()}
    assert {c.module: c.missing for c in compared if c.missing} == reasons


def test_the_document_is_up_to_date(compared):
    assert names.BEGIN + names.render(compared) + names.END in names.PAGE.read_text(), "python -m tests.names --write"
