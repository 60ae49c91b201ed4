"""Functions of neural networks (`jitcore.nn`): activations, normalisation, attention, initial weights.

In: arrays. Out: arrays; `jitcore.nn.initializers` draws weights from keys.

Modules:
    activations    Activation functions of neural networks.
    attention      Attention: what values belong to the keys that are near to a query.
    initializers   Initial weights: functions that return `init(key, shape, dtype)`.
    normalization  Functions along an axis: softmax and its logarithm, standardisation, one-hot codes.
"""

import sys

from jitcore.docstrings import document
from jitcore.nn import activations, initializers
from jitcore.nn.activations import *  # noqa: F403
from jitcore.nn.attention import dot_product_attention
from jitcore.nn.normalization import log_softmax, logmeanexp, one_hot, scaled_matmul, softmax, standardize
from jitcore.scipy.special import logsumexp

__all__ = ["initializers", "dot_product_attention", "logsumexp", *activations.__all__, "log_softmax",
           "logmeanexp", "one_hot", "scaled_matmul", "softmax", "standardize"]

document(sys.modules[__name__], __all__)
document(initializers, initializers.__all__)
