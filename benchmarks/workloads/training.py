"""Learning: a step of gradient descent of a small network, the gradient of logistic regression."""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np

from benchmarks.inputs import make_normal
from benchmarks.numba_loops import REORDER, loop, parallel_loop
from benchmarks.programs import LEARNING_RATE, make_network, make_train_step
from benchmarks.workload import DTYPES, Workload

BATCH, SAMPLES, FEATURES = 128, 100_000, 20


def make_step(descend: Callable) -> Callable:
    """The step as a function of a network, from one of its arrays."""

    def step(network, images, targets):
        names = ("w1", "b1", "w2", "b2")
        new, loss = descend(*(network[name] for name in names), images, targets)
        return dict(zip(names, new)), loss

    return step


def descend(w1, b1, w2, b2, images, targets):
    """The derivatives by hand, in what Numba compiles too."""
    hidden = np.tanh(images @ w1 + b1)
    scores = hidden @ w2 + b2
    shifted = np.empty_like(scores)
    for i in range(scores.shape[0]):
        shifted[i] = scores[i] - scores[i].max()
    powers = np.exp(shifted)
    totals = powers.sum(axis=1)
    count, rate = w1.dtype.type(scores.shape[0]), w1.dtype.type(LEARNING_RATE)
    loss = (np.log(totals) - (targets * shifted).sum(axis=1)).sum() / count
    slope = (powers / totals.reshape(-1, 1) - targets) / count
    back = (slope @ w2.T) * (w1.dtype.type(1) - hidden * hidden)
    new = (w1 - rate * (images.T @ back), b1 - rate * back.sum(axis=0),
           w2 - rate * (hidden.T @ slope), b2 - rate * slope.sum(axis=0))
    return new, loss


_compiled_descend = loop(descend)


def make_logistic_gradient(api) -> Callable:
    """Gradient of the mean of log(1 + exp(-label * score)) with respect to the weights."""
    jnp = api.numpy

    def find_loss(weights, samples, labels):
        return jnp.mean(jnp.log1p(jnp.exp(-labels * (samples @ weights))))

    return lambda weights, samples, labels: api.value_and_grad(find_loss)(weights, samples, labels)


def find_gradient_numpy(weights, samples, labels):
    margin = np.exp(-labels * (samples @ weights))
    slope = -labels * margin / (1 + margin) / labels.size
    return np.log1p(margin).mean(), slope @ samples


@parallel_loop(fastmath=REORDER)
def find_gradient_numba(weights, samples, labels):
    parts = np.zeros((32, weights.size), samples.dtype)
    losses = np.zeros(32, samples.dtype)
    for part in numba.prange(32):
        gradient = np.zeros(weights.size, samples.dtype)
        loss = samples.dtype.type(0)
        for i in range(part * labels.size // 32, (part + 1) * labels.size // 32):
            score = samples.dtype.type(0)
            for j in range(weights.size):
                score += samples[i, j] * weights[j]
            margin = math.exp(-labels[i] * score)
            loss += math.log1p(margin)
            slope = -labels[i] * margin / (samples.dtype.type(1) + margin)
            for j in range(weights.size):
                gradient[j] += slope * samples[i, j]
        parts[part] = gradient
        losses[part] = loss
    count = samples.dtype.type(labels.size)
    return losses.sum() / count, parts.sum(axis=0) / count


def _make_samples(count: int, dtype: str) -> tuple:
    samples = make_normal(count, FEATURES, dtype=dtype)
    labels = np.where(samples @ np.linspace(-1, 1, FEATURES) > 0, 1, -1).astype(dtype)
    return make_normal(FEATURES, dtype=dtype, seed=1), samples, labels


def _make_rows(name: str, dtype: str) -> tuple[Workload, ...]:
    return (
        Workload(f"mlp train step, batch {BATCH} {name}", lambda batch: make_network(batch, dtype=dtype),
                 make_train_step, size=BATCH, tiny=8, numpy=make_step(descend),
                 numba=make_step(_compiled_descend),
                 tolerance={"f32": 1e-4, "f64": 1e-10}[name],
                 flops=lambda network, images, targets: 6.0 * len(images) * (784 * 256 + 256 * 10)),
        Workload(f"logistic regression gradient 1e5x{FEATURES} {name}", lambda n: _make_samples(n, dtype),
                 make_logistic_gradient, size=SAMPLES, tiny=200, numpy=find_gradient_numpy,
                 numba=find_gradient_numba, tolerance={"f32": 1e-4, "f64": 1e-10}[name],
                 bytes_moved=lambda weights, samples, labels: samples.nbytes + labels.nbytes),
    )


ROWS = tuple(row for name, dtype in DTYPES.items() for row in _make_rows(name, dtype))
