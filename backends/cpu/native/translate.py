"""LLVM IR in, object code out: LLVM's passes and its generator of machine code.

In: the text of a module. Out: `ObjectCode`. Stage: the end of compilation, before linking (`native`).

Processor and features are those of Numba's code generator, so kernels agree with what `@njit` emits in the
same process and obey the same NUMBA_* settings. Numba's *library* object is not used: it runs each module
through two whole pass pipelines made for scalar Python code. Kernels arrive with explicit vectors and
explicit strides, and a short list of cleaning passes gives the same machine code in a fifth of the time.

Two modules can be translated at once, one in each of two lanes: that of threads which compile, one at a time
under Numba's lock, and that of the thread which compiles ahead (`ahead`). A lane has target machines of its
own, and each module has a context of its own; nothing else in LLVM is bound to a thread.

Numba and LLVM are imported when the first module is translated, not before.

A module with functions of loops is taken apart first: loops of scalar code are for LLVM's passes over loops,
which would take long over explicit lanes and find little there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import threading
from collections.abc import Iterator
from typing import NamedTuple

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.native import images, objects
from jitcore.backends.cpu.native.images import Image
from jitcore.process.lazy import LazyModule

SUFFIX = "_scalar_loop"  # of the names of such functions
_FUNCTION_TEXT = re.compile(r"^define .*?^\}$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'@"?([^"( ]+)"?\(')
_CALLED = re.compile(r'@"?([^"(), ]+)"?')


def split_loops(text: str) -> tuple[str, str, list[str]]:
    """(a module without the bodies of its functions of loops, one of these alone, empty where there are none,
    names that are internal in both together).

    What one has for the other is external in both, until they are linked; what is copied to where it is
    called, both have."""
    if SUFFIX not in text:
        return text, "", []
    definitions = {_NAME.search(found[0])[1]: found[0] for found in _FUNCTION_TEXT.finditer(text)}
    loops = {name: body for name, body in definitions.items() if name.endswith(SUFFIX)}
    copied = {name for name, body in definitions.items() if "alwaysinline" in body.partition("\n")[0]}
    called = set(_CALLED.findall("".join(definitions[name] for name in (*loops, *copied))))
    rest, alone, shown = text, text, list(loops)
    for name, body in definitions.items():
        head = body.partition("\n")[0]
        if name in copied:
            continue
        declared = _declare(head) if name in loops or name in called else ""
        if name in loops:
            rest, alone = rest.replace(body, declared), alone.replace(body, _show(body))
            continue
        alone = alone.replace(body, declared)
        if name in called and head.startswith("define internal"):
            rest = rest.replace(body, _show(body))
            shown.append(name)
    return rest, alone, shown


def _show(body: str) -> str:
    return body.replace("define internal ", "define ", 1)


def _declare(head: str) -> str:
    return "declare " + head[: head.rindex(")") + 1].removeprefix("define ").removeprefix("internal ")


llvm = LazyModule("llvmlite.binding")
ffi = LazyModule("llvmlite.binding.ffi")
numba_lock = LazyModule("numba.core.compiler_lock")
numba_registry = LazyModule("numba.core.registry")
numba_settings = LazyModule("numba.core.config")


# Level 1: what explicit vector code needs. Helpers marked `alwaysinline` vanish, stack slots become
# registers, address arithmetic folds. No loop rotation: it lets LLVM hoist every constant of a large body
# into spill slots, which doubles the time of code generation and was never faster.
_CLEANING_PASSES = (
    "always_inliner", "global_dead_code_eliminate", "sroa", "simplify_cfg", "instruction_combine",
    "simplify_cfg", "dead_store_elimination", "dead_code_elimination")

# The first line of a function, in LLVM's text.
_DEFINITION = re.compile(r"^define .*$", re.MULTILINE)


class NativeCodeError(RuntimeError):
    """Native code cannot be made, linked or loaded; the message holds LLVM's own words."""


class ObjectCode(NamedTuple):
    """A translated module. image: linked, None where `objects` does not know the form of object files; then
    `exports` and `imports` name what LLVM's own linker has to be told."""

    content: bytes
    image: Image | None
    exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


def translate(text: str, level: int) -> ObjectCode:
    """The machine code of a module. level: see `native.compile_module`.

    Raises: NativeCodeError for IR that does not parse or verify."""
    with compiler_lock():
        optimized = optimize_ir(text, level)
        content = _emit_object(open_target().choose_machine(text), optimized)
        if objects.can_link():
            with contextlib.suppress(objects.UnknownObjectError):
                return ObjectCode(content, objects.link_object(content))
        return ObjectCode(content, None, *list_symbols(optimized))


def emit_assembly(text: str, level: int) -> str:
    with compiler_lock():
        return open_target().choose_machine(text).emit_assembly(optimize_ir(text, level))


def describe_target() -> host.Target:
    """What LLVM generates code for, as LLVM says."""
    with compiler_lock():
        target = open_target()
    return host.Target(target.triple, target.cpu, target.features)


# -- lanes ---------------------------------------------------------------------------------------------------
class _ThisThread(threading.local):
    is_second = False


_this_thread = _ThisThread()
_second_lock = threading.RLock()
_targets: dict[bool, _Target] = {}  # by whether they are of the second lane


def load_compiler() -> None:
    """Imports Numba and LLVM, in this thread, if that is still to be done."""
    if False not in _targets:
        with _first_lock():
            open_target()


@contextlib.contextmanager
def in_second_lane() -> Iterator[contextlib.AbstractContextManager]:
    """What this thread translates in the block does not wait for the threads outside of such blocks.

    It takes no lock which is held around compilation, such as `images.link_lock`. Forks wait while it has
    the lane's lock, which it gets, and which is to be held around all that is done for a module: a module
    that is just being imported cannot be imported in a child. The compiler has to be loaded."""
    _this_thread.is_second = True
    try:
        yield _second_lock
    finally:
        _this_thread.is_second = False


def compiler_lock():
    """The lock of this thread's lane, which is Numba's lock but for the second one. Hold it around every use
    of LLVM: threads of a lane share its target machines, and forks wait for it."""
    return _second_lock if _this_thread.is_second else _first_lock()


def _first_lock():
    return numba_lock.global_compiler_lock


def _lock_compilers():
    """Before a fork: a child forked while another thread is inside LLVM would wait for it for ever."""
    images.link_lock.acquire()
    _first_lock().acquire()
    _second_lock.acquire()
    ffi.lib._lock.__enter__()


def _unlock_compilers():
    ffi.lib._lock.__exit__(None, None, None)
    _second_lock.release()
    _first_lock().release()
    images.link_lock.release()


# -- LLVM ----------------------------------------------------------------------------------------------------
class _Target:
    """Target machines for Numba's target; one per lane and process."""

    def __init__(self):
        codegen = numba_registry.cpu_target.target_context.codegen()
        self.codegen = codegen  # owns its target machine
        self.triple, self.cpu, self.features = codegen.magic_tuple()
        self.data_layout = str(codegen.target_data)
        self.machine = self.quick_machine = codegen._tm
        if objects.can_link():
            def create(opt):
                return llvm.Target.from_triple(self.triple).create_target_machine(
                    cpu=self.cpu, features=self.features, opt=opt, reloc="pic", codemodel="small"
                )

            self.machine, self.quick_machine = create(numba_settings.OPT), create(0)

    def choose_machine(self, text):
        """The target machine for a module: what generates code quickly, where no function asks for more."""
        is_quick = all("optnone" in line for line in _DEFINITION.findall(text))
        return self.quick_machine if is_quick else self.machine

    def run_passes(self, module, opt_level):
        """Optimise a parsed module in place. A run spends its pass manager, so each builds one (40 us)."""
        tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
        # Not operations side by side: in chains of scalars the shuffles for it lie between one and the next.
        tuning.loop_vectorization, tuning.slp_vectorization = opt_level == 3, False
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
    for kind in type(manager).__mro__:
        if kind is not ffi.ObjectRef and "_dispose" in vars(kind):
            kind._dispose(manager)
            manager.detach()  # from now on it frees nothing itself
            return


def open_target() -> _Target:
    """The target of this thread's lane. Call it under the compiler lock, which keeps two threads from making
    two."""
    is_second = _this_thread.is_second
    if is_second not in _targets:
        if not _targets and hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_lock_compilers, after_in_parent=_unlock_compilers,
                                after_in_child=_unlock_compilers)
        _targets[is_second] = _Target()
    return _targets[is_second]


def optimize_ir(text: str, opt_level: int):
    """The parsed module behind the passes of a level."""
    rest, loops, internal = split_loops(text) if opt_level == 1 else (text, "", ())
    context = llvm.create_context()
    module = _run_passes(rest, opt_level, context)
    if loops:
        module.link_in(_run_passes(loops, 3, context))
        for name in internal:
            module.get_function(name).linkage = llvm.Linkage.internal
    return module


def _run_passes(text, opt_level, context):
    target = open_target()
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as refusal:
        raise NativeCodeError(f"LLVM refuses the IR: {refusal}") from None
    module.triple = target.triple
    module.data_layout = target.data_layout
    target.run_passes(module, opt_level)
    return module


def _emit_object(machine, module) -> bytes:
    """As `machine.emit_object(module)`, but without llvmlite's lock, for which the other lane would wait: it
    protects LLVM's global context, which the module is not part of."""
    emit = getattr(ffi.lib.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if emit is None:
        return machine.emit_object(module)
    with ffi.OutputString() as message:
        memory = emit(machine, module, 1, message)
        if not memory:
            raise NativeCodeError(f"LLVM makes no object code: {message}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def list_symbols(module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(exported names, names to be found elsewhere) of a module."""
    exports, imports = [], []
    for function in module.functions:
        if not function.is_declaration:
            if function.linkage == llvm.Linkage.external:
                exports.append(function.name)
        elif not function.name.startswith("llvm."):
            imports.append(function.name)
    imports += [variable.name for variable in module.global_variables if variable.is_declaration]
    return tuple(exports), tuple(imports)
