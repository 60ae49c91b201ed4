"""pandas: jitted functions of Series and frames, what they give, and columns of Arrays."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import autojit, jit

pd = pytest.importorskip("pandas", reason="pandas is not installed: jitcore[interop]")

FRAME = pd.DataFrame({"a": np.linspace(0, 1, 6), "b": np.arange(6), "key": list("xyxyxy")}, index=range(10, 16))


@jit
def bend(x):
    return jnp.sin(x) + x * x


def bend_numpy(x):
    return np.sin(x) + x * x


def test_to_numpy():
    found = bend(FRAME["a"].to_numpy())
    np.testing.assert_allclose(found, bend_numpy(FRAME["a"].to_numpy()), rtol=1e-12)
    assert found.dtype == np.float64


@pytest.mark.parametrize("decorate", [jit, autojit])
def test_apply(decorate):
    norm = decorate(lambda x: np.sqrt((x * x).sum()))
    by_column = FRAME[["a", "b"]].apply(norm, raw=True)
    np.testing.assert_allclose(by_column, np.sqrt((FRAME[["a", "b"]] ** 2).sum()), rtol=1e-12)
    assert by_column.dtype == np.float64
    by_row = FRAME[["a", "b"]].apply(norm, axis=1, raw=True)
    np.testing.assert_allclose(by_row, np.sqrt((FRAME[["a", "b"]] ** 2).sum(axis=1)), rtol=1e-12)
    # Numbers that jit gives are Arrays, which pandas keeps as objects.
    each = FRAME["a"].apply(decorate(lambda x: x * 2.0 + 1.0))
    assert each.dtype == (object if decorate is jit else np.float64)
    np.testing.assert_allclose(each.astype(np.float64), FRAME["a"] * 2 + 1, rtol=1e-6)


def test_groups_and_windows():
    mean = jit(lambda x: x.mean())
    np.testing.assert_allclose(FRAME["a"].rolling(3).apply(mean, raw=True), FRAME["a"].rolling(3).mean())
    found = FRAME.groupby("key")["a"].agg(lambda x: float(mean(x.to_numpy())))
    np.testing.assert_allclose(found, FRAME.groupby("key")["a"].mean())
    scaled = FRAME.groupby("key")["a"].transform(lambda x: bend(x.to_numpy()))
    np.testing.assert_allclose(scaled, bend_numpy(FRAME["a"]), rtol=1e-12)


def test_arrays_as_columns():
    values = bend(FRAME["a"].to_numpy())
    frame = FRAME.assign(c=values)
    frame["d"] = values
    frame.loc[:, "e"] = values
    for name in "cde":
        assert frame[name].dtype == np.float64
        np.testing.assert_array_equal(frame[name], np.asarray(values))
    series = pd.Series(values, index=FRAME.index)
    assert series.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):  # pandas does not copy what is no ndarray
        series.iloc[0] = 7.0
    series = pd.Series(values, copy=True)
    series.iloc[0] = 7.0
    assert float(values[0]) == bend_numpy(0.0) and series[0] == 7
    assert pd.DataFrame(jnp.ones((2, 3))).to_numpy().sum() == 6
    assert pd.DataFrame({"x": jnp.arange(3)})["x"].sum() == 3
    np.testing.assert_array_equal(pd.cut(values, 2).codes, pd.cut(np.asarray(values), 2).codes)


def test_operators_of_series_and_arrays():
    values = bend(FRAME["a"].to_numpy())
    for found in (FRAME["a"] + values, values + FRAME["a"], np.add(FRAME["a"], values)):
        assert isinstance(found, pd.Series)
        np.testing.assert_allclose(found, FRAME["a"].to_numpy() + np.asarray(values))


@pytest.mark.parametrize("decorate", [jit, autojit])
def test_series_as_arguments(decorate):
    """jit says which argument is none of its types and what to write; autojit runs plain Python."""
    f = decorate(bend_numpy)
    if decorate is jit:
        with pytest.raises(TypeError, match="Series") as caught:
            f(FRAME["a"])
        assert "x" in str(caught.value)
        return
    with pytest.warns(jitcore.AutojitWarning, match="Series"):
        found = f(FRAME["a"])
    assert isinstance(found, pd.Series)
    np.testing.assert_allclose(found, bend_numpy(FRAME["a"]))
