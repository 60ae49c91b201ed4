import numpy as np
from scipy.integrate import solve_ivp


def predator(t, z, a, b, c, d):
    x, y = z
    return [a * x - b * x * y, -c * y + d * x * y]


for a in np.linspace(1.0, 1.5, 40):
    sol = solve_ivp(predator, [0, 50], [10, 5], args=(a, 0.1, 1.5, 0.075), rtol=1e-8)
    print(round(a, 2), sol.y[:, -1].round(4), sol.nfev)
