"""What is wrong with a kernel, a launch or a text is found, and said with kernel, block, thread and line."""

import numpy as np
import pytest

from jitcore.backends.cuda.emulated import DeviceError, EmulatedDevice
from tests.backends.cuda.emulated.programs import HEADER, launch, write_kernel

SHARED = ".shared .align 8 .b8 buffer[256]; .shared .align 4 .b8 other[16];"
#: The address of the thread's word in shared memory is in %d1, of the one of its neighbour in %d2.
PLACES = """mov.u64 %d0, buffer; add.u64 %d1, %d0, %t4; xor.b32 %r0, %t, 1; mul.wide.u32 %d2, %r0, 4;
  add.u64 %d2, %d0, %d2;"""

MULTIPLY = """mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3},
  {%r0, %r1}, {%r0, %r1, %r2, %r3};"""

_WRONG = {
    "past the end": (
        "add.u64 %d0, %p0, %t4;\n ld.global.u32 %r0, [%d0+4];", 32, 1,
        ["kernel k, block (0, 0, 0), thread (31, 0, 0) reads 4 bytes at 0x", "4 bytes past the end of the allocation of 128",
         "PTX line ", "ld.global.u32 %r0, [%d0+4];"]),
    "before the start": ("st.global.u32 [%p0+-8], %t;", 1, 1, ["thread (0, 0, 0) writes 4 bytes", "8 bytes before the allocation"]),
    "half outside": ("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%p0+128];", 1, 1, ["reads 16 bytes", "16 bytes past the end"]),
    "far away": ("ld.u32 %r0, [12345678];", 1, 1, ["reads 4 bytes at 0xbc614e, far from every allocation"]),
    "not aligned": ("ld.global.u32 %r0, [%p0+2];", 1, 1, ["reads 4 bytes", "byte 2 of the allocation", "no multiple"]),
    "vector not aligned": ("ld.global.v2.u64 {%d0, %d1}, [%p0+8];", 1, 1, ["reads 16 bytes", "no multiple"]),
    "past shared memory": ("st.shared.u32 [buffer+256], %t;", 1, 1, ["past the end of shared memory buffer of 256 bytes"]),
    "generic to shared": (
        "mov.u64 %d0, buffer; cvta.shared.u64 %d0, %d0; st.u32 [%d0+260], %t;", 1, 1, ["8 bytes past the end of shared memory buffer"]),
    "shared as global": (
        "mov.u64 %d0, buffer; cvta.shared.u64 %d0, %d0; st.global.u32 [%d0], %t;", 1, 1, ["names another space"]),
    "offset as generic": ("mov.u64 %d0, buffer; st.u32 [%d0], %t;", 1, 1, ["writes 4 bytes at 0x"]),
    "unwritten": (f"{PLACES} ld.shared.u32 %r0, [%d1];", 1, 1, ["no thread of the block has written there", "shared memory buffer"]),
    "constant": ("mov.u64 %d0, fixed; st.u32 [%d0], %t;", 1, 1, ["variable fixed of 8 bytes", "constant memory cannot be written"]),
    "stack": (
        ".local .align 8 .b8 depot[16]; add.u32 %r1, %t, 2; mul.wide.u32 %d0, %r1, 8; mov.u64 %d1, depot; add.u64 %d1, %d1, %d0;"
        "st.local.u32 [%d1], %t;", 8, 1, ["local memory of another thread"]),
    "trap": ("setp.eq.u32 %q0, %t, 3; @%q0 trap;", 8, 1, ["thread (3, 0, 0): trap", "@%q0 trap"]),
    "barrier for some": (
        "setp.lt.u32 %q0, %t, 7; @%q0 bra A;\n bar.sync 0;\n bra B;\n A:\n bar.sync 0;\n B: st.global.u32 [%p0], %r0;", 32, 1,
        ["wait for each other for ever, a barrier in divergent code", "7 threads, the first one (0, 0, 0), wait at PTX line", "25 threads"]),
    "barrier and shuffle": (
        "setp.lt.u32 %q0, %t, 7; @%q0 bra A;\n bar.sync 0;\n A: shfl.sync.bfly.b32 %r0, %t, 1, 31, -1;", 32, 1,
        ["lanes are missing at a collective", "7 threads", "bar.sync 0", "shfl.sync.bfly"]),
    "masks that differ": (
        "setp.lt.u32 %q0, %t, 7; selp.b32 %r1, 1, -1, %q0; shfl.sync.idx.b32 %r0, %t, 0, 31, %r1;", 32, 1, ["lanes are missing"]),
    "product of some lanes": (
        f"setp.lt.u32 %q0, %t, 7; @%q0 bra A;\n {MULTIPLY} A:", 32, 1,
        ["lanes are missing at a collective instruction", "25 threads", "7 threads", "have ended", "mma.sync"]),
    "product under a guard": (f"setp.ne.u32 %q0, %t, 7;\n @%q0 {MULTIPLY} bar.sync 0;", 32, 1, ["lanes are missing", "31 threads"]),
    "products that differ": (
        f"setp.lt.u32 %q0, %t, 7; @%q0 bra A;\n {MULTIPLY} bra B;\n A: {MULTIPLY} B:", 32, 1, ["lanes are missing", "7 threads", "25 threads"]),
    "product of a warp that is not full": (f"\n{MULTIPLY}", 48, 1, ["lanes are missing", "16 threads", "mma.sync"]),
    "named barrier": ("bar.sync 1, 96;", 64, 1, ["barrier in divergent code", "64 threads", "bar.sync 1, 96"]),
    "endless": ("L: add.u32 %r0, %r0, 1; bra L;", 2, 1, ["thread (0, 0, 0) never ends", "jumps backwards", "bra L"]),
    "endless barrier": ("L: bar.sync 0; bra L;", 2, 1, ["never ends"]),
    "waits for a later block": (
        "mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r2, 4; add.u64 %d2, %d2, %p0; st.volatile.global.u32 [%d2], 1;\n"
        "L: ld.volatile.global.u32 %r0, [%p0+4]; setp.ne.u32 %q0, %r0, 1; @%q0 bra L;", 1, 2,
        ["block (0, 0, 0), thread (0, 0, 0) never ends", "a later block"]),
    "race on shared memory": (
        f"{PLACES} st.shared.u32 [%d1], %t; bar.sync 0; and.b32 %r1, %t, 1; setp.eq.u32 %q0, %r1, 0;\n"
        "@%q0 ld.shared.u32 %r1, [%d2];\n @!%q0 st.shared.u32 [%d1], %t;", 64, 1,
        ["thread (1, 0, 0) writes 4 bytes", "byte 4 of shared memory buffer", "no barrier stands between", "read by block (0, 0, 0), thread (0, 0, 0)\n    PTX line"]),
    "race within a warp": (
        f"{PLACES} st.shared.u32 [%d1], %t; bar.sync 0; st.shared.u32 [%d1], %t; shfl.sync.idx.b32 %r0, %t, 0, 31, -1; ld.shared.u32 %r1, [%d2];", 32, 1,
        ["reads 4 bytes", "written by block (0, 0, 0), thread (1, 0, 0)"]),
    "warp barrier between warps": (
        f"{PLACES} st.shared.u32 [%d1], %t; bar.sync 0; st.shared.u32 [%d1], 1; bar.warp.sync -1; xor.b32 %r0, %t, 32; mul.wide.u32 %d2, %r0, 4;"
        "add.u64 %d2, %d0, %d2; ld.shared.u32 %r1, [%d2];", 64, 1, ["reads 4 bytes", "written by block (0, 0, 0), thread"]),
    "race on a byte": ("st.global.u8 [%p0+5], %t;", 2, 1, ["writes 1 bytes", "written by block (0, 0, 0), thread (0, 0, 0)"]),
    "race on global memory": ("st.global.u32 [%p0], %t;", 2, 1, ["thread (1, 0, 0) writes", "written by block (0, 0, 0), thread (0, 0, 0)"]),
    "race of blocks": ("st.global.u32 [%p0], %t;", 1, 2, ["block (1, 0, 0), thread (0, 0, 0) writes", "written by block (0, 0, 0), thread (0, 0, 0)"]),
    "race with an atomic": (
        "setp.eq.u32 %q0, %t, 1; @%q0 bra A; red.global.add.u32 [%p0], 1; bra B; A: ld.global.u32 %r0, [%p0]; B: mov.u32 %r1, 0;", 2, 1,
        ["reads 4 bytes", "written by block (0, 0, 0), thread (0, 0, 0)"]),
    "flag without a fence": (
        "mov.u32 %r1, %ctaid.x; setp.ne.u32 %q0, %r1, 0; @%q0 bra A; st.global.u32 [%p0], 7; red.global.add.u32 [%p0+4], 1; bra B;"
        "A: atom.global.add.u32 %r2, [%p0+4], 0; ld.global.u32 %r0, [%p0]; B: mov.u32 %r1, 0;", 1, 2,
        ["block (1, 0, 0)", "reads 4 bytes", "written by block (0, 0, 0)"]),
    "data without a flag": (
        "mov.u32 %r1, %ctaid.x; setp.ne.u32 %q0, %r1, 0; @%q0 bra A; st.global.u32 [%p0], 7; membar.gl; red.global.add.u32 [%p0+4], 1; bra B;"
        "A: ld.global.u32 %r0, [%p0]; B: mov.u32 %r1, 0;", 1, 2, ["block (1, 0, 0)", "reads 4 bytes", "written by block (0, 0, 0)"]),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_kernels(name, monkeypatch):
    monkeypatch.setattr(EmulatedDevice, "step_limit", 20_000)
    body, block, grid, parts = _WRONG[name]
    ptx = write_kernel(body, 1, declarations=SHARED, outside=".const .align 4 .b8 fixed[8] = {1, 2, 3};")
    with pytest.raises(DeviceError) as caught:
        launch(ptx, [np.zeros(32, "u4")], grid, block)
    assert all(part in str(caught.value) for part in parts), caught.value


_RIGHT = {
    "barrier orders": f"{PLACES} st.shared.u32 [%d1], %t; bar.sync 0; ld.shared.u32 %r1, [%d2];",
    "warp barrier orders": f"{PLACES} st.shared.u32 [%d1], %t; bar.warp.sync -1; ld.shared.u32 %r1, [%d2]; bar.warp.sync -1; st.shared.u32 [%d1], 0;",
    "own memory": f"{PLACES} st.shared.u32 [%d1], %t; ld.shared.u32 %r1, [%d1]; st.shared.u32 [%d1], 2;",
    "atomics": "red.global.add.u32 [%p0], 1; atom.global.max.u32 %r0, [%p0], %t; ld.volatile.global.u32 %r1, [%p0];",
    "bytes of a word": "cvt.u64.u32 %d0, %t; add.u64 %d0, %p0, %d0; st.global.u8 [%d0], %t; ld.global.u8 %r0, [%d0];",
    "threads that have ended": "setp.gt.u32 %q0, %t, 40; @%q0 ret; bar.sync 0; shfl.sync.idx.b32 %r0, %t, 0, 31, -1; vote.sync.ballot.b32 %r1, %q0, -1;",
    "named barriers": "setp.lt.u32 %q0, %t, 32; @%q0 bra A; bar.sync 1, 32; bra B; A: bar.sync 2, 32; B: bar.sync 0;",
    "flag of another block": "mov.u32 %r1, %ctaid.x; setp.ne.u32 %q0, %r1, 0; setp.eq.and.u32 %q1, %t, 0, %q0; @%q0 bra A; setp.ne.u32 %q2, %t, 0; @%q2 ret;"
    "st.global.u32 [%p0], 7; fence.acq_rel.gpu; red.global.add.u32 [%p0+4], 1; ret;"
    "A: @%q1 ld.acquire.gpu.global.u32 %r2, [%p0+4]; bar.sync 0; ld.global.u32 %r0, [%p0];",
    "release without a fence": "mov.u32 %r1, %ctaid.x; setp.ne.u32 %q0, %r1, 0; setp.ne.u32 %q2, %t, 0; @%q2 ret; @%q0 bra A; st.global.u32 [%p0], 7;"
    "st.release.gpu.global.u32 [%p0+4], 1; ret; A: ld.acquire.gpu.global.u32 %r2, [%p0+4]; ld.global.u32 %r0, [%p0];",
}


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", _RIGHT)
def test_right_kernels(name, seed):
    """Nothing is said where nothing is wrong; the order of blocks matters to those with flags, which have no random one."""
    ptx = write_kernel(_RIGHT[name], 1, declarations=SHARED)
    launch(
        ptx,
        [np.zeros(32, "u4")],
        2 if "block" in name or "fence" in name else 1,
        64,
        seed=None if "fence" in name else seed,
    )


_UNKNOWN = {
    "unknown instruction": "wgmma.fence.sync.aligned;",
    "unknown modifier .v3": "ld.global.v3.u32 %r0, [%p0];",
    "rounding .rm": "tanh.rm.f32 %r0, %r1;",
    "unknown name nothing": "mov.u64 %d0, nothing;",
    "unknown register %clock": "mov.u32 %r0, %clock;",
    "unknown register %z9": "mov.u32 %z9, 3;",
    "unknown address": "ld.global.u32 %r0, %d0;",
    "a call of away": "call.uni away, (%d0);",
    "unknown modifier .tex": "ld.tex.u32 %r0, [%d0];",
    "unknown form of the instruction": "setp.almost.f32 %q0, %r0, %r1;",
    "unknown modifier .lo": "mul.lo.f32 %r0, %r1, %r2;",
    "no type": "add %r0, %r1, %r2;",
    "unknown types of matrices": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r0, %r1}, {%r2}, {%r3}, {%r4};",
    "unknown modifier .m16n8k8": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1}, {%r2}, {%r3}, {%r0, %r1};",
}


@pytest.mark.parametrize("reason", _UNKNOWN)
def test_what_is_not_known(reason):
    with pytest.raises(DeviceError, match="PTX line 20") as caught:
        EmulatedDevice().load(write_kernel("\n" + _UNKNOWN[reason], 1))
    assert reason in str(caught.value) and _UNKNOWN[reason].rstrip(";") in str(caught.value)


def test_barrier_in_a_called_function():
    outside = ".func f ()\n{\n bar.sync 0;\n ret;\n}"
    with pytest.raises(DeviceError, match="f is called, but only kernels can wait"):
        EmulatedDevice().load(write_kernel("call.uni f;", 0, outside=outside))


def test_launches():
    device = EmulatedDevice()
    ptx = write_kernel("", 1).replace("u64 k_0)", "u64 k_0)\n.maxntid 64, 1, 1")
    ptx += ".visible .entry wide(.param .align 8 .b8 w[24])\n{\n ret;\n}\n"
    module = device.load(ptx)
    kernel, wide, argument = module.find_kernel("k"), module.find_kernel("wide"), np.zeros(1, np.uint64)
    for arguments, message in [
        ((kernel, (1, 1, 1), (128, 1, 1), argument), "128 threads in a block, at most 64"),
        ((kernel, (0, 1, 1), (1, 1, 1), argument), "a grid of (0, 1, 1)"),
        ((kernel, (1, 1, 1), (1, 1, 65), argument), "a block of (1, 1, 65)"),
        ((kernel, (1, 1, 1), (1, 1, 1), argument[:0]), "0 arguments for 1 parameters"),
        ((kernel, (1, 1, 1), (1, 1, 1), argument, 1 << 20), "1048576 bytes of shared memory"),
        ((wide, (1, 1, 1), (1, 1, 1), argument), "more than eight bytes"),
    ]:
        with pytest.raises(DeviceError) as caught:
            device.launch(*arguments)
        assert message in str(caught.value)
    with pytest.raises(DeviceError, match="no kernel other, only k, wide"):
        module.find_kernel("other")
    with pytest.raises(DeviceError, match="no variable or function\n    PTX line 4: nonsense"):
        device.load(HEADER + "nonsense;")


def test_allocations():
    device = EmulatedDevice()
    empty, address = device.allocate(0), device.allocate(100)
    assert address % 256 == 0 and empty != address
    poison = np.zeros(25, "f4")
    device.copy_out(poison, address)
    assert np.isnan(poison).all()
    device.copy_in(address + 4, np.arange(24, dtype="f4"))
    device.copy(address, address + 4, 12)
    device.copy_out(poison, address)
    assert poison[:5].tolist() == [0, 1, 2, 2, 3]
    device.copy_in(empty, poison[:0])
    for wrong, message in [
        (
            lambda: device.copy_in(address, np.zeros(26, "f4")),
            "copy of 104 bytes at .*, 4 bytes past the end of the allocation of 100",
        ),
        (lambda: device.copy_out(poison, empty), "copy of 100 bytes"),
        (lambda: device.copy_in(address, np.zeros((4, 4), "f4").T), "C-contiguous"),
        (lambda: device.free(address + 4), "no allocation begins, byte 4 of the allocation"),
        (lambda: device.allocate(-1), "-1 bytes"),
    ]:
        with pytest.raises(DeviceError, match=message):
            wrong()
    device.free(address)
    ptx = write_kernel("ld.global.u32 %r0, [%p0+8];", 1)
    with pytest.raises(
        DeviceError, match="byte 8 of the allocation of 100 bytes at 0x.*, which has been freed"
    ):
        device.launch(device.load(ptx).find_kernel("k"), (1, 1, 1), (1, 1, 1), np.array([address], np.uint64))
    with pytest.raises(DeviceError, match="has been freed"):
        device.free(address)


def test_a_device_goes_on_after_an_error():
    device = EmulatedDevice()
    bad, good = write_kernel("st.global.u32 [%p0+1], %t;", 1), write_kernel("st.global.u32 [%p0], 5;", 1)
    with pytest.raises(DeviceError):
        launch(bad, [np.zeros(1, "u4")], device=device, block=1)
    assert launch(good, [np.zeros(1, "u4")], device=device, block=1)[0] == [5]


def test_without_races():
    ptx = write_kernel("st.global.u32 [%p0], 5; ld.shared.u32 %r0, [buffer];", 1, declarations=SHARED)
    assert launch(ptx, [np.zeros(1, "u4")], check_races=False)[0] == [5]
