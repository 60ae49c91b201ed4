"""From a call to a compiled program: signatures, caches, backends.

In: a Python function and the arguments of one call. Out: an executable for these types, run on the arrays.
Stage: the last but one; `api` puts the public names on top.

Modules:
    backend          Backends: what one has to offer, and how the installed ones are found.
    call_facts       Calls of compiled programs: what they answer, and what is known of their arguments.
    disk_cache       Compiled code on disk, for the processes to come.
    fast_call        Calls whose form is known: a function written for it reads the arguments, looks up and
                     runs.
    function         The caches of one jitted function, and what a call does when its signature is new.
    generated_calls  What the code of generated calls asks of arrays.
    inner            The primitive `jit`: a jitted function called while another function is traced.
    options          The arguments of `jit`, checked and made hashable, and what they say of the parameters of
                     a function.
    placement        Where a call runs: on which backend, on which of its devices, and how its arguments and
                     results lie there.
    program          A traced function on its way to an executable.
    references       Mutable references as arguments of jitted functions, and as variables around them.
    signature        One call of a jitted function: its leaves, how they stand in the arguments, their avals,
                     its static values.
    tracing          Runs the user's Python function once on tracers.
"""
