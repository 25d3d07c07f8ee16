"""Every test of stores runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotprefix.ledger.store import LedgerStore, open_store


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; then somebody else has to be found. None is ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    pytest.skip("PostgreSQL can't run as root, and there is no user to run it as")


def _programs() -> Path:
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    for folder in found:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The folder of the socket of a server that lives as long as the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (pip install 'hotprefix[postgres]')")
    programs, user = _programs(), _server_user()
    with tempfile.TemporaryDirectory(prefix="hotprefix-pg-") as scratch:
        if user is not None:
            shutil.chown(scratch, user)

        def run(*command: str) -> None:
            # The server outlives pg_ctl and would hold a pipe open for ever.
            log = Path(scratch) / "commands.log"
            with log.open("a") as out:
                done = subprocess.run(command, stdout=out, stderr=out, cwd=scratch, user=user, check=False)
            assert done.returncode == 0, log.read_text()

        data = f"{scratch}/data"
        pg_ctl = str(programs / "pg_ctl")
        run(str(programs / "initdb"), "-D", data, "-U", "hotprefix", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {scratch} -c listen_addresses= -c fsync=off"
        run(pg_ctl, "-D", data, "-w", "-l", f"{scratch}/server.log", "-o", options, "start")
        try:
            yield scratch
        finally:
            run(pg_ctl, "-D", data, "-w", "-m", "immediate", "stop")


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A database of its own for each test."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    url = f"postgresql://hotprefix@/{{}}?host={postgres_server}"
    with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.format(name)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger may be kept: a file, then a URL."""
    if request.param == "sqlite":
        return tmp_path / "state" / "ledger.sqlite3"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def store(place: Path | str) -> Iterator[LedgerStore]:
    opened = open_store(place)
    yield opened
    opened.close()
