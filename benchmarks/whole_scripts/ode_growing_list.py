import numpy as np


def simulate(dt, t_end):
    t, x, v = 0.0, 1.0, 0.0
    ts, xs = [], []
    while t < t_end:
        a = -x - 0.1 * v
        v += a * dt
        x += v * dt
        t += dt
        ts.append(t)
        xs.append(x)
    return np.array(ts), np.array(xs)


for dt in (1e-3, 5e-4, 2e-4, 5e-5, 2e-5):
    ts, xs = simulate(dt, 40.0)
    print(dt, len(xs), xs[-1].round(6))
