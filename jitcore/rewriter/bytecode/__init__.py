"""Code objects of CPython: decoded to a normal form, as graphs, and assembled again.

In: a code object of any supported version. Out: instructions, basic blocks and what their flow says; a code
object.

Modules:
    assembler     Instructions of the normal form, and blocks of them, assembled to a code object.
    flow          What a function's control flow says: live and assigned variables, loops, and where ways meet
                  again.
    graph         Basic blocks: the control flow graph of a code object in normal form, and its dominators.
    instructions  Bytecode decoded to a normal form, which is the same for all versions of CPython.
    versions      What differs between versions of CPython's bytecode, as facts.
"""
