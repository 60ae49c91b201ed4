"""A wave packet in a box of springs, by split steps in Fourier space."""
import numpy as np

n, length, dt, steps = 200, 20.0, 0.005, 1000
x = np.linspace(-length / 2, length / 2, n, endpoint=False)
xx, yy = np.meshgrid(x, x)
k = 2 * np.pi * np.fft.fftfreq(n, length / n)
kx, ky = np.meshgrid(k, k)
k_squared = kx**2 + ky**2

psi = np.exp(-((xx - 3) ** 2 + yy**2)) * np.exp(1j * 2.0 * yy)
psi /= np.sqrt(np.sum(np.abs(psi) ** 2))
potential = 0.5 * (xx**2 + yy**2)

for step in range(steps):
    psi = np.exp(-0.5j * dt * potential) * psi
    psi = np.fft.ifft2(np.exp(-0.5j * dt * k_squared) * np.fft.fft2(psi))
    psi = np.exp(-0.5j * dt * potential) * psi
    if step % 100 == 0:
        density = np.abs(psi) ** 2
        print(step, round(float(np.sum(xx * density)), 6), round(float(np.sum(yy * density)), 6))

print("norm", round(float(np.sum(np.abs(psi) ** 2)), 9))
