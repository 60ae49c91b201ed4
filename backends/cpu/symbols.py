"""External symbols of native code: what a compiled module may call that another library defines.

In: the name of a symbol. Out: its address. Stage: linking. Who owns a family of symbols provides it under a
prefix; it is opened (compiled or loaded) when the first module that calls it is linked.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["address_of", "find_in_process", "foresee", "link_lock", "provide"]

_addresses: dict[str, int] = {}


class _Provider(NamedTuple):
    open: Callable[[str], int]
    foresee: Callable[[str], None] | None


_providers: dict[str, _Provider] = {}

#: Held while symbols are opened. Who needs it and the compiler's lock takes this one first. A fork waits for
#: it: in the child nobody would give it back.
link_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=link_lock.acquire, after_in_parent=link_lock.release, after_in_child=link_lock.release
    )


def provide(
    prefix: str, open_symbol: Callable[[str], int], foresee: Callable[[str], None] | None = None
) -> None:
    """Declares who knows the addresses of all symbols that begin with `prefix`.

    open_symbol: name -> address; called once for each name, and what is there stays for the process's life.
    foresee: begins with what takes time of that, without any lock.
    """
    _providers[prefix] = _Provider(open_symbol, foresee)


def _find_provider(symbol: str) -> _Provider | None:
    provider = _providers.get(symbol)
    if provider is None:
        provider = next((_providers[prefix] for prefix in _providers if symbol.startswith(prefix)), None)
    return provider


def address_of(symbol: str) -> int | None:
    """The address of a provided symbol; None when nobody provides it."""
    with link_lock:
        if symbol not in _addresses:
            provider = _find_provider(symbol)
            if provider is None:
                return None
            _addresses[symbol] = provider.open(symbol)
        return _addresses[symbol]


def foresee(symbol: str) -> None:
    """Says that a symbol's address will be asked for soon."""
    provider = None if symbol in _addresses else _find_provider(symbol)
    if provider is not None and provider.foresee is not None:
        provider.foresee(symbol)


def find_in_process(symbol: str) -> int | None:
    """The address of a symbol of the libraries that this process shares with all: C's, the interpreter's."""
    try:
        return ctypes.cast(ctypes.pythonapi[symbol], ctypes.c_void_p).value
    except AttributeError:
        return None
