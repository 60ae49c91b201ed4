"""The linker and the loader: what LLVM's own linker makes of an object file, ours makes too; or it says no."""

import ctypes
import gc
import math
import struct

import pytest
from hypothesis import given, strategies as st

from jitcore.backends.cpu.native import images, libraries, objects, translate

if not objects.can_link():
    pytest.skip("object files of another kind", allow_module_level=True)

# Each defines `double f(double)` and uses something else that a linker has to know.
MODULES = {
    "nothing": """
define double @f(double %x) {
  ret double %x
}
""",
    "constants of several sizes": """
define double @f(double %x) {
  %small = fptrunc double %x to float
  %sum = fadd float %small, 1.25
  %wide = fpext float %sum to double
  %y = fmul double %wide, 3.7
  %v = insertelement <8 x double> poison, double %y, i32 0
  %w = fmul <8 x double> %v, <double 2.5, double 3.5, double 4.5, double 5.5, double 1.5, double 9.5, double 8.5, double 7.5>
  %z = extractelement <8 x double> %w, i32 0
  ret double %z
}
""",
    "a function of this module": """
define internal double @helper(double %x) noinline {
  %y = fsub double %x, 2.0
  ret double %y
}
define double @f(double %x) {
  %y = call double @helper(double %x)
  %z = call double @helper(double %y)
  ret double %z
}
""",
    "functions of other libraries, called and passed on": """
declare double @cbrt(double)
declare double @hypot(double, double)
define internal double @apply(ptr %function, double %x) noinline {
  %y = call double %function(double %x)
  ret double %y
}
define double @f(double %x) {
  %a = call double @cbrt(double %x)
  %b = call double @apply(ptr @cbrt, double %x)
  %c = call double @hypot(double %a, double %b)
  ret double %c
}
""",
    "data of another library": """
@jitcore_test_number = external global double
define double @f(double %x) {
  %y = load double, ptr @jitcore_test_number
  %z = fadd double %x, %y
  ret double %z
}
""",
    "a table of numbers": """
@table = private constant [4 x double] [double 1.0, double 10.0, double 100.0, double 1000.0]
define double @f(double %x) {
  %k = fptosi double %x to i64
  %inside = and i64 %k, 3
  %at = getelementptr double, ptr @table, i64 %inside
  %y = load double, ptr %at
  ret double %y
}
""",
    "a table of functions": """
declare double @cbrt(double)
define internal double @twice(double %x) {
  %y = fadd double %x, %x
  ret double %y
}
@table = private constant [2 x ptr] [ptr @twice, ptr @cbrt]
define double @f(double %x) {
  %k = fptosi double %x to i64
  %inside = and i64 %k, 1
  %at = getelementptr ptr, ptr @table, i64 %inside
  %function = load ptr, ptr %at
  %y = call double %function(double %x)
  ret double %y
}
""",
    "a jump table": """
declare double @cbrt(double)
declare double @sqrt(double)
declare double @fabs(double)
declare double @trunc(double)
declare double @log2(double)
define double @f(double %x) {
enter:
  %k = fptosi double %x to i64
  switch i64 %k, label %other [ i64 1, label %b1  i64 2, label %b2  i64 3, label %b3
                                i64 4, label %b4  i64 5, label %b5  i64 6, label %b6 ]
b1:
  %y1 = call double @cbrt(double %x)
  ret double %y1
b2:
  %y2 = call double @sqrt(double %x)
  ret double %y2
b3:
  %y3 = call double @fabs(double %x)
  ret double %y3
b4:
  %y4 = call double @trunc(double %x)
  ret double %y4
b5:
  %y5 = call double @log2(double %x)
  ret double %y5
b6:
  ret double -6.0
other:
  ret double 0.0
}
""",
    "a call that LLVM adds": """
define double @f(double %x) {
  %room = alloca [4096 x i8]
  call void @llvm.memset.p0.i64(ptr %room, i8 0, i64 4096, i1 true)
  %at = getelementptr i8, ptr %room, i64 8
  %y = load volatile double, ptr %at
  %z = fsub double %y, %x
  ret double %z
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
""",
}
EXPECTED = {
    "nothing": lambda x: x,
    "constants of several sizes": lambda x: (x + 1.25) * 3.7 * 2.5,
    "a function of this module": lambda x: x - 4,
    "functions of other libraries, called and passed on": lambda x: math.hypot(math.cbrt(x), math.cbrt(x)),
    "data of another library": lambda x: x + 0.5,
    "a table of numbers": lambda x: 10.0 ** (int(x) & 3),
    "a table of functions": lambda x: math.cbrt(x) if int(x) & 1 else x + x,
    "a jump table": lambda x: {1: math.cbrt, 2: math.sqrt, 3: abs, 4: math.trunc, 5: math.log2,
                               6: lambda x: -6.0}.get(int(x), lambda x: 0.0)(x),
    "a call that LLVM adds": lambda x: -x,
}
NUMBER = ctypes.c_double(0.5)
images.provide("jitcore_test_number", lambda _: ctypes.addressof(NUMBER))


def emit_object(text, opt_level=1):
    with translate.compiler_lock():
        return translate.open_target().machine.emit_object(translate.optimize_ir(text, opt_level))


def find_address(symbol):
    return images.address_of(symbol) or images.find_in_process(symbol)


def call(code, x):
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code["f"])(x)


@pytest.mark.parametrize("opt_level", [0, 1, 2])
@pytest.mark.parametrize("name", MODULES)
def test_linked_code_computes(name, opt_level):
    image = objects.link_object(emit_object(MODULES[name], opt_level))
    stored = images.Image.decode(image.encode())
    assert stored == image
    code = images.LoadedImage(stored, find_address)
    for x in range(8):
        assert call(code, x) == pytest.approx(EXPECTED[name](x), rel=1e-7)


@pytest.mark.parametrize("name", MODULES)
def test_agrees_with_the_linker_of_llvm(name):
    data = emit_object(MODULES[name])
    module = translate.optimize_ir(MODULES[name], 1)
    theirs = libraries._link_by_llvm("theirs", data, *translate.list_symbols(module))
    ours = images.LoadedImage(objects.link_object(data), find_address)
    assert [call(ours, x) for x in range(8)] == [call(theirs, x) for x in range(8)]


@pytest.mark.parametrize("text", [
    "@counter = internal global i64 0\ndefine void @f() {\n  %x = load i64, ptr @counter\n  %y = add i64 %x, 1\n  store i64 %y, ptr @counter\n  ret void\n}\n",
    "@counter = internal global i64 7\ndefine void @f() {\n  %x = load i64, ptr @counter\n  %y = add i64 %x, 1\n  store i64 %y, ptr @counter\n  ret void\n}\n",
    "@own = thread_local global i64 7\ndefine i64 @f() {\n  %x = load i64, ptr @own\n  ret i64 %x\n}\n",
    "@elsewhere = external thread_local global i64\ndefine i64 @f() {\n  %x = load i64, ptr @elsewhere\n  ret i64 %x\n}\n",
])
def test_data_that_changes_is_refused(text):
    with pytest.raises(objects.UnknownObjectError):
        objects.link_object(emit_object(text))


def test_other_object_files_are_refused():
    data = emit_object(MODULES["nothing"])
    for position, value in ((4, 1), (5, 2), (16, 2), (18, 183)):  # 32 bits, big-endian, executable, aarch64
        changed = bytearray(data)
        changed[position] = value
        with pytest.raises(objects.UnknownObjectError, match="not a relocatable ELF64 file"):
            objects.link_object(bytes(changed))
    with pytest.raises(objects.UnknownObjectError):
        objects.link_object(b"")


def test_cut_object_files_are_refused():
    data = emit_object(MODULES["functions of other libraries, called and passed on"])
    for size in range(0, len(data) - 1, 7):
        with pytest.raises(objects.UnknownObjectError):
            objects.link_object(data[:size])


def test_unknown_relocations_are_refused():
    data = bytearray(emit_object(MODULES["functions of other libraries, called and passed on"]))
    call_of_cbrt = next(at for at in range(0, len(data) - 8, 8)
                        if struct.unpack_from("<I", data, at)[0] == 4 and 0 < data[at + 4] < 32)
    struct.pack_into("<I", data, call_of_cbrt, 250)
    with pytest.raises(objects.UnknownObjectError, match="relocation of type 250"):
        objects.link_object(bytes(data))


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
offsets = st.integers(0, 24)
any_image = st.builds(
    images.Image,
    st.binary(min_size=32, max_size=64),
    st.dictionaries(names, offsets, max_size=3),
    st.lists(st.builds(images.Slot, offsets, st.just("") | names, st.integers(-9, 9)), max_size=3).map(tuple),
)


@given(any_image)
def test_images_survive_encoding(image):
    assert images.Image.decode(image.encode()) == image


@given(any_image, st.data())
def test_damaged_images_are_refused_or_stay_consistent(image, data):
    """The loader never writes outside of the image, whatever it is given."""
    encoded = bytearray(image.encode())
    if data.draw(st.booleans()):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        encoded = encoded[: data.draw(st.integers(0, len(encoded) - 1))]
    try:
        decoded = images.Image.decode(bytes(encoded))
    except ValueError:
        return
    assert all(0 <= slot.offset <= len(decoded.code) - 8 for slot in decoded.slots)
    assert all(0 <= offset < len(decoded.code) for offset in decoded.exports.values())


def list_mappings(address):
    """Permissions of the memory at an address."""
    with open("/proc/self/maps") as file:
        for line in file:
            bounds, permissions = line.split()[:2]
            start, stop = (int(bound, 16) for bound in bounds.split("-"))
            if start <= address < stop:
                return permissions
    return None


def test_code_cannot_be_written():
    code = images.LoadedImage(objects.link_object(emit_object(MODULES["a table of functions"])), find_address)
    assert list_mappings(code["f"]) == "r-xp"


def test_memory_is_given_back():
    image = images.Image(bytes(1 << 20), {"f": 0}, ())
    code = images.LoadedImage(image, find_address)
    address = code["f"]
    assert list_mappings(address) == "r-xp"
    del code
    gc.collect()
    assert list_mappings(address) != "r-xp"


def test_missing_symbols_and_names():
    image = objects.link_object(emit_object(MODULES["a jump table"]))

    def find_none(symbol):
        raise LookupError(symbol)

    with pytest.raises(LookupError, match="cbrt|sqrt|log2"):
        images.LoadedImage(image, find_none)
    with pytest.raises(KeyError):
        images.LoadedImage(image, find_address)["g"]


def test_other_libraries_may_lie_anywhere():
    """What is outside of the image is reached through full addresses, all of them in its table."""
    image = objects.link_object(emit_object(MODULES["functions of other libraries, called and passed on"]))
    code = images.LoadedImage(image, find_address)
    assert sorted(slot.symbol for slot in image.slots) == ["cbrt", "hypot"]
    assert all(slot.offset % 8 == 0 and slot.addend == 0 for slot in image.slots)
    assert call(code, 8.0) == pytest.approx(math.hypot(2, 2))
