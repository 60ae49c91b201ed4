import numpy as np
from scipy.optimize import minimize

calls = 0


def rosenbrock(x):
    global calls
    calls += 1
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


for seed in range(20):
    x0 = np.random.default_rng(seed).uniform(-1, 1, 5)
    result = minimize(rosenbrock, x0, method="Nelder-Mead", options={"maxiter": 3000, "xatol": 1e-8})
    print(seed, round(result.fun, 6))
print("calls", calls)
