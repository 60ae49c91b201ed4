"""Transformations of traced programs: one `Trace` each, and the rules that primitives bring along for it.

In: functions and jaxprs. Out: functions and jaxprs. `batching.py` is the trace of `vmap` and its form on
jaxprs, `batch_rules.py` what the rules of primitives are made of, `vmap.py` the public function. The package
lies below the primitives: what it needs of them is looked up in their registry.

Modules:
    autodiff             The public functions of differentiation, by name: what `jitcore.api` and other layers
                         import.
    batch_rules          What batching rules are made of: the elementwise one, and rules that apply a
                         primitive with other params.
    batching             The trace of `vmap`, and batching of jaxprs.
    call_rules           Rules of primitives that call a jaxpr, such as `jit` and `remat2`.
    checkpoint           `checkpoint`: derivatives that compute intermediate values again instead of keeping
                         them.
    checkpoint_policies  Policies of `checkpoint`: which results the backward pass may keep. Each is
                         `policy(primitive, *avals, **params)`.
    custom_calls         Calls of functions that have derivative rules of their own, as every trace sees them.
    custom_derivatives   `custom_jvp`, `custom_vjp` and their company: functions of pytrees with derivative
                         rules of their own.
    custom_rule_checks   What users' derivative rules return, checked against what they have to return.
    derivative_rules     What rules of `jvp` and `transpose` are made of.
    flat_function        Functions of pytrees as functions of leaves, for the transformations that
                         differentiate.
    forward              `jvp` and `linearize`: derivatives along tangents.
    jacobians            `jacfwd`, `jacrev` and `hessian`: all derivatives of all elements.
    jaxpr_parts          Parts of jaxprs: slices by dataflow, other orders of inputs and outputs, fixpoints of
                         flags.
    jvp                  Forward-mode differentiation: the trace of `jvp`, and derivatives of jaxprs.
    linearize            Linearization of flat functions: partial evaluation of the jvp, primals known and
                         tangents unknown.
    partial_eval         Partial evaluation: what is known is computed, the rest is recorded.
    reverse              `vjp`, `grad`, `value_and_grad` and `linear_transpose`: derivatives of results by all
                         arguments at once.
    tangents             Tangents and cotangents: their types, symbolic zeros, and sums.
    transpose            Reverse mode: transposition of linear jaxprs.
    vmap                 `vmap`: a function of one element as a function of a batch of elements.
"""
