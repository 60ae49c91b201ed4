#!/usr/bin/env bash
# Lint and test, in environments that are made on the first run: all steps, whatever one of them says.
# --changed [BASE]: only tests that the difference to BASE (HEAD, unless given) can touch. Other arguments go to pytest.
# shellcheck disable=SC2086
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/environment.sh
# Dozens of processes that tests start would compile all modules of jitcore anew.
unset PYTHONDONTWRITEBYTECODE

prepare_environment .venv test "${PYTHON:-$(find_python 3.11 3.12 3.13 3.14 3)}" || exit 1
python=.venv/bin/python
run_step lint "$python" -m ruff check .
# Hundreds of tests make autojit warn, which is asserted where it matters: listed, they hide the failures.
options="--numprocesses 2 --disable-warnings"

if [ "${1:-}" = --changed ]; then
    shift
    base=HEAD
    case "${1:-}" in "" | -*) ;; *) base=$1 && shift ;; esac
    tests=$("$python" -m tests.changed "$base") || exit 1
    if [ -n "$tests" ]; then run_step tests "$python" -m pytest $options $tests "$@"; fi
else
    # Bytecode differs between Python versions, so the rewriter is tested on every one that is installed.
    for version in 3.12 3.13 3.14; do
        if other=$(find_python "$version"); then
            prepare_environment ".venv-$version" test "$other" || { failed=1; continue; }
            run_step "rewriter on $version" ".venv-$version/bin/python" -m pytest $options tests/rewrite tests/scripts
        fi
    done
    # Last, so that what failed is what is read last.
    run_step tests "$python" -m pytest $options "$@"
fi
echo "$summary"
exit $failed
