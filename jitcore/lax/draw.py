"""`draw`: random numbers from a generator of NumPy or of Python, as it would draw them.

In: the words of a generator (`process.streams`), parameters of a distribution. Out: the words behind the
draws, and the numbers. A draw depends on the words of the one before, so that draws keep their order, none is
made twice and none is left out, as with any array that is written.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jitcore import dtypes
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.symbolic import DimExpr
from jitcore.lax.control_flow.callback import call_for_each
from jitcore.lax.define import define
from jitcore.process.streams import FUNCTIONS, GAUSS, LAYOUTS, STATE

__all__ = ["SIGNATURES", "Signature", "draw"]


class Signature(NamedTuple):
    """dtype of the result, dtypes of the parameters. with_room: whether it is given room to work in."""

    result: np.dtype
    parameters: tuple[np.dtype, ...] = ()
    with_room: bool = False


_F, _I, _U = dtypes.float64, dtypes.int64, dtypes.uint64


def _list_signatures() -> dict[str, Signature]:
    found = {"next_double": Signature(_F), "next_uint64": Signature(_U),
             "next_uint32": Signature(dtypes.uint32)}
    counts = {0: "standard_normal standard_exponential standard_cauchy",
              1: "standard_gamma chisquare pareto weibull power rayleigh standard_t",
              2: "beta laplace gumbel logistic lognormal"}
    found |= {f"random_{name}": Signature(_F, (_F,) * count)
              for count, names in counts.items() for name in names.split()}
    return found | {
        "random_poisson": Signature(_I, (_F,)), "random_geometric": Signature(_I, (_F,)),
        "random_binomial": Signature(_I, (_F, _I), with_room=True),
        "random_interval": Signature(_U, (_U,)),
        "random_bounded_uint64": Signature(_U, (_U, _U, _U, _U)),
        "legacy_gauss": Signature(_F), "legacy_exponential": Signature(_F), "python_gauss": Signature(_F),
        "python_normal": Signature(_F), "python_bits": Signature(_I, (_I,)),
        "python_below": Signature(_I, (_I,))}


#: By name: C functions of NumPy's, and those of `OWN`.
SIGNATURES = _list_signatures()

#: Numbers that one binomial draw computes for the next.
ROOM_WORDS = 24


# -- one draw, by C's functions -----------------------------------------------------------------------------
class _Stream:
    """Words in memory. source: name of the bit generator."""

    def __init__(self, words: np.ndarray, source: str):
        self.words, here = words, words.ctypes.data
        places = LAYOUTS[source].places
        words[0] = self.state = here + 8 * STATE
        words[STATE : STATE + len(places) - 2] = [here + 8 * place for place in places[1:-1]]
        self.bitgen = here

    def call(self, name: str, *values):
        signature = SIGNATURES[name]
        if name.startswith("next_"):
            place = ("next_uint64", "next_uint32", "next_double").index(name) + 1
            address, first = self.words[place], self.state
        else:
            address, first = self.words[5 + FUNCTIONS.index(name)], self.bitgen
        kinds = [np.ctypeslib.as_ctypes_type(dtype) for dtype in signature.parameters]
        if signature.with_room:
            kinds.append(ctypes.c_void_p)
            values = (*values, (ctypes.c_uint64 * ROOM_WORDS)())
        result = np.ctypeslib.as_ctypes_type(signature.result)
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *kinds)(int(address))(first, *values)

    @property
    def second(self) -> np.ndarray:
        return self.words[GAUSS + 1 : GAUSS + 2].view(np.float64)

    def take_pair(self, make: Callable[[], tuple[float, float]]) -> float:
        """The second number of the last pair, or the first of a new one."""
        if self.words[GAUSS]:
            self.words[GAUSS], found = 0, self.second[0].item()
            self.second[0] = 0.0
            return found
        found, self.second[0] = make()
        self.words[GAUSS] = 1
        return found


def _legacy_gauss(stream: _Stream) -> float:
    def make():
        square = 0.0
        while square >= 1.0 or square == 0.0:
            x, y = 2.0 * stream.call("next_double") - 1.0, 2.0 * stream.call("next_double") - 1.0
            square = x * x + y * y
        factor = math.sqrt(-2.0 * math.log(square) / square)
        return factor * y, factor * x

    return stream.take_pair(make)


def _python_gauss(stream: _Stream) -> float:
    def make():
        angle = stream.call("next_double") * math.tau
        radius = math.sqrt(-2.0 * math.log(1.0 - stream.call("next_double")))
        return math.cos(angle) * radius, math.sin(angle) * radius

    return stream.take_pair(make)


#: 4 * exp(-0.5) / sqrt(2), as Python's `random` has it.
NORMAL_FACTOR = 4 * math.exp(-0.5) / math.sqrt(2.0)


def _python_normal(stream: _Stream) -> float:
    while True:
        first, second = stream.call("next_double"), 1.0 - stream.call("next_double")
        found = NORMAL_FACTOR * (first - 0.5) / second
        if found * found / 4.0 <= -math.log(second):
            return found


def _python_bits(stream: _Stream, count: int) -> int:
    low = stream.call("next_uint32")
    if count <= 32:
        return low >> (32 - count)
    return stream.call("next_uint32") >> (64 - count) << 32 | low


def _python_below(stream: _Stream, limit: int) -> int:
    while True:
        found = _python_bits(stream, int(limit).bit_length())
        if found < limit:
            return found


#: What jitcore draws itself: the two generators' own ways, which no library exports.
OWN = {"legacy_gauss": _legacy_gauss, "python_gauss": _python_gauss, "python_normal": _python_normal,
       "python_bits": _python_bits, "python_below": _python_below,
       "legacy_exponential": lambda stream: -math.log(1.0 - stream.call("next_double"))}


# -- the primitive ------------------------------------------------------------------------------------------
def _run(words: np.ndarray, *values: np.ndarray, function: str, source: str, shape: tuple) -> list:
    words = np.array(words)
    stream, signature = _Stream(words, source), SIGNATURES[function]
    columns = [np.broadcast_to(value, shape).ravel().tolist() for value in values]
    found = np.empty(math.prod(shape), signature.result)
    for number in range(found.size):
        row = [column[number] for column in columns]
        found[number] = OWN[function](stream, *row) if function in OWN else stream.call(function, *row)
    return [words, found.reshape(shape)]


def _find_avals(words: ShapedArray, *values: ShapedArray, function: str, source: str, shape: tuple
                ) -> list[ShapedArray]:
    signature = SIGNATURES[function]
    if words.dtype != dtypes.uint64 or words.shape != (LAYOUTS[source].places[-1],):
        raise TypeError(f"draw takes the words of a {source}, got {words.long()}")
    if [value.dtype for value in values] != list(signature.parameters):
        raise TypeError(f"draw got parameters of other types than {function} takes")
    if any(value.shape not in ((), shape) for value in values):
        raise TypeError(f"draw takes parameters that are scalars or of shape {shape}")
    return [ShapedArray(words.shape, words.dtype), ShapedArray(shape, signature.result)]


def _jvp(primitive, primals, tangents, **params):
    raise NotImplementedError("draws from a generator of NumPy or Python have no derivative")


@define("draw", impl=_run, aval=_find_avals, batch=call_for_each, jvp=_jvp, multiple_results=True,
        updates_operand=True, stored_operands=(0,), stores_result=True)
def draw(words, *values, function: str, source: str, shape: tuple[int | DimExpr, ...] = ()):
    """Draws numbers of one distribution, in C order of their array.

    Args:
        words: of the generator. values: parameters, scalars or of `shape`. function: one of `SIGNATURES`.
        source: name of the bit generator, see `process.streams.LAYOUTS`.
    Returns: [words, numbers]."""
    return draw.primitive.bind(words, *values, function=function, source=source, shape=tuple(shape))
