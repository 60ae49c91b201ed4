"""Functions of neural networks (`jitcore.nn`): activations, normalisation, initial weights.

In: arrays. Out: arrays; `jitcore.nn.initializers` draws weights from keys.

Modules:
    activations    Activation functions of neural networks.
    initializers   Initial weights: functions that return `init(key, shape, dtype)`.
    normalization  Functions along an axis: softmax and its logarithm, standardisation, one-hot codes.
"""

from jitcore.nn import activations, initializers
from jitcore.nn.activations import *  # noqa: F403
from jitcore.nn.normalization import log_softmax, logmeanexp, one_hot, softmax, standardize
from jitcore.scipy.special import logsumexp

__all__ = ["initializers", "logsumexp", *activations.__all__, "log_softmax", "logmeanexp", "one_hot",
           "softmax", "standardize"]
