"""Generators of random numbers as arrays of words, which compiled code draws from.

In: a generator of NumPy or of Python's `random`. Out: its words: what C code calls a `bitgen_t`, addresses of
the functions that distributions need, the second number of a pair of normals, the state. Compiled code draws
from words as it writes into any array, and finds in them all that it calls: so neither it nor a cache holds
an address. What a program has drawn goes back into the generator when the program has succeeded (`Memory`).

    0 to 4     state, next_uint64, next_uint32, next_double, next_raw: a `bitgen_t`
    5 ...      addresses of `FUNCTIONS`, 0 of what this NumPy does not have
    GAUSS      whether there is a second number; then the number
    STATE      the state, as the bit generator's C code has it; what its first fields point to follows

The first word, and the pointers in the state, are where the words lie: who calls a function sets them.
Only exact types are known: a subclass may draw in another way.
"""

from __future__ import annotations

import contextlib
import functools
import struct
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jitcore.process.concurrency import Lock
from jitcore.process.lazy import LazyModule

copy, ctypes, math, np, random = map(LazyModule, ("copy", "ctypes", "math", "numpy", "random"))

__all__ = ["FUNCTIONS", "GAUSS", "LAYOUTS", "STATE", "Memory", "Unlisted", "are_alike", "are_apart",
           "count_words", "describe", "duplicate", "find_class", "find_memory", "find_shared", "find_words",
           "has_function", "is_generator", "is_method", "limit_to", "make", "share"]

#: Of C's library, and of NumPy's `distributions.h`.
FUNCTIONS = tuple("""log cos sin
    random_standard_normal random_standard_exponential random_standard_gamma random_beta random_chisquare
    random_standard_cauchy random_pareto random_weibull random_power random_laplace random_gumbel
    random_logistic random_lognormal random_rayleigh random_standard_t random_poisson random_binomial
    random_geometric random_interval random_bounded_uint64""".split())
GAUSS = 5 + len(FUNCTIONS)
STATE = (GAUSS + 3) // 2 * 2  # at a multiple of 16 bytes, as 128-bit integers need


class Layout(NamedTuple):
    """The state of a bit generator. size: bytes of its structure; inner: bytes of what its first fields point
    to, one after the other."""

    size: int
    inner: tuple[int, ...] = ()

    @property
    def places(self) -> list[int]:
        """Words at which the structure begins, then what it points to, and where all ends."""
        found = [STATE]
        for size in (self.size, *self.inner):
            found.append(found[-1] + -(-size // 16) * 2)
        return found


#: By name of the bit generator.
LAYOUTS = {"MT19937": Layout(2500), "PCG64": Layout(16, (32,)), "PCG64DXSM": Layout(16, (32,)),
           "Philox": Layout(64, (32, 16)), "SFC64": Layout(40)}
_MT_BYTES = 624 * 4


def count_words(form: str) -> int:
    return LAYOUTS[form.split()[1]].places[-1]


# -- kinds --------------------------------------------------------------------------------------------------
_MODULES = {"RandomState": "numpy.random.mtrand", "Generator": "numpy.random._generator", "Random": "random"}


def is_generator(value: Any) -> bool:
    """Whether it is of a class that is known."""
    kind = type(value)
    return _MODULES.get(kind.__name__) == kind.__module__ and (
        getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind)


def is_method(value: Any) -> bool:
    """Whether it is a method of a generator."""
    return type(value) in (types.MethodType, types.BuiltinMethodType) and is_generator(value.__self__)


def describe(generator: Any) -> str | None:
    """The form of a generator: its class, that of its bit generator, and the version of NumPy, as another one
    may draw in other ways; None for one that compiled code cannot draw from."""
    memory = find_memory(generator)
    return None if memory is None else memory.form


def find_class(form: str) -> type:
    """The class of a generator of this form."""
    kind = form.partition(" ")[0]
    return random.Random if kind == "Random" else getattr(np.random, kind)


def make(form: str) -> Any:
    """A generator of this form, of any state."""
    kind, name = find_class(form), form.split()[1]
    return kind(0) if kind is random.Random else kind(getattr(np.random, name)(0))


def duplicate(generator: Any) -> Any:
    """One that draws the same numbers."""
    return copy.deepcopy(generator)


def are_alike(one: Any, other: Any) -> bool:
    """Whether two generators will draw the same numbers."""
    return bool((_read_state(one) == _read_state(other)).all())


def _read_state(generator: Any) -> np.ndarray:
    """Words without pointers."""
    with find_memory(generator) as memory:
        pointers = len(LAYOUTS[memory.form.split()[1]].inner)
        return np.delete(memory.words, range(STATE, STATE + pointers))[GAUSS:]


#: The generators behind the functions of modules: `np.random.rand`, `random.random`.
_SHARED = {"RandomState": lambda: np.random.mtrand._rand, "Random": lambda: random._inst}


def find_shared(generator: Any) -> str | None:
    """The name by which each process has this generator; None where it is the script's own."""
    find = _SHARED.get(type(generator).__name__)
    return type(generator).__name__ if find is not None and find() is generator else None


def share(name: str) -> Any:
    """The generator of this name."""
    return _SHARED[name]()


# -- memory -------------------------------------------------------------------------------------------------
class Unlisted(Exception):
    """A program draws from a generator that it must not draw from now."""


class _Limit(threading.local):
    listed: list | None = None


_limit = _Limit()


@contextlib.contextmanager
def limit_to(generators: list) -> Iterator[None]:
    """Programs of this thread draw from these alone."""
    before, _limit.listed = _limit.listed, generators
    try:
        yield
    finally:
        _limit.listed = before


_SECOND = struct.Struct("=Qd")


class Memory:
    """Where a generator has its state. A context in which nobody else draws from it, and its words have that
    state; draws of other threads from Python's generator, which has no lock, are lost.

    Args:
        bits: the bit generator, which is None for Python's.
        words: without a state. parts: (address, byte in the words, count of bytes).
    """

    def __init__(self, form: str, generator: Any, bits: Any, words: np.ndarray,
                 parts: Sequence[tuple[int, int, int]]):
        self.form, self.generator, self.bits, self.words = form, generator, bits, words
        here = words.ctypes.data
        self._in = [(here + place, address, count) for address, place, count in parts]
        self._out = [(address, there, count) for there, address, count in self._in]
        self._move = ctypes.memmove
        self._lock = Lock() if bits is None else bits.lock

    def __enter__(self) -> Memory:
        listed = _limit.listed
        if listed is not None and all(one is not self.generator for one in listed):
            raise Unlisted
        self._lock.__enter__()
        move = self._move
        for one in self._in:
            move(*one)
        if self.bits is None:
            second = self.generator.gauss_next
            _SECOND.pack_into(self.words, 8 * GAUSS, second is not None, second or 0.0)
        return self

    def write(self) -> None:
        """What was drawn is drawn."""
        move = self._move
        for one in self._out:
            move(*one)
        if self.bits is None:
            has_second, second = _SECOND.unpack_from(self.words, 8 * GAUSS)
            self.generator.gauss_next = second if has_second else None

    def __exit__(self, *error: Any) -> None:
        self._lock.__exit__(*error)


_memories: dict[int, Memory] = {}
_MOST_MEMORIES = 64


def find_memory(generator: Any) -> Memory | None:
    known = _memories.pop(id(generator), None)
    if known is not None and known.generator is generator and known.bits is _bits_of(generator):
        _memories[id(generator)] = known  # the last one: those of a call stay while it runs
        return known
    found = _read_memory(generator) if is_generator(generator) else None
    if found is not None:
        if len(_memories) >= _MOST_MEMORIES:
            del _memories[next(iter(_memories))]
        _memories[id(generator)] = found
    return found


def _bits_of(generator: Any) -> Any:
    return getattr(generator, "_bit_generator", None)


def find_words(form: str, generator: Any) -> np.ndarray | None:
    """The words of a generator; None where it is not of this form."""
    memory = find_memory(generator)
    return memory.words if memory is not None and memory.form == form else None


def _read_memory(generator: Any) -> Memory | None:
    kind, bits = type(generator).__name__, _bits_of(generator)
    if bits is None:
        offset = _find_python_state()
        if offset is None:
            return None
        there, name = id(generator) + offset, "MT19937"
        parts, functions = [(there + 4, 8 * STATE, _MT_BYTES), (there, 8 * STATE + _MT_BYTES, 4)], _find_own()
    else:
        name = type(bits).__name__
        if name not in LAYOUTS or type(bits) is not getattr(np.random, name):
            return None
        layout = LAYOUTS[name]
        there, *functions = _read_words(_bitgen_of(bits), 5)
        pointers = 8 * len(layout.inner)
        parts = [(there + pointers, 8 * STATE + pointers, layout.size - pointers)]
        inner = zip(_read_words(there, len(layout.inner)), layout.places[1:], layout.inner)
        parts += [(address, 8 * place, size) for address, place, size in inner]
        if kind == "RandomState":
            offset = _find_gauss()
            if offset is None:
                return None
            second = id(generator) + offset
            parts += [(second - 8, 8 * GAUSS, 4), (second, 8 * GAUSS + 8, 8)]
    form = f"{kind} {name} {np.__version__}"
    words = np.zeros(count_words(form), np.uint64)
    words[1:5], words[5:GAUSS] = functions, _list_addresses()
    return Memory(form, generator, bits, words, parts)


def _bitgen_of(bits: Any) -> int:
    """The address of a bit generator's `bitgen_t`."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return get(bits.capsule, b"BitGenerator")


def _read_words(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"{count}Q", ctypes.string_at(address, 8 * count))


def _find_offset(objects: list[tuple[Any, bytes]]) -> int | None:
    """Where in objects of one class these bytes are, in each of them and once."""
    found = set()
    for one, data in objects:
        memory = ctypes.string_at(id(one), type(one).__basicsize__)
        found.add(memory.index(data) if memory.count(data) == 1 else None)
    return found.pop() if len(found) == 1 else None


@functools.cache
def _find_python_state() -> int | None:
    """Where objects of `random.Random` have their state: an int, the position, then 624 words of 32 bits.
    Looked for in objects of known states, so that a Python that has it elsewhere says so."""
    if sys.implementation.name != "cpython":
        return None
    objects = []
    for seed, count in ((1, 3), (2, 630), (3, 0)):
        one = random.Random(seed)
        for _ in range(count):
            one.getrandbits(32)
        *words, position = one.getstate()[1]
        objects.append((one, struct.pack("=625I", position, *words)))
    return _find_offset(objects)


@functools.cache
def _find_gauss() -> int | None:
    """Where objects of `RandomState` have the second number of a pair; 8 bytes before stands whether there is
    one."""
    makers = [np.random.RandomState(seed) for seed in (1, 2, 3)]
    for one in makers:
        one.normal()
    offset = _find_offset([(one, struct.pack("=d", one.get_state(legacy=False)["gauss"])) for one in makers])
    if offset is None:
        return None
    makers[2].normal()
    flags = [ctypes.c_int.from_address(id(one) + offset - 8).value for one in makers]
    return offset if flags == [1, 1, 0] else None


# -- words --------------------------------------------------------------------------------------------------
@functools.cache
def _find_own() -> tuple[int, ...]:
    """Functions that draw from a state of MT19937: NumPy's serve Python's generator."""
    return _read_words(_bitgen_of(np.random.MT19937(0)), 5)[1:]


@functools.cache
def _list_addresses() -> tuple[int, ...]:
    """Of `FUNCTIONS`."""
    library = ctypes.CDLL(sys.modules[np.random.Generator.__module__].__file__)
    of_c = _open_math()
    return tuple([_address_of(library if name.startswith("random_") else of_c, name) for name in FUNCTIONS])


def _address_of(library: ctypes.CDLL | None, name: str) -> int:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def _open_math() -> ctypes.CDLL | None:
    """C's library, if its functions are those that Python calls."""
    library = ctypes.CDLL(None)
    own = random.Random(0)
    values = [own.random() * 6.28 for _ in range(200)]
    for name in FUNCTIONS[:3]:
        function, known = getattr(library, name, None), getattr(math, name)
        if function is None:
            return None
        function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double,)
        if any(function(x) != known(x) for x in values):
            return None
    return library


def has_function(name: str) -> bool:
    """Whether programs can call one of `FUNCTIONS`."""
    return bool(_list_addresses()[FUNCTIONS.index(name)])


def are_apart(*generators: Any) -> bool:
    """Whether no two of NumPy's generators draw from one bit generator."""
    bits = [id(one) for one in map(_bits_of, generators) if one is not None]
    return len(set(bits)) == len(bits)
