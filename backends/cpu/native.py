"""LLVM IR in, callable native code out: the code generator of the CPU backend.

In: an llvmlite module (or its text) whose exported functions are complete kernels. Out: a `Library` that
holds machine code and gives addresses. Stage: the last one of compilation, after rendering a loop program
to LLVM IR.

Processor and features are those of Numba's code generator, so kernels agree with what `@njit` emits in the
same process and obey the same NUMBA_* settings. Numba's *library* object is not used: it runs each module
through two whole pass pipelines made for scalar Python code. Kernels arrive with explicit vectors and
explicit strides, and a short list of cleaning passes gives the same machine code in a fifth of the time.

Object files are linked by `objects.py` into images, which `images.py` loads, in this process and from disk
in others. Where it does not know the form of object files, LLVM's own linker (ORC) loads them, and they are
not kept on disk.

Numba and LLVM are imported when the first module is compiled, not before.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import struct
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from jitcore.backends.cpu import host, objects, symbols
from jitcore.backends.cpu.images import Image, LoadedImage
from jitcore.backends.cpu.loop_modules import split_loops
from jitcore.dispatch import disk_cache
from jitcore.dispatch.progress import announce_slow

if TYPE_CHECKING:
    import llvmlite.ir

__all__ = ["DEFAULT_OPT_LEVEL", "Library", "NativeCodeError", "compile_module", "compiler_lock",
           "describe_target", "find_or_compile",
           "find_stored", "make_key"]  # fmt: skip

DEFAULT_OPT_LEVEL = 1

# Level 1: what explicit vector code needs. Helpers marked `alwaysinline` vanish, stack slots become
# registers, address arithmetic folds. No loop rotation: it lets LLVM hoist every constant of a large body
# into spill slots, which doubles the time of code generation and was never faster.
_CLEANING_PASSES = (
    "always_inliner",
    "global_dead_code_eliminate",
    "sroa",
    "simplify_cfg",
    "instruction_combine",
    "simplify_cfg",
    "dead_store_elimination",
    "dead_code_elimination",
)

# The first line of a function, in LLVM's text.
_DEFINITION = re.compile(r"^define .*$", re.MULTILINE)

_IR_SIZE = struct.Struct("<I")
_library_numbers = itertools.count()


class NativeCodeError(RuntimeError):
    """Native code cannot be made, linked or loaded; the message holds LLVM's own words."""


class Library:
    """Machine code of one module. Keep it alive for as long as one of its addresses may be called.

    Attributes:
        name: what the caller called it; need not be unique.
        opt_level: 0 to 3, see `compile_module`.
        symbols: names of the exported functions.
    """

    def __init__(self, name: str, opt_level: int, packed_ir: bytes, code, exports):
        self.name = name
        self.opt_level = opt_level
        self.symbols = tuple(exports)
        self._packed_ir = packed_ir
        self._code = code

    @property
    def llvm_ir(self) -> str:
        """The IR text that was compiled."""
        return zlib.decompress(self._packed_ir).decode()

    def address(self, symbol: str) -> int:
        """Address of an exported function. Raises: NativeCodeError when the module does not define it."""
        if symbol not in self.symbols:
            raise NativeCodeError(f"library {self.name} exports {', '.join(self.symbols)}, not {symbol!r}")
        return self._code[symbol]

    def optimized_ir(self) -> str:
        """IR text after the passes. Recomputed at each call, so that kernels do not keep their modules."""
        with compiler_lock():
            return str(_optimize_ir(self.llvm_ir, self.opt_level))

    def assembly(self) -> str:
        """Assembly text of the machine code. Recomputed at each call."""
        with compiler_lock():
            text = self.llvm_ir
            return _open_target().choose_machine(text).emit_assembly(_optimize_ir(text, self.opt_level))

    def __repr__(self):
        return f"Library({self.name}: {', '.join(self.symbols)})"


def compile_module(module: llvmlite.ir.Module | str, name: str, *, opt_level: int | None = None) -> Library:
    """Compile LLVM IR for this processor.

    Args:
        module: a module or its text. Triple and data layout are set here. Every function with external
            linkage is exported; declared ones are looked up among the provided ones (`symbols`) and
            the process's own.
        name: for messages and `repr`; libraries of the same name do not clash, and neither do their symbols.
        opt_level: 0 none; 1 (default) the cleaning passes that explicit vector code needs, and those of level
            3 for functions of scalar loops (`loop_modules`); 2 LLVM's O2
            pipeline (adds inlining, loop-invariant code motion, value numbering) without vectorisers and
            unrolling; 3 LLVM's O3 with both, for scalar loops that LLVM shall vectorise. The machine-code
            stage is the same for all; it is a fifth as long for a module whose functions all are `optnone`:
            code that runs seldom beside what it prepares.
    Returns: the linked library.
    Raises: NativeCodeError for IR that does not parse or verify, and for symbols nobody defines.
    Cost: 4.8 ms for a fused SELU (vector loop and scalar rest), 23 ms for 500 fused operations; level 2 takes
        twice, level 3 three times that. Numba's own library takes 26 and 127 ms.
    """
    return _compile(str(module), name, _check_level(opt_level))[0]


def _compile(text: str, name: str, level: int) -> tuple[Library, bytes]:
    """(the library, bytes from which `_load_stored` makes an equal one, empty where nothing does)."""
    with compiler_lock():
        optimized = _optimize_ir(text, level)
        object_code = _open_target().choose_machine(text).emit_object(optimized)
    # Linking opens symbols, which may compile: their lock comes before the compiler's.
    packed_ir = zlib.compress(text.encode(), level=1)
    if objects.can_link():
        try:
            image = objects.link_object(object_code)
        except objects.UnknownObjectError:
            pass
        else:
            stored = b"".join((_IR_SIZE.pack(len(packed_ir)), packed_ir, image.encode()))
            return _load_image(name, level, packed_ir, image), stored
    with compiler_lock():
        exports, imports = _list_symbols(optimized)
    code = _link_by_llvm(name, object_code, exports, imports)
    return Library(name, level, packed_ir, code, exports), b""


def _check_level(opt_level: int | None) -> int:
    level = DEFAULT_OPT_LEVEL if opt_level is None else opt_level
    if level not in (0, 1, 2, 3):
        raise ValueError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    return level


def find_or_compile(
    name: str, facts: str, render: Callable[[], llvmlite.ir.Module | str], *, opt_level: int | None = None
) -> tuple[Library, bool]:
    """The library of a module, from disk if an earlier process compiled it.

    Args:
        name: as for `compile_module`.
        facts: text that differs whenever `render` gives another module in this installation.
        render: makes the module, which holds no address of this process.
        opt_level: as for `compile_module`.
    Returns: (library, whether it was compiled now).
    Raises: as `compile_module`.
    Cost: 0.15 ms from disk.
    """
    level = _check_level(opt_level)
    cache = disk_cache.open_cache()
    key = None if cache is None else make_key(name, facts, opt_level=opt_level)
    found = None if key is None else find_stored(name, key, opt_level=opt_level)
    if found is not None:
        return found, False
    with announce_slow():
        library, stored = _compile(str(render()), name, level)
    if key is not None and stored:
        cache.add(key, stored)
    return library, True


def make_key(name: str, facts: str, *, opt_level: int | None = None) -> bytes | None:
    """The key under which `find_or_compile` keeps a library; None where it cannot."""
    return host.make_key(name, str(_check_level(opt_level)), facts)


def find_stored(name: str, key: bytes, *, opt_level: int | None = None) -> Library | None:
    """The library that is on disk under a key of `make_key`, or None."""
    cache = disk_cache.open_cache()
    stored = None if cache is None else cache.find(key)
    if stored is None:
        return None
    try:
        return _load_stored(name, _check_level(opt_level), stored)
    except ValueError:  # what was written is not what is read: it will be replaced
        return None


def _load_stored(name: str, level: int, stored: bytes) -> Library:
    """Raises: ValueError for bytes that `_compile` did not make."""
    try:
        (size,) = _IR_SIZE.unpack_from(stored)
    except struct.error as damage:
        raise ValueError(str(damage)) from None
    start = _IR_SIZE.size
    packed_ir, image = stored[start : start + size], Image.decode(stored[start + size :])
    return _load_image(name, level, packed_ir, image)


def _load_image(name: str, level: int, packed_ir: bytes, image: Image) -> Library:
    def find_address(symbol):
        address = symbols.address_of(symbol) or symbols.find_in_process(symbol)
        if address is None:
            raise NativeCodeError(f"library {name} calls {symbol}, which no loaded library defines")
        return address

    try:
        code = LoadedImage(image, find_address)
    except OSError as refusal:
        raise NativeCodeError(f"library {name} cannot be loaded: {refusal}") from None
    return Library(name, level, packed_ir, code, image.exports)


def describe_target() -> host.Target:
    """What LLVM generates code for, as LLVM says."""
    with compiler_lock():
        target = _open_target()
    return host.Target(target.triple, target.cpu, target.features)


class _Target:
    """A target machine for Numba's target; one per process."""

    def __init__(self):
        import llvmlite.binding as llvm
        from numba.core.registry import cpu_target

        codegen = cpu_target.target_context.codegen()
        self.codegen = codegen  # owns its target machine
        self.triple, self.cpu, self.features = codegen.magic_tuple()
        self.data_layout = str(codegen.target_data)
        self.machine = self.quick_machine = codegen._tm
        if objects.can_link():
            from numba.core import config as numba_config

            def create(opt):
                return llvm.Target.from_triple(self.triple).create_target_machine(
                    cpu=self.cpu, features=self.features, opt=opt, reloc="pic", codemodel="small"
                )

            self.machine, self.quick_machine = create(numba_config.OPT), create(0)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_lock_compilers, after_in_parent=_unlock_compilers, after_in_child=_unlock_compilers
            )

    def choose_machine(self, text):
        """The target machine for a module: what generates code quickly, where no function asks for more."""
        is_quick = all("optnone" in line for line in _DEFINITION.findall(text))
        return self.quick_machine if is_quick else self.machine

    def run_passes(self, module, opt_level):
        """Optimise a parsed module in place. A run spends its pass manager, so each builds one (40 us)."""
        import llvmlite.binding as llvm

        tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
        tuning.loop_vectorization = tuning.slp_vectorization = opt_level == 3
        tuning.loop_unrolling = tuning.loop_interleaving = opt_level == 3
        builder = llvm.create_pass_builder(self.machine, tuning)
        if opt_level >= 2:
            manager = builder.getModulePassManager()
        else:
            manager = llvm.create_new_module_pass_manager()
            for name in _CLEANING_PASSES if opt_level else ():
                getattr(manager, f"add_{name}_pass")()
        try:
            manager.run(module, builder)
        finally:
            _free_manager(manager)


def _free_manager(manager):
    """Frees a pass manager and its 10 kB. It inherits two methods for that, and by itself calls the one that
    does nothing."""
    from llvmlite.binding.ffi import ObjectRef

    for kind in type(manager).__mro__:
        if kind is not ObjectRef and "_dispose" in vars(kind):
            kind._dispose(manager)
            manager.detach()  # from now on it frees nothing itself
            return


@functools.cache
def _open_target():
    """The process's target. Call it under the compiler lock, which keeps two threads from making two."""
    return _Target()


@functools.cache
def _open_linker():
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler()


def _lock_compilers():
    """Before a fork: a child forked while another thread is inside LLVM would wait for it for ever."""
    from llvmlite.binding import ffi

    symbols.link_lock.acquire()
    compiler_lock().acquire()
    ffi.lib._lock.__enter__()


def _unlock_compilers():
    from llvmlite.binding import ffi

    ffi.lib._lock.__exit__(None, None, None)
    compiler_lock().release()
    symbols.link_lock.release()


def compiler_lock():
    """Numba's lock. Hold it around every use of LLVM: Numba's code generator and ours share a target machine,
    and forks wait for it."""
    from numba.core.compiler_lock import global_compiler_lock

    return global_compiler_lock


def _optimize_ir(text, opt_level):
    import llvmlite.binding as llvm

    rest, loops, internal = split_loops(text) if opt_level == 1 else (text, "", ())
    module = _run_passes(rest, opt_level)
    if loops:
        module.link_in(_run_passes(loops, 3))
        for name in internal:
            module.get_function(name).linkage = llvm.Linkage.internal
    return module


def _run_passes(text, opt_level):
    import llvmlite.binding as llvm

    target = _open_target()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as refusal:
        raise NativeCodeError(f"LLVM refuses the IR: {refusal}") from None
    module.triple = target.triple
    module.data_layout = target.data_layout
    target.run_passes(module, opt_level)
    return module


def _list_symbols(module):
    """(exported names, names to be found elsewhere) of a module."""
    import llvmlite.binding as llvm

    exports, imports = [], []
    for function in module.functions:
        if not function.is_declaration:
            if function.linkage == llvm.Linkage.external:
                exports.append(function.name)
        elif not function.name.startswith("llvm."):
            imports.append(function.name)
    imports += [variable.name for variable in module.global_variables if variable.is_declaration]
    return exports, imports


def _link_by_llvm(name, object_code, exports, imports):
    import llvmlite.binding as llvm

    calls = [*imports, *(symbol for symbol in _CONVERSIONS if symbol.encode() in object_code)]
    addresses = {symbol: symbols.address_of(symbol) for symbol in calls if symbol not in exports}
    with compiler_lock():
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for symbol in exports:
            builder.export_symbol(symbol)
        for symbol, address in addresses.items():
            address = address or llvm.address_of_symbol(symbol)
            if address is None:
                raise NativeCodeError(f"library {name} calls {symbol}, which no loaded library defines")
            builder.import_symbol(symbol, address)
        try:
            return builder.link(_open_linker(), f"{name}.{next(_library_numbers)}")
        except RuntimeError as refusal:
            raise NativeCodeError(f"library {name} does not link: {refusal}") from None


# Where the processor cannot narrow a double in one step, LLVM calls these functions of a compiler's run-time
# library, which a Python process need not contain. They round to float so that no information is lost for the
# second rounding: towards zero, with the last bit set if anything was cut ("round to odd").
_CONVERSIONS = {"__truncdfhf2": "half", "__truncdfbf2": "bfloat"}

_CONVERSION_TEXT = """
define $FORMAT @$SYMBOL(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %is_exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %magnitude = call double @llvm.fabs.f64(double %x)
  %near_magnitude = call double @llvm.fabs.f64(double %back)
  %is_above = fcmp ogt double %near_magnitude, %magnitude
  %excess = zext i1 %is_above to i32
  %cut = sub i32 %bits, %excess
  %odd = or i32 %cut, 1
  %chosen = select i1 %is_exact, i32 %bits, i32 %odd
  %sticky = bitcast i32 %chosen to float
  %result = fptrunc float %sticky to $FORMAT
  ret $FORMAT %result
}
"""


def _render_conversions() -> str:
    texts = (
        _CONVERSION_TEXT.replace("$SYMBOL", symbol).replace("$FORMAT", target)
        for symbol, target in _CONVERSIONS.items()
    )
    return "declare double @llvm.fabs.f64(double)\n" + "".join(texts)


@functools.cache
def _open_conversions() -> Library:
    return find_or_compile("conversions", "", _render_conversions)[0]


symbols.provide("__truncdf", lambda symbol: _open_conversions().address(symbol))
