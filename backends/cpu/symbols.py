"""External symbols of native code: what a compiled module may call that another library defines.

In: the name of a symbol. Out: its address. Stage: linking. Who owns a family of symbols provides it under a
prefix; it is opened (compiled, loaded, threads started) when the first module that calls it is linked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["address_of", "provide"]

_providers: dict[str, Callable[[str], int]] = {}
_addresses: dict[str, int] = {}
_lock = threading.RLock()


def provide(prefix: str, open_symbol: Callable[[str], int]) -> None:
    """Declares who knows the addresses of all symbols that begin with `prefix`.

    open_symbol: name -> address; called once for each name, and what is there stays for the process's life.
    """
    _providers[prefix] = open_symbol


def address_of(symbol: str) -> int | None:
    """The address of a provided symbol; None when nobody provides it."""
    with _lock:
        if symbol not in _addresses:
            owner = next((prefix for prefix in _providers if symbol.startswith(prefix)), None)
            if owner is None:
                return None
            _addresses[symbol] = _providers[owner](symbol)
        return _addresses[symbol]
