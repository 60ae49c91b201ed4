"""What the tests of the emulated device run: PTX of one instruction, LLVM kernels as PTX, launches with arrays."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm
import numpy as np

from jitcore.backends.cuda.emulated import EmulatedDevice

HEADER = ".version 7.8\n.target sm_90\n.address_size 64\n"


@functools.cache
def to_ptx(ir_text: str) -> str:
    """PTX of a module in LLVM's text, whose kernels are `ptx_kernel`s."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu="sm_90", features="+ptx78", opt=2)
    module = llvm.parse_assembly(ir_text, llvm.create_context())
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


def launch(
    ptx, arguments, grid=1, block=32, *, kernel=None, seed=None, shared_bytes=0, device=None, check_races=True
):
    """Launches the kernel (the first one) with ndarrays, which are copied in and out, and numbers.

    Returns: copies of the arrays as the kernel left them.
    """
    device = device or EmulatedDevice(seed=seed, check_races=check_races)
    module = device.load(ptx)
    values, places = [], []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            places.append((device.allocate(argument.nbytes), argument))
            device.copy_in(places[-1][0], argument)
            values.append(places[-1][0])
        else:
            values.append(int(np.array(argument).tobytes().ljust(8, b"\0")[::-1].hex(), 16))
    extents = [(*size, 1, 1)[:3] if isinstance(size, tuple) else (size, 1, 1) for size in (grid, block)]
    chosen = module.find_kernel(kernel or module.kernels[0])
    device.launch(chosen, *extents, np.array(values, np.uint64), shared_bytes)
    device.synchronize()
    results = []
    for address, argument in places:
        results.append(np.empty_like(argument))
        device.copy_out(results[-1], address)
    return results


def write_kernel(
    body: str, pointers: int = 0, numbers: int = 0, *, declarations: str = "", outside: str = ""
) -> str:
    """A kernel `k` in PTX. Its pointers are in %p0, ..., its numbers of 64 bits behind them; %tid.x is in %t, times
    four in %t4. There are registers %r0 to %r31, %d0 to %d31, %q0 to %q7 (predicates) and %h0 to %h7 (16 bits)."""
    names = [f"%p{place}" for place in range(pointers + numbers)]
    parameters = ",\n".join(f".param .u64 k_{place}" for place in range(len(names)))
    loads = "\n".join(f"ld.param.u64 {name}, [k_{place}];" for place, name in enumerate(names))
    return f"""{HEADER}
{outside}
.visible .entry k({parameters})
{{
  .reg .b64 %p<{len(names) + 1}>;
  .reg .b32 %r<32>;
  .reg .b64 %d<32>;
  .reg .pred %q<8>;
  .reg .b16 %h<8>;
  .reg .b32 %t;
  .reg .b64 %t4;
  {declarations}
  {loads}
  mov.u32 %t, %tid.x;
  mul.wide.u32 %t4, %t, 4;
  {body}
  ret;
}}
"""


def evaluate(text: str, result: str, *operands: np.ndarray) -> np.ndarray:
    """What instructions make of each element. text: registers a, b, c in, d out; x, y, p, q and w are free."""
    result = np.dtype(result)
    arrays = [np.ascontiguousarray(operand) for operand in operands]
    count = len(arrays[0])
    lines, registers = [], []
    for name, dtype in zip("dabc", [result, *(array.dtype for array in arrays)]):
        registers.append(f".reg .b{max(8 * dtype.itemsize, 16)} {name};")
    body = "mov.u32 %r0, %ctaid.x; mad.lo.u32 %r0, %r0, 128, %t; cvt.u64.u32 %d0, %r0;"
    body += f"setp.ge.u32 %q0, %r0, {count}; @%q0 ret;"
    for place, (name, array) in enumerate(zip("abc", arrays)):
        size = array.itemsize
        lines.append(f"mad.lo.u64 %d1, %d0, {size}, %p{place}; ld.global.b{8 * size} {name}, [%d1];")
    size = result.itemsize
    lines.append(text)
    lines.append(f"mad.lo.u64 %d1, %d0, {size}, %p{len(arrays)}; st.global.b{8 * size} [%d1], d;")
    registers.append(".reg .pred p, q; .reg .b32 x, y; .reg .b64 w;")
    ptx = write_kernel(body + "\n".join(lines), len(arrays) + 1, declarations=" ".join(registers))
    return launch(ptx, [*arrays, np.zeros(count, result)], -(-count // 128), 128)[-1]
