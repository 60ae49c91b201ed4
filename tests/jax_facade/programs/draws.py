"""Random numbers with parameters and seeds from NumPy, which have 64 bits: a key gives the same ones."""

import jax.numpy as jnp
import numpy as np
from jax import random

p, key = np.array([0.2, 0.3, 0.5]), random.PRNGKey(7)
logits = np.log(p)

RESULTS = {
    "bernoulli": [random.bernoulli(key, np.full(20, 0.5)), random.bernoulli(key, np.float64(0.5), (20,))],
    "categorical": [random.categorical(key, logits, shape=(20,)),
                    random.categorical(key, np.stack([logits, logits[::-1]]), axis=1),
                    random.categorical(key, logits, shape=(2,), replace=False)],
    "choice": [random.choice(key, 3, (20,), p=p), random.choice(key, 3, (3,), replace=False, p=p)],
    "counts": [random.binomial(key, 10.0, p), random.geometric(key, p), random.poisson(key, p * 10),
               random.multinomial(key, np.float64(10.0), p)],
    "floats": [jnp.float32(random.gamma(key, p)), jnp.float32(random.truncated_normal(key, -p, p)),
               jnp.float32(random.multivariate_normal(key, np.zeros(3), np.eye(3), (2,)))],
    "weibull_min": [random.weibull_min(key, jnp.float32(p), jnp.float32(p)),
                    random.weibull_min(key, 1.0, 2.0, (4,))],
    "generalized_normal": random.generalized_normal(key, jnp.float32(p), (3,)),
    "seeds": [random.PRNGKey(seed) for seed in (np.int64(5), np.uint32(2**32 - 1), 2**33 + 5, -1)],
}
