"""Functions of neural networks (`jitcore.nn`): activations, normalisation, initial weights.

In: arrays. Out: arrays; `jitcore.nn.initializers` draws weights from keys.

Modules:
    activations    Activation functions of neural networks.
    initializers   Initial weights: functions that return `init(key, shape, dtype)`.
    normalization  Functions along an axis: softmax and its logarithm, standardisation, one-hot codes.
"""

from jitcore.nn import initializers
from jitcore.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from jitcore.nn.normalization import log_softmax, logmeanexp, one_hot, softmax, standardize
from jitcore.scipy.special import logsumexp

__all__ = ["celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
           "initializers", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp",
           "mish", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
           "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh"]
