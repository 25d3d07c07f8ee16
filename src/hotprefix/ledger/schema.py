"""The ledger's tables: one SQL for every database, and how each version becomes the next."""

from __future__ import annotations

from hotprefix.ledger.columns import COLUMNS
from hotprefix.ledger.errors import LedgerError

VERSION_TABLE = "CREATE TABLE IF NOT EXISTS ledger_version (version INTEGER NOT NULL)"

_REQUESTS = """
CREATE TABLE ledger_request (
    request_id TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    day TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    dialect TEXT NOT NULL,
    profile TEXT NOT NULL,
    scene TEXT NOT NULL,
    prompt_name TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    mode TEXT NOT NULL,
    prompt BIGINT NOT NULL,
    computed BIGINT NOT NULL CHECK (computed >= 0),
    read BIGINT NOT NULL CHECK (read >= 0),
    written BIGINT NOT NULL CHECK (written >= 0),
    written_by_ttl TEXT NOT NULL,
    free BIGINT NOT NULL CHECK (free >= 0),
    output BIGINT NOT NULL CHECK (output >= 0),
    money_pico BIGINT NOT NULL CHECK (money_pico >= 0),
    currency TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    matched BIGINT NOT NULL,
    ideal BIGINT NOT NULL,
    lost_tokens BIGINT NOT NULL,
    lost_pico BIGINT NOT NULL,
    avoidable INTEGER NOT NULL,
    evidence TEXT NOT NULL,
    divergence TEXT,
    advice_en TEXT NOT NULL,
    advice_zh TEXT NOT NULL,
    first_token DOUBLE PRECISION,
    total DOUBLE PRECISION NOT NULL,
    status INTEGER NOT NULL,
    finish TEXT NOT NULL,
    CONSTRAINT every_token_in_one_class CHECK (computed + read + written + free = prompt)
)
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (_REQUESTS,),
    (
        "CREATE INDEX ledger_request_at ON ledger_request (at)",
        "CREATE INDEX ledger_request_tenant ON ledger_request (tenant, at)",
    ),
)
"""Statements from version n to n + 1, at index n. Only ever appended to."""

INSERT = (
    f"INSERT INTO ledger_request ({', '.join(COLUMNS)}) VALUES ({', '.join('?' for _ in COLUMNS)}) "
    "ON CONFLICT (request_id) DO NOTHING"
)


def pending(version: int, place: str) -> tuple[str, ...]:
    """Statements that bring a ledger from `version` (0 is empty) to the newest one."""
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"The ledger {place} has version {version}, written by a newer Hotprefix; this one knows "
            f"{len(MIGRATIONS)}. Use the newer Hotprefix or another ledger."
        )
    return tuple(statement for step in MIGRATIONS[version:] for statement in step)
