"""Price of an Asian option by simulated paths, one at a time."""
import numpy as np

np.random.seed(1)
S0, K, r, sigma, T, steps, paths = 100.0, 100.0, 0.05, 0.2, 1.0, 100, 40000
dt = T / steps
total = 0.0
for path in range(paths):
    S = S0
    average = 0.0
    for t in range(steps):
        z = np.random.normal()
        S *= np.exp((r - 0.5 * sigma**2) * dt + sigma * np.sqrt(dt) * z)
        average += S
    average /= steps
    total += max(average - K, 0)
print(f"price {np.exp(-r * T) * total / paths:.6f}")
