#!/usr/bin/env bash
# Show jitcore at work, in an environment that is made on the first run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh

prepare_environment .venv "" "${PYTHON:-$(find_python 3.11 3.12 3.13 3.14 3)}"
exec .venv/bin/python -m jitcore demo "$@"
