# Sourced by hotprefix-test: the tests of the Redis tier start a real server of their own.

# need_redis: installs redis-server where that is possible; otherwise says what to do.
need_redis() {
    local sudo=()
    if command -v redis-server >/dev/null 2>&1 || command -v valkey-server >/dev/null 2>&1; then
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        sudo=(sudo -n)
    fi
    if command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }; then
        echo "Installing redis-server for the tests of the Redis tier"
        if "${sudo[@]}" apt-get -qq update >/dev/null \
            && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get -qq install --no-install-recommends redis-server >/dev/null; then
            return
        fi
    fi
    echo "redis-server is missing: the tests of the Redis tier need it (apt-get install redis-server)." >&2
}
