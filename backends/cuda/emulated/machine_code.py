"""LLVM's text in, machine code of this process out: the last stage of loading a module."""

from __future__ import annotations

import weakref

import llvmlite.binding as llvm

from jitcore.backends.cuda.emulated.races import access


def compile_text(text: str, owner: object):
    """The engine that has the machine code, which goes with its owner.

    Cost: 15 ms for a softmax; twice that with LLVM's level 1 of passes, four times with its code generator's.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("emulated_access", access.address)
    context, target = llvm.create_context(), llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    # Most of the time goes to checks of accesses, so better code would not be worth the time that it takes.
    machine = target.create_target_machine(llvm.get_host_cpu_name(), features, opt=0)
    module = llvm.parse_assembly(text, context)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    # Level 0 splits coroutines and does nothing else; stack slots become values before.
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0))
    slots = llvm.create_new_module_pass_manager()
    slots.add_sroa_pass()
    slots.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)  # to which both belong from here on
    engine.finalize_object()
    weakref.finalize(owner, _close, engine, context).atexit = False
    return engine


def _close(engine: llvm.ExecutionEngine, context: llvm.ContextRef) -> None:
    """In this order, which a collection of garbage would not keep."""
    engine.close()
    context.close()
