"""As in the tests of scheduling: loop programs are run as Python."""

from tests.schedule.conftest import codegen, pytest_generate_tests  # noqa: F401
