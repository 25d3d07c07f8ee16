# Sourced by hotprefix-up and hotprefix-test: a virtual environment that follows a lock file.

find_python() {
    local name
    for name in "${PYTHON:-}" python3.13 python3.12 python3.11 python3; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 \
            && "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "Hotprefix needs Python 3.11 or newer with the venv module." >&2
    echo "On Debian or Ubuntu: apt-get install python3 python3-venv. Or set PYTHON=/path/to/python." >&2
    return 1
}

# make_venv LOCK: installs what LOCK names, unless that was done before and LOCK is unchanged.
make_venv() {
    local lock="$1" python stamp
    stamp=".venv/.${lock%.lock}.sha256"
    if [ ! -x .venv/bin/python ]; then
        python="$(find_python)"
        echo "Creating .venv with $("$python" --version)"
        "$python" -m venv .venv
    fi
    if ! sha256sum --check --status "$stamp" 2>/dev/null; then
        echo "Installing the locked dependencies ($lock)"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
        sha256sum "$lock" pyproject.toml >"$stamp"
    fi
}
