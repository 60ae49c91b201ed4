"""Flow past a cylinder by the lattice Boltzmann method."""
import numpy as np

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    plt = None


def main():
    Nx, Ny = 100, 50
    tau = 0.6
    Nt = 4000
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])

    np.random.seed(42)
    F = np.ones((Ny, Nx, 9)) + 0.01 * np.random.randn(Ny, Nx, 9)
    X, Y = np.meshgrid(range(Nx), range(Ny))
    F[:, :, 3] += 2.0 * (1 + 0.2 * np.cos(2 * np.pi * X / Nx * 4))
    F *= (100 / F.sum(axis=2))[:, :, None]
    cylinder = (X - Nx / 4) ** 2 + (Y - Ny / 2) ** 2 < (Ny / 8) ** 2

    fig = plt.figure(figsize=(4, 2)) if plt is not None else None
    for it in range(Nt):
        for i, cx, cy in zip(range(9), cxs, cys):
            F[:, :, i] = np.roll(F[:, :, i], cx, axis=1)
            F[:, :, i] = np.roll(F[:, :, i], cy, axis=0)

        boundary = F[cylinder, :]
        boundary = boundary[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]

        rho = np.sum(F, 2)
        ux = np.sum(F * cxs, 2) / rho
        uy = np.sum(F * cys, 2) / rho

        Feq = np.zeros(F.shape)
        for i, cx, cy, w in zip(range(9), cxs, cys, weights):
            cu = cx * ux + cy * uy
            Feq[:, :, i] = rho * w * (1 + 3 * cu + 9 * cu**2 / 2 - 3 * (ux**2 + uy**2) / 2)
        F += -(1.0 / tau) * (F - Feq)
        F[cylinder, :] = boundary

        if it % 500 == 0:
            print(f"step {it}: density {rho.mean():.6f}, largest speed {np.sqrt(ux**2 + uy**2).max():.4f}")
            if fig is not None:
                ux[cylinder] = 0
                uy[cylinder] = 0
                vorticity = (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)) - (
                    np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1))
                plt.cla()
                plt.imshow(np.ma.masked_where(cylinder, vorticity), cmap="bwr")
                plt.clim(-0.1, 0.1)
                plt.savefig("/dev/null", format="png")


if __name__ == "__main__":
    main()
