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

from string import Template

from jitcore.backends.cpu.machine.tuning import Sort
from jitcore.backends.cpu.routines.sort.keys import key_type
from jitcore.backends.cpu.routines.sort.network import write_sort_rows
from jitcore.backends.cpu.routines.sort.partition import write_split
from jitcore.backends.cpu.runtime.threads import SYMBOL as PARALLEL_FOR
from jitcore.backends.llvm.text_writer import TextWriter

SYMBOL_PREFIX = "jitcore_sort_keys_"


def render_engine(symbol: str, tuning: Sort) -> str:
    """The module of `jitcore_sort_keys_<bits>`."""
    key = key_type(int(symbol.removeprefix(SYMBOL_PREFIX)))
    small, large = rows = tuning.network_rows[key.has_ternary_logic]
    names = {
        "KEY": key.scalar, "VECTOR": key.vector, "MASK": key.mask, "SUFFIX": key.suffix,
        "LANES": key.lanes, "BYTES": key.bits // 8,
        "SMALL": small, "SMALL_COUNT": small * key.lanes, "LARGE": large, "LARGE_COUNT": large * key.lanes,
        "LEAST": -key.largest - 1, "LARGEST": key.largest,
        "SHARED": tuning.shared, "NEVER": (1 << 63) - 1, "WELL_SAMPLED": tuning.well_sampled,
        "HALF_LARGE": large // 2, "MIDDLE_LANE": key.lanes // 2, "LAST_LANE": key.lanes - 1,
        "PARALLEL_FOR": PARALLEL_FOR, "SYMBOL": symbol,
    }
    w = TextWriter(tuning)
    for count in rows:
        write_sort_rows(w, key, count)
    write_split(w, key)
    return Template(_DECLARATIONS + _PIVOTS + _SEGMENTS).substitute(names) + w.text()


_DECLARATIONS = """
declare $VECTOR @llvm.smin.$SUFFIX($VECTOR, $VECTOR)
declare $VECTOR @llvm.smax.$SUFFIX($VECTOR, $VECTOR)
declare i32 @llvm.smin.i32(i32, i32)
declare $KEY @llvm.smax.$KEY($KEY, $KEY)
declare $VECTOR @llvm.masked.load.$SUFFIX.p0(ptr, i32, $MASK, $VECTOR)
declare void @llvm.masked.store.$SUFFIX.p0($VECTOR, ptr, i32, $MASK)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
declare void @$PARALLEL_FOR(ptr, ptr, ptr, i64, i64)

%Segment = type { ptr, i64, $KEY, i64, i64 }  ; keys, n, least key, rounds left, share
"""

_PIVOTS = """
; The median of nine: of the lanes of three vectors, then of three of these medians.
define internal fastcc $KEY @find_pivot(ptr %keys, i64 %n) {
  %room = sub i64 %n, $LANES
  %half = lshr i64 %room, 1
  %middle.at = getelementptr $KEY, ptr %keys, i64 %half
  %last.at = getelementptr $KEY, ptr %keys, i64 %room
  %a = load $VECTOR, ptr %keys, align $BYTES
  %b = load $VECTOR, ptr %middle.at, align $BYTES
  %c = load $VECTOR, ptr %last.at, align $BYTES
  %medians = call fastcc $VECTOR @find_middle($VECTOR %a, $VECTOR %b, $VECTOR %c)
  %d = shufflevector $VECTOR %medians, $VECTOR poison, <$LANES x i32> splat (i32 $MIDDLE_LANE)
  %e = shufflevector $VECTOR %medians, $VECTOR poison, <$LANES x i32> splat (i32 $LAST_LANE)
  %pivots = call fastcc $VECTOR @find_middle($VECTOR %medians, $VECTOR %d, $VECTOR %e)
  %pivot = extractelement $VECTOR %pivots, i32 0
  ret $KEY %pivot
}

define internal fastcc $VECTOR @find_middle($VECTOR %a, $VECTOR %b, $VECTOR %c) alwaysinline {
  %less = call $VECTOR @llvm.smin.$SUFFIX($VECTOR %a, $VECTOR %b)
  %more = call $VECTOR @llvm.smax.$SUFFIX($VECTOR %a, $VECTOR %b)
  %rest = call $VECTOR @llvm.smin.$SUFFIX($VECTOR %more, $VECTOR %c)
  %middle = call $VECTOR @llvm.smax.$SUFFIX($VECTOR %less, $VECTOR %rest)
  ret $VECTOR %middle
}

; Of a long segment: the median of vectors from the middles of equal parts.
define internal fastcc $KEY @find_good_pivot(ptr %keys, i64 %n) {
enter:
  %sample = alloca $VECTOR, i32 $LARGE
  %distance = udiv i64 %n, $LARGE
  %half = lshr i64 %distance, 1
  br label %next
next:
  %i = phi i64 [ 0, %enter ], [ %i_next, %next ]
  %part = mul i64 %i, %distance
  %place = add i64 %part, %half
  %from = getelementptr $KEY, ptr %keys, i64 %place
  %x = load $VECTOR, ptr %from, align $BYTES
  %to = getelementptr $VECTOR, ptr %sample, i64 %i
  store $VECTOR %x, ptr %to
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, $LARGE
  br i1 %more, label %next, label %sort
sort:
  call fastcc void @sort_rows_$LARGE(ptr %sample, i64 $LARGE_COUNT)
  %middle = getelementptr $VECTOR, ptr %sample, i64 $HALF_LARGE
  %pivot = load $KEY, ptr %middle
  ret $KEY %pivot
}

; The middle of the range of values, above the least unless all are equal.
define internal fastcc $KEY @halve_range(ptr %keys, i64 %n) {
enter:
  br label %next
next:
  %i = phi i64 [ 0, %enter ], [ %i_next, %next ]
  %min = phi $KEY [ $LARGEST, %enter ], [ %min_next, %next ]
  %max = phi $KEY [ $LEAST, %enter ], [ %max_next, %next ]
  %from = getelementptr $KEY, ptr %keys, i64 %i
  %x = load $KEY, ptr %from
  %min_next = call $KEY @llvm.smin.$KEY($KEY %min, $KEY %x)
  %max_next = call $KEY @llvm.smax.$KEY($KEY %max, $KEY %x)
  %i_next = add i64 %i, 1
  %more = icmp slt i64 %i_next, %n
  br i1 %more, label %next, label %done
done:
  %either = or $KEY %min_next, %max_next
  %differing = xor $KEY %min_next, %max_next
  %half = ashr $KEY %differing, 1
  %pivot = sub $KEY %either, %half
  ret $KEY %pivot
}
"""

_SEGMENTS = """
define internal fastcc void @sort_few(ptr %keys, i64 %n) {
  %is_tiny = icmp sle i64 %n, $SMALL_COUNT
  br i1 %is_tiny, label %tiny, label %small
tiny:
  call fastcc void @sort_rows_$SMALL(ptr %keys, i64 %n)
  ret void
small:
  call fastcc void @sort_rows_$LARGE(ptr %keys, i64 %n)
  ret void
}

; least: none of the keys is below. limit: how many partitions may use samples. share: length of the shorter
; side from which on two threads do them.
define internal fastcc void @sort_segment(ptr %all_keys, i64 %count,
                                           $KEY %all_least, i64 %limit, i64 %share) {
enter:
  %left.at = alloca i64
  br label %next
next:
  %keys = phi ptr [ %all_keys, %enter ], [ %keys_right, %drop_equal ], [ %keys_right, %sort_left ]
  %n = phi i64 [ %count, %enter ], [ %right, %drop_equal ], [ %right, %sort_left ]
  %least = phi $KEY [ %all_least, %enter ], [ %threshold, %drop_equal ], [ %threshold, %sort_left ]
  %rounds = phi i64 [ %limit, %enter ], [ %rounds_left, %drop_equal ], [ %rounds_left, %sort_left ]
  %is_small = icmp sle i64 %n, $LARGE_COUNT
  br i1 %is_small, label %finish, label %choose
finish:
  call fastcc void @sort_few(ptr %keys, i64 %n)
  ret void
choose:
  %rounds_left = sub i64 %rounds, 1
  %is_misled = icmp slt i64 %rounds, 0
  br i1 %is_misled, label %choose_middle, label %choose_sample
choose_middle:
  %middle_pivot = call fastcc $KEY @halve_range(ptr %keys, i64 %n)
  br label %chosen
choose_sample:
  %is_long = icmp sge i64 %n, $WELL_SAMPLED
  br i1 %is_long, label %choose_good, label %choose_fast
choose_good:
  %good_pivot = call fastcc $KEY @find_good_pivot(ptr %keys, i64 %n)
  br label %chosen
choose_fast:
  %fast_pivot = call fastcc $KEY @find_pivot(ptr %keys, i64 %n)
  br label %chosen
chosen:
  %pivot = phi $KEY [ %middle_pivot, %choose_middle ], [ %good_pivot, %choose_good ],
                    [ %fast_pivot, %choose_fast ]
  %is_least = icmp eq $KEY %pivot, %least
  %is_largest = icmp eq $KEY %pivot, $LARGEST
  %are_equal = and i1 %is_least, %is_largest
  br i1 %are_equal, label %done, label %part
part:
  %least_step = zext i1 %is_least to $KEY
  %threshold = add $KEY %pivot, %least_step
  call fastcc void @split(ptr %keys, i64 %n, $KEY %threshold, ptr %left.at)
  %left = load i64, ptr %left.at
  %right = sub i64 %n, %left
  %keys_right = getelementptr $KEY, ptr %keys, i64 %left
  br i1 %is_least, label %drop_equal, label %go_on
drop_equal:
  br label %next
go_on:
  %shorter = call i64 @llvm.smin.i64(i64 %left, i64 %right)
  %is_shared = icmp sge i64 %shorter, %share
  br i1 %is_shared, label %share_sides, label %sort_left
sort_left:
  call fastcc void @sort_segment(ptr %keys, i64 %left, $KEY %least, i64 %rounds_left, i64 %share)
  br label %next
share_sides:
  call fastcc void @sort_sides(ptr %keys, i64 %left, $KEY %least, i64 %rounds_left,
                               ptr %keys_right, i64 %right, $KEY %threshold,
                               i64 %share)
  ret void
done:
  ret void
}

; Both sides of a partition, by two threads.
define internal fastcc void @sort_sides(ptr %keys, i64 %left, $KEY %least, i64 %rounds,
                                        ptr %keys_right, i64 %right, $KEY %pivot,
                                        i64 %share) noinline {
  %sides = alloca %Segment, i32 2
  %left.0 = insertvalue %Segment poison, ptr %keys, 0
  %left.1 = insertvalue %Segment %left.0, i64 %left, 1
  %left.2 = insertvalue %Segment %left.1, $KEY %least, 2
  %left.3 = insertvalue %Segment %left.2, i64 %rounds, 3
  %left.4 = insertvalue %Segment %left.3, i64 %share, 4
  store %Segment %left.4, ptr %sides
  %right.0 = insertvalue %Segment poison, ptr %keys_right, 0
  %right.1 = insertvalue %Segment %right.0, i64 %right, 1
  %right.2 = insertvalue %Segment %right.1, $KEY %pivot, 2
  %right.3 = insertvalue %Segment %right.2, i64 %rounds, 3
  %sides_right = getelementptr %Segment, ptr %sides, i64 1
  %right.4 = insertvalue %Segment %right.3, i64 %share, 4
  store %Segment %right.4, ptr %sides_right
  call void @$PARALLEL_FOR(ptr @sort_side, ptr %sides, ptr null, i64 2, i64 1)
  ret void
}

define internal void @sort_side(ptr %sides, ptr %ignored, i64 %start, i64 %stop) {
enter:
  br label %next
next:
  %i = phi i64 [ %start, %enter ], [ %i_next, %run ]
  %more = icmp slt i64 %i, %stop
  br i1 %more, label %run, label %done
run:
  %side.at = getelementptr %Segment, ptr %sides, i64 %i
  %side = load %Segment, ptr %side.at
  %keys = extractvalue %Segment %side, 0
  %n = extractvalue %Segment %side, 1
  %least = extractvalue %Segment %side, 2
  %rounds = extractvalue %Segment %side, 3
  %share = extractvalue %Segment %side, 4
  call fastcc void @sort_segment(ptr %keys, i64 %n, $KEY %least, i64 %rounds, i64 %share)
  %i_next = add i64 %i, 1
  br label %next
done:
  ret void
}

define void @$SYMBOL(ptr %keys, i64 %n, i64 %is_shared) {
  %may_share = icmp ne i64 %is_shared, 0
  %share = select i1 %may_share, i64 $SHARED, i64 $NEVER
  %zeros = call i64 @llvm.ctlz.i64(i64 %n, i1 false)
  %bits = sub i64 64, %zeros
  %rounds = mul i64 %bits, 2
  call fastcc void @sort_segment(ptr %keys, i64 %n, $KEY $LEAST, i64 %rounds, i64 %share)
  ret void
}
"""
