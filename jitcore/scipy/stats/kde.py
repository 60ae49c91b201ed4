"""Densities of samples, as sums of normal densities around them (`jitcore.scipy.stats.gaussian_kde`).

In: samples, [n] or [d, n]. Out: an object that is a pytree, whose methods trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from jitcore import dtypes, numpy as jnp
from jitcore.array import Array
from jitcore.process.lazy import LazyModule
from jitcore.scipy import linalg, special
from jitcore.scipy.stats import multivariate_normal
from jitcore.scipy.stats.support import promote
from jitcore.tree_util import register_pytree_node_class

__all__ = ["gaussian_kde"]

random = LazyModule("jitcore.random")  # which needs `jitcore.scipy.special`


@register_pytree_node_class
class gaussian_kde:  # noqa: N801  SciPy's name
    """The density of a sample: the mean of normal densities around its points.

    Args:
        dataset: real [n] or [d, n], more than one number.
        bw_method: "scott" (default), "silverman", a number, or a function of this object that gives one: the
            width of the densities, in standard deviations of the sample.
        weights: [n], of the points; equal by default.

    Attributes: dataset [d, n], weights [n], neff (effective number of points), covariance and inv_cov [d, d].
    Raises: ValueError for a sample of one number, other shapes of weights, another bw_method;
    NotImplementedError for complex samples.
    Example: `gaussian_kde(jnp.array([0.0, 1.0, 2.0]))(1.0)` is `[0.3473754]`. Source:
    scipy.stats.gaussian_kde."""

    def __init__(self, dataset, bw_method: str | float | Callable | None = None, weights=None):
        (dataset,) = promote("gaussian_kde", dataset, complex_too=True)
        dataset = jnp.atleast_2d(dataset)
        if dtypes.is_complex(dataset.dtype):
            raise NotImplementedError("gaussian_kde does not support complex data")
        if not dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        d, n = dataset.shape
        if weights is None:
            weights = jnp.full(n, 1 / n, dataset.dtype)
        else:
            dataset, weights = promote("gaussian_kde", dataset, jnp.atleast_1d(weights), complex_too=True)
            if weights.shape != (n,):
                raise ValueError(f"`weights` input should be one-dimensional, of length {n}; "
                                 f"got shape {weights.shape}")
            weights = weights / jnp.sum(weights)
        self.dataset, self.weights = dataset, weights
        self.neff = 1 / jnp.sum(jnp.square(weights))
        if bw_method is None or bw_method == "scott":
            factor = jnp.power(self.neff, -1 / (d + 4))
        elif bw_method == "silverman":
            factor = jnp.power(self.neff * (d + 2) / 4, -1 / (d + 4))
        elif callable(bw_method):
            factor = bw_method(self)
        elif isinstance(bw_method, str) or jnp.ndim(bw_method):
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar, or a callable.")
        else:
            factor = bw_method
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self.covariance = covariance * factor**2
        self.inv_cov = jnp.linalg.inv(covariance) / factor**2

    def tree_flatten(self) -> tuple[tuple, None]:
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple) -> gaussian_kde:
        new = cls.__new__(cls)
        new.neff, new.dataset, new.weights, new.covariance, new.inv_cov = children
        return new

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """Number of points."""
        return self.dataset.shape[1]

    def logpdf(self, x) -> Array:
        """Logarithm of the density at points [m] or [d, m]: [m]. Raises: ValueError for other shapes."""
        points = jnp.atleast_2d(promote("logpdf", x, self.dataset)[0])
        if points.shape[0] != self.d:
            if points.shape != (1, self.d):
                raise ValueError(f"points have dimension {points.shape[0]}, dataset has dimension {self.d}")
            points = points.T
        # equal to distances by the inverse covariance, of vectors times its factor
        factor = linalg.cholesky(self.inv_cov, lower=True)
        difference = (self.dataset.T @ factor)[:, None] - (points.T @ factor)[None]
        constant = jnp.sum(jnp.log(jnp.diagonal(factor))) - 0.5 * self.d * math.log(2 * math.pi)
        logarithms = jnp.log(self.weights)[:, None] + constant - 0.5 * jnp.sum(jnp.square(difference), -1)
        return special.logsumexp(logarithms, axis=0)

    def pdf(self, x) -> Array:
        """Density at points [m] or [d, m]: [m]."""
        return jnp.exp(self.logpdf(x))

    evaluate = __call__ = pdf

    def integrate_gaussian(self, mean, cov) -> Array:
        """The integral of the density times a normal one. mean: [d]; cov: [d, d]. Raises: ValueError."""
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(f"mean or covariance does not have dimension {self.d}")
        return jnp.sum(self.weights * multivariate_normal.pdf(self.dataset.T, mean, self.covariance + cov))

    def integrate_box_1d(self, low, high) -> Array:
        """The probability of a number from low to high. Raises: ValueError unless d is 1 and the limits
        scalars."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        below, above = ((limit - self.dataset[0]) / jnp.sqrt(self.covariance[0, 0]) for limit in (low, high))
        return jnp.sum(self.weights * (special.ndtr(above) - special.ndtr(below)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities. Raises: ValueError where their d differ."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        densities = multivariate_normal.pdf(self.dataset.T[:, None], other.dataset.T[None],
                                            self.covariance + other.covariance)
        return self.weights @ densities @ other.weights

    def resample(self, key, shape: tuple = ()) -> Array:
        """Numbers drawn from the density, [d, *shape]. key: of `jitcore.random`."""
        which, noise = random.split(key)
        places = random.choice(which, self.n, shape=shape, p=self.weights)
        steps = random.multivariate_normal(noise, jnp.zeros(self.d, self.covariance.dtype), self.covariance,
                                           shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, places] + jnp.moveaxis(steps, -1, 0)

    def integrate_box(self, low_bounds, high_bounds, maxpts=None):
        """Not there. Raises: NotImplementedError."""
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method=None):
        """Not there: the object does not change. Raises: NotImplementedError."""
        raise NotImplementedError("dynamically changing the bandwidth method is not supported")
