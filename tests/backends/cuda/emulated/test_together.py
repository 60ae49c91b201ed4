"""What threads do together, and what they share: shuffles, votes, barriers, atomics, variables, copies."""

import ml_dtypes
import numpy as np
import pytest

from jitcore.backends.cuda.emulated import EmulatedDevice
from tests.backends.cuda.emulated.programs import launch, write_kernel

LANES = np.arange(32)
SEEDS = [None, 4, 5]


def collect(body, count=32, seed=None, **options):
    """The words that each thread leaves in %r1."""
    ptx = write_kernel(body + "\nadd.u64 %d0, %p0, %t4; st.global.u32 [%d0], %r1;", 1, **options)
    return launch(ptx, [np.zeros(count, "u4")], block=count, seed=seed)[0]


def shuffle(mode, selector, bounds):
    """(source lanes, whether they lie inside) as the PTX manual has it."""
    clamp, segment = bounds & 31, bounds >> 8 & 31
    last = LANES & segment | clamp & ~segment
    source = {"up": LANES - selector, "down": LANES + selector, "bfly": LANES ^ selector,
              "idx": LANES & segment | selector & ~segment}[mode]
    passes = source >= last if mode == "up" else source <= last
    return np.where(passes, source, LANES), passes


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode, selector, bounds", [
    ("bfly", 1, 31), ("bfly", 16, 31), ("bfly", 4, 0x181F), ("up", 1, 0), ("up", 5, 0x1000), ("down", 3, 31),
    ("down", 9, 0x101F), ("idx", 7, 31), ("idx", 3, 0x181F), ("idx", 20, 15)])
def test_shuffles(mode, selector, bounds, seed):
    source, passes = shuffle(mode, selector, bounds)
    body = f"mul.lo.u32 %r0, %t, 3; shfl.sync.{mode}.b32 %r1|%q1, %r0, {selector}, {bounds}, -1;"
    np.testing.assert_array_equal(collect(body, seed=seed), 3 * source)
    np.testing.assert_array_equal(collect(body + "selp.b32 %r1, 1, 0, %q1;", seed=seed), passes)


#: Where a lane's elements are in A, B and C, by the PTX manual's "Matrix Fragments for mma.m16n8k16".
GROUP, IN_GROUP, EACH = LANES[:, None] >> 2, LANES[:, None] % 4, np.arange(8)
ROW = np.where((EACH < 2) | (4 <= EACH) & (EACH < 6), GROUP, GROUP + 8)
A_PLACE = ROW, IN_GROUP * 2 + (EACH & 1) + np.where(EACH < 4, 0, 8)
B_PLACE = IN_GROUP * 2 + (EACH[:4] & 1) + np.where(EACH[:4] < 2, 0, 8), GROUP + 0 * EACH[:4]
C_PLACE = np.where(EACH[:4] < 2, GROUP, GROUP + 8), IN_GROUP * 2 + (EACH[:4] & 1)
MULTIPLY = """mul.wide.u32 %d0, %t, 16; add.u64 %d1, %p0, %d0; ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%d1];
  add.u64 %d2, %p2, %d0; ld.global.v4.b32 {{%r6, %r7, %r8, %r9}}, [%d2]; shl.b32 %r10, %t, 3; cvt.u64.u32 %d3, %r10;
  add.u64 %d3, %p1, %d3; ld.global.v2.b32 {{%r4, %r5}}, [%d3];
  mma.sync.aligned.m16n8k16.row.col.f32.{0}.{0}.f32 {{%r11, %r12, %r13, %r14}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}},
    {{%r6, %r7, %r8, %r9}}; st.global.v4.b32 [%d2], {{%r11, %r12, %r13, %r14}};"""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind, dtype", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_products_of_matrices(kind, dtype, seed):
    random = np.random.default_rng(3)
    a, b = (random.standard_normal(shape).astype(dtype) for shape in ((16, 16), (16, 8)))
    c = random.standard_normal((16, 8)).astype(np.float32)
    fragments = [a[A_PLACE].copy(), b[B_PLACE].copy(), c[C_PLACE].copy()]
    found = np.empty_like(c)
    found[C_PLACE] = launch(write_kernel(MULTIPLY.format(kind), 3), fragments, seed=seed)[2]
    wide = [matrix.astype(np.float64) for matrix in (a, b, c)]
    terms = abs(wide[0]) @ abs(wide[1]) + abs(wide[2])
    assert (abs(found - (wide[0] @ wide[1] + wide[2])) <= 17 * 2.0**-24 * terms).all()


MASK = 0x0F0F00F1
LOW = "and.b32 %r2, %t, 3; setp.eq.u32 %q1, %r2, 1;"
_ANSWERS = {
    "vote.sync.ballot.b32 %r1, %q1, -1;": 0x22222222,
    "vote.sync.ballot.b32 %r1, !%q1, -1;": 0xDDDDDDDD,
    "vote.sync.any.pred %q2, %q1, -1; selp.b32 %r1, 1, 0, %q2;": 1,
    "vote.sync.all.pred %q2, %q1, -1; selp.b32 %r1, 1, 0, %q2;": 0,
    "vote.sync.uni.pred %q2, %q1, -1; selp.b32 %r1, 1, 0, %q2;": 0,
    "redux.sync.add.u32 %r1, %t, -1;": 31 * 16,
    "redux.sync.max.s32 %r1, %t, -1;": 31,
    "neg.s32 %r0, %t; redux.sync.min.s32 %r1, %r0, -1;": -31 & 0xFFFFFFFF,
    "redux.sync.or.b32 %r1, %t, -1;": 31,
    "redux.sync.xor.b32 %r1, %t, -1;": 0,
    "match.any.sync.b32 %r1, %r2, -1;": [0x11111111 << lane % 4 for lane in range(32)],
    "match.all.sync.b32 %r1|%q2, %r2, -1;": 0,
    "mov.u64 %d1, 5; match.all.sync.b64 %r1|%q2, %d1, -1; selp.b32 %r1, %r1, 9, %q2;": 0xFFFFFFFF,
    "activemask.b32 %r1;": 0xFFFFFFFF,
    "@%q1 bra A; activemask.b32 %r1; bra B;\n A: activemask.b32 %r1; B:": np.where(LANES % 4 == 1, 0x22222222, 0xDDDDDDDD),
    "mov.u32 %r1, %laneid;": LANES,
    "mov.u32 %r1, %lanemask_lt;": [(1 << lane) - 1 for lane in range(32)],
    "mov.u32 %r1, %lanemask_ge;": [0xFFFFFFFF << lane & 0xFFFFFFFF for lane in range(32)],
    "bar.red.popc.u32 %r1, 0, %q1;": 8,
    "bar.red.or.pred %q2, 0, %q1; selp.b32 %r1, 1, 0, %q2;": 1,
    "bar.red.and.pred %q2, 0, %q1; selp.b32 %r1, 1, 0, %q2;": 0,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("text", _ANSWERS)
def test_answers(text, seed):
    np.testing.assert_array_equal(collect(LOW + text, seed=seed), np.broadcast_to(_ANSWERS[text], 32))


@pytest.mark.parametrize("seed", SEEDS)
def test_masks(seed):
    """Lanes of two masks shuffle apart from each other, at different instructions."""
    body = f"""shr.u32 %r2, {MASK}, %t; and.b32 %r2, %r2, 1; setp.eq.u32 %q1, %r2, 1; @%q1 bra A;
  vote.sync.ballot.b32 %r1, %q1, {~MASK & 0xFFFFFFFF}; bra B;
  A: vote.sync.ballot.b32 %r1, %q1, {MASK}; B:"""
    np.testing.assert_array_equal(collect(body, seed=seed), np.where(MASK >> LANES & 1, MASK, 0))


@pytest.mark.parametrize("seed", SEEDS)
def test_warp_that_is_not_full(seed):
    """Lanes that do not exist say nothing; what comes from one is all ones."""
    got = collect("setp.ge.u32 %q1, %t, 0; vote.sync.ballot.b32 %r1, %q1, -1;", 40, seed)
    np.testing.assert_array_equal(got, [0xFFFFFFFF] * 32 + [0xFF] * 8)
    got = collect("shfl.sync.down.b32 %r1, %t, 4, 31, -1;", 40, seed)[32:]
    np.testing.assert_array_equal(got, [36, 37, 38, 39] + [0xFFFFFFFF] * 4)


_ATOMICS = [
    ("add.u32", "u4", 10, 3, 13), ("add.u64", "u8", 1 << 40, 3, (1 << 40) + 3), ("add.f32", "f4", 1.5, 2.25, 3.75),
    ("add.f64", "f8", 0.1, 0.2, 0.1 + 0.2), ("min.s32", "i4", 4, -5, -5), ("max.u32", "u4", 4, 0xFFFFFFFF, 0xFFFFFFFF),
    ("max.s64", "i8", -4, 2, 2), ("and.b32", "u4", 12, 10, 8), ("or.b32", "u4", 12, 10, 14), ("xor.b64", "u8", 12, 10, 6),
    ("exch.b32", "u4", 5, 9, 9), ("inc.u32", "u4", 5, 5, 0), ("inc.u32", "u4", 4, 5, 5), ("dec.u32", "u4", 0, 7, 7),
    ("dec.u32", "u4", 3, 7, 2), ("add.noftz.f16", "f2", 1.5, 0.25, 1.75), ("add.noftz.bf16", "bfloat16", 1.5, 0.25, 1.75),
]


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("operation, dtype, old, operand, new", _ATOMICS)
def test_atomics(operation, dtype, old, operand, new, space):
    dtype = np.dtype(dtype)
    bits, register = 8 * dtype.itemsize, {2: "%h", 4: "%r", 8: "%d"}[dtype.itemsize]
    there, address = f"ld.global.b{bits} {register}0, [%p0]; ld.global.b{bits} {register}1, [%p1];", "%p0"
    if space == "shared":
        there, address = there + f"st.shared.b{bits} [buffer], {register}0;", "buffer"
    body = f"{there} atom.{space}.{operation} {register}2, [{address}], {register}1; st.global.b{bits} [%p1], {register}2;"
    if space == "shared":
        body += f"ld.shared.b{bits} {register}3, [buffer]; st.global.b{bits} [%p0], {register}3;"
    ptx = write_kernel(body, 2, declarations=".shared .align 8 .b8 buffer[8];")
    got, returned = launch(ptx, [np.array([old], dtype), np.array([operand], dtype)], block=1)
    assert got[0] == dtype.type(new) and returned[0] == dtype.type(old)


def test_compare_and_swap():
    body = "mov.u32 %r0, 7; mov.u32 %r1, 9; atom.global.cas.b32 %r2, [%p0], %r0, %r1; atom.cas.b32 %r3, [%p0], %r0, 5;"
    got = launch(write_kernel(body + "st.global.u32 [%p0+4], %r3;", 1), [np.array([7, 0], "u4")], block=1)[0]
    assert got.tolist() == [9, 9]


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics_of_many_threads(seed):
    body = "red.global.add.u32 [%p0], %t; red.global.max.u32 [%p0+4], %t; atom.global.add.noftz.f16x2 %r0, [%p0+8], 0x3C003C00;"
    got = launch(write_kernel(body, 1), [np.zeros(3, "u4")], 4, 64, seed=seed)[0]
    assert got[:2].tolist() == [4 * 63 * 32, 63]
    assert got[2:].view("f2").tolist() == [256, 256]


def test_dynamic_shared_memory():
    """It has the size that the launch says, and others lie apart."""
    body = """mov.u64 %d1, dynamic; add.u64 %d1, %d1, %t4; st.shared.u32 [%d1], %t; st.shared.u32 [fixed], 7;
  ld.shared.u32 %r1, [dynamic+124]; ld.shared.u32 %r2, [fixed]; add.u32 %r1, %r1, %r2; st.global.u32 [%p0], %r1;"""
    body = "setp.ne.u32 %q1, %t, 31; @%q1 ret;" + body
    outside = ".extern .shared .align 16 .b8 dynamic[]; .shared .align 4 .u32 fixed;"
    assert launch(write_kernel(body, 1, outside=outside), [np.zeros(1, "u4")], shared_bytes=128)[0] == [38]


def test_variables_of_a_module():
    """They have initial values, keep what is written to them, and are other ones on another device."""
    outside = """.global .align 4 .u32 counter = 5; .const .align 8 .f64 pair[2] = {0d3FF0000000000000, 2.5};
.global .align 8 .u64 place = generic(counter)+4; .global .align 4 .b8 text[8] = {104, 105, 0xFF, -1};
.global .align 1 .b8 bytes[8] = {0xFF(counter), 0xFF00(counter)};"""
    body = """ld.const.f64 %d0, [pair+8]; st.global.f64 [%p0], %d0; atom.global.add.u32 %r0, [counter], 1;
  st.global.u32 [%p0+8], %r0; ld.global.u32 %r1, [text]; st.global.u32 [%p0+12], %r1; ld.global.u64 %d1, [place];
  mov.u64 %d2, counter; sub.u64 %d3, %d1, %d2; st.global.u32 [%p0+16], %d3; ld.global.u16 %r2, [bytes];
  cvt.u32.u16 %r3, %d2; sub.u32 %r3, %r3, %r2; st.global.u32 [%p0+20], %r3;"""
    device, ptx = EmulatedDevice(), write_kernel(body, 1, outside=outside.replace("align 1 ", "align 2 "))
    module = device.load(ptx)
    for count, where in ((5, device), (6, device), (5, EmulatedDevice())):
        got = launch(ptx, [np.zeros(6, "u4")], block=1, device=where)[0]
        assert got[:2].view("f8") == [2.5] and got[2:].tolist() == [count, 0xFFFF6968, 4, 0]
    assert device.load(ptx) is module
    del module  # with what it has, as soon as nobody else has it
    got = launch(ptx, [np.zeros(6, "u4")], block=1, device=device)[0]
    assert got[2] == 5


def test_asynchronous_copies():
    body = """mov.u64 %d1, buffer; mul.wide.u32 %d2, %t, 16; add.u64 %d1, %d1, %d2; add.u64 %d2, %p0, %d2;
  cp.async.cg.shared.global.L2::128B [%d1], [%d2], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
  mov.u32 %r9, 0; setp.eq.u32 %q1, %t, 1; @%q1 mov.u32 %r9, 4; cvt.u32.u64 %r8, %d1; cp.async.ca.shared.global [%r8], [%d2], 8, %r9;
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%d1]; st.global.v4.u32 [%d2], {%r0, %r1, %r2, %r3};"""
    x = np.arange(1, 9, dtype="u4")
    got = launch(write_kernel(body, 1, declarations=".shared .align 16 .b8 buffer[32];"), [x], block=2)[0]
    assert got.tolist() == [0, 0, 3, 4, 5, 0, 7, 8]


@pytest.mark.parametrize(
    "kind, size", [("v2.u32", 8), ("v4.u16", 8), ("v2.b64", 16), ("L1::no_allocate.v4.f32", 16)]
)
def test_vectors(kind, size):
    count, register = int(kind[kind.index("v") + 1]), "%h" if "16" in kind else "%d" if "64" in kind else "%r"
    if "L1" in kind:
        count = 4
    registers = "{" + ", ".join(f"{register}{place}" for place in range(count)) + "}"
    body = f"ld.global.nc.{kind} {registers}, [%p0]; st.global.{kind} [%p0+{size}], {registers};"
    x = np.arange(2 * size, dtype="u1")
    assert launch(write_kernel(body, 1), [x], block=1)[0].tolist() == [*range(size)] * 2


def test_narrow_loads_and_stores():
    body = """ld.global.s8 %r0, [%p0]; st.global.u32 [%p0+4], %r0; ld.global.u8 %h1, [%p0]; st.global.u16 [%p0+8], %h1;
  ld.global.s16 %d3, [%p0]; st.global.u64 [%p0+16], %d3; ld.volatile.global.u8 %r4, [%p0+1]; st.wt.global.u8 [%p0+24], %r4;"""
    got = launch(write_kernel(body, 1), [np.array([0x80FE] + [0] * 6, "u4")], block=1)[0]
    assert got.tolist() == [0x80FE, 0xFFFFFFFE, 0xFE, 0, 0xFFFF80FE, 0xFFFFFFFF, 0x80]


def test_extents():
    """x, y and z of threads and blocks."""
    body = """mov.u32 %r0, %tid.y; mov.u32 %r1, %tid.z; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
  mov.u32 %r5, %ntid.x; mov.u32 %r6, %ntid.y; mov.u32 %r7, %ntid.z; mov.u32 %r8, %nctaid.x; mov.u32 %r9, %nctaid.y;
  mad.lo.u32 %r4, %r4, %r9, %r3; mad.lo.u32 %r4, %r4, %r8, %r2; mad.lo.u32 %r4, %r4, %r7, %r1; mad.lo.u32 %r4, %r4, %r6, %r0;
  mad.lo.u32 %r4, %r4, %r5, %t; mul.wide.u32 %d0, %r4, 4; add.u64 %d0, %d0, %p0; st.global.u32 [%d0], %r4;"""
    got = launch(
        write_kernel(body, 1), [np.zeros(2 * 3 * 2 * 4 * 2 * 3, "u4")], (2, 3, 2), (4, 2, 3), seed=3
    )[0]
    np.testing.assert_array_equal(got, np.arange(len(got)))


def test_parameters_of_few_bytes():
    ptx = write_kernel("", 1).replace(
        "k_0)", "k_0, .param .u32 k_1, .param .f64 k_2, .param .u8 k_3, .param .align 2 .b8 k_4[2])"
    )
    body = """ld.param.u32 %r0, [k_1]; ld.param.f64 %d0, [k_2]; ld.param.u8 %r1, [k_3]; ld.param.b16 %h0, [k_4];
  st.global.f64 [%p0], %d0; st.global.u32 [%p0+8], %r0; st.global.u32 [%p0+12], %r1; st.global.b16 [%p0+16], %h0;"""
    arguments = [np.zeros(3), np.int32(-2), np.float64(0.3), np.uint8(200), np.float16(1.5)]
    got = launch(ptx.replace("ret;", body + "ret;"), arguments, block=1)[0]
    assert (
        got[0] == 0.3 and got[1:2].view("u4").tolist() == [0xFFFFFFFE, 200] and got[2:].view("f2")[0] == 1.5
    )


def test_called_function_with_local_memory():
    """A function with registers of its own, an array on the stack, and loops."""
    outside = """.func (.param .b32 sum) add_up (.param .b32 count, .param .b64 place)
{
  .local .align 4 .b8 depot[64]; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %q;
  ld.param.b32 %r0, [count]; mov.u32 %r1, 0; mov.u64 %d0, depot;
L: mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; st.local.u32 [%d1], %r0; ld.local.u32 %r2, [%d1]; add.u32 %r1, %r1, %r2;
  sub.u32 %r0, %r0, 1; setp.ne.u32 %q, %r0, 0; @%q bra L;
  ld.param.b64 %d2, [place]; st.u32 [%d2], %r1; st.param.b32 [sum], %r1; ret;
}"""
    body = """.local .align 4 .b8 mine[4]; mov.u64 %d0, mine; cvta.local.u64 %d0, %d0; add.u32 %r0, %t, 1;
  { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r0; st.param.b64 [b+0], %d0; call.uni (c), add_up, (a, b); ld.param.b32 %r1, [c]; }
  bar.sync 0; ld.local.u32 %r2, [mine]; add.u32 %r1, %r1, %r2;"""
    np.testing.assert_array_equal(collect(body, 10, outside=outside), [n * (n + 1) for n in range(1, 11)])


def test_scopes_of_registers():
    """Blocks in braces have registers of their own, of which an outer one has the name too."""
    body = "mov.u32 %r1, 5; { .reg .b64 %r1; .reg .b64 x; mov.u64 %r1, 7; mov.u64 x, %r1; } { .reg .b32 x; mov.u32 x, 1; add.u32 %r1, %r1, x; }"
    assert collect(body, 1) == [6]


def test_texts_are_translated_once(monkeypatch):
    from jitcore.backends.cuda.emulated import module

    ptx, compiled = write_kernel("mov.u32 %r0, 12345;", 1), []
    monkeypatch.setattr(
        module,
        "compile_text",
        lambda text, owner, compile_text=module.compile_text: compiled.append(text) or compile_text(text, owner),
    )
    first = EmulatedDevice()
    assert first.load(ptx) is (found := first.load(ptx)) and EmulatedDevice().load(ptx) is not found
    assert len(compiled) == 1


def test_bfloat16_is_known():
    assert np.dtype("bfloat16") == ml_dtypes.bfloat16
