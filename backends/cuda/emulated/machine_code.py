"""LLVM's text in, machine code of this process out: the last stage of loading a module."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from jitcore.backends.cuda.emulated.races import access

__all__ = ["compile_text"]


@functools.cache
def _open_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("emulated_access", access.address)
    features = llvm.get_host_cpu_features().flatten()
    # Memory is what takes the time, so a thorough generator of code would take longer than it saves.
    return llvm.Target.from_default_triple().create_target_machine(llvm.get_host_cpu_name(), features, opt=0)


def compile_text(text: str):
    """The engine that holds the machine code; keep it for as long as that may run.

    Cost: 15 ms for a softmax; LLVM's level 1 would take twice that, and levels 1 of both stages four times.
    """
    machine = _open_machine()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    # Level 0 splits coroutines and does nothing else; registers are to be values before.
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    registers = llvm.create_new_module_pass_manager()
    registers.add_sroa_pass()
    registers.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine
