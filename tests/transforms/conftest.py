"""What a transformation computes is seen without machine code."""

from tests.codegens import codegen, pytest_generate_tests  # noqa: F401
