"""Mathematical constants as sums of floats of one format: in, digits; out, `Constant.split`. Stage:
rendering.
"""
import math
import struct
from fractions import Fraction


def round_single(value):
    """A float rounded to float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Constant:
    """A real number given exactly: by its digits, a quotient or a float."""

    def __init__(self, digits):
        self.exact = Fraction(digits)
        self.value = float(self.exact)

    def split(self, bits, parts):
        """The number as a tuple of `parts` floats of the format, each rounding what the former leave."""
        rest, found = self.exact, []
        for _ in range(parts):
            part = float(rest)
            found.append(round_single(part) if bits == 32 else part)
            rest -= Fraction(found[-1])
        return tuple(found)

    def split_below(self, bits):
        """A positive number as (high, low), both positive: a product with an infinity is that infinity."""
        high = self.split(bits, 1)[0]
        if Fraction(high) > self.exact:
            high = math.nextafter(high, 0.0) if bits == 64 else high - 2.0 ** (math.frexp(high)[1] - 24)
        return high, Constant(self.exact - Fraction(high)).split(bits, 1)[0]


ONE = Constant(1)
LN2 = Constant("0.69314718055994530941723212145817656807550013436025525412068000949339")
LOG2_E = Constant("1.4426950408889634073599246810018921374266459541529859341354494069311")
LOG10_E = Constant("0.43429448190325182765112891891660508229439700580366656611445378316586")
LOG10_2 = Constant("0.30102999566398119521373889472449302676818988146210854131042746112711")
PI = Constant("3.1415926535897932384626433832795028841971693993751058209749445923078")
HALF_PI = Constant(PI.exact / 2)
TWO_OVER_PI = Constant("0.63661977236758134307553505349005744813783858296182579499066937623559")
