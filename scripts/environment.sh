# Sourced by scripts: finds a Python, makes virtual environments with jitcore in them, runs steps.
export PIP_DISABLE_PIP_VERSION_CHECK=1

# find_python VERSION...: print the first working Python among pythonVERSION, on PATH and then under pyenv.
find_python() {
    local version candidate
    for version in "$@"; do
        for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
            if "$candidate" -c 'import pip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
                echo "$candidate"
                return
            fi
        done
    done
    return 1
}

# prepare_environment FOLDER EXTRA PYTHON, the extra perhaps empty: nothing to do where an earlier call did it and setup.cfg is unchanged.
prepare_environment() {
    local folder=$1 extra=$2 python=$3 stamp="$1/installed${2:+-$2}"
    [ "$stamp" -nt setup.cfg ] && return
    echo "Installing jitcore${extra:+[$extra]} into $folder ..."
    if [ ! -x "$folder/bin/python" ]; then
        # Some distributions leave out what venv needs to install pip; the pip at hand can do that as well.
        "$python" -m venv "$folder" >/dev/null 2>&1 || {
            "$python" -m venv --clear --without-pip "$folder"
            "$python" -m pip --python "$folder/bin/python" install --quiet pip
        }
    fi
    "$folder/bin/python" -m pip install --quiet --editable ".${extra:+[$extra]}" || return
    touch "$stamp"
}

summary="" failed=0
# run_step NAME COMMAND...: runs it, and notes what came of it for the summary.
run_step() {
    local name=$1 start=$SECONDS result="passed"
    shift
    echo "== $name"
    "$@" || { result="FAILED" failed=1; }
    summary+="${summary:+, }$name $result ($((SECONDS - start)) s)"
}
