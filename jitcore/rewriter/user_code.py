"""Which code is the user's, so that it is rewritten, and what it raises is its own.

In: a code object. Out: whether it lies outside of jitcore, the standard library and installed packages.
"""

from __future__ import annotations

import os
import sysconfig
from types import CodeType, FunctionType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Where transformations are, and what keeps our frames out of tracebacks.
_WRAPPERS = (_PACKAGE + "transforms" + os.sep, _PACKAGE + os.path.join("core", "source.py"))
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})


def is_wrapper(function: FunctionType) -> bool:
    """Whether this is what a transformation of ours made of a function, which is in its closure."""
    return bool(function.__closure__) and function.__code__.co_filename.startswith(_WRAPPERS)


def is_user_code(code: CodeType) -> bool:
    return not code.co_filename.startswith((_PACKAGE, _LIBRARY, *_INSTALLED, "<frozen", "<jitcore"))
