"""matplotlib: Arrays as what is drawn."""

import numpy as np
import pytest

import jitcore.numpy as jnp

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: jitcore[interop]")
figures = pytest.importorskip("matplotlib.figure")

X = jnp.linspace(0, 1, 20)
Y = jnp.sin(X)
GRID = X[:, None] * Y


@pytest.fixture
def axes():
    figure = figures.Figure()
    yield figure.add_subplot()
    figure.canvas.draw()


def test_plot(axes):
    (line,) = axes.plot(X, Y)
    np.testing.assert_array_equal(line.get_xdata(), np.asarray(X))
    np.testing.assert_array_equal(line.get_ydata(), np.asarray(Y))
    axes.plot(Y)
    axes.plot(X, GRID)
    axes.set_xlim(X[0], X[-1])
    axes.axvline(X[3])
    axes.set_title(f"{Y[1]:.3f}")


DRAWINGS = {
    "scatter": lambda axes: axes.scatter(X, Y, c=X, s=X * 10), "imshow": lambda axes: axes.imshow(GRID, vmin=GRID.min(), vmax=GRID.max()),
    "contourf": lambda axes: axes.contourf(X, X, GRID, levels=jnp.linspace(0, 1, 4)), "pcolormesh": lambda axes: axes.pcolormesh(X, X, GRID),
    "hist": lambda axes: axes.hist(Y, bins=5), "bar": lambda axes: axes.bar(X, Y, width=0.1, yerr=Y / 10),
    "fill_between": lambda axes: axes.fill_between(X, Y, 0, where=X > 0.5), "errorbar": lambda axes: axes.errorbar(X, Y, yerr=Y),
    "boxplot": lambda axes: axes.boxplot(GRID), "quiver": lambda axes: axes.quiver(X, Y, X, Y), "step": lambda axes: axes.step(X, Y),
    "axhspan": lambda axes: axes.axhspan(X[1], Y[5]), "semilogy": lambda axes: axes.semilogy(X, Y + 1),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings(axes, name):
    DRAWINGS[name](axes)
    assert axes.has_data()
