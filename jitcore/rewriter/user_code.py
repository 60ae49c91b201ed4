"""Which code is the user's, so that it is rewritten, and what it raises is its own.

In: a code object. Out: whether it lies outside of jitcore, the standard library and installed packages.
"""

from __future__ import annotations

import os
import sysconfig
from types import CodeType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = tuple({sysconfig.get_path("purelib") + os.sep, sysconfig.get_path("platlib") + os.sep})


def is_user_code(code: CodeType) -> bool:
    return not code.co_filename.startswith((_PACKAGE, _LIBRARY, *_INSTALLED, "<frozen", "<jitcore"))
