"""`jitcore.jax` is a name for what jitcore has: the same objects, loaded when they are used."""

import importlib
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import jitcore
import jitcore.jax as jax

ROOT = Path(__file__).parents[2]


def run_python(text: str, **options) -> str:
    return subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True,
                          **options).stdout


def test_nothing_is_loaded_before_it_is_used():
    text = ("import sys, jitcore.jax as jax\n"
            "loaded = sorted(m for m in sys.modules if m.split('.')[0] in ('jitcore', 'jax', 'numpy', 'scipy'))\n"
            "print(loaded, 'numpy' in vars(jax))")
    assert run_python(text) == "['jitcore', 'jitcore.jax'] False\n"


@pytest.mark.parametrize("name", [
    "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random", "scipy",
    "scipy.special",
    "scipy.stats.norm", "scipy.sparse.linalg", "tree", "tree_util", "experimental", "experimental.sparse",
    "sharding",
    "dtypes", "image", "ops", "debug", "errors", "typing", "stages", "flatten_util", "custom_batching",
    "profiler"])
def test_modules_are_those_of_jitcore(name):
    module = importlib.import_module(f"jitcore.jax.{name}")
    assert module is importlib.import_module(f"jitcore.{name}")
    assert module.__name__ == module.__spec__.name == f"jitcore.{name}"
    value = jax
    for part in name.split("."):
        value = getattr(value, part)
    assert value is module


def test_all_forms_of_import():
    found: dict = {}
    exec("import jitcore.jax as jax, jitcore.jax.numpy as jnp\n"
         "import jitcore.jax.scipy.special\n"
         "from jitcore.jax import lax, random, grad, jit, config\n"
         "from jitcore.jax.scipy.special import logsumexp\n"
         "from jitcore.jax.numpy import *\n"
         "from jitcore import jax as again", found)
    assert found["jnp"] is jitcore.numpy and found["lax"] is jitcore.lax and found["grad"] is jitcore.grad
    assert found["config"] is jitcore.config and found["again"] is found["jax"] is jax
    assert found["logsumexp"] is jitcore.scipy.special.logsumexp and found["sin"] is jitcore.numpy.sin


def test_names():
    assert {"jit", "vmap", "Array", "numpy", "config"} <= set(dir(jax))
    assert not {"autojit", "rewrite", "api", "passes"} & set(dir(jax))
    assert jax.__version_info__ == tuple(map(int, jax.__version__.split(".")))
    for name in jax.__all__:
        assert getattr(jax, name) is getattr(jitcore, name)


def test_functions_are_pickled_by_their_own_names():
    data = pickle.dumps([jax.numpy.sin, jax.lax.exp, jax.Array])
    assert b"jitcore.jax" not in data and pickle.loads(data)[0] is jitcore.numpy.sin


def test_what_is_not_there():
    with pytest.raises(ModuleNotFoundError,
                       match=r"No module named 'jitcore.jax.experimental.pallas', as jitcore has no "
                                                  r"'jitcore.experimental.pallas'"):
        importlib.import_module("jitcore.jax.experimental.pallas")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'jitcore.jax.passes'"):
        importlib.import_module("jitcore.jax.passes")
    with pytest.raises(AttributeError, match=r"module 'jitcore.jax' has no attribute 'autojit'"):
        jax.autojit  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'pmapped'"):
        exec("from jitcore.jax import pmapped")


def test_out_of_a_zip_file(tmp_path):
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (ROOT / "jitcore").rglob("*.py"):
            file.write(path, path.relative_to(ROOT))
    text = ("import jitcore.jax as jax, jitcore.jax.numpy as jnp\n"
            "print(jnp.arange(3).sum(), '.zip' in jnp.__file__, jax.numpy is jnp)")
    found = subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True,
                           cwd=tmp_path,
                           env={"PYTHONPATH": str(archive), "HOME": str(tmp_path)})
    assert found.stdout == "3 True True\n"


def test_stubs_are_packaged():
    """Folders of stubs alone are no packages, and are named in setup.cfg."""
    assert "jitcore.jax = **/*.pyi" in (ROOT / "setup.cfg").read_text()
    assert (ROOT / "jitcore" / "jax" / "numpy" / "linalg.pyi").exists()


@pytest.mark.parametrize("environment, flags", [
    ({"JAX_ENABLE_X64": "True", "JAX_DEBUG_NANS": "0"}, {"enable_x64": True, "debug_nans": False}),
    ({"JAX_ENABLE_X64": "1", "JITCORE_ENABLE_X64": "0"}, {"enable_x64": True}),
    ({"JAX_NUMPY_RANK_PROMOTION": "raise", "JAX_PLATFORMS": "cuda"},
     {"numpy_rank_promotion": "raise", "default_backend": ""}),
])
def test_flags_of_the_environment(environment, flags):
    text = f"import jitcore.jax as jax; print([getattr(jax.config, name) for name in {list(flags)}])"
    assert run_python(text, env={**os.environ, **environment}) == f"{list(flags.values())}\n"


@pytest.mark.parametrize("environment", [
    {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, {"JAX_NUM_CPU_DEVICES": "4"}])
def test_several_devices_of_the_processor(environment):
    pytest.importorskip("jax")
    text = ("import jitcore.jax as jax, jitcore.jax.numpy as jnp\n"
            "mesh = jax.make_mesh((4,), ('i',))\n"
            "x = jax.device_put(jnp.arange(8.0), jax.NamedSharding(mesh, jax.P('i')))\n"
            "print(jax.device_count(), len(jax.jit(lambda x: x * 2)(x).addressable_shards), jnp.ones(2) + 1)")
    environment = {**os.environ, "XLA_FLAGS": "", **environment}
    assert run_python(text, env=environment) == "4 4 [2. 2.]\n"


def test_notes_to_xla_change_nothing():
    from jitcore.jax.experimental.xla_metadata import set_xla_metadata

    @set_xla_metadata(note=True)
    @jax.jit
    def double(x):
        with set_xla_metadata(note=True):
            return set_xla_metadata(x + x, note=True)

    assert double(2) == 4 and double.lower(2).compile()(3) == 6


def test_options_of_the_profiler(tmp_path):
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = 0
    with jax.profiler.trace(tmp_path, create_perfetto_link=False, profiler_options=options):
        jax.numpy.sin(1.0)
    assert list(tmp_path.glob("*.json"))
