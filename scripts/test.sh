#!/usr/bin/env bash
# Lint and test, in an environment that is made on the first run. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

prepare_environment .venv test "${PYTHON:-$(find_python 3.11 3.12 3.13 3)}"
.venv/bin/python -m ruff check .
.venv/bin/python -m pytest --numprocesses 2 "$@"

# Bytecode differs between Python versions, so the rewriter is tested on every one that is installed.
if [ -d tests/rewrite ]; then
    for version in 3.12 3.13; do
        if python=$(find_python "$version"); then
            prepare_environment ".venv-$version" test "$python"
            ".venv-$version/bin/python" -m pytest --numprocesses 2 tests/rewrite
        fi
    done
fi
