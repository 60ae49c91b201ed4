"""Coupled oscillators as a class whose method SciPy calls."""
import numpy as np
from scipy.integrate import solve_ivp


class Kuramoto:
    def __init__(self, n, coupling, seed=0):
        rng = np.random.default_rng(seed)
        self.n, self.coupling = n, coupling
        self.frequencies = rng.normal(0.0, 1.0, n)
        self.start = rng.uniform(0, 2 * np.pi, n)

    def derivatives(self, t, theta):
        interaction = np.zeros(self.n)
        for i in range(self.n):
            interaction[i] = np.sum(np.sin(theta - theta[i]))
        return self.frequencies + self.coupling / self.n * interaction

    def order(self, theta):
        return np.abs(np.exp(1j * theta).mean())

    def run(self, seconds):
        return solve_ivp(self.derivatives, (0, seconds), self.start, rtol=1e-6, max_step=0.05)


for coupling in (0.5, 1.5, 3.0):
    model = Kuramoto(60, coupling)
    found = model.run(20)
    print(f"coupling {coupling}: order {model.order(found.y[:, -1]):.4f}")
