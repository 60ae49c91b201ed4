"""A double pendulum as a class, solved by SciPy for several starts."""
import numpy as np
from scipy.integrate import solve_ivp


class DoublePendulum:
    def __init__(self, L1=1.0, L2=1.0, m1=1.0, m2=1.0, g=9.81):
        self.L1, self.L2 = L1, L2
        self.m1, self.m2 = m1, m2
        self.g = g

    def derivatives(self, t, y):
        theta1, z1, theta2, z2 = y
        c, s = np.cos(theta1 - theta2), np.sin(theta1 - theta2)
        theta1dot = z1
        z1dot = (self.m2 * self.g * np.sin(theta2) * c
                 - self.m2 * s * (self.L1 * z1**2 * c + self.L2 * z2**2)
                 - (self.m1 + self.m2) * self.g * np.sin(theta1)) / self.L1 / (self.m1 + self.m2 * s**2)
        theta2dot = z2
        z2dot = ((self.m1 + self.m2) * (self.L1 * z1**2 * s - self.g * np.sin(theta2)
                                        + self.g * np.sin(theta1) * c)
                 + self.m2 * self.L2 * z2**2 * s * c) / self.L2 / (self.m1 + self.m2 * s**2)
        return theta1dot, z1dot, theta2dot, z2dot

    def energy(self, y):
        th1, th1d, th2, th2d = y
        V = -(self.m1 + self.m2) * self.L1 * self.g * np.cos(th1) - self.m2 * self.L2 * self.g * np.cos(th2)
        T = 0.5 * self.m1 * (self.L1 * th1d)**2 + 0.5 * self.m2 * (
            (self.L1 * th1d)**2 + (self.L2 * th2d)**2
            + 2 * self.L1 * self.L2 * th1d * th2d * np.cos(th1 - th2))
        return T + V

    def run(self, start, seconds):
        return solve_ivp(self.derivatives, (0, seconds), start, rtol=1e-9, atol=1e-9)


pendulum = DoublePendulum()
for angle in (0.3, 0.5, 0.7):
    found = pendulum.run([angle, 0.0, angle, 0.0], 200)
    drift = pendulum.energy(found.y[:, -1]) - pendulum.energy(found.y[:, 0])
    print(f"{angle}: {found.nfev} calls, end {found.y[0, -1]:.3f}, energy kept {abs(drift) < 1e-4}")
