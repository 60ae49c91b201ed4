"""Functions in kernels of Numba: which module has them, and device functions for what none has.

In: the name of an operation, or of a helper of `backends.python`. Out: a name, or source. Nothing here needs
more than Numba's simulator has: no shuffles, no functions of libdevice.
"""

from __future__ import annotations

from jitcore.backends.python.helpers import HELPERS
from jitcore.backends.python.statements import Statements

_COMMON = "exp log log10 sin cos tan sinh cosh tanh sqrt asin acos atan asinh acosh atanh".split()
_REAL = [*_COMMON, *"exp2 expm1 log2 log1p atan2 erf erfc lgamma copysign".split()]
_EXTREMES = {"max": "np.maximum", "min": "np.minimum"}
#: Functions of real and of complex numbers, by operation. Results are as wide as operands are.
FUNCTIONS = {
    "f": {op: f"math.{op}" for op in _REAL} | _EXTREMES | {"is_finite": "math.isfinite", "rem": "math.fmod"},
    "c": {op: f"cmath.{op}" for op in _COMMON} | _EXTREMES | {"conj": "np.conj"},
}

#: Helpers that kernels may call. Those that are not here call Python.
DEVICE_HELPERS = {name: text for name, text in HELPERS.items() if "objmode" not in text}


def _helper(source: str) -> None:
    source = source.strip("\n")
    DEVICE_HELPERS[source[len("def ") : source.index("(")]] = source


for _name, _function in {"floor": "math.floor", "ceil": "math.ceil", "trunc": "int"}.items():
    _helper(f"""
def {_name}(x):  # not every float is a number of type int
    return math.copysign({_function}(x), x) if abs(x) < 9007199254740992.0 else x
""")
_helper("""
def round_half_even(x):
    return math.copysign(round(x), x) if abs(x) < 9007199254740992.0 else x
""")
_helper("""
def round_half_away(x):
    if not abs(x) < 9007199254740992.0:
        return x
    size = math.floor(abs(x))
    return math.copysign(size + (abs(x) - size >= 0.5), x)
""")
_helper("""
def sign(x):
    return x if x == 0 or x != x else math.copysign(1.0, x)
""")
_helper("""
def signbit(x):
    return math.copysign(1.0, x) < 0
""")
_helper("""
def cbrt(x):
    if x == 0 or not abs(x) < np.inf:
        return x
    size = np.float64(abs(x))
    root = size ** (1.0 / 3.0)
    return math.copysign(root - (root - size / (root * root)) / 3.0, x)
""")
_helper("""
def logaddexp(x, y):
    if x == y:  # infinities too
        return x + 0.6931471805599453
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))
""")
_helper("""
def special_erf_inv(y):
    if not abs(y) < 1:
        return y * np.inf if abs(y) == 1 else np.nan
    size = np.float64(abs(y))
    log = math.log1p(-size * size)
    middle = 4.33 + log / 2
    x = math.sqrt(math.sqrt(middle * middle - log / 0.147) - middle)  # to two digits
    for _ in range(3):  # Halley's method
        error = math.erf(x) - size if size < 0.5 else (1 - size) - math.erfc(x)
        step = error * 0.8862269254527580 * math.exp(x * x)
        x -= step / (1 + x * step)
    return math.copysign(x, y)
""")

#: What a team of threads finds together. {name}, {combined}: of the operation. Teams are powers of two.
REDUCE = """
def {name}(value, shared, t):  # of all threads of a team
    shared[t] = value
    cuda.syncthreads()
    step = len(shared) // 2
    while step:
        if t < step:
            shared[t] = {combined}
        cuda.syncthreads()
        step //= 2
    value = shared[0]
    cuda.syncthreads()
    return value
"""
REDUCE_PLACES = """
def {name}(best, place, shared, places, t):  # the first place of the extreme of a team
    shared[t], places[t] = best, place
    cuda.syncthreads()
    step = len(shared) // 2
    while step:
        if t < step:
            best, other = shared[t], shared[t + step]
            is_better = (other {sign} best or other != other) and best == best
            is_equal = other == best or other != other and best != best
            if is_better or is_equal and places[t + step] < places[t]:
                shared[t], places[t] = other, places[t + step]
        cuda.syncthreads()
        step //= 2
    place = places[0]
    cuda.syncthreads()
    return place
"""
SCAN = """
def {name}(value, shared, t):  # of the threads up to this one; the last place gets that of all
    shared[t] = value
    cuda.syncthreads()
    step = 1
    while step < len(shared):
        if t >= step:
            value = {combined}
        cuda.syncthreads()
        shared[t] = value
        cuda.syncthreads()
        step *= 2
    return value
"""


class DeviceText(Statements):
    """Statements as kernels run them."""

    FUNCTIONS, HELPERS = FUNCTIONS, DEVICE_HELPERS

    def _use_helper(self, name: str) -> str:
        if name not in self.HELPERS:
            what = name.removeprefix("special_").replace("complex_", "complex ")
            raise NotImplementedError(
                f"this program cannot be written for numba.cuda, whose kernels have no function {what!r}")
        return super()._use_helper(name)
