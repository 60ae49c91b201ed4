"""The emission layer of the mathematical functions: Python operators on lanes become LLVM instructions.

In: an `ir.IRBuilder` and values of type float, double or a vector of them. Out: LLVM instructions in the
builder's block, and internal functions in its module. Stage: rendering. A formula is written once, with
`Lanes` objects, and serves scalars and vectors of every width alike, so a scalar tail gives the same bits
as the vector body.

Rare arguments are the business of a *uniform branch* (`Emitter.patch`): the fast path is computed for all
lanes, and only when some lane is hard is a cold function called. The fast path therefore holds no
divergent code.

Constants are sums of floats of one format: in, digits; out, `Constant.split`.
"""


import functools
import importlib
import math
import struct

import llvmlite.ir as ir

from jitcore.process.lazy import LazyModule

fractions = LazyModule("fractions")  # which takes 5 ms to load


def round_single(value):
    """A float rounded to float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def load_formula(name):
    """A formula by its module and name. The module is loaded when it is asked for: programs have few."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"jitcore.backends.llvm.mathlib.{module}"), function)


class Constant:
    """A real number given exactly: by its digits, a quotient or a float."""

    def __init__(self, digits):
        self.digits = digits

    @functools.cached_property
    def exact(self):
        return fractions.Fraction(self.digits)

    @functools.cached_property
    def value(self):
        return float(self.exact)

    def split(self, bits, parts):
        """The number as a tuple of `parts` floats of the format, each rounding what the former leave."""
        rest, found = self.exact, []
        for _ in range(parts):
            part = float(rest)
            found.append(round_single(part) if bits == 32 else part)
            rest -= fractions.Fraction(found[-1])
        return tuple(found)

    def split_below(self, bits):
        """A positive number as (high, low), both positive: a product with an infinity is that infinity."""
        high = self.split(bits, 1)[0]
        if fractions.Fraction(high) > self.exact:
            high = math.nextafter(high, 0.0) if bits == 64 else high - 2.0 ** (math.frexp(high)[1] - 24)
        return high, Constant(self.exact - fractions.Fraction(high)).split(bits, 1)[0]


ONE = Constant(1)
LN2 = Constant("0.69314718055994530941723212145817656807550013436025525412068000949339")
LOG2_E = Constant("1.4426950408889634073599246810018921374266459541529859341354494069311")
LOG10_E = Constant("0.43429448190325182765112891891660508229439700580366656611445378316586")
LOG10_2 = Constant("0.30102999566398119521373889472449302676818988146210854131042746112711")
PI = Constant("3.1415926535897932384626433832795028841971693993751058209749445923078")
HALF_PI = Constant("1.5707963267948966192313216916397514420985846996875529104874722961539")
TWO_OVER_PI = Constant("0.63661977236758134307553505349005744813783858296182579499066937623559")


I1 = ir.IntType(1)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
COLD_WEIGHTS = (1, 10000)


def wrap_type(element, count):
    """The type of `count` lanes of `element`; count 0 means a scalar."""
    return ir.VectorType(element, count) if count else element


def name_type(value_type):
    """LLVM's mangled name of a scalar or vector type: f32, f64, i32, v16f32."""
    if isinstance(value_type, ir.VectorType):
        return f"v{value_type.count}{name_type(value_type.element)}"
    return value_type.intrinsic_name if hasattr(value_type, "intrinsic_name") else f"i{value_type.width}"


class Splat(ir.FormattedConstant):
    """A vector constant with one number in all lanes, printed once however many lanes there are."""

    def __init__(self, vector_type, value):
        element = vector_type.element
        self.type, self.constant = vector_type, f"splat ({element} {element.format_constant(value)})"


@functools.lru_cache(maxsize=4096)
def make_numbers(bits, values):
    """The integers of a tuple as a vector constant. They are few, and stand in many places: a constant keeps
    its text."""
    kind = ir.IntType(bits)
    return ir.Constant(ir.VectorType(kind, len(values)), list(map(kind, values)))


def make_constant(value_type, value):
    """A number as a constant of a scalar type, or repeated over all lanes of a vector type."""
    if not isinstance(value_type, ir.VectorType):
        return ir.Constant(value_type, value)
    return Splat(value_type, value)


def _operator(float_name, int_name, swap=False):
    return lambda self, other: self.binary(float_name, int_name, other, swap)


def _comparison(operator, ordered=True):
    return lambda self, other: self.compare(operator, other, ordered)


class Lanes:
    """An LLVM value, scalar or vector, with Python's operators; plain numbers become constants of its type.

    Floats: + - * / and ordered comparisons (`!=` is true for NaN). Integers: + - * & | ^ << and the
    arithmetic >>. Masks (i1): & | ^ and ~."""
    __slots__ = ("emitter", "value")

    def __init__(self, emitter, value):
        self.emitter, self.value = emitter, value

    @property
    def is_float(self):
        kind = self.value.type
        kind = kind.element if isinstance(kind, ir.VectorType) else kind
        return not isinstance(kind, ir.IntType)

    def coerce(self, other):
        return other.value if isinstance(other, Lanes) else make_constant(self.value.type, other)

    def binary(self, float_name, int_name, other, swap=False):
        left, right = self.value, self.coerce(other)
        if swap:
            left, right = right, left
        emit = getattr(self.emitter.builder, float_name if self.is_float else int_name)
        return Lanes(self.emitter, emit(left, right))

    def compare(self, operator, other, ordered=True):
        builder, right = self.emitter.builder, self.coerce(other)
        if not self.is_float:
            return Lanes(self.emitter, builder.icmp_signed(operator, self.value, right))
        emit = builder.fcmp_ordered if ordered else builder.fcmp_unordered
        return Lanes(self.emitter, emit(operator, self.value, right))

    __add__ = __radd__ = _operator("fadd", "add")
    __sub__, __rsub__ = _operator("fsub", "sub"), _operator("fsub", "sub", swap=True)
    __mul__ = __rmul__ = _operator("fmul", "mul")
    __truediv__, __rtruediv__ = _operator("fdiv", "sdiv"), _operator("fdiv", "sdiv", swap=True)
    __and__, __or__, __xor__ = (_operator(None, name) for name in ("and_", "or_", "xor"))
    __lshift__, __rshift__ = _operator(None, "shl"), _operator(None, "ashr")

    def __neg__(self):
        builder = self.emitter.builder
        return Lanes(self.emitter, builder.fneg(self.value) if self.is_float else builder.neg(self.value))

    def __invert__(self):
        return Lanes(self.emitter, self.emitter.builder.not_(self.value))

    __lt__, __le__, __gt__, __ge__, __eq__ = map(_comparison, ("<", "<=", ">", ">=", "=="))
    __ne__ = _comparison("!=", ordered=False)
    __hash__ = None


class Emitter:
    """Emits formulas for one floating type and one number of lanes (0: scalar) at the place of one
    IRBuilder.

    Facts of the format that formulas use: `bits` (32, 64), `mantissa` (23, 52 stored bits), `bias` (127,
    1023), `smallest_normal`, `largest`, `inf`, `nan`, and `magic`, 1.5 * 2**mantissa: adding it rounds to
    an integer that then stands in the low bits."""

    def __init__(self, builder, value_type):
        self.builder, self.type = builder, value_type
        vector = isinstance(value_type, ir.VectorType)
        self.count = value_type.count if vector else 0
        self.element = value_type.element if vector else value_type
        self.bits = 32 if isinstance(self.element, ir.FloatType) else 64
        self.int_element = I32 if self.bits == 32 else I64
        self.int_type = wrap_type(self.int_element, self.count)
        self.mantissa, self.bias = (23, 127) if self.bits == 32 else (52, 1023)
        self.smallest_normal = 2.0 ** (1 - self.bias)
        self.largest = (2.0 - 2.0 ** -self.mantissa) * 2.0 ** self.bias
        self.magic = 1.5 * 2.0 ** self.mantissa
        self.sign_bit = -1 << (self.bits - 1)
        self.inf, self.nan = float("inf"), float("nan")

    @property
    def has_avx512(self):
        """Whether formulas may use `avx512`, whatever the number of lanes."""
        return "avx512f" in self.builder.module.features

    def pick(self, single, double):
        """The value that belongs to this format."""
        return single if self.bits == 32 else double

    def lanes(self, value):
        return Lanes(self, value)

    def const(self, value):
        return Lanes(self, make_constant(self.type, value))

    def int_const(self, value):
        return Lanes(self, make_constant(self.int_type, value))

    def intrinsic(self, name, *args):
        """Call llvm.<name>.<type>; the type is that of the first argument, the result has it too."""
        kind = args[0].value.type
        symbol, module = f"llvm.{name}.{name_type(kind)}", self.builder.module
        function = module.globals.get(symbol)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [arg.value.type for arg in args]), symbol)
        return Lanes(self, self.builder.call(function, [arg.value for arg in args]))

    def as_lanes(self, value):
        return value if isinstance(value, Lanes) else self.const(value)

    def fma(self, a, b, c):
        return self.intrinsic("fma", *map(self.as_lanes, (a, b, c)))

    def abs(self, x):
        return self.intrinsic("fabs", x)

    def sqrt(self, x):
        return self.intrinsic("sqrt", x)

    def copysign(self, magnitude, sign):
        return self.intrinsic("copysign", self.as_lanes(magnitude), self.as_lanes(sign))

    def select(self, mask, a, b):
        return Lanes(self, self.builder.select(mask.value, self.as_lanes(a).value, self.as_lanes(b).value))

    def select_int(self, mask, a, b):
        a, b = (v if isinstance(v, Lanes) else self.int_const(v) for v in (a, b))
        return Lanes(self, self.builder.select(mask.value, a.value, b.value))

    def at_most(self, x, bound):
        """min(x, bound), NaN where x is NaN; one instruction on x86."""
        bound = self.as_lanes(bound)
        return self.select(bound < x, bound, x)

    def at_least(self, x, bound):
        """max(x, bound), NaN where x is NaN."""
        bound = self.as_lanes(bound)
        return self.select(bound > x, bound, x)

    def to_bits(self, x):
        return Lanes(self, self.builder.bitcast(x.value, self.int_type))

    def to_float(self, n):
        """The float whose bits are n."""
        return Lanes(self, self.builder.bitcast(n.value, self.type))

    def convert_int(self, n):
        """The signed integer n as a float."""
        return Lanes(self, self.builder.sitofp(n.value, self.type))

    def truncate_int(self, x):
        """The float x, which must be in range, as a signed integer of the same width."""
        return Lanes(self, self.builder.fptosi(x.value, self.int_type))

    def logical_shift(self, n, count):
        return Lanes(self, self.builder.lshr(n.value, n.coerce(count)))

    def xor_sign(self, x, sign_bits):
        return self.to_float(self.to_bits(x) ^ sign_bits)

    def sign_bits(self, x):
        return self.to_bits(x) & self.sign_bit

    def horner(self, x, coefficients):
        """sum c[i] * x**i, one dependent fma a coefficient."""
        total = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.fma(total, x, c)
        return total

    def poly(self, x, coefficients):
        """sum c[i] * x**i as two interleaved chains in x**2: half the latency of Horner's rule for one
        multiplication."""
        if len(coefficients) < 6:
            return self.horner(x, coefficients)
        square = x * x
        return self.fma(self.horner(square, coefficients[1::2]), x, self.horner(square, coefficients[0::2]))

    def round_magic(self, x, factor):
        """(k, bits) with k = x * factor rounded to an integer, for |k| < 2**(mantissa - 2); bits: its low
        bits are k's."""
        shifted = self.fma(x, factor, self.magic)
        return shifted - self.magic, self.to_bits(shifted)

    def widen(self, x):
        """The float32 lanes x as float64 lanes, with an emitter for those."""
        wide = Emitter(self.builder, wrap_type(ir.DoubleType(), self.count))
        return Lanes(wide, self.builder.fpext(x.value, wide.type))

    def narrow(self, x):
        """Float64 lanes rounded to this emitter's float32."""
        return Lanes(self, self.builder.fptrunc(x.value, self.type))

    def is_nan(self, x):
        return x != x

    def any(self, mask):
        """Whether any lane of the mask is set, as a scalar i1 value."""
        if not self.count:
            return mask.value
        packed = self.builder.bitcast(mask.value, ir.IntType(self.count))
        return self.builder.icmp_unsigned("!=", packed, ir.Constant(packed.type, 0))

    def call(self, build, *args, cold=False):
        """The function that `build` describes, of lanes of this type; see `start_function`."""
        return self.lanes(emit_call(self.builder, build, *[arg.value for arg in args], cold=cold))

    def load(self, table, place):
        """table[place] for each lane: a global array, integers."""
        builder, zero = self.builder, self.int_element(0)

        def load_one(index):
            return builder.load(builder.gep(table, [zero, index], inbounds=True))

        if not self.count:
            return self.lanes(load_one(place.value))
        value = ir.Constant(self.type, ir.Undefined)
        for lane in map(I32, range(self.count)):
            value = builder.insert_element(value, load_one(builder.extract_element(place.value, lane)), lane)
        return self.lanes(value)

    def accumulate(self, count, build_term):
        """The sum of build_term(n) for n = count - 1 ... 0, in a loop; n: a float in all lanes."""
        builder = self.builder
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("terms", "after"))
        builder.branch(loop)
        builder.position_at_end(loop)
        n, total = (Lanes(self, builder.phi(self.type)) for _ in range(2))
        following, sum_ = n - 1.0, total + build_term(n)
        for phi, first, later in ((n, self.const(count - 1.0), following), (total, self.const(0.0), sum_)):
            phi.value.add_incoming(first.value, before)
            phi.value.add_incoming(later.value, builder.block)
        left = following.value if not self.count else builder.extract_element(following.value, I32(0))
        more = builder.fcmp_ordered(">=", left, ir.Constant(self.element, 0.0))
        builder.cbranch(more, loop, after)
        builder.position_at_end(after)
        return sum_

    def patch(self, hard, fast, build, *args):
        """`fast`, with the lanes of `hard` replaced by what a cold function makes of `build(emitter, *args)`.

        The cold function walks the hard lanes and treats each as a scalar, so the formula may hold tables,
        loops and wide integers."""
        builder = self.builder
        values = [arg.value for arg in args]

        def call():
            if not self.count:
                return self.call(build, *args, cold=True)
            function = define_lane_loop(builder.module, build, self.type, len(args))
            packed = builder.bitcast(hard.value, ir.IntType(self.count))
            return self.lanes(builder.call(function, [packed, fast.value, *values]))

        return self.replace(hard, fast, call)

    def replace(self, hard, fast, emit):
        """`fast`, or what `emit()` emits, for all lanes, where some lane is hard."""
        builder = self.builder
        before = builder.block
        cold, after = (builder.append_basic_block(name) for name in ("cold", "after"))
        builder.cbranch(self.any(hard), cold, after).set_weights(COLD_WEIGHTS)
        builder.position_at_end(cold)
        result = emit().value
        builder.branch(after)
        builder.position_at_end(after)
        merged = builder.phi(self.type)
        merged.add_incoming(fast.value, before)
        merged.add_incoming(result, cold)
        return Lanes(self, merged)


def start_function(module, symbol, function_type, cold):
    """A new internal function of the module and the builder at its entry.

    Cold functions are not optimised: that would cost more compile time than all of the fast path."""
    function = ir.Function(module, function_type, symbol)
    function.linkage = "internal"
    for attribute in ("noinline", "optnone", "cold", "nounwind") if cold else ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def define_function(module, build, value_type, arity, cold=False):
    """The internal function of the module that `build(emitter, *args)` describes; defined on first use."""
    symbol = f"jitcore.{build.__name__.removeprefix('build_')}.{name_type(value_type)}"
    function = module.globals.get(symbol)
    if function is None:
        signature = ir.FunctionType(value_type, [value_type] * arity)
        function, builder = start_function(module, symbol, signature, cold)
        emitter = Emitter(builder, value_type)
        result = build(emitter, *map(emitter.lanes, function.args))
        builder.ret(result.value)
    return function


def emit_call(builder, build, *args, cold=False):
    """A call of the function that `build`, a formula or its name, describes, where the builder is. args:
    values of one type: float, double, or a vector of either of at most 64 lanes."""
    build = load_formula(build) if isinstance(build, str) else build
    return builder.call(define_function(builder.module, build, args[0].type, len(args), cold), args)


def through_double(e, build, *args):
    """`build` of float32 lanes, computed by the float64 function."""
    wide = [e.widen(arg) for arg in args]
    return e.narrow(Lanes(wide[0].emitter, emit_call(e.builder, build, *[arg.value for arg in wide])))


def define_lane_loop(module, build, value_type, arity):
    """The cold function (mask, fast, *args) that replaces each lane of the mask by `build` of its scalars."""
    symbol = f"jitcore.{build.__name__.removeprefix('build_')}.lanes.{name_type(value_type)}"
    function = module.globals.get(symbol)
    if function is not None:
        return function
    scalar = define_function(module, build, value_type.element, arity, cold=True)
    packed = ir.IntType(value_type.count)
    signature = ir.FunctionType(value_type, [packed] + [value_type] * (arity + 1))
    function, builder = start_function(module, symbol, signature, cold=True)
    loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
    entry = builder.block
    builder.branch(loop)
    builder.position_at_end(loop)
    left, out = builder.phi(packed), builder.phi(value_type)
    left.add_incoming(function.args[0], entry)
    out.add_incoming(function.args[1], entry)
    lane = builder.cttz(left, ir.Constant(I1, 1))
    value = builder.call(scalar, [builder.extract_element(arg, lane) for arg in function.args[2:]])
    merged = builder.insert_element(out, value, lane)
    rest = builder.and_(left, builder.sub(left, ir.Constant(packed, 1)))
    left.add_incoming(rest, builder.block)
    out.add_incoming(merged, builder.block)
    builder.cbranch(builder.icmp_unsigned("!=", rest, ir.Constant(packed, 0)), loop, done)
    builder.position_at_end(done)
    builder.ret(merged)
    return function
