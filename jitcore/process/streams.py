"""Generators of random numbers as arrays of words, which compiled code draws from.

In: a generator of NumPy or of Python's `random`. Out: its words: what C code calls a `bitgen_t`, addresses of
the functions that distributions need, the second number of a pair of normals, the state. Compiled code draws
from words as it writes into any array, and finds in them all that it calls: so neither it nor a cache holds
an address. What a program has drawn goes back into the generator when the program has succeeded (`Held`).

    0 to 4       state, next_uint64, next_uint32, next_double, next_raw: a `bitgen_t`
    FUNCTIONS    addresses, 0 of what this NumPy does not have
    GAUSS        whether there is a second number; then the number
    STATE        the state, as the bit generator's C code has it; what that points to follows

The first word, and the pointers in the state, are where the words lie: who calls a function sets them.
Only exact types are known: a subclass may draw in another way.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import math
import random
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FUNCTIONS", "GAUSS", "LAYOUTS", "STATE", "Held", "are_alike", "describe", "duplicate", "find_shared",
           "is_generator", "make", "make_words", "share", "write"]

#: Of C's library, and of NumPy's `distributions.h`.
FUNCTIONS = tuple("""log cos sin exp sqrt
    random_standard_normal random_standard_exponential random_standard_gamma random_beta random_chisquare random_f
    random_standard_cauchy random_pareto random_weibull random_power random_laplace random_gumbel
    random_logistic random_lognormal random_rayleigh random_standard_t random_noncentral_chisquare
    random_wald random_vonmises random_triangular random_poisson random_negative_binomial random_binomial
    random_logseries random_geometric random_zipf random_hypergeometric random_interval
    random_bounded_uint64 random_standard_uniform_f random_standard_normal_f random_standard_exponential_f
    random_gamma random_noncentral_f""".split())
GAUSS = 5 + len(FUNCTIONS)
STATE = (GAUSS + 3) // 2 * 2  # at a multiple of 16 bytes, as 128-bit integers need


class Layout(NamedTuple):
    """The state of a bit generator. size: bytes of its structure; inner: bytes of what its first fields point
    to, one after the other."""

    size: int
    inner: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """Words at which the structure, and then what it points to, begins."""
        found = [STATE]
        for size in (self.size, *self.inner):
            found.append(found[-1] + -(-size // 16) * 2)
        return found


#: By name of the bit generator.
LAYOUTS = {"MT19937": Layout(2500), "PCG64": Layout(16, (32,)), "PCG64DXSM": Layout(16, (32,)),
           "Philox": Layout(64, (32, 16)), "SFC64": Layout(40)}
_MT_BYTES = 624 * 4


@functools.cache
def _list_classes() -> dict[type, str]:
    """Those that are known, by what draws from them."""
    from numpy import random as of_numpy

    return {of_numpy.RandomState: "RandomState", of_numpy.Generator: "Generator", random.Random: "Random"}


def is_generator(value: Any) -> bool:
    """Whether it is of a class that is known; does not load NumPy's generators."""
    kind = type(value)
    return kind is random.Random or kind.__name__ in ("RandomState", "Generator") and kind in _list_classes()


def describe(generator: Any) -> str | None:
    """What a generator is: "Generator PCG64"; None for one that compiled code cannot draw from."""
    kind = _list_classes().get(type(generator))
    if kind == "Random":
        return "Random MT19937" if _find_python_state() else None
    bits = None if kind is None else _bits_of(generator)
    name = type(bits).__name__
    if bits is None or name not in LAYOUTS or type(bits) is not getattr(np.random, name):
        return None
    if kind == "RandomState" and not _find_gauss():
        return None
    return f"{kind} {name}"


def make(form: str) -> Any:
    """A generator of this form, of any state."""
    kind, name = form.split()
    if kind == "Random":
        return random.Random(0)
    return getattr(np.random, kind)(getattr(np.random, name)(0))


def duplicate(generator: Any) -> Any:
    """One that draws the same numbers."""
    return copy.deepcopy(generator)


def are_alike(one: Any, other: Any) -> bool:
    """Whether two generators will draw the same numbers."""
    found = [words for words in map(_read_all, (one, other))]
    return bool(np.array_equal(*found))


def _read_all(generator: Any) -> np.ndarray:
    words = make_words(describe(generator), generator)
    with Held(generator, words):
        words[:STATE - 2 * (STATE > GAUSS)][:GAUSS] = 0
        layout = LAYOUTS[describe(generator).split()[1]]
        words[STATE : STATE + len(layout.inner)] = 0
        return words


#: The generators behind functions of modules: `np.random.rand`, `random.random`.
_SHARED = {"numpy": lambda: np.random.mtrand._rand, "random": lambda: random._inst}


def find_shared(generator: Any) -> str | None:
    """The name by which any process has this generator, or None."""
    for name, find in _SHARED.items():
        if name in sys.modules and type(generator).__module__.startswith(name) and find() is generator:
            return name
    return None


def share(name: str) -> Any:
    """The generator of this name."""
    return _SHARED[name]()


# -- memory -------------------------------------------------------------------------------------------------
def _bits_of(generator: Any) -> Any:
    return getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", None)


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _bitgen_of(bits: Any) -> int:
    """The address of a bit generator's `bitgen_t`."""
    return _get_pointer(bits.capsule, b"BitGenerator")


def _read_words(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}Q", ctypes.string_at(address, 8 * count))


def _find_offset(objects: Sequence[tuple[Any, bytes]]) -> int | None:
    """Where in objects of one class these bytes are, in each of them and once."""
    found = []
    for one, data in objects:
        memory = ctypes.string_at(id(one), type(one).__basicsize__)
        if memory.count(data) != 1:
            return None
        found.append(memory.index(data))
    return found[0] if len(set(found)) == 1 else None


@functools.cache
def _find_python_state() -> int | None:
    """Where objects of `random.Random` have their state: an int, the position, then 624 words of 32 bits.
    Looked for in objects of known states, so that another Python says that it has it elsewhere."""
    objects = []
    for seed, count in ((1, 3), (2, 630), (3, 0)):
        one = random.Random(seed)
        for _ in range(count):
            one.getrandbits(32)
        words = one.getstate()[1]
        objects.append((one, struct.pack("=625I", words[-1], *words[:-1])))
    base = random.Random.__mro__[1]
    if sys.implementation.name != "cpython" or base.__basicsize__ < 4 * 625:
        return None
    return _find_offset(objects)


@functools.cache
def _find_gauss() -> int | None:
    """Where objects of `RandomState` have the second number of a pair; whether there is one stands 8 bytes
    before it."""
    objects, empty = [], None
    for seed in (1, 2, 3):
        one = np.random.RandomState(seed)
        one.normal()
        objects.append((one, struct.pack("=d", one.get_state(legacy=False)["gauss"])))
        empty = np.random.RandomState(seed)
    offset = _find_offset(objects)
    if offset is None:
        return None
    flags = [ctypes.c_int.from_address(id(one) + offset - 8).value for one in (objects[0][0], empty)]
    return offset if flags == [1, 0] else None


# -- words --------------------------------------------------------------------------------------------------
@functools.cache
def _list_addresses() -> tuple[int, ...]:
    """Of `FUNCTIONS`."""
    from numpy.random import _generator

    library, of_c = ctypes.CDLL(_generator.__file__), _open_math()
    return tuple([_address_of(library if name.startswith("random_") else of_c, name) for name in FUNCTIONS])


def _address_of(library: ctypes.CDLL | None, name: str) -> int:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _open_math() -> ctypes.CDLL | None:
    """C's library, if its functions are those that Python and NumPy call."""
    library = ctypes.CDLL(None)
    for name in ("log", "cos", "sin", "exp"):
        function = getattr(library, name, None)
        if function is None:
            return None
        function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double,)
        own = random.Random(0)
        values = [own.random() * 6.28 for _ in range(200)]
        if any(function(x) != getattr(math, name)(x) for x in values):
            return None
    return library


@functools.lru_cache(maxsize=64)
def _template(form: str, bitgen: tuple[int, ...]) -> np.ndarray:
    """Words without a state."""
    layout = LAYOUTS[form.split()[1]]
    words = np.zeros(layout.places[-1], np.uint64)
    words[: len(bitgen)] = bitgen
    words[5:GAUSS] = _list_addresses()
    return words


@functools.cache
def _python_bitgen() -> tuple[int, ...]:
    """NumPy's functions draw from the state of Python's generator too."""
    bits = np.random.MT19937(0)
    return 0, *_read_words(_bitgen_of(bits), 5)[1:]


def count_words(form: str) -> int:
    return LAYOUTS[form.split()[1]].places[-1]


def has_function(name: str) -> bool:
    """Whether programs can call a function of `FUNCTIONS`."""
    return bool(_list_addresses()[FUNCTIONS.index(name)])


def make_words(form: str, generator: Any) -> np.ndarray | None:
    """Words for a generator, without its state; None where it is not of this form."""
    if describe(generator) != form:
        return None
    if type(generator) is random.Random:
        return _template(form, _python_bitgen()).copy()
    bitgen = _read_words(_bitgen_of(_bits_of(generator)), 5)
    return _template(form, (0, *bitgen[1:])).copy()


class Held:
    """A generator that nobody else draws from, and its words, which hold its state; a context.

    Python's own generator has no lock."""

    def __init__(self, generator: Any, words: np.ndarray):
        self.generator, self.words = generator, words

    def __enter__(self) -> Held:
        bits = None if type(self.generator) is random.Random else _bits_of(self.generator)
        self._lock = getattr(bits, "lock", None)
        if self._lock is not None:
            self._lock.acquire()
        _move(self.generator, bits, self.words, _read)
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def write(self) -> None:
        """What was drawn is drawn."""
        write(self.generator, self.words)

    def release(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def write(generator: Any, words: np.ndarray) -> None:
    """Sets the state of a generator to that of its words."""
    _move(generator, None if type(generator) is random.Random else _bits_of(generator), words, _write)


def _read(outside: int, inside: int, size: int) -> None:
    ctypes.memmove(inside, outside, size)


def _write(outside: int, inside: int, size: int) -> None:
    ctypes.memmove(outside, inside, size)


def _move(generator: Any, bits: Any, words: np.ndarray, copy_bytes: Callable[[int, int, int], None]) -> None:
    """Copies the parts of a state, from a generator into words or back."""
    here = words.__array_interface__["data"][0]
    state, is_read = here + 8 * STATE, copy_bytes is _read
    if bits is None:
        there = id(generator) + _find_python_state()
        copy_bytes(there + 4, state, _MT_BYTES)
        copy_bytes(there, state + _MT_BYTES, 4)
        if is_read:
            second = generator.gauss_next
            words[GAUSS] = second is not None
            words[GAUSS + 1 :].view(np.float64)[0] = second or 0.0
        else:
            second = words[GAUSS + 1 :].view(np.float64)[0].item() if words[GAUSS] else None
            generator.gauss_next = second
        return
    layout = LAYOUTS[type(bits).__name__]
    there, pointers = _read_words(_bitgen_of(bits), 1)[0], 8 * len(layout.inner)
    for place, size, address in zip(layout.places[1:], layout.inner, _read_words(there, len(layout.inner))):
        copy_bytes(address, here + 8 * place, size)
    copy_bytes(there + pointers, state + pointers, layout.size - pointers)
    if type(generator).__name__ == "RandomState":
        second = id(generator) + _find_gauss()
        copy_bytes(second - 8, here + 8 * GAUSS, 4)
        copy_bytes(second, here + 8 * GAUSS + 8, 8)
