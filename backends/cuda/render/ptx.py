"""From LLVM IR to PTX.

In: the text of a module of kernels, and the architecture. Out: PTX, by LLVM's own NVPTX target, which comes
with llvmlite. No driver and no GPU is asked. PTX of one text is made once, and kept on disk.
"""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict

import llvmlite
import llvmlite.binding as llvm

from jitcore.backends.cuda.architectures import ARCHITECTURES
from jitcore.config import config
from jitcore.dispatch.disk_cache import find_or_make
from jitcore.process.concurrency import Lock, drop_oldest

TRIPLE = "nvptx64-nvidia-cuda"

_lock = Lock()
_made: OrderedDict[bytes, str] = OrderedDict()


#: Architectures that LLVM does not know, and older ones whose PTX they read.
OLDER = {"sm_103": "sm_100", "sm_121": "sm_120"} if llvm.llvm_version_info < (21,) else {}


def make_ptx(text: str, arch: str, opt_level: int | None = None) -> str:
    """text: of a module. Raises: RuntimeError where LLVM refuses it (a defect of jitcore)."""
    level, arch = 2 if opt_level is None else opt_level, OLDER.get(arch, arch)
    key = hashlib.sha256(f"{llvmlite.__version__} {arch} {level}\n{text}".encode()).digest()
    with _lock:
        found = _made.get(key)
    if found is None:
        found = find_or_make(key, lambda: _translate(text, arch, level).encode()).decode()
        with _lock:
            _made[key] = found
            drop_oldest(_made, config.cache_size)
    return found


def clear() -> None:
    with _lock:
        _made.clear()


@functools.cache
def _open_target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)


def _translate(text: str, arch: str, level: int) -> str:
    with _lock:  # LLVM's objects are made here for each translation, but its registry of targets is one
        machine = _open_target().create_target_machine(cpu=arch, opt=level,
                                                     features=f"+ptx{ARCHITECTURES[arch].ptx}")
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        module.verify()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
        builder.getModulePassManager().run(module, builder)
        return machine.emit_assembly(module)
