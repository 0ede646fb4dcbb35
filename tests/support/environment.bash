# Virtual environments below the build folder, shared by the tests that are written in Python: made
# by the first that needs one, and again where its list of packages has changed. To be sourced.

# Exit code 77: the test is skipped; where PSIFOLD_REFUSE_SKIP is set, that is a failure.
skip() {
    echo "skipped: $1" >&2
    [ -z "${PSIFOLD_REFUSE_SKIP-}" ] || exit 1
    exit 77
}

# new_environment FOLDER PYTHON [options]
new_environment() {
    # ensurepip is missing on some systems; virtualenv does as well
    "$2" -m venv "${@:3}" "$1" || virtualenv -q -p "$2" "${@:3}" "$1" ||
        skip "no virtual environment can be made"
}

# install FOLDER [what pip takes]: modules are compiled when they are imported, which few are
install() {
    "$1/bin/python" -m pip install -q --disable-pip-version-check --no-compile "${@:2}" ||
        skip "pip cannot install what the tests need"
}

# environment BUILD_FOLDER NAME PYTHON REQUIREMENTS [system]: leaves its path in $venv; "system"
# sees Debian's packages, and takes the listed ones as they are
environment() {
    local list=$4 stamp
    venv=$1/$2
    exec 9> "$venv.lock" # tests that share it may begin at once
    flock 9
    stamp=$venv/installed-$(md5sum < "$list" | cut -c1-12)
    if [ ! -e "$stamp" ]; then
        rm -rf "$venv"
        new_environment "$venv" "$3" ${5:+--system-site-packages}
        install "$venv" ${5:+--no-deps} -r "$list"
        # the kernel of the notebooks, with all that it needs
        [ -z "${5-}" ] || install "$venv" ipykernel==7.4.0
        touch "$stamp"
    fi
    exec 9>&-
}
