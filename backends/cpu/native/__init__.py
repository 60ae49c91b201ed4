"""From LLVM IR to machine code in memory and on disk.

In: the text of a module. Out: a library with the addresses of what it exports.

Modules:
    conversions     Conversions of short floats, where the processor has no instruction for them.
    images          Images: machine code that any process of the same kind of machine can load, and the
                    symbols it needs.
    libraries       Libraries: machine code of modules, compiled, linked and kept on disk, some of it ahead of
                    its use.
    objects         Object files of LLVM, linked into images that any process can load without LLVM.
    python_objects  Where native code finds the fields of Python's objects. `launch.layout_is_known` compares
                    these numbers with what this process has.
    text_writer     Writing LLVM text: straight-line instructions by method, loops and branches as `with`
                    blocks.
    translate       LLVM IR in, object code out: LLVM's passes and its generator of machine code.
"""
