"""Functions with derivative rules of their own: the names of `jax.custom_derivatives`."""

from jitcore.transforms.custom_derivatives import SymbolicZero as SymbolicZero
from jitcore.transforms.custom_derivatives import closure_convert as closure_convert
from jitcore.transforms.custom_derivatives import custom_gradient as custom_gradient
from jitcore.transforms.custom_derivatives import custom_jvp as custom_jvp
from jitcore.transforms.custom_derivatives import custom_vjp as custom_vjp
from jitcore.transforms.custom_derivatives import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)

__all__ = ["SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
           "custom_vjp_primal_tree_values"]
