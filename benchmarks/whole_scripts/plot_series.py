import numpy as np

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None


def smooth(x, width):
    return np.convolve(x, np.ones(width) / width, mode="same")


rng = np.random.default_rng(0)
t = np.linspace(0, 10, 2000)
signal = np.sin(t) + 0.3 * rng.standard_normal(t.size)
for width in (5, 25, 101):
    smoothed = smooth(signal, width)
    print(width, np.abs(smoothed - np.sin(t)).mean().round(5))
    if plt is not None:
        plt.plot(t, smoothed, label=str(width))
if plt is not None:
    plt.legend()
    plt.savefig("/dev/null", format="png")
