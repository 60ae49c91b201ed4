"""A set as an argument."""

from jitcore import autojit


@autojit(strict=True)
def count(words):
    return len(words)


count({"a", "b"})
