"""Native code of the CPU backend: compiling, linking, launching, and facts about the processor."""

import ctypes
import gc
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import libraries, objects, translate
from jitcore.backends.cpu.runtime import launch

ADD = """
declare double @llvm.fma.f64(double, double, double)
declare double @cbrt(double)

define internal double @helper(double %x) alwaysinline {
  %y = call double @llvm.fma.f64(double %x, double 2.0, double 1.0)
  ret double %y
}

define double @twice_plus_one(double %x) {
  %slot = alloca double
  store double %x, ptr %slot
  %read = load double, ptr %slot
  %y = call double @helper(double %read)
  ret double %y
}

define double @cube_root(double %x) {
  %y = call double @cbrt(double %x)
  ret double %y
}
"""

# entry(buffers, dims): the third buffer's first element becomes the sum of the others'; returns dims[0].
SUM = """
define i64 @sum(ptr %buffers, ptr %dims) {
  %a.at = load ptr, ptr %buffers
  %b.slot = getelementptr ptr, ptr %buffers, i64 1
  %b.at = load ptr, ptr %b.slot
  %c.slot = getelementptr ptr, ptr %buffers, i64 2
  %c.at = load ptr, ptr %c.slot
  %a = load double, ptr %a.at
  %b = load double, ptr %b.at
  %c = fadd double %a, %b
  store double %c, ptr %c.at
  %status = load i64, ptr %dims
  ret i64 %status
}

define i64 @ignore(ptr %buffers, ptr %dims) {
  ret i64 0
}
"""

VECTOR = """
define void @scale(ptr %p) {
  %x = load <16 x float>, ptr %p, align 4
  %y = fmul <16 x float> %x, %x
  store <16 x float> %y, ptr %p, align 4
  ret void
}
"""

SCALAR_LOOP = """
define void @double_all(ptr noalias %p, ptr noalias %q, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p.at = getelementptr inbounds float, ptr %p, i64 %i
  %q.at = getelementptr inbounds float, ptr %q, i64 %i
  %x = load float, ptr %p.at
  %y = fadd float %x, %x
  store float %y, ptr %q.at
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


ABSENT = "declare void @jitcore_absent()\ndefine void @f() {\n  call void @jitcore_absent()\n  ret void\n}\n"


def call_scalar(library, symbol, value):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address(symbol))(value)


@pytest.mark.parametrize("opt_level", [None, 0, 1, 2, 3])
def test_compile_every_level(opt_level):
    library = libraries.compile_module(ADD, "add", opt_level=opt_level)
    assert library.symbols == ("twice_plus_one", "cube_root")
    assert call_scalar(library, "twice_plus_one", 3.5) == 8.0
    assert call_scalar(library, "cube_root", 27.0) == pytest.approx(3.0, rel=1e-15)


def test_compile_llvmlite_module():
    import llvmlite.ir as ir

    module = ir.Module("m")
    function = ir.Function(module, ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]), "negate")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.fneg(function.args[0]))
    assert call_scalar(libraries.compile_module(module, "negate"), "negate", 2.0) == -2.0


def test_equal_names_do_not_clash():
    def make(constant):
        text = f"define double @f(double %x) {{\n  %y = fadd double %x, {constant}\n  ret double %y\n}}\n"
        return libraries.compile_module(text, "f")

    one, two = make("1.0"), make("2.0")
    assert (call_scalar(one, "f", 0.0), call_scalar(two, "f", 0.0)) == (1.0, 2.0)


def test_default_level_cleans():
    text = libraries.compile_module(ADD, "add").optimized_ir()
    assert "alloca" not in text and "@helper" not in text
    assert "alloca" in libraries.compile_module(ADD, "add", opt_level=0).optimized_ir()


def test_level_three_vectorises_scalar_loops():
    # LLVM prefers narrower vectors than there are on all processors with AVX-512 but Zen
    width = host.native_vector_bytes() if host.is_zen() else min(32, host.native_vector_bytes())
    assert f"<{width // 4} x float>" in libraries.compile_module(SCALAR_LOOP, "loop", opt_level=3).optimized_ir()
    assert "x float>" not in libraries.compile_module(SCALAR_LOOP, "loop", opt_level=1).optimized_ir()


def test_modules_that_are_optnone_are_generated_quickly():
    seldom = "define double @f(double %x) noinline optnone {\n  %y = fadd double %x, 1.0\n  ret double %y\n}\n"
    often = seldom.replace("@f", "@g").replace(" noinline optnone", "")
    library = libraries.compile_module(seldom, "seldom")
    assert call_scalar(library, "f", 2.0) == 3.0
    target = translate.open_target()
    assert target.choose_machine(seldom) is target.quick_machine
    assert target.choose_machine(often) is target.choose_machine(seldom + often) is target.machine


def test_explicit_vectors_use_whole_registers():
    library = libraries.compile_module(VECTOR, "vector")
    if host.native_vector_bytes() == 64:
        assert "zmm" in library.assembly()
    x = np.arange(16, dtype=np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("scale"))(x.ctypes.data)
    np.testing.assert_array_equal(x, np.arange(16, dtype=np.float32) ** 2)


@pytest.mark.parametrize("cpu", ["skylake-avx512", "znver4"])
def test_processors_that_prefer_narrow_vectors_still_get_wide_ones(cpu):
    """Kernels carry no "prefer-vector-width": explicit vectors must not need it."""
    import llvmlite.binding as llvm

    translate.describe_target()  # initialises LLVM
    if not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("x86-64 processors")
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=cpu)
    assembly = machine.emit_assembly(llvm.parse_assembly(VECTOR))
    assert "zmm" in assembly and "ymm" not in assembly


def test_code_is_freed_with_its_library():
    library = libraries.compile_module(ADD, "add")
    code = weakref.ref(library._code)
    del library
    gc.collect()
    assert code() is None


def test_compile_from_many_threads():
    def compile_constant(value):
        text = f"define double @f(double %x) {{\n  ret double {float(value)!r}\n}}\n"
        return call_scalar(libraries.compile_module(text, "constant"), "f", 0.0)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(compile_constant, range(40))) == list(range(40))


@pytest.mark.parametrize(("ir", "message"), [
    ("define nonsense", "LLVM refuses the IR"),
    ("define double @f() {\n  %x = fadd double 1.0, 1.0\n}\n", "LLVM refuses the IR"),
    (ABSENT,
     "calls jitcore_absent, which no loaded library defines"),
])
def test_errors_name_the_cause(ir, message):
    with pytest.raises(libraries.NativeCodeError, match=message):
        libraries.compile_module(ir, "bad")


def test_unknown_symbol_and_level():
    with pytest.raises(libraries.NativeCodeError, match="exports twice_plus_one, cube_root, not 'nothing'"):
        libraries.compile_module(ADD, "add").address("nothing")
    with pytest.raises(ValueError, match="opt_level is 0, 1, 2 or 3, not 4"):
        libraries.compile_module(ADD, "add", opt_level=4)


@pytest.mark.parametrize(("target", "bits_of_cases"), [
    ("half", {1 + 2**-11: 0x3C00, 1 + 2**-11 + 1e-15: 0x3C01, 65519.9999999: 0x7BFF, 65520.0: 0x7C00,
              2**-25: 0, 2**-25 * (1 + 1e-15): 1, -1e-320: 0x8000, 1e300: 0x7C00, -np.inf: 0xFC00}),
    ("bfloat", {1 + 2**-8: 0x3F80, 1 + 2**-8 + 1e-15: 0x3F81, 1e300: 0x7F80, -0.0: 0x8000}),
])
def test_narrowing_doubles_rounds_once(target, bits_of_cases):
    text = f"""
    define i16 @narrow(double %x) {{
      %y = fptrunc double %x to {target}
      %bits = bitcast {target} %y to i16
      ret i16 %bits
    }}
    """
    library = libraries.compile_module(text, "narrow")
    narrow = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_double)(library.address("narrow"))
    assert {x: narrow(x) for x in bits_of_cases} == bits_of_cases


def test_llvm_links_what_the_own_linker_does_not_understand(monkeypatch):
    def refuse(data):
        raise objects.UnknownObjectError("for a test")

    monkeypatch.setattr(objects, "link_object", refuse)
    library = libraries.compile_module(ADD, "add")
    assert library.symbols == ("twice_plus_one", "cube_root")
    assert call_scalar(library, "twice_plus_one", 3.5) == 8.0
    assert call_scalar(library, "cube_root", 27.0) == pytest.approx(3.0, rel=1e-15)
    with pytest.raises(libraries.NativeCodeError, match="calls jitcore_absent, which no loaded library defines"):
        libraries.compile_module(ABSENT, "bad")


def test_import_starts_no_compiler():
    code = (
        "import sys; from jitcore.backends.cpu.machine import host as cpuinfo; from jitcore.backends.cpu.runtime import launch, threads; from jitcore.backends.cpu.native import libraries as native;"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


@pytest.fixture(scope="module")
def sums():
    return libraries.compile_module(SUM, "sum")


def list_launchers():
    """Both native launchers and the fallback, which must behave alike."""
    return [
        pytest.param(lambda: launch.open_launchers().holding, id="holding"),
        pytest.param(lambda: launch.open_launchers().releasing, id="releasing"),
        pytest.param(lambda: launch._make_ctypes_launcher(ctypes.CFUNCTYPE), id="ctypes"),
    ]


every_launcher = pytest.mark.parametrize("open_launcher", list_launchers())


class Subclass(np.ndarray):
    pass


def test_launchers_are_native_here():
    assert launch.open_launchers().kind == "native"
    assert launch.open_launchers() is launch.open_launchers()


@every_launcher
def test_launch_passes_pointers_and_status(open_launcher, sums):
    call = open_launcher()
    dims = np.array([-7])
    out = np.zeros(3)
    arrays = (np.array([9.0, 1.5])[1:], np.array([2.0]).view(Subclass), out[2:])
    assert call(sums.address("sum"), dims.ctypes.data, *arrays) == -7
    np.testing.assert_array_equal(out, [0.0, 0.0, 3.5])
    assert call(sums.address("ignore"), 0) == 0
    many = [np.zeros(1)] * launch.MAX_ARRAYS
    assert call(sums.address("ignore"), 0, *many) == 0


@every_launcher
def test_launch_refuses_wrong_arguments(open_launcher, sums):
    call, address = open_launcher(), sums.address("ignore")
    array = np.zeros(1)
    for bad in ([1.0], None, "text", bytearray(8), np.dtype("float64")):
        with pytest.raises(TypeError, match=r"launch\(\) argument 3 must be a numpy.ndarray, not <class"):
            call(address, 0, array, bad)
    too_many = (address, 0, *[array] * (launch.MAX_ARRAYS + 1))
    is_native = call is not None and type(call).__name__ == "builtin_function_or_method"
    for arguments in ((), (address,), *([too_many] if is_native else [])):
        with pytest.raises(TypeError, match=f"2 addresses and at most 4096 arrays, got {len(arguments)} arg"):
            call(*arguments)
    for arguments in (("text", 0), (address, "text"), (1.5, 0), (address, None)):
        with pytest.raises(TypeError):
            call(*arguments)
    with pytest.raises(ValueError, match="entry address 0"):
        call(0, 0, array)


def test_numbers_are_passed_where_they_lie(sums):
    call, out, dims = launch.open_launchers().holding, np.zeros(1), np.array([5])
    for one, other in ((1.5, np.float64(2.0)), (np.array(1.5), 2.0), (np.float64(1.5), complex(2.0, 7.0))):
        assert call(sums.address("sum"), dims.ctypes.data, one, other, out) == 5
        assert out[0] == 3.5
    bits = int(np.array(2.5).view(np.int64))
    for whole, found in ((bits, 2.5), (True, 5e-324), (False, 0.0)):
        call(sums.address("sum"), dims.ctypes.data, whole, 0.0, out)
        assert out[0] == found
    with pytest.raises(OverflowError):
        call(sums.address("ignore"), 0, 2**63)


@every_launcher
def test_launch_keeps_reference_counts(open_launcher, sums):
    call, array = open_launcher(), np.zeros(1)
    before = sys.getrefcount(array), sys.getrefcount(np.ndarray), sys.getrefcount(TypeError)
    for _ in range(100):
        call(sums.address("ignore"), 0, array)
        with pytest.raises(TypeError):
            call(sums.address("ignore"), 0, array, [])
    after = sys.getrefcount(array), sys.getrefcount(np.ndarray), sys.getrefcount(TypeError)
    assert max(b - a for a, b in zip(before, after, strict=True)) < 50


def test_launch_falls_back_where_the_layout_is_unknown(monkeypatch, sums):
    monkeypatch.setattr(launch, "layout_is_known", lambda: False)
    launchers = launch._make_launchers.__wrapped__(True, True)
    assert launchers.kind == "ctypes"
    assert launchers.holding(sums.address("ignore"), 0, np.zeros(1)) == 0


def test_cpu_facts():
    assert host.native_vector_bytes() in (16, 32, 64)
    assert ("avx512f" in host.cpu_features()) == (host.native_vector_bytes() == 64)
    assert host.cpu_name()
    l1, l2, l3 = host.cache_sizes()
    assert 8 << 10 <= l1 <= l2 <= l3


def test_cache_sizes_are_read_by_level(tmp_path):
    rows = [("Data", "1", "48K"), ("Instruction", "1", "32K"), ("Unified", "2", "2M"), ("Unified", "3", "?")]
    for number, row in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("type", "level", "size"), row, strict=True):
            (folder / name).write_text(value + "\n")
    (tmp_path / "index9").mkdir()
    defaults = host.read_cache_sizes(tmp_path / "absent")
    assert host.read_cache_sizes(tmp_path) == (48 << 10, 2 << 20, defaults.l3)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_each_run_of_passes_frees_its_manager(monkeypatch, level):
    import llvmlite.binding as llvm

    freed = []
    free = llvm.newpassmanagers.NewPassManager._dispose
    monkeypatch.setattr(
        llvm.newpassmanagers.NewPassManager, "_dispose", lambda manager: (free(manager), freed.append(manager))
    )
    libraries.compile_module("define i64 @f(i64 %x) {\n  ret i64 %x\n}", "freed", opt_level=level)
    assert [manager.closed for manager in freed] == [True]


def test_short_floats_without_instructions_for_them():
    """Each half, floats about the places where their halves change, and NaN."""
    library = libraries._open_conversions("short floats")
    code = """
    declare half @__truncsfhf2(float)
    declare bfloat @__truncsfbf2(float)
    declare float @__extendhfsf2(half)
    define i16 @narrow(float %x) {
      %y = call half @__truncsfhf2(float %x)
      %bits = bitcast half %y to i16
      ret i16 %bits
    }
    define i16 @narrow_bfloat(float %x) {
      %y = call bfloat @__truncsfbf2(float %x)
      %bits = bitcast bfloat %y to i16
      ret i16 %bits
    }
    define float @widen(i16 %bits) {
      %x = bitcast i16 %bits to half
      %y = call float @__extendhfsf2(half %x)
      ret float %y
    }
    """
    assert library.symbols
    made = libraries.compile_module(code, "short")
    narrow, narrow_bfloat = (ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_float)(made.address(name)) for name in ("narrow", "narrow_bfloat"))
    widen = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_uint16)(made.address("widen"))
    halves = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal([widen(int(bits)) for bits in halves], halves.view(np.float16).astype(np.float32))
    with np.errstate(invalid="ignore"):
        between = halves.view(np.float16).astype(np.float32) * np.float32(1 + 2**-11)
    floats = np.concatenate([np.nextafter(between, np.float32(-np.inf)), between, np.nextafter(between, np.float32(np.inf)),
                             np.float32([65519.996, 65520, 1e38, 2**-25, 2**-25 * 1.001, 1e-45, 3.4e38])])
    with np.errstate(all="ignore"):
        expected = floats.astype(np.float16)
    found = np.array([narrow(float(x)) for x in floats], np.uint16).view(np.float16)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    found = np.array([narrow_bfloat(float(x)) for x in floats], np.uint16).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.astype(np.float32), floats.astype(ml_dtypes.bfloat16).astype(np.float32))
