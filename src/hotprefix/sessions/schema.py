"""The tables of the session file, and how each version becomes the next."""

from __future__ import annotations

_RESPONSE = """
CREATE TABLE response (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    model TEXT NOT NULL,
    created REAL NOT NULL,
    used REAL NOT NULL,
    expires REAL NOT NULL,
    retention REAL NOT NULL,
    previous_id TEXT,
    depth INTEGER NOT NULL CHECK (depth >= 1),
    document BLOB NOT NULL,
    input_items BLOB NOT NULL,
    answer TEXT,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID
"""

_TOMBSTONE = """
CREATE TABLE tombstone (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    depth INTEGER NOT NULL,
    expired REAL NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID
"""

# The empty name is the sum of all tenants: a tenant's own name is prefixed with a colon.
_HOLDING = """
CREATE TABLE holding (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID
"""

_COUNT_IN = """
CREATE TRIGGER response_in AFTER INSERT ON response BEGIN
    INSERT INTO holding VALUES (':' || NEW.tenant, 1, NEW.bytes)
        ON CONFLICT (name) DO UPDATE SET rows = rows + 1, bytes = bytes + NEW.bytes;
    INSERT INTO holding VALUES ('', 1, NEW.bytes)
        ON CONFLICT (name) DO UPDATE SET rows = rows + 1, bytes = bytes + NEW.bytes;
END
"""

_COUNT_OUT = """
CREATE TRIGGER response_out AFTER DELETE ON response BEGIN
    UPDATE holding SET rows = rows - 1, bytes = bytes - OLD.bytes WHERE name IN ('', ':' || OLD.tenant);
    DELETE FROM holding WHERE name = ':' || OLD.tenant AND rows = 0;
END
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        _RESPONSE,
        _TOMBSTONE,
        _HOLDING,
        _COUNT_IN,
        _COUNT_OUT,
        "CREATE INDEX response_tenant_used ON response (tenant, used, depth DESC)",
        "CREATE INDEX response_used ON response (used, depth DESC)",
        "CREATE INDEX response_expires ON response (expires)",
        "CREATE INDEX tombstone_expired ON tombstone (expired)",
    ),
)
"""Statements from version n to n + 1, at index n. Only ever appended to. `user_version` has the version."""
