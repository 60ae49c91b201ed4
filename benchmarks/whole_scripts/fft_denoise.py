import numpy as np

rng = np.random.default_rng(5)
t = np.arange(0, 1, 1e-4)
for trial in range(30):
    clean = np.sin(2 * np.pi * 50 * t) + np.sin(2 * np.pi * 120 * t)
    noisy = clean + 2.5 * rng.standard_normal(t.size)
    spectrum = np.fft.fft(noisy)
    power = np.abs(spectrum) ** 2 / t.size
    filtered = np.fft.ifft(spectrum * (power > 100)).real
    if trial % 10 == 0:
        print(trial, np.abs(filtered - clean).max().round(4))
