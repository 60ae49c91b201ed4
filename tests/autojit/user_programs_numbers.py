# ruff: noqa: E701, E702, E731, E741
"""Programs of numbers: ints of any size, bits, remainders, rounding, hashes.

Each is run plainly and compiled, on the inputs that stand with it (`test_user_programs`).
"""

import math

import numpy as np

from tests.autojit.programs import I, R, program

counter = 0

@program(lambda: (3, 0), lambda: (3, 2), lambda: (-7, 2), lambda: (7, -2), lambda: (2**62, 3), lambda: (0, 5))
def int_ops(a, b):
    try:
        return a // b, a % b, divmod(a, b), a / b, a ** abs(b), -a // b, a & b, a | b, a ^ b, ~a, a << abs(b), a >> abs(b)
    except ZeroDivisionError as e:
        return "div", str(e)

@program(lambda: (np.int64(7), np.int64(-2)), lambda: (np.int64(-7), np.int64(2)), lambda: (np.int64(2**62), np.int64(4)), lambda: (np.int64(5), np.int64(0)), lambda: (np.int8(100), np.int8(100)), lambda: (np.uint8(7), np.uint8(250)))
def np_int_ops(a, b):
    return a // b, a % b, np.divmod(a, b), a / b, a + b, a * b, a - b, -a, a & b, ~a, a > b, np.left_shift(a, b), abs(a)

@program(lambda: (0.1, 3.7), lambda: (-5.5, 2.0), lambda: (5.5, -2.0), lambda: (float("inf"), 2.0), lambda: (1.0, 0.0), lambda: (-0.0, 5.0), lambda: (float("nan"), 1.0))
def float_ops(a, b):
    return a // b, a % b, divmod(a, b), a ** 2, abs(a), round(a), int(a), math.floor(a), math.ceil(b), a == b, a is b, bool(a), min(a, b), max(a, b), -a

@program(lambda: (-8.0, 1 / 3), lambda: (2.0, .5), lambda: (-2.0, 3.0), lambda: (0.0, -1.0), lambda: (10.0, 400.0))
def pow_float(a, b):
    return a ** b

@program(lambda: (2.5,), lambda: (3.5,), lambda: (-0.5,), lambda: (1e20,), lambda: (0.123456,))
def rounding(a):
    return round(a), round(a, 2), int(a), np.round(a, 1), math.trunc(a), float.is_integer(a), a.is_integer(), round(a * 100) / 100

@program(lambda: (np.array([2.5, 3.5, -0.5, 1e20, .123456, np.nan, np.inf, -0.0]),), lambda: (R(5) * 10,))
def rounding_arrays(a):
    return np.round(a), np.round(a, 2), np.floor(a), np.trunc(a), np.rint(a), np.sign(a), np.copysign(1, a), np.signbit(a), a // 1, a % 1, np.fmod(a, 2), np.remainder(a, -2), np.modf(a), np.frexp(a), np.spacing(a), np.nextafter(a, 1)

@program(lambda: (10,), lambda: (20,), lambda: (25,), lambda: (30,), lambda: (100,))
def big_factorial(n):
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r

@program(lambda: (10,), lambda: (50,), lambda: (90,), lambda: (95,), lambda: (300,))
def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a

@program(lambda: (27,), lambda: (97,), lambda: (1,), lambda: (871,), lambda: (6171,))
def collatz(n):
    steps, peak = 0, n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        peak = max(peak, n)
        steps += 1
    return steps, peak

@program(lambda: (48, 36), lambda: (17, 5), lambda: (0, 5), lambda: (270, 192), lambda: (1 << 40, 12))
def gcd_lcm(a, b):
    x, y = a, b
    while y:
        x, y = y, x % y
    return x, a * b // x, math.gcd(a, b)

@program(lambda: (50,), lambda: (30,))
def sieve(n):
    s = np.ones(n + 1, dtype=bool)
    s[:2] = False
    for i in range(2, int(n ** .5) + 1):
        if s[i]:
            s[i * i::i] = False
    return np.nonzero(s)[0]

@program(lambda: (50,), lambda: (100,), lambda: (30,), lambda: (97,), lambda: (91,))
def is_prime(n):
    if n < 2:
        return False
    for i in range(2, math.isqrt(n) + 1):
        if n % i == 0:
            return False
    else:
        return True

@program(lambda: (3, 1000, 7), lambda: (2, 62, 10**9 + 7), lambda: (5, 117, 19), lambda: (123456789, 987654321, 998244353))
def modpow(b, e, m):
    r = 1
    b %= m
    while e > 0:
        if e & 1:
            r = r * b % m
        b = b * b % m
        e >>= 1
    return r

@program(lambda: (12345,), lambda: (1,), lambda: (2**31,), lambda: (99,))
def lcg_stream(seed):
    out = []
    s = seed
    for _ in range(6):
        s = (1103515245 * s + 12345) & 0x7FFFFFFF
        out.append(s / 2 ** 31)
    return out

@program(lambda: (np.uint64(12345),), lambda: (np.uint64(1),), lambda: (np.uint64(2**63),))
def xorshift(s):
    out = np.empty(5, np.uint64)
    for i in range(5):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        out[i] = s
    return out

@program(lambda: (np.uint64(7),), lambda: (np.uint64(9),), lambda: (np.uint64(5),), lambda: (np.uint64(30),))
def unsigned_index(q):
    x, s = np.arange(6.0), 0.0
    for i in range(3):
        s += x[q - np.uint64(6)]
        x[int(q) - 7:] += 1
    return s, x

@program(lambda: (np.frombuffer(b"hello world", np.uint8),), lambda: (np.frombuffer(b"another one", np.uint8),), lambda: (np.frombuffer(b"", np.uint8),))
def fnv_crc(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = ((h ^ int(b)) * 0x100000001b3) & 0xFFFFFFFFFFFFFFFF
    crc = 0xFFFFFFFF
    for b in data:
        crc ^= int(b)
        for _ in range(8):
            crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
    return h, crc ^ 0xFFFFFFFF

@program(lambda: (np.frombuffer(b"hello world", np.uint8),), lambda: (np.frombuffer(b"another one", np.uint8),))
def adler(data):
    a, b = 1, 0
    for byte in data:
        a = (a + byte) % 65521
        b = (b + a) % 65521
    return (b << 16) | a, type(a).__name__

@program(lambda: (I(-1000, 1000, 8),), lambda: (I(-1000, 1000, 8, seed=4),), lambda: (I(0, 256, 5).astype(np.uint8),))
def popcounts(x):
    c = np.zeros_like(x)
    y = x.copy()
    for _ in range(8):
        c += y & 1
        y >>= 1
    return c, np.bitwise_count(x), np.unpackbits(x.view(np.uint8))[:16], np.bitwise_xor.reduce(x)

@program(lambda: (True, 2), lambda: (False, 2), lambda: (True, 2.0))
def bools(a, b):
    return a + b, a & True, a and b, a or b, not a, a == 1, -a, a * 2.5, b > 1, (b > 1) + 1, sum([a, a, b > 1]), True if b else False, int(a), a ^ a

@program(lambda: (1.5, 2), lambda: (2.5, 3), lambda: (1.5, 4))
def complex_py(a, k):
    z = complex(a, k)
    return z, z.conjugate(), abs(z), z ** 2, z.real, (z * 1j).imag, z == z, z / (1 + 1j), 2 ** z, -z

@program(lambda: (1.5, np.float64(.2)), lambda: (-3.0, np.float64(-1)), lambda: (1e9, np.float64(1e9 + .5)), lambda: (math.inf, np.float64(math.inf)), lambda: (math.nan, np.float64(1)), lambda: (math.inf, np.float64(1)), lambda: (0., np.float64(0)), lambda: (171., np.float64(1)))
def math_special(x, y):
    return math.erf(x), math.erfc(y), math.isclose(x, y), math.isclose(x, 1.5), math.isclose(x, y, rel_tol=.5), math.isclose(x, y, abs_tol=3.0), np.isscalar(x), np.isscalar(y), np.isscalar(np.ones(1) * x), (1 + 2j) * y, (1 + 2j) + y, (1 + 2j) - y, y * (1 + 2j), (1j * y).real

@program(lambda: (1.5,), lambda: (3.0,), lambda: (.5,), lambda: (-1.0,), lambda: (1e306,), lambda: (math.inf,))
def math_lgamma(x):
    return math.lgamma(x)
def cdf(x): return 0.5 * (1 + math.erf(x / math.sqrt(2)))

@program(lambda: (100., 110., .5, .02, .3), lambda: (100., 90., .5, .02, .3), lambda: (100., 90., .5, .02, .0), lambda: (100, 90, 1, .02, .2))
def black_scholes_math(s, k, t, r, v):
    d1 = (math.log(s / k) + (r + v * v / 2) * t) / (v * math.sqrt(t))
    d2 = d1 - v * math.sqrt(t)
    return s * cdf(d1) - k * math.exp(-r * t) * cdf(d2)

@program(lambda: (np.float64(.2), 1 + 2j), lambda: (np.float64(-1), 2j), lambda: (np.float64(3), 1+0j))
def complex_left(y, z):
    return z * y, z + y, z - y, z / y, y * z, z ** y, (z * y).real, np.ones(2) * z
