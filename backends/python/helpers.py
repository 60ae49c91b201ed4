"""Functions that the written ones call where Python has no operator: integers as processors have them, words
of 16-bit floats, SciPy's functions.

In: a name. Out: source, which Numba compiles too.
"""

from __future__ import annotations

from jitcore.backends.python.operations import SPECIAL

HELPERS: dict[str, str] = {}


def _helper(source: str) -> None:
    source = source.strip("\n")
    HELPERS[source[len("def ") : source.index("(")]] = source


_helper("""
def divide(x, y):  # towards zero; by zero it has all bits
    if y == 0:
        return ~(x ^ x)
    if y == -1:  # the least number wraps around
        return (x ^ x) - x
    quotient = x // y
    return quotient + 1 if quotient * y != x and (x < 0) != (y < 0) else quotient
""")
_helper("""
def remainder(x, y):  # with the sign of x; by zero it is x
    if y == 0:
        return x
    if y == -1:
        return x ^ x
    rest = x % y
    return rest - y if rest != 0 and (x < 0) != (y < 0) else rest
""")
_helper("""
def divide_unsigned(x, y):
    return ~(x ^ x) if y == 0 else x // y
""")
_helper("""
def remainder_unsigned(x, y):
    return x if y == 0 else x % y
""")
_helper("""
def saturate(x, low, high):  # a float as the nearest whole number in [low, high], NaN as 0
    if x != x:
        return np.int64(0)
    if x <= low:
        return np.int64(low)
    return np.int64(high) if x >= high else np.int64(x)
""")
_helper("""
def saturate_uint64(x):
    if x >= 18446744073709551616.0:
        return np.uint64(18446744073709551615)
    return np.uint64(x) if x > 0 else np.uint64(0)
""")
_helper("""
def cast(x, low):  # a float as a whole number as x86 converts it: low for what does not fit
    return np.int64(x) if abs(x) < -np.float64(low) else np.int64(low)
""")
_helper("""
def shift_left(x, y, width):
    return x << y if 0 <= y < width else x ^ x
""")
_helper("""
def shift_right(x, y, width):
    return x >> y if 0 <= y < width else x ^ x
""")
_helper("""
def shift_right_signed(x, y, width):
    return x >> (y if 0 <= y < width else width - 1)
""")
_helper("""
def count_ones(x, width):
    total = 0
    for bit in range(width):
        total += (np.int64(x) >> bit) & 1
    return total
""")
_helper("""
def count_leading_zeros(x, width):
    for bit in range(width):
        if (np.int64(x) >> (width - 1 - bit)) & 1:
            return bit
    return width
""")
_helper("""
def round_half_away(x):
    size = np.floor(abs(x))
    return np.copysign(size + (abs(x) - size >= 0.5), x)
""")
_helper("""
def from_bfloat16(word):
    return np.uint32(np.uint32(word) << np.uint32(16)).view(np.float32)
""")
_helper("""
def to_bfloat16(x):  # to nearest, halves to even
    if x != x:
        return np.uint16(0x7FC0)
    bits = np.int64(np.float32(x).view(np.uint32))
    return np.uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
""")
_helper("""
def from_float16(word):
    word = np.int64(word)
    sign, exponent, fraction = np.float32(-1 if word >> 15 else 1), (word >> 10) & 31, word & 1023
    if exponent == 31:
        return sign * np.float32(np.inf) if fraction == 0 else np.float32(np.nan)
    if exponent == 0:
        return sign * np.float32(fraction * 2.0**-24)
    return sign * np.float32((1024 + fraction) * 2.0 ** (exponent - 25.0))
""")
_helper("""
def to_float16(x):  # to nearest, halves to even
    bits = np.int64(np.float32(x).view(np.uint32))
    sign, size = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return np.uint16(0x7E00)
    if size >= 0x477FF000:
        return np.uint16(sign | 0x7C00)
    if size < 0x38800000:  # a multiple of 2**-24
        return np.uint16(sign | np.int64(round(np.float64(abs(x)) * 2.0**24)))
    return np.uint16(sign | ((size - 0x38000000 + 0xFFF + ((size >> 13) & 1)) >> 13))
""")
for _name, _function in SPECIAL.items():  # but polygamma, below
    _args = "x, q" if _name == "zeta" else "x"
    _helper(f"""
def special_{_name}({_args}):  # Numba has no code for it, and calls Python
    with objmode(found="float64"):
        found = float(special.{_function}({_args}))
    return found
""")
_helper("""
def special_polygamma(m, x):  # as SciPy's, which warns of orders that there are not
    if m < 0 or m != np.floor(m):
        return np.nan
    with objmode(found="float64"):
        size = 1.0 if m == 0 else float(special.gamma(m + 1)) * float(special.zeta(m + 1, x))
        found = float(special.digamma(x)) if m == 0 else size if m % 2 else -size
    return found
""")
