"""The public functions of differentiation, by name: what `jitcore.api` and other layers import."""

from jitcore.transforms.forward import jvp, linearize
from jitcore.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from jitcore.transforms.reverse import grad, linear_transpose, value_and_grad, vjp

__all__ = ["grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "linear_transpose", "linearize",
           "value_and_grad", "vjp"]
