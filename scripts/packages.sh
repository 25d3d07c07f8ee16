# Sourced by hotprefix-test: some tests start real programs that Python packages don't bring.

# need_package PACKAGE WHY PROGRAM…: installs the Debian package unless one of the programs is there;
# where that is impossible, says what to do.
need_package() {
    local package=$1 why=$2 program sudo=()
    shift 2
    for program in "$@"; do
        if command -v "$program" >/dev/null 2>&1; then
            return
        fi
    done
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
    fi
    if command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
        echo "Installing $package for $why"
        if "${sudo[@]}" apt-get -qq update >/dev/null \
            && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get -qq install --no-install-recommends "$package" >/dev/null; then
            return
        fi
    fi
    echo "$package is missing: $why need it (apt-get install $package)." >&2
}
