"""xarray: apply_ufunc with jitted functions, DataArrays from Arrays, the data of DataArrays as arguments."""

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, vmap

xr = pytest.importorskip("xarray", reason="xarray is not installed: jitcore[interop]")

GRID = xr.DataArray(np.linspace(0, 1, 12).reshape(3, 4), dims=("y", "x"), coords={"y": [1, 2, 3]}, attrs={"u": "m"})


@jit
def bend(x):
    return jnp.sin(x) + x * x


def test_apply_ufunc():
    found = xr.apply_ufunc(bend, GRID, keep_attrs=True)
    assert found.dims == GRID.dims and found.attrs == {"u": "m"}
    np.testing.assert_allclose(found, np.sin(GRID) + GRID**2, rtol=1e-12)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.mean("x"), (np.sin(GRID) + GRID**2).mean("x"))


def test_core_dimensions():
    found = xr.apply_ufunc(jit(lambda x: x.mean(axis=-1)), GRID, input_core_dims=[["x"]])
    assert found.dims == ("y",)
    np.testing.assert_allclose(found, GRID.mean("x"), rtol=1e-12)
    spread = jit(lambda row: (row - row.mean()) / row.std())
    found = xr.apply_ufunc(spread, GRID, input_core_dims=[["x"]], output_core_dims=[["x"]], vectorize=True)
    np.testing.assert_allclose(found, (GRID - GRID.mean("x")) / GRID.std("x"), rtol=1e-9, atol=1e-12)
    mapped = xr.apply_ufunc(jit(vmap(spread)), GRID, input_core_dims=[["x"]], output_core_dims=[["x"]])
    np.testing.assert_allclose(mapped, found, rtol=1e-12)


def test_arrays_as_data():
    made = xr.DataArray(bend(GRID.to_numpy()), dims=("y", "x"))
    np.testing.assert_allclose(made.sum("x"), (np.sin(GRID) + GRID**2).sum("x"))
    np.testing.assert_allclose(made + GRID, np.sin(GRID) + GRID**2 + GRID)
    data = xr.Dataset({"a": made, "b": ("y", jnp.arange(3.0))})
    assert float(data.b.sum()) == 3
    np.testing.assert_allclose(data.a.isel(y=1), bend(GRID.to_numpy())[1])
    assert made.copy(deep=True).equals(made)


def test_lazy_chunks():
    pytest.importorskip("dask", reason="dask is not installed: jitcore[interop]")
    found = xr.apply_ufunc(bend, GRID.chunk({"y": 1}), dask="parallelized", output_dtypes=[np.float64])
    assert found.chunks
    np.testing.assert_allclose(found.compute(), np.sin(GRID) + GRID**2, rtol=1e-12)
    found = xr.map_blocks(lambda block: xr.apply_ufunc(bend, block), GRID.chunk({"y": 1}), template=GRID.chunk({"y": 1}))
    np.testing.assert_allclose(found.compute(), np.sin(GRID) + GRID**2, rtol=1e-12)
