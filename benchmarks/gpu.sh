#!/usr/bin/env bash
# Tests and benchmarks on a GPU, within nine minutes: bash benchmarks/gpu.sh
# On the device in software, to see that all of it runs: bash benchmarks/gpu.sh cuda:emulated
# PYTHON: one with jitcore's needs and the libraries to compare with; an environment is made without it.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
unset PYTHONDONTWRITEBYTECODE
backend=${1:-gpu}

if [ -z "${PYTHON:-}" ]; then
    prepare_environment .venv-gpu test,cuda "$(find_python 3.11 3.12 3.13 3)" || exit 1
    PYTHON=.venv-gpu/bin/python
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" XLA_PYTHON_CLIENT_PREALLOCATE=false
options=(--numprocesses "${JOBS:-$(nproc)}" -q --no-header -p no:cacheprovider -W ignore)
run_step doctor timeout 30 "$PYTHON" -m jitcore doctor
if [ "$backend" = gpu ]; then
    run_step "tests of the GPU" timeout 60 "$PYTHON" -m pytest -q --no-header tests/backends/cuda/test_on_gpu.py
    # JAX, to compare with, on the processor: on GPUs it rounds products to TF32
    run_step suite timeout 240 env JAX_PLATFORMS=cpu "$PYTHON" -m pytest "${options[@]}" --backend gpu \
        tests/seeds tests/lax tests/transforms tests/rewrite tests/test_nn.py tests/test_random.py tests/test_callbacks.py
else
    run_step suite timeout 240 "$PYTHON" -m pytest "${options[@]}" --backend "$backend" tests/seeds tests/lax
fi
run_step benchmarks timeout 200 env JITCORE_DEFAULT_BACKEND="$backend" "$PYTHON" -W ignore -m benchmarks gpu "${@:2}"
echo "$summary"
exit $failed
