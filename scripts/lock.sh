#!/usr/bin/env bash
# Renew both lock files from pyproject.toml. Needs uv.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes \
        --extra bench --extra redis --extra crypt --extra ab --extra fast --extra postgres "$@" pyproject.toml
}
compile --output-file requirements.lock
compile --group dev --output-file requirements-dev.lock
