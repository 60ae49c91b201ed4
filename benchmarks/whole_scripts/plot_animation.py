"""Draws each frame of a pendulum, as far as there is something to draw with."""
import math

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None


def advance(angle, speed, dt):
    for _ in range(100):
        speed -= 9.81 * math.sin(angle) * dt
        angle += speed * dt
    return angle, speed


angle, speed, angles = 2.0, 0.0, []
for frame in range(300):
    angle, speed = advance(angle, speed, 1e-4)
    angles.append(angle)
    if plt is not None and frame % 100 == 0:
        plt.cla()
        plt.plot(angles)
        plt.savefig("/dev/null", format="png")
print(round(angle, 6), round(speed, 6))
