"""The server's secret: a file beside the database that only its owner may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from hotprefix.tenants.errors import TenantError

SECRET_BYTES = 32


def read_secret(path: Path) -> bytes:
    """The secret in `path`, made on the first use. Raises `TenantError` if the file is not one.

    Without the same secret no stored key is recognised: it has to be kept with the database.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise TenantError(
            f"{path} holds {len(secret)} bytes, not the {SECRET_BYTES} of a secret. Restore it from a "
            "backup, or delete it together with tenants.sqlite3, and create new keys."
        )
    return secret


def _make(path: Path) -> None:
    """Whole or not at all; of several processes the first one's stays."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
