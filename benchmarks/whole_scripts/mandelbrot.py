import numpy as np


def mandelbrot(width, height, iterations):
    x = np.linspace(-2.0, 0.5, width)
    y = np.linspace(-1.25, 1.25, height)
    counts = np.zeros((height, width), dtype=int)
    for i in range(height):
        for j in range(width):
            c = complex(x[j], y[i])
            z = 0j
            for k in range(iterations):
                if abs(z) > 2:
                    break
                z = z * z + c
            counts[i, j] = k
    return counts


counts = mandelbrot(500, 400, 60)
print(counts.sum(), counts.max())
