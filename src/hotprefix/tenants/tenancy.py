"""Everything about tenants that lies in one state folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hotprefix.base.clock import Clock
from hotprefix.tenants.database import Database
from hotprefix.tenants.key_store import KeyStore
from hotprefix.tenants.public_prefix import PublicStore
from hotprefix.tenants.quota import QuotaStore
from hotprefix.tenants.secret import read_secret

DATABASE_NAME = "tenants.sqlite3"
SECRET_NAME = "tenants.secret"


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Keys, quotas and public prefixes of one `database`; `secret` derives salts."""

    keys: KeyStore
    quotas: QuotaStore
    public: PublicStore
    secret: bytes
    database: Database

    def version(self) -> tuple[int, int]:
        """Changes with everything that anybody writes. Raises `TenantError`."""
        return self.database.version()


@contextmanager
def open_tenancy(folder: Path, clock: Clock) -> Iterator[Tenancy]:
    """What `folder` holds, made on the first use; closed on leaving. Raises `TenantError`."""
    secret = read_secret(folder / SECRET_NAME)
    with closing(Database(folder / DATABASE_NAME)) as database:
        keys, quotas = KeyStore(database, secret, clock), QuotaStore(database)
        yield Tenancy(keys, quotas, PublicStore(database, clock), secret, database)
