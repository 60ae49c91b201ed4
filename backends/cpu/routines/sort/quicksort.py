"""The sorting engine: a vectorised quicksort of signed integer keys.

In: bits of a key. Out: LLVM text of `void jitcore_sort_keys_<bits>(ptr keys, i64 n, i64 is_shared)`, which
sorts n keys in place, by several threads where is_shared is not 0. Stage: rendering of routines.

Equal keys need no special care but this: where the pivot is known to be the least key, the keys equal to it
are split off (`partition`), for good. A segment of a few vectors is sorted by a network
(`network`). Sides of long segments are sorted by different threads.

A pivot is the median of a sample. Should samples mislead too often, pivots halve the range of values
instead, which ends after as many rounds as a key has bits.
"""

from __future__ import annotations

from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.sort.keys import KeyType, key_type
from jitcore.backends.cpu.routines.sort.network import write_sort_rows
from jitcore.backends.cpu.routines.sort.partition import write_split
from jitcore.backends.cpu.runtime.threads import PARALLEL_TYPE, SYMBOL as PARALLEL_FOR

SYMBOL_PREFIX = "jitcore_sort_keys_"


def render_engine(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_keys_<bits>`."""
    w, key = TextWriter(tuning), key_type(int(symbol.removeprefix(SYMBOL_PREFIX)))
    for count in tuning.network_rows[key.has_ternary_logic]:
        write_sort_rows(w, key, count)
    write_split(w, key)
    engine = _Engine(w, key)
    engine.write_pivots()
    engine.write_segments()
    with w.function(f"void @{symbol}(ptr %keys, i64 %n, i64 %is_shared)"):
        share = w.choose(w.compare("ne", "%is_shared", 0), tuning.shared, (1 << 63) - 1)
        rounds = w.mul(w.sub(64, w.call("llvm.ctlz.i64", "%n", "false")), 2)
        w.call("sort_segment", "%keys", "%n", -key.largest - 1, rounds, share)
    return w.text()


class _Engine:
    """Writes the functions. small, large: rows of the two networks."""

    def __init__(self, w: TextWriter, key: KeyType):
        self.w, self.key, self.size = w, key, key.bits // 8
        self.small, self.large = w.tuning.network_rows[key.has_ternary_logic]
        #: Types of what tells a segment: keys, n, the least key, rounds left, share.
        self.kinds = "ptr", "i64", key.scalar, "i64", "i64"

    def _load(self, keys: str, place: Operand, kind: str) -> str:
        return self.w.load(self.w.element(keys, place, self.key.scalar), kind, self.size)

    # -- pivots ---------------------------------------------------------------------------------------------
    def write_pivots(self) -> None:
        w, key, v = self.w, self.key, self.key.vector
        with w.function(f"internal fastcc {v} @find_middle({v} %a, {v} %b, {v} %c) alwaysinline", None):
            less, more = (w.intrinsic(end, v, "%a", "%b") for end in ("smin", "smax"))
            w.do(f"ret {v} {w.intrinsic('smax', v, less, w.intrinsic('smin', v, more, '%c'))}")
        with w.function(f"internal fastcc {key.scalar} @find_pivot(ptr %keys, i64 %n)", None):
            self._find_fast()
        with w.function(f"internal fastcc {key.scalar} @find_good_pivot(ptr %keys, i64 %n)", None):
            self._find_good()
        with w.function(f"internal fastcc {key.scalar} @halve_range(ptr %keys, i64 %n)", None):
            self._halve_range()

    def _find_fast(self) -> None:
        """The median of nine: of the lanes of three vectors, then of three of these medians."""
        w, v, lanes = self.w, self.key.vector, self.key.lanes
        last = w.sub("%n", lanes)
        middle = w.let(f"lshr i64 {last}, 1")
        medians = w.call("find_middle", *(self._load("%keys", place, v) for place in (0, middle, last)))
        others = (w.let(f"shufflevector {v} {medians}, {v} poison, <{lanes} x i32> splat (i32 {lane})")
                  for lane in (lanes // 2, lanes - 1))
        pivot = w.let(f"extractelement {v} {w.call('find_middle', medians, *others)}, i32 0")
        w.do(f"ret {self.key.scalar} {pivot}")

    def _find_good(self) -> None:
        """Of a long segment: the median of vectors from the middles of equal parts."""
        w, key, large, v = self.w, self.key, self.large, self.key.vector
        sample, distance = w.let(f"alloca {v}, i32 {large}"), w.div("%n", large)
        half = w.let(f"lshr i64 {distance}, 1")
        with w.loop(0, large) as i:
            x = self._load("%keys", w.add(w.mul(i, distance), half), v)
            w.store(x, w.element(sample, i, v), v, key.lanes * self.size)
        w.call(f"sort_rows_{large}", sample, large * key.lanes)
        w.do(f"ret {key.scalar} {w.load(w.element(sample, large // 2, v), key.scalar, self.size)}")

    def _halve_range(self) -> None:
        """The middle of the range of values, above the least unless all are equal."""
        w, kind, largest = self.w, self.key.scalar, self.key.largest
        ends = {"smin": w.variable(largest, kind), "smax": w.variable(-largest - 1, kind)}
        with w.loop(0, "%n") as i:
            x = self._load("%keys", i, kind)
            for end, place in ends.items():
                w.store(w.intrinsic(end, kind, w.load(place, kind), x), place, kind)
        low, high = (w.load(place, kind) for place in ends.values())
        half = w.let(f"ashr {kind} {w.let(f'xor {kind} {low}, {high}')}, 1")
        either = w.let(f"or {kind} {low}, {high}")
        w.do(f"ret {kind} {w.let(f'sub {kind} {either}, {half}')}")

    # -- segments -------------------------------------------------------------------------------------------
    def write_segments(self) -> None:
        """sort_few: by a network. sort_sides: both sides of a partition, by two threads. sort_segment: least:
        none of the keys is below; limit: how many partitions may use samples; share: length of the shorter
        side from which on two threads do them."""
        w, kind = self.w, self.key.scalar
        with w.function("internal fastcc void @sort_few(ptr %keys, i64 %n)"), w.cases() as case:
            with case(w.compare("sle", "%n", self.small * self.key.lanes)):
                w.call(f"sort_rows_{self.small}", "%keys", "%n")
            w.call(f"sort_rows_{self.large}", "%keys", "%n")
        arguments = (f"ptr %keys, i64 %left, {kind} %least, i64 %rounds, ptr %keys_right, i64 %right, "
                     f"{kind} %pivot, i64 %share")
        with w.function(f"internal fastcc void @sort_sides({arguments}) noinline"):
            sides = w.let(f"alloca [{2 * len(self.kinds)} x i64]")
            told = [(keys, n, least, "%rounds", "%share")
                    for keys, n, least in (("%keys", "%left", "%least"), ("%keys_right", "%right", "%pivot"))]
            for place, (kind_of, value) in enumerate(zip(self.kinds * 2, (*told[0], *told[1]))):
                w.store(value, w.at(sides, 8 * place), kind_of)
            w.call(PARALLEL_FOR, "@sort_side", sides, "null", 2, 1, type=PARALLEL_TYPE)
        arguments = f"ptr %all_keys, i64 %count, {kind} %all_least, i64 %limit, i64 %share"
        with w.function(f"internal fastcc void @sort_segment({arguments})", "unreachable"):
            self._write_segment()
        with w.function("internal void @sort_side(ptr %sides, ptr %none, i64 %start, i64 %stop)"):
            with w.loop("%start", "%stop") as i:
                side = w.at("%sides", w.mul(i, 8 * len(self.kinds)))
                told = (w.load(w.at(side, 8 * place), of) for place, of in enumerate(self.kinds))
                w.call("sort_segment", *told)

    def _write_segment(self) -> None:
        w, kind = self.w, self.key.scalar
        state = [(w.variable(value, of), of)
                 for value, of in zip(("%all_keys", "%count", "%all_least", "%limit"), self.kinds)]
        pivot_at, left_at = w.variable(0, kind), w.let("alloca i64")
        with w.repeat():
            keys, n, least, rounds = (w.load(place, of) for place, of in state)
            with w.when(w.compare("sle", n, self.large * self.key.lanes)):
                w.call("sort_few", keys, n)
                w.do("ret void")
            with w.cases() as case:
                with case(w.compare("slt", rounds, 0)):  # samples have misled
                    w.store(w.call("halve_range", keys, n), pivot_at, kind)
                with case(w.compare("sge", n, w.tuning.well_sampled)):
                    w.store(w.call("find_good_pivot", keys, n), pivot_at, kind)
                w.store(w.call("find_pivot", keys, n), pivot_at, kind)
            pivot = w.load(pivot_at, kind)
            is_least, is_largest = (w.compare("eq", pivot, end, kind) for end in (least, self.key.largest))
            with w.when(w.let(f"and i1 {is_least}, {is_largest}")):  # all are equal
                w.do("ret void")
            threshold = w.let(f"add {kind} {pivot}, {w.let(f'zext i1 {is_least} to {kind}')}")
            w.call("split", keys, n, threshold, left_at)
            left, rounds = w.load(left_at), w.sub(rounds, 1)
            others = w.element(keys, left, kind), w.sub(n, left), threshold, rounds
            with w.when(w.compare("eq", is_least, "false", "i1")):  # else those on the left are equal
                with w.when(w.compare("sge", w.minimum(left, others[1]), "%share")):
                    w.call("sort_sides", keys, left, least, rounds, *others[:3], "%share")
                    w.do("ret void")
                w.call("sort_segment", keys, left, least, rounds, "%share")
            for (place, of), value in zip(state, others):
                w.store(value, place, of)
