"""LLVM IR in, callable native code out: the code generator of the CPU backend.

In: an llvmlite module (or its text) whose exported functions are complete kernels. Out: a `Library` that
holds machine code and gives addresses. Stage: the last one of compilation, after rendering a loop program
to LLVM IR.

The target machine (processor, features, data layout) is the one of Numba's code generator, so kernels agree
with what `@njit` emits in the same process and obey the same NUMBA_* settings. Numba's *library* object is
not used: it runs each module through two whole pass pipelines made for scalar Python code. Kernels arrive
with explicit vectors and explicit strides, and a short list of cleaning passes gives the same machine code in
a fifth of the time. The object file is linked by LLVM's ORC, which frees the code when the `Library` goes;
its bytes are what a disk cache stores.

Numba and LLVM are imported when the first module is compiled, not before.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import struct
import zlib
from typing import TYPE_CHECKING

from jitcore.backends.cpu import symbols

if TYPE_CHECKING:
    import llvmlite.ir

__all__ = ["DEFAULT_OPT_LEVEL", "Library", "NativeCodeError", "compile_module", "compiler_lock",
           "describe_target", "host_key", "load_library"]  # fmt: skip

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

_MAGIC = b"jitcore-native-1\n"
_HEADER_SIZE = struct.Struct("<II")
_library_numbers = itertools.count()


class NativeCodeError(RuntimeError):
    """Native code cannot be made, linked or loaded; the message holds LLVM's own words."""


class Library:
    """Machine code of one module. Keep it alive for as long as one of its addresses may be called.

    Attributes:
        name: what the caller called it; need not be unique.
        llvm_ir: the IR text that was compiled.
        opt_level: 0 to 3, see `compile_module`.
        symbols: names of the exported functions.
    """

    def __init__(self, name, llvm_ir, opt_level, object_code, exports, imports):
        self.name = name
        self.llvm_ir = llvm_ir
        self.opt_level = opt_level
        self.symbols = tuple(exports)
        self._object_code = object_code
        self._imports = tuple(imports)
        self._tracker = _link_object(name, object_code, exports, imports)

    def address(self, symbol: str) -> int:
        """Address of an exported function. Raises: NativeCodeError when the module does not define it."""
        if symbol not in self.symbols:
            raise NativeCodeError(f"library {self.name} exports {', '.join(self.symbols)}, not {symbol!r}")
        return self._tracker[symbol]

    def optimized_ir(self) -> str:
        """IR text after the passes. Recomputed at each call, so that kernels do not keep their modules."""
        with compiler_lock():
            return str(_optimize_ir(self.llvm_ir, self.opt_level))

    def assembly(self) -> str:
        """Assembly text of the machine code. Recomputed at each call."""
        with compiler_lock():
            return _open_target().machine.emit_assembly(_optimize_ir(self.llvm_ir, self.opt_level))

    def serialize(self) -> bytes:
        """Bytes from which `load_library` makes an equal library, in any process of an equal host."""
        header = json.dumps({
            "name": self.name,
            "opt_level": self.opt_level,
            "exports": self.symbols,
            "imports": self._imports,
            "host": host_key(),
        }).encode()
        ir = zlib.compress(self.llvm_ir.encode())
        return b"".join((_MAGIC, _HEADER_SIZE.pack(len(header), len(ir)), header, ir, self._object_code))

    def __repr__(self):
        return f"Library({self.name}: {', '.join(self.symbols)}; {len(self._object_code)} bytes)"


def compile_module(module: llvmlite.ir.Module | str, name: str, *, opt_level: int | None = None) -> Library:
    """Compile LLVM IR for this processor.

    Args:
        module: a module or its text. Triple and data layout are set here. Every function with external
            linkage is exported; declared functions are looked up among the provided ones (`symbols`) and
            the process's own.
        name: for messages and `repr`; libraries of the same name do not clash, and neither do their symbols.
        opt_level: 0 none; 1 (default) the cleaning passes that explicit vector code needs; 2 LLVM's O2
            pipeline (adds inlining, loop-invariant code motion, value numbering) without vectorisers and
            unrolling; 3 LLVM's O3 with both, for scalar loops that LLVM shall vectorise. The machine-code
            stage is the same for all.
    Returns: the linked library.
    Raises: NativeCodeError for IR that does not parse or verify, and for symbols nobody defines.
    Cost: 4.8 ms for a fused SELU (vector loop and scalar rest), 23 ms for 500 fused operations; level 2 takes
        twice, level 3 three times that. Numba's own library takes 26 and 127 ms.
    """
    level = DEFAULT_OPT_LEVEL if opt_level is None else opt_level
    if level not in (0, 1, 2, 3):
        raise ValueError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    text = str(module)
    with compiler_lock():
        optimized = _optimize_ir(text, level)
        exports, imports = _list_symbols(optimized)
        object_code = _open_target().machine.emit_object(optimized)
        return Library(name, text, level, object_code, exports, imports)


def load_library(data: bytes) -> Library:
    """The library that `Library.serialize` wrote.

    Raises: NativeCodeError when the bytes are damaged or were made for another processor or LLVM version.
    Cost: 0.5 ms once the code generator is open.
    """
    if not data.startswith(_MAGIC):
        raise NativeCodeError("these bytes are not a serialized jitcore library")
    try:
        start = len(_MAGIC) + _HEADER_SIZE.size
        header_size, ir_size = _HEADER_SIZE.unpack(data[len(_MAGIC) : start])
        header = json.loads(data[start : start + header_size])
        ir_start = start + header_size
        llvm_ir = zlib.decompress(data[ir_start : ir_start + ir_size]).decode()
    except (struct.error, ValueError, zlib.error) as damage:
        raise NativeCodeError(f"serialized library is damaged: {damage}") from None
    if header["host"] != host_key():
        raise NativeCodeError(f"library {header['name']} was compiled for another host: {header['host']}")
    object_code = data[ir_start + ir_size :]
    with compiler_lock():
        return Library(
            header["name"], llvm_ir, header["opt_level"], object_code, header["exports"], header["imports"]
        )


@functools.cache
def host_key() -> str:
    """Text that is equal for hosts that may share machine code: LLVM version, triple, processor, features."""
    import llvmlite.binding as llvm

    with compiler_lock():
        target = _open_target()
    features = f"{zlib.crc32(target.features.encode()):08x}"
    return f"llvm{'.'.join(map(str, llvm.llvm_version_info))}/{target.triple}/{target.cpu}/{features}"


def describe_target() -> tuple[str, str]:
    """(processor, features) for which code is generated; features in LLVM's form "+avx,-avx512f"."""
    with compiler_lock():
        target = _open_target()
    return target.cpu, target.features


class _Target:
    """Numba's target machine with the linker for what it emits; one per process."""

    def __init__(self):
        import llvmlite.binding as llvm
        from numba.core.registry import cpu_target

        codegen = cpu_target.target_context.codegen()
        self.codegen = codegen  # owns the target machine
        self.machine = codegen._tm
        self.triple, self.cpu, self.features = codegen.magic_tuple()
        self.data_layout = str(codegen.target_data)
        self.linker = llvm.create_lljit_compiler()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_lock_compilers, after_in_parent=_unlock_compilers, after_in_child=_unlock_compilers
            )

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
        manager.run(module, builder)


@functools.cache
def _open_target():
    """The process's target. Call it under the compiler lock, which keeps two threads from making two."""
    return _Target()


def _lock_compilers():
    """Before a fork: a child forked while another thread is inside LLVM would wait for it for ever."""
    from llvmlite.binding import ffi

    compiler_lock().acquire()
    ffi.lib._lock.__enter__()


def _unlock_compilers():
    from llvmlite.binding import ffi

    ffi.lib._lock.__exit__(None, None, None)
    compiler_lock().release()


def compiler_lock():
    """Numba's lock. Hold it around every use of LLVM: Numba's code generator and ours share a target machine,
    and forks wait for it."""
    from numba.core.compiler_lock import global_compiler_lock

    return global_compiler_lock


def _optimize_ir(text, opt_level):
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
    return exports, imports


def _link_object(name, object_code, exports, imports):
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
    for symbol in exports:
        builder.export_symbol(symbol)
    for symbol in imports:
        address = symbols.address_of(symbol) or llvm.address_of_symbol(symbol)
        if address is None:
            raise NativeCodeError(f"library {name} calls {symbol}, which no loaded library defines")
        builder.import_symbol(symbol, address)
    for symbol in _CONVERSIONS:
        if symbol.encode() in object_code and symbol not in exports:
            builder.import_symbol(symbol, _open_conversions().address(symbol))
    try:
        return builder.link(_open_target().linker, f"{name}.{next(_library_numbers)}")
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


@functools.cache
def _open_conversions() -> Library:
    texts = (
        _CONVERSION_TEXT.replace("$SYMBOL", symbol).replace("$FORMAT", target)
        for symbol, target in _CONVERSIONS.items()
    )
    return compile_module("declare double @llvm.fabs.f64(double)\n" + "".join(texts), "conversions")
