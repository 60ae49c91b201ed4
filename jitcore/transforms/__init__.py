"""Transformations of traced programs: one `Trace` each, and the rules that primitives bring along for it.

In: functions and jaxprs. Out: functions and jaxprs. `batching.py` is the trace of `vmap` and its form on
jaxprs, `batch_rules.py` what the rules of primitives are made of, `vmap.py` the public function. The package
lies below the primitives: what it needs of them is looked up in their registry.
"""
