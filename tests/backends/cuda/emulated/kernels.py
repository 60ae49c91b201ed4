"""Kernels in LLVM's text, as a compiler would write them, with what they compute in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_DECLARATIONS = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare {i32, i1} @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32)
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.membar.gl()
declare float @llvm.nvvm.ex2.approx.f(float)
declare float @llvm.maxnum.f32(float, float)
"""
_INDICES = """
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %lane = and i32 %t, 31
  %warp = lshr i32 %t, 5
  %offset = mul i32 %block, %size
  %i = add i32 %offset, %t
"""
_BARRIER = "  call void @llvm.nvvm.barrier0()\n"


class Program(NamedTuple):
    """A kernel, a launch of it, and its result. arguments: arrays and numbers; expected: of each array."""

    ir_text: str
    arguments: list
    expected: list[np.ndarray]
    grid: object
    block: object


def _combine(name: str, operation: str, left: str, right: str) -> str:
    if operation == "fadd":
        return f"  {name} = fadd float {left}, {right}\n"
    return f"  {name} = call float @llvm.maxnum.f32(float {left}, float {right})\n"


def reduce_block(tag: str, value: str, operation: str, buffer: str = "@partials") -> tuple[str, str]:
    """A float of each of 256 threads to one that all of them have. Begins in one block of LLVM, ends in %{tag}all."""
    text, current = "", value
    for level, distances in (("w", (16, 8, 4, 2, 1)), ("b", (4, 2, 1))):
        for distance in distances:
            name = f"%{tag}{level}{distance}"
            text += f"  {name}i = bitcast float {current} to i32\n"
            text += f"  {name}s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {name}i, i32 {distance}, i32 31)\n"
            text += f"  {name}f = bitcast i32 {name}s to float\n"
            text += _combine(name, operation, current, f"{name}f")
            current = name
        if level == "w":
            text += f"""{_BARRIER}
  %{tag}first = icmp eq i32 %lane, 0
  br i1 %{tag}first, label %{tag}yes, label %{tag}all
{tag}yes:
  %{tag}p = getelementptr float, ptr addrspace(3) {buffer}, i32 %warp
  store float {current}, ptr addrspace(3) %{tag}p
  br label %{tag}all
{tag}all:
{_BARRIER}
  %{tag}k = and i32 %lane, 7
  %{tag}q = getelementptr float, ptr addrspace(3) {buffer}, i32 %{tag}k
  %{tag}l = load float, ptr addrspace(3) %{tag}q
"""
            current = f"%{tag}l"
    return text, current


def _loop(tag: str, before: str, body: str, initial: str = "0.0", array: str = "%x") -> str:
    """For each element of the block's row that is the thread's: %{tag}v, and a float %{tag}next that is carried."""
    return f"""  br label %{tag}head
{tag}head:
  %{tag}k = phi i32 [%t, %{before}], [%{tag}n, %{tag}body]
  %{tag}sum = phi float [{initial}, %{before}], [%{tag}next, %{tag}body]
  %{tag}more = icmp slt i32 %{tag}k, %n
  br i1 %{tag}more, label %{tag}body, label %{tag}end
{tag}body:
  %{tag}i = add i32 %base, %{tag}k
  %{tag}p = getelementptr float, ptr addrspace(1) {array}, i32 %{tag}i
  %{tag}v = load float, ptr addrspace(1) %{tag}p
{body}
  %{tag}n = add i32 %{tag}k, 256
  br label %{tag}head
{tag}end:
"""


def _softmax() -> Program:
    largest, maximum = reduce_block("m", "%asum", "maxnum")
    total, denominator = reduce_block("s", "%bsum", "fadd")
    power = """  %{0}d = fsub float %{0}v, {1}
  %{0}l = fmul float %{0}d, 0x3FF7154760000000
  %{0}e = call float @llvm.nvvm.ex2.approx.f(float %{0}l)
"""
    text = f"""{_DECLARATIONS}
@partials = internal addrspace(3) global [8 x float] undef, align 16
define ptx_kernel void @softmax(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {{
entry: {_INDICES}
  %base = mul i32 %block, %n
{_loop("a", "entry", _combine("%anext", "maxnum", "%asum", "%av"), "0xFFF0000000000000")}{largest}
{_loop("b", "mall", power.format("b", maximum) + _combine("%bnext", "fadd", "%bsum", "%be"))}{total}
{
        _loop(
            "c",
            "sall",
            power.format("c", maximum)
            + f'''  %cnext = fdiv float %ce, {denominator}
  %co = getelementptr float, ptr addrspace(1) %y, i32 %ci
  store float %cnext, ptr addrspace(1) %co''',
        )
    }
  ret void
}}
"""
    x = np.random.default_rng(0).standard_normal((5, 700)).astype("f4")
    y = np.exp(x - x.max(1, keepdims=True))
    return Program(text, [x, np.zeros_like(x), 700], [x, y / y.sum(1, keepdims=True)], 5, 256)


def _transpose() -> Program:
    text = f"""{_DECLARATIONS}
@tile = internal addrspace(3) global [32 x [33 x double]] undef, align 16
define ptx_kernel void @transpose(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %rows, i32 %columns) {{
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %left = shl i32 %bx, 5
  %top = shl i32 %by, 5
  br label %in
in:
  %a = phi i32 [%ty, %0], [%a1, %in.next]
  %ra = add i32 %top, %a
  %ca = add i32 %left, %tx
  %ra.in = icmp slt i32 %ra, %rows
  %ca.in = icmp slt i32 %ca, %columns
  %a.in = and i1 %ra.in, %ca.in
  br i1 %a.in, label %read, label %in.next
read:
  %ia = mul i32 %ra, %columns
  %ja = add i32 %ia, %ca
  %pa = getelementptr double, ptr addrspace(1) %x, i32 %ja
  %va = load double, ptr addrspace(1) %pa
  %qa = getelementptr [32 x [33 x double]], ptr addrspace(3) @tile, i32 0, i32 %a, i32 %tx
  store double %va, ptr addrspace(3) %qa
  br label %in.next
in.next:
  %a1 = add i32 %a, 8
  %a.more = icmp slt i32 %a1, 32
  br i1 %a.more, label %in, label %turn
turn:
{_BARRIER}  br label %out
out:
  %b = phi i32 [%ty, %turn], [%b1, %out.next]
  %rb = add i32 %left, %b
  %cb = add i32 %top, %tx
  %rb.in = icmp slt i32 %rb, %columns
  %cb.in = icmp slt i32 %cb, %rows
  %b.in = and i1 %rb.in, %cb.in
  br i1 %b.in, label %write, label %out.next
write:
  %qb = getelementptr [32 x [33 x double]], ptr addrspace(3) @tile, i32 0, i32 %tx, i32 %b
  %vb = load double, ptr addrspace(3) %qb
  %ib = mul i32 %rb, %rows
  %jb = add i32 %ib, %cb
  %pb = getelementptr double, ptr addrspace(1) %y, i32 %jb
  store double %vb, ptr addrspace(1) %pb
  br label %out.next
out.next:
  %b1 = add i32 %b, 8
  %b.more = icmp slt i32 %b1, 32
  br i1 %b.more, label %out, label %end
end:
  ret void
}}
"""
    x = np.arange(50 * 70, dtype="f8").reshape(50, 70)
    return Program(text, [x, np.zeros((70, 50)), 50, 70], [x, x.T], (3, 2), (32, 8))


def _histogram() -> Program:
    text = f"""{_DECLARATIONS}
@bins = internal addrspace(3) global [32 x i32] undef, align 16
define ptx_kernel void @histogram(ptr addrspace(1) %x, ptr addrspace(1) %counts, i32 %n) {{
entry: {_INDICES}
  %few = icmp ult i32 %t, 32
  %bin = getelementptr [32 x i32], ptr addrspace(3) @bins, i32 0, i32 %t
  br i1 %few, label %clear, label %count
clear:
  store i32 0, ptr addrspace(3) %bin
  br label %count
count:
{_BARRIER}
  %in = icmp slt i32 %i, %n
  br i1 %in, label %add, label %joined
add:
  %p = getelementptr i8, ptr addrspace(1) %x, i32 %i
  %v = load i8, ptr addrspace(1) %p
  %k = zext i8 %v to i32
  %q = getelementptr [32 x i32], ptr addrspace(3) @bins, i32 0, i32 %k
  %old = atomicrmw add ptr addrspace(3) %q, i32 1 syncscope("block") monotonic
  br label %joined
joined:
{_BARRIER}
  br i1 %few, label %merge, label %end
merge:
  %c = load i32, ptr addrspace(3) %bin
  %r = getelementptr i32, ptr addrspace(1) %counts, i32 %t
  %older = atomicrmw add ptr addrspace(1) %r, i32 %c syncscope("device") monotonic
  br label %end
end:
  ret void
}}
"""
    x = np.random.default_rng(1).integers(0, 32, 1000).astype("u1")
    return Program(
        text, [x, np.zeros(32, "i4"), 1000], [x, np.bincount(x, minlength=32).astype("i4")], 8, 128
    )


def _ticket() -> Program:
    """The block that takes the last ticket adds up what all have written."""
    own, total = reduce_block("o", "%v", "fadd")
    last, everything = reduce_block("z", "%w", "fadd")
    text = f"""{_DECLARATIONS}
@partials = internal addrspace(3) global [8 x float] undef, align 16
@is_last = internal addrspace(3) global i32 undef
define ptx_kernel void @ticket(ptr addrspace(1) %x, ptr addrspace(1) %sums, ptr addrspace(1) %ticket, ptr addrspace(1) %y) {{
entry: {_INDICES}
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %p
{own}
  %leads = icmp eq i32 %t, 0
  br i1 %leads, label %publish, label %wait
publish:
  %q = getelementptr float, ptr addrspace(1) %sums, i32 %block
  store float {total}, ptr addrspace(1) %q
  call void @llvm.nvvm.membar.gl()
  %mine = atomicrmw add ptr addrspace(1) %ticket, i32 1 syncscope("device") monotonic
  %after = add i32 %mine, 1
  %is = icmp eq i32 %after, %blocks
  %flag = zext i1 %is to i32
  store i32 %flag, ptr addrspace(3) @is_last
  br label %wait
wait:
{_BARRIER}
  %got = load i32, ptr addrspace(3) @is_last
  %goes = icmp ne i32 %got, 0
  br i1 %goes, label %finish, label %end
finish:
  %in = icmp slt i32 %t, %blocks
  br i1 %in, label %fetch, label %fold
fetch:
  %r = getelementptr float, ptr addrspace(1) %sums, i32 %t
  %u = load float, ptr addrspace(1) %r
  br label %fold
fold:
  %w = phi float [0.0, %finish], [%u, %fetch]
{last}
  br i1 %leads, label %store, label %end
store:
  store float {everything}, ptr addrspace(1) %y
  br label %end
end:
  ret void
}}
"""
    x = np.random.default_rng(2).integers(-9, 9, 256 * 12).astype("f4")
    sums = x.reshape(12, 256).sum(1, dtype="f4")
    arguments = [x, np.zeros(12, "f4"), np.zeros(1, "i4"), np.zeros(1, "f4")]
    return Program(text, arguments, [x, sums, np.array([12], "i4"), x.sum(keepdims=True)], 12, 256)


def _scan() -> Program:
    """A sum of all before each element, by decoupled look-back: a block takes the next number, publishes its total
    (flag 1), adds up the totals before it until it meets a sum up to there (flag 2), and publishes its own."""
    steps, current = "", "%v"
    for distance in (1, 2, 4, 8, 16):
        name = f"%up{distance}"
        steps += f"""  {name}r = call {{i32, i1}} @llvm.nvvm.shfl.sync.up.i32p(i32 -1, i32 {current}, i32 {distance}, i32 0)
  {name}v = extractvalue {{i32, i1}} {name}r, 0
  {name}p = extractvalue {{i32, i1}} {name}r, 1
  {name}c = select i1 {name}p, i32 {name}v, i32 0
  {name} = add i32 {current}, {name}c
"""
        current = name
    text = f"""{_DECLARATIONS}
@shared = internal addrspace(3) global [2 x i32] undef, align 8
define ptx_kernel void @scan(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %flags, ptr addrspace(1) %totals,
                             ptr addrspace(1) %sums, ptr addrspace(1) %counter) {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %leads = icmp eq i32 %t, 0
  br i1 %leads, label %take, label %begin
take:
  %number = atomicrmw add ptr addrspace(1) %counter, i32 1 syncscope("device") monotonic
  store i32 %number, ptr addrspace(3) @shared
  br label %begin
begin:
{_BARRIER}
  %block = load i32, ptr addrspace(3) @shared
  %offset = shl i32 %block, 5
  %i = add i32 %offset, %t
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %p
{steps}
  %last = icmp eq i32 %t, 31
  %flag = getelementptr i32, ptr addrspace(1) %flags, i32 %block
  %sum.p = getelementptr i32, ptr addrspace(1) %sums, i32 %block
  br i1 %last, label %publish, label %finish
publish:
  %total.p = getelementptr i32, ptr addrspace(1) %totals, i32 %block
  store i32 {current}, ptr addrspace(1) %total.p
  call void @llvm.nvvm.membar.gl()
  store volatile i32 1, ptr addrspace(1) %flag
  br label %back
back:
  %k = phi i32 [%block, %publish], [%k1, %sofar]
  %before = phi i32 [0, %publish], [%before1, %sofar]
  %none = icmp eq i32 %k, 0
  br i1 %none, label %found, label %look
look:
  %k1 = sub i32 %k, 1
  %other = getelementptr i32, ptr addrspace(1) %flags, i32 %k1
  br label %spin
spin:
  %state = load volatile i32, ptr addrspace(1) %other
  %unset = icmp eq i32 %state, 0
  br i1 %unset, label %spin, label %seen
seen:
  call void @llvm.nvvm.membar.gl()
  %has = icmp eq i32 %state, 2
  br i1 %has, label %whole, label %part
whole:
  %whole.p = getelementptr i32, ptr addrspace(1) %sums, i32 %k1
  %whole.v = load i32, ptr addrspace(1) %whole.p
  %all = add i32 %before, %whole.v
  br label %found
part:
  %part.p = getelementptr i32, ptr addrspace(1) %totals, i32 %k1
  %part.v = load i32, ptr addrspace(1) %part.p
  br label %sofar
sofar:
  %before1 = add i32 %before, %part.v
  br label %back
found:
  %prefix = phi i32 [%before, %back], [%all, %whole]
  %mine = add i32 %prefix, {current}
  store i32 %mine, ptr addrspace(1) %sum.p
  call void @llvm.nvvm.membar.gl()
  store volatile i32 2, ptr addrspace(1) %flag
  %slot = getelementptr i32, ptr addrspace(3) @shared, i32 1
  store i32 %prefix, ptr addrspace(3) %slot
  br label %finish
finish:
{_BARRIER}
  %slot2 = getelementptr i32, ptr addrspace(3) @shared, i32 1
  %start = load i32, ptr addrspace(3) %slot2
  %result = add i32 %start, {current}
  %q = getelementptr i32, ptr addrspace(1) %y, i32 %i
  store i32 %result, ptr addrspace(1) %q
  ret void
}}
"""
    x = np.random.default_rng(3).integers(-99, 99, 32 * 7).astype("i4")
    sums = np.cumsum(x, dtype="i4")
    empty = [np.zeros(7, "i4") for _ in range(3)]
    expected = [
        x,
        sums,
        np.full(7, 2, "i4"),
        x.reshape(7, 32).sum(1, dtype="i4"),
        sums[31::32],
        np.array([7], "i4"),
    ]
    return Program(text, [x, np.zeros_like(x), *empty, np.zeros(1, "i4")], expected, 7, 32)


def _table() -> Program:
    """Constants, addresses in initial values, a called function with an array on its stack, a jump table."""
    text = f"""{_DECLARATIONS}
@table = internal unnamed_addr addrspace(4) constant [4 x double] [double 1.0, double 2.5, double -3.0, double 0.1]
@words = internal addrspace(1) global [2 x float] [float 10.0, float 20.0]
@places = internal addrspace(1) global [2 x ptr] [ptr addrspacecast (ptr addrspace(4) @table to ptr),
                                                  ptr addrspacecast (ptr addrspace(1) @words to ptr)]
define double @pick(double %x, i32 %k, ptr %place) noinline {{
  %m = and i32 %k, 3
  %p = getelementptr double, ptr addrspace(4) @table, i32 %m
  %c = load double, ptr addrspace(4) %p
  %v = fmul double %x, %c
  store double %v, ptr %place
  ret double %c
}}
define ptx_kernel void @lookup(ptr addrspace(1) %x, ptr addrspace(1) %y, float %scale) {{
entry: {_INDICES}
  %stack = alloca [4 x double]
  %p = getelementptr double, ptr addrspace(1) %x, i32 %i
  %v = load double, ptr addrspace(1) %p
  %k = and i32 %t, 3
  %slot = getelementptr double, ptr %stack, i32 %k
  %c = call double @pick(double %v, i32 %t, ptr %slot)
  %u = load double, ptr %slot
  %half = and i32 %t, 1
  %place.p = getelementptr ptr, ptr addrspace(1) @places, i32 %half
  %place = load ptr, ptr addrspace(1) %place.p
  %kind = urem i32 %t, 7
  switch i32 %kind, label %other [i32 0, label %a i32 1, label %b i32 2, label %d i32 3, label %f i32 4, label %g]
a:
  br label %store
b:
  br label %store
d:
  br label %store
f:
  %w = load float, ptr addrspace(1) @words
  %wd = fpext float %w to double
  br label %store
g:
  %pd = load double, ptr %place
  br label %store
other:
  br label %store
store:
  %s = phi double [%u, %a], [%c, %b], [%v, %d], [%wd, %f], [%pd, %g], [-1.0, %other]
  %sc = fpext float %scale to double
  %r = fmul double %s, %sc
  %q = getelementptr double, ptr addrspace(1) %y, i32 %i
  store double %r, ptr addrspace(1) %q
  ret void
}}
"""
    x = np.random.default_rng(4).standard_normal(96)
    table, t = np.array([1.0, 2.5, -3.0, 0.1]), np.arange(96) % 48
    word_pair = np.array([10.0, 20.0], "f4").view("f8")[0]
    choices = [x * table[t & 3], table[t & 3], x, np.full(96, 10.0), np.where(t & 1, word_pair, 1.0)]
    y = 1.5 * np.select([t % 7 == kind for kind in range(5)], choices, -1.0)
    return Program(text, [x, np.zeros(96), np.float32(1.5)], [x, y], 2, 48)


PROGRAMS = {
    make.__name__[1:]: make() for make in (_softmax, _transpose, _histogram, _ticket, _scan, _table)
}
