"""Arrays, linear algebra, transforms and special functions."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax.numpy import fft, linalg
from jax.scipy.optimize import minimize
from jax.scipy.special import expit, gammaln, logsumexp
from jax.scipy.stats import norm

a = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
b = jnp.array([1.0, -2.0, 0.5])
x = jnp.linspace(-2, 2, 9)

RESULTS = {
    "solve": linalg.solve(a, b),
    "factor": jsp.linalg.cho_solve(jsp.linalg.cho_factor(a), b),
    "eigenvalues": linalg.eigvalsh(a),
    "determinant": linalg.slogdet(a),
    "norm": (linalg.norm(a), linalg.norm(b, 1)),
    "exponential": jsp.linalg.expm(a / 4),
    "contraction": jnp.einsum("ij,jk,k->i", a, a, b),
    "transform": fft.rfft(x),
    "filtered": fft.irfft(fft.rfft(x) * jnp.arange(5), 9),
    "special": (logsumexp(x), expit(x), gammaln(jnp.abs(x) + 1), jsp.special.erf(x)),
    "distribution": (norm.logpdf(x, 0.5, 2.0), norm.cdf(x)),
    "sorted": (jnp.sort(jnp.sin(5 * x)), jnp.argsort(jnp.sin(5 * x)), jax.lax.top_k(x, 2)),
    "updated": x.at[1:3].set(0).at[jnp.array([5, 5])].add(1.0).at[-1].mul(3),
    "indexed": (x[::2], x[jnp.array([3, 1])], x[x > 1], a[1:, None, :2]),
    "cumulated": (jnp.cumsum(x), jnp.diff(x, 2), jnp.cumprod(b)),
    "statistics": (jnp.median(x), jnp.percentile(x, 30.0), jnp.var(a, 0), jnp.histogram(x, 4)[0]),
    "polynomial": (jnp.polyval(b, x), jnp.interp(0.3, x, x**2), jnp.convolve(b, x)),
    "integers": (jnp.bincount(jnp.array([1, 1, 3]), length=5), jnp.unique(jnp.array([3, 1, 3])), 7 // jnp.arange(1, 4)),
    "joined": jnp.concatenate([jnp.pad(b, 1), jnp.tile(b, 2)]),
    "image": jax.image.resize(a, (5, 2), "linear"),
    "convolution": jax.lax.conv_general_dilated(a[None, None], a[None, None, :2, :2], (1, 1), "SAME"),
    "normalised": (jax.nn.softmax(x), jax.nn.one_hot(jnp.array([0, 2]), 3), jax.nn.log_softmax(a, -1)),
    "segments": jax.ops.segment_sum(x, jnp.array([0, 0, 1, 1, 1, 2, 2, 2, 2]), 3),
    "minimum": minimize(lambda v: jnp.sum((a @ v - b) ** 2), jnp.zeros(3), method="BFGS").x,
}
