import numpy as np


def simulate(s0, r, sigma, t, steps, paths, rng):
    dt = t / steps
    s = np.full(paths, s0)
    total = np.zeros(paths)
    for _ in range(steps):
        z = rng.standard_normal(paths)
        s = s * np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
        total += s
    return total / steps


rng = np.random.default_rng(123)
for strike in (90, 100, 110):
    average = simulate(100.0, 0.05, 0.2, 1.0, 100, 200_000, rng)
    price = np.exp(-0.05) * np.maximum(average - strike, 0).mean()
    print(f"Asian call, strike {strike}: {price:.4f}")
