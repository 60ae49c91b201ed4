"""Draws of random numbers as scalar code: calls of the functions whose addresses are in a generator's words.

In: an equation `draw`. Out: the routine that draws into its results. Each distribution is an internal
function `T name(i8* words, parameters...)` of the module. What draws most, MT19937, is written out up to the
rare round that makes its next 624 words; the generator's own function does that.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from jitcore.backends.cpu.routines.code_writer import CodeWriter
from jitcore.backends.llvm.registers import I32, I64, POINTER, element_type, memory_type
from jitcore.core.jaxpr import Equation
from jitcore.lax.draw import NORMAL_FACTOR, OWN, ROOM_WORDS, SIGNATURES
from jitcore.process.streams import FUNCTIONS, GAUSS, LAYOUTS, STATE

_F64 = ir.DoubleType()
_NEXT = {"next_uint64": (1, I64), "next_uint32": (2, I32), "next_double": (3, _F64)}
#: How many 32-bit words MT19937 makes at once.
_ROUND = LAYOUTS["MT19937"].size // 4 - 1


def find_routine(eqn: Equation, tuning: None) -> DrawRoutine:
    return DrawRoutine(**eqn.params)


class DrawRoutine:
    """Draws numbers of one distribution, one after the other."""

    is_scalar_code = True

    def __init__(self, function: str, source: str, shape: tuple):
        self.function, self.source, self.shape = function, source, shape

    def __str__(self) -> str:
        place = FUNCTIONS.index(self.function) if self.function in FUNCTIONS else 0
        return f"draw {self.function} of {self.source} at {STATE}, {place}"

    def scratch(self) -> tuple:
        return ()

    def emit(self, renderer, call) -> None:
        words, *parameters = call.inputs
        target, results = call.outputs
        e, b = renderer.e, renderer.e.b
        here = renderer.address_of(target)
        if words is not target:
            there = renderer.address_of(words)
            size = 8 * LAYOUTS[self.source].places[-1]
            e.when(b.icmp_unsigned("!=", here, there), lambda: renderer.run("memcpy", here, there, size))
        function = Distributions(renderer.module, self.source).find(self.function)
        places = [b.bitcast(renderer.address_of(buffer), memory_type(buffer.dtype).as_pointer())
                  for buffer in parameters]
        first = b.bitcast(renderer.address_of(results), memory_type(results.dtype).as_pointer())

        def draw(number):
            values = [b.load(b.gep(place, [number]) if buffer.shape else place)
                      for place, buffer in zip(places, parameters)]
            b.store(b.call(function, [here, *values]), b.gep(first, [number]) if self.shape else first)

        if self.shape:
            e.loop(I64(0), renderer.count(self.shape), I64(1), draw)
        else:
            draw(None)


class Distributions:
    """The functions of one bit generator in a module."""

    def __init__(self, module: ir.Module, source: str):
        self.module, self.source = module, source

    def find(self, name: str) -> ir.Function:
        """Emits the function where it is met first."""
        full = f"draw_{name}_{self.source}"
        found = self.module.globals.get(full)
        if found is not None:
            return found
        signature = SIGNATURES[name]
        kinds = [element_type(dtype) for dtype in signature.parameters]
        kind = ir.FunctionType(element_type(signature.result), [POINTER, *kinds])
        function = ir.Function(self.module, kind, full)
        function.linkage = "internal"
        function.attributes.add("nounwind")
        w = CodeWriter(function)
        words, *values = function.args
        if name in OWN:
            result = getattr(self, f"_{name}")(w, words, *values)
        elif name in _NEXT and self.source == "MT19937" and name != "next_uint64":
            function.attributes.add("alwaysinline")
            result = self._next_of_mt(w, words, name)
        elif name in _NEXT:
            result = self._call_next(w.b, words, name)
        else:
            room = [w.slot(I64, ROOM_WORDS)] if signature.with_room else []
            if room:
                w.b.store(ir.Constant(I64, 0), room[0])
            result = self._call(w.b, words, 5 + FUNCTIONS.index(name), element_type(signature.result),
                                self._settle(w.b, words), *values, *room)
        w.b.ret(result)
        return function

    def _word(self, b: ir.IRBuilder, words: ir.Value, place: int, kind: ir.Type = I64) -> ir.Value:
        return b.bitcast(b.gep(words, [I64(8 * place)]), kind.as_pointer())

    def _settle(self, b: ir.IRBuilder, words: ir.Value) -> ir.Value:
        """Sets the pointers that words have to themselves. Returns: the `bitgen_t`."""
        state, *inner, _ = LAYOUTS[self.source].places
        for place, target in ((0, state), *enumerate(inner, state)):
            b.store(b.ptrtoint(b.gep(words, [I64(8 * target)]), I64), self._word(b, words, place))
        return words

    def _call(self, b: ir.IRBuilder, words: ir.Value, place: int, result: ir.Type, *values: ir.Value
              ) -> ir.Value:
        """Calls the function whose address is at a place of the words."""
        kind = ir.FunctionType(result, [value.type for value in values])
        address = b.load(self._word(b, words, place))
        return b.call(b.inttoptr(address, kind.as_pointer()), values)

    def _call_next(self, b: ir.IRBuilder, words: ir.Value, name: str) -> ir.Value:
        self._settle(b, words)
        place, kind = _NEXT[name]
        return self._call(b, words, place, kind, b.gep(words, [I64(8 * STATE)]))

    def _call_math(self, b: ir.IRBuilder, words: ir.Value, name: str, value: ir.Value) -> ir.Value:
        return self._call(b, words, 5 + FUNCTIONS.index(name), _F64, value)

    # -- MT19937 --------------------------------------------------------------------------------------------
    def _next_of_mt(self, w: CodeWriter, words: ir.Value, name: str) -> ir.Value:
        """The next number, by the generator's own function where its words are used up."""
        b, count = w.b, 2 if name == "next_double" else 1
        at = self._word(b, words, STATE + _ROUND // 2, I32)
        position = b.load(at)
        result = w.slot(_NEXT[name][1])
        rare, usual, after = (w.function.append_basic_block(part) for part in ("rare", "usual", "after"))
        is_rare = b.icmp_unsigned(">", position, I32(_ROUND - count))
        b.cbranch(is_rare, rare, usual).set_weights([1, 300])
        b.position_at_end(rare)
        b.store(b.call(self._find_whole(name), [words]), result)
        b.branch(after)
        b.position_at_end(usual)
        numbers = [self._temper(b, words, b.add(position, I32(k))) for k in range(count)]
        b.store(b.add(position, I32(count)), at)
        if count == 1:
            b.store(numbers[0], result)
        else:
            high, low = (b.sitofp(b.lshr(number, I32(shift)), _F64) for number, shift in zip(numbers, (5, 6)))
            whole = b.fadd(b.fmul(high, _F64(67108864.0)), low)
            b.store(b.fmul(whole, _F64(1.0 / 9007199254740992.0)), result)
        b.branch(after)
        b.position_at_end(after)
        return b.load(result)

    def _find_whole(self, name: str) -> ir.Function:
        """The same by the generator's function alone."""
        full = f"draw_whole_{name}"
        found = self.module.globals.get(full)
        if found is None:
            found = ir.Function(self.module, ir.FunctionType(_NEXT[name][1], [POINTER]), full)
            found.linkage = "internal"
            found.attributes.add("noinline")
            found.attributes.add("cold")
            w = CodeWriter(found)
            w.b.ret(self._call_next(w.b, found.args[0], name))
        return found

    def _temper(self, b: ir.IRBuilder, words: ir.Value, position: ir.Value) -> ir.Value:
        key = self._word(b, words, STATE, I32)
        y = b.load(b.gep(key, [b.zext(position, I64)]))
        y = b.xor(y, b.lshr(y, I32(11)))
        y = b.xor(y, b.and_(b.shl(y, I32(7)), I32(0x9D2C5680)))
        y = b.xor(y, b.and_(b.shl(y, I32(15)), I32(0xEFC60000)))
        return b.xor(y, b.lshr(y, I32(18)))

    # -- what no library exports ----------------------------------------------------------------------------
    def _double(self, b: ir.IRBuilder, words: ir.Value) -> ir.Value:
        return b.call(self.find("next_double"), [words])

    def _legacy_exponential(self, w: CodeWriter, words: ir.Value) -> ir.Value:
        b = w.b
        return b.fneg(self._call_math(b, words, "log", b.fsub(_F64(1.0), self._double(b, words))))

    def _take_pair(self, w: CodeWriter, words: ir.Value, make) -> ir.Value:
        """The second number of the last pair, or the first of a new one."""
        b, result = w.b, w.slot(_F64)
        flag, second = self._word(b, words, GAUSS), self._word(b, words, GAUSS + 1, _F64)
        has = b.icmp_unsigned("!=", b.load(flag), I64(0))
        b.store(b.load(second), result)
        with b.if_else(has) as (then, otherwise):
            with then:
                b.store(I64(0), flag)
                b.store(_F64(0.0), second)
            with otherwise:
                one, other = make()
                b.store(one, result)
                b.store(other, second)
                b.store(I64(1), flag)
        return b.load(result)

    def _repeat(self, w: CodeWriter, draw) -> tuple[ir.Value, ...]:
        """Values that `draw` gives, behind whether they are taken, again until they are."""
        b = w.b
        again, after = w.function.append_basic_block("again"), w.function.append_basic_block("taken")
        b.branch(again)
        b.position_at_end(again)
        taken, *values = draw()
        b.cbranch(taken, after, again)
        b.position_at_end(after)
        return tuple(values)

    def _legacy_gauss(self, w: CodeWriter, words: ir.Value) -> ir.Value:
        b = w.b

        def draw():
            x, y = (b.fsub(b.fmul(_F64(2.0), self._double(b, words)), _F64(1.0)) for _ in range(2))
            square = b.fadd(b.fmul(x, x), b.fmul(y, y))
            taken = b.and_(b.fcmp_ordered("<", square, _F64(1.0)), b.fcmp_ordered("!=", square, _F64(0.0)))
            return taken, x, y, square

        def make():
            x, y, square = self._repeat(w, draw)
            ratio = b.fdiv(b.fmul(_F64(-2.0), self._call_math(b, words, "log", square)), square)
            factor = self._root(b, ratio)
            return b.fmul(factor, y), b.fmul(factor, x)

        return self._take_pair(w, words, make)

    def _root(self, b: ir.IRBuilder, value: ir.Value) -> ir.Value:
        return b.call(b.module.declare_intrinsic("llvm.sqrt", [_F64]), [value])

    def _python_gauss(self, w: CodeWriter, words: ir.Value) -> ir.Value:
        b = w.b

        def make():
            angle = b.fmul(self._double(b, words), _F64(2 * np.pi))
            logarithm = self._call_math(b, words, "log", b.fsub(_F64(1.0), self._double(b, words)))
            radius = self._root(b, b.fmul(_F64(-2.0), logarithm))
            return (b.fmul(self._call_math(b, words, "cos", angle), radius),
                    b.fmul(self._call_math(b, words, "sin", angle), radius))

        return self._take_pair(w, words, make)

    def _python_normal(self, w: CodeWriter, words: ir.Value) -> ir.Value:
        b = w.b

        def draw():
            first = self._double(b, words)
            second = b.fsub(_F64(1.0), self._double(b, words))
            found = b.fdiv(b.fmul(_F64(NORMAL_FACTOR), b.fsub(first, _F64(0.5))), second)
            quarter = b.fdiv(b.fmul(found, found), _F64(4.0))
            return b.fcmp_ordered("<=", quarter, b.fneg(self._call_math(b, words, "log", second))), found

        return self._repeat(w, draw)[0]

    def _python_bits(self, w: CodeWriter, words: ir.Value, count: ir.Value) -> ir.Value:
        """`getrandbits` of 1 to 64: words of 32 bits from the low end, the last one's low bits left out."""
        b, result = w.b, w.slot(I64)
        low = b.zext(b.call(self.find("next_uint32"), [words]), I64)
        with b.if_else(b.icmp_signed("<=", count, I64(32))) as (then, otherwise):
            with then:
                b.store(b.lshr(low, b.sub(I64(32), count)), result)
            with otherwise:
                high = b.zext(b.call(self.find("next_uint32"), [words]), I64)
                high = b.shl(b.lshr(high, b.sub(I64(64), count)), I64(32))
                b.store(b.or_(high, low), result)
        return b.load(result)

    def _python_below(self, w: CodeWriter, words: ir.Value, limit: ir.Value) -> ir.Value:
        """`_randbelow` of a positive int64."""
        b = w.b
        count = b.sub(I64(64), b.ctlz(limit, ir.Constant(ir.IntType(1), 0)))

        def draw():
            found = b.call(self.find("python_bits"), [words, count])
            return b.icmp_unsigned("<", found, limit), found

        return self._repeat(w, draw)[0]
