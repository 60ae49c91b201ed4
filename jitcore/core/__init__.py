"""The tracer and its IR: primitives, avals, jaxprs and their specification, traces.

In: a Python function and abstract arguments. Out: a `ClosedJaxpr`.
"""
