"""PTX by Numba's own code generator for CUDA, below its front end: `compiler_options={"codegen": "numba"}`.

In: the text of a module of kernels. Out: PTX. Numba hands it to NVVM, whose dialect of LLVM IR is older than
llvmlite's: what that lacks is written in other words first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from jitcore.process.concurrency import Lock

_lock = Lock()
#: Intrinsics that NVVM does not know, by name, and what they are.
_OTHER_NAMES = {
    "llvm.fabs.f32": "llvm.nvvm.fabs.f", "llvm.fabs.f64": "llvm.nvvm.fabs.d",
    "llvm.roundeven.f32": "__nv_rintf", "llvm.roundeven.f64": "__nv_rint",
    "llvm.rint.f32": "__nv_rintf", "llvm.rint.f64": "__nv_rint",
    "llvm.round.f32": "__nv_roundf", "llvm.round.f64": "__nv_round",
}
_EXTREMES = {"smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}


def make_ptx(text: str, kernels: Sequence[str], arch: str) -> str:
    """text: of a module; kernels: how it refers to each. Raises: ImportError naming what to install;
    RuntimeError for what NVVM refuses."""
    try:
        from numba.cuda import codegen

        nvvm = codegen.nvvm.NVVM()
        version = ", ".join(f"i32 {part}" for part in nvvm.get_ir_version())
    except Exception as error:  # its modules raise what they like where parts of the toolkit are missing
        raise ImportError(f"codegen='numba' on a GPU needs Numba's CUDA target ({error}): "
                          "pip install 'jitcore[cuda-numba]'") from None
    with _lock:
        number = int(arch.removeprefix("sm_"))
        generator = codegen.JITCUDACodegen("jitcore")
        library = generator.create_library("jitcore", entry_name="k0", nvvm_options={"opt": 3})
        head = f'target triple = "nvptx64-nvidia-cuda"\ntarget datalayout = "{nvvm.data_layout}"\n'
        tail = f"\n!nvvmir.version = !{{!1000000}}\n!1000000 = !{{{version}}}\n"
        library.add_ir_module(_Text(head + _translate(text, kernels, number) + tail))
        library.finalize()
        return library.get_asm_str(cc=divmod(number, 10))


class _Text:
    """A module whose text is known: what Numba asks of it."""

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text


def _translate(text: str, kernels: Sequence[str], arch: int) -> str:
    """The text in NVVM's dialect: that of LLVM 7 for architectures before sm_100."""
    lines = [line for line in text.splitlines() if not line.startswith("target ")]
    text = "\n".join(lines)
    if arch < 100:
        text = _NEGATION.sub(_write_negation, text)
        text = re.sub(r"\bpoison\b", "undef", text)
    if re.search(r"load <[48] x half>", text):  # of memory that never changes, NVVM reads two at most
        text = text.replace(" noalias ", " ")
    for name, other in _OTHER_NAMES.items():
        text = text.replace(f'@"{name}"', f'@"{other}"')
    for sign, bits, width in itertools.product("su", (32, 64), (32, 64)):
        full = f'@"llvm.fpto{sign}i.sat.i{bits}.f{width}"'
        text = text.replace(f"declare i{bits} {full}", _define_conversion(sign, bits, width))
        text = text.replace(full, full.replace("llvm", "jitcore"))
    # NVVM takes a barrier of a warp for one that moves no memory, and reads ahead of it
    text, count = _WARP_BARRIER.subn(r'\1call void @"llvm.nvvm.membar.cta"()\n\g<0>', text)
    text += '\ndeclare void @"llvm.nvvm.membar.cta"()' * bool(count)
    for name, relation in _EXTREMES.items():
        for bits in (8, 16, 32, 64):
            full = f'@"llvm.{name}.i{bits}"'
            text = text.replace(f"declare i{bits} {full}", _define_extreme(name, relation, bits))
            text = text.replace(full, f'@"jitcore.{name}.i{bits}"')
    if arch < 100:
        text = text.replace("define ptx_kernel void", "define void")
    first = 1_000_001  # behind the numbers of the module's own notes
    notes = [f'!{number} = !{{{kernel}, !"kernel", i32 1}}' for number, kernel in enumerate(kernels, first)]
    names = ", ".join(f"!{number}" for number in range(first, first + len(kernels)))
    return "\n".join([text, f"!nvvm.annotations = !{{{names}}}", *notes])


_WARP_BARRIER = re.compile(r'( +)call void @"llvm.nvvm.bar.warp.sync"')
#: `%x = fneg float %y`, with flags.
_NEGATION = re.compile(r"fneg ((?:[a-z]+ )*)(half|float|double) (\S+)")


def _write_negation(found: re.Match) -> str:
    flags, kind, value = found.groups()
    zero = "0xH8000" if kind == "half" else "-0.0"
    return f"fsub {flags}{kind} {zero}, {value}"


def _define_extreme(name: str, relation: str, bits: int) -> str:
    kind = f"i{bits}"
    return (f'define internal {kind} @"jitcore.{name}.{kind}"({kind} %x, {kind} %y) alwaysinline {{\n'
            f"  %c = icmp {relation} {kind} %x, %y\n  %r = select i1 %c, {kind} %x, {kind} %y\n"
            f"  ret {kind} %r\n}}\n;")


def _define_conversion(sign: str, bits: int, width: int) -> str:
    """Of a float to an integer: the nearest one that there is, and 0 of no number."""
    kind, number = f"i{bits}", "float" if width == 32 else "double"
    name = f"llvm.nvvm.{number[0]}2{'u' * (sign == 'u')}{'i' if bits == 32 else 'll'}.rz"
    own = f'@"jitcore.fpto{sign}i.sat.{kind}.f{width}"'
    return (f'declare {kind} @"{name}"({number})\n'
            f"define internal {kind} {own}({number} %x) alwaysinline {{\n"
            f'  %n = fcmp uno {number} %x, %x\n  %c = call {kind} @"{name}"({number} %x)\n'
            f"  %r = select i1 %n, {kind} 0, {kind} %c\n  ret {kind} %r\n}}\n;")
