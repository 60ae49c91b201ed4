"""Functions with derivative rules of their own: the names of `jax.custom_derivatives`."""

from jitcore.transforms.custom_derivatives import (SymbolicZero as SymbolicZero,
                                                   closure_convert as closure_convert,
                                                   custom_gradient as custom_gradient,
                                                   custom_jvp as custom_jvp, custom_vjp as custom_vjp,
                                                   custom_vjp_primal_tree_values as
                                                   custom_vjp_primal_tree_values)

__all__ = ["SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
           "custom_vjp_primal_tree_values"]
