"""Keys over a real database: shown once, stored hashed, revoked everywhere."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import Unauthenticated
from hotprefix.tenants.api_key import KeyState, KeyWish, RateLimits, is_key
from hotprefix.tenants.database import MIGRATIONS, Database
from hotprefix.tenants.errors import TenantError, UnknownKey
from hotprefix.tenants.key_store import KeyStore
from hotprefix.tenants.secret import read_secret
from hotprefix.tenants.tenancy import Tenancy, open_tenancy


def test_a_key_is_made_found_and_listed_without_its_text(tenancy: Tenancy, clock: ManualClock) -> None:
    limits = RateLimits(60, 10_000, 4)
    made = tenancy.keys.create(KeyWish("acme", "web", clock.wall() + 60, True, limits))
    assert is_key(made.text) and len(made.text) == 47
    assert tenancy.keys.verify(made.text) == made.key == tenancy.keys.get(made.key.id)
    assert tenancy.keys.list() == [made.key]
    assert (made.key.tenant, made.key.name, made.key.is_admin, made.key.limits) == (
        "acme",
        "web",
        True,
        limits,
    )
    assert made.text.endswith(made.key.hint)
    assert made.text not in repr(made)


def test_the_text_is_nowhere_on_the_disk(tenancy: Tenancy, tmp_path: Path) -> None:
    made = tenancy.keys.create(KeyWish("acme"))
    tenancy.keys.verify(made.text)
    files = list((tmp_path / "state").iterdir())
    assert {"tenants.sqlite3", "tenants.secret"} <= {file.name for file in files}
    for file in files:
        assert made.text[4:40].encode() not in file.read_bytes()


def test_nobody_else_may_read_the_files(tenancy: Tenancy, tmp_path: Path) -> None:
    tenancy.keys.create(KeyWish("acme"))
    for file in (tmp_path / "state").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file.name


def test_keys_are_not_alike(tenancy: Tenancy) -> None:
    made = [tenancy.keys.create(KeyWish("acme")) for _ in range(20)]
    assert len({new.text for new in made}) == len({new.key.id for new in made}) == 20


@pytest.mark.parametrize("change", ["case", "last", "longer", "none", "other"])
def test_a_wrong_key_is_unknown(tenancy: Tenancy, change: str) -> None:
    text = tenancy.keys.create(KeyWish("acme")).text
    last = "A" if text[-1] != "A" else "B"
    wrong = {
        "case": text.swapcase(),
        "last": text[:-1] + last,
        "longer": text + "A",
        "none": "",
        "other": "sk-123",
    }[change]
    with pytest.raises(Unauthenticated, match=r"not known|no API key"):
        tenancy.keys.verify(wrong)
    assert tenancy.keys.remembered == 0


def test_an_expired_key_says_so(tenancy: Tenancy, clock: ManualClock) -> None:
    made = tenancy.keys.create(KeyWish("acme", expires=clock.wall() + 10))
    clock.advance(9.999)
    tenancy.keys.verify(made.text)
    clock.advance(0.001)
    with pytest.raises(Unauthenticated, match="is expired"):
        tenancy.keys.verify(made.text)
    assert tenancy.keys.get(made.key.id).state(clock.wall()) is KeyState.EXPIRED


def test_a_revoked_key_is_dead_at_once_in_the_same_process(tenancy: Tenancy) -> None:
    made, other = tenancy.keys.create(KeyWish("acme")), tenancy.keys.create(KeyWish("acme"))
    tenancy.keys.verify(made.text)
    revoked = tenancy.keys.revoke(made.key.id)
    with pytest.raises(Unauthenticated, match="is revoked"):
        tenancy.keys.verify(made.text)
    tenancy.keys.verify(other.text)
    assert tenancy.keys.revoke(made.key.id) == revoked


class SlowDatabase(Database):
    """While a key is looked up, another thread gets its turn."""

    meanwhile: Callable[[], object] | None = None

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        found = super().rows(sql, parameters)
        if "digest =" in sql and self.meanwhile is not None:
            other = Thread(target=self.meanwhile)
            self.meanwhile = None
            other.start()
            other.join(0.5)
        return found


def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_remembered(
    tmp_path: Path, clock: ManualClock
) -> None:
    with closing(SlowDatabase(tmp_path / "t.sqlite3")) as database:
        keys = KeyStore(database, bytes(32), clock)
        made = keys.create(KeyWish("acme"))
        revoked = Event()

        def revoke() -> None:
            keys.revoke(made.key.id)
            revoked.set()

        database.meanwhile = revoke
        keys.verify(made.text)  # it came before the other's end
        assert revoked.wait(10)
        with pytest.raises(Unauthenticated, match="is revoked"):
            keys.verify(made.text)


def test_a_key_revoked_by_another_process_is_dead_within_five_seconds(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000.0)
    with open_tenancy(tmp_path, clock) as here:
        made = here.keys.create(KeyWish("acme"))
        here.keys.verify(made.text)
        script = (
            "import sys, pathlib\n"
            "from hotprefix.base.clock import ManualClock\n"
            "from hotprefix.tenants.tenancy import open_tenancy\n"
            "with open_tenancy(pathlib.Path(sys.argv[1]), ManualClock(1_000_000.0)) as there:\n"
            "    there.keys.revoke(sys.argv[2])\n"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path), made.key.id], check=True, timeout=60)
        clock.advance(4.9)
        with pytest.raises(Unauthenticated, match="is revoked"):
            here.keys.verify(made.text)


def test_between_two_checks_the_memory_is_trusted(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000.0)
    with open_tenancy(tmp_path, clock) as here, open_tenancy(tmp_path, clock) as there:
        made = here.keys.create(KeyWish("acme"))
        here.keys.verify(made.text)
        there.keys.revoke(made.key.id)
        clock.advance(0.5)
        here.keys.verify(made.text)
        clock.advance(0.5)
        with pytest.raises(Unauthenticated):
            here.keys.verify(made.text)


def test_the_memory_is_bounded(tmp_path: Path, clock: ManualClock) -> None:
    database, secret = Database(tmp_path / "t.sqlite3"), bytes(32)
    keys = KeyStore(database, secret, clock, remembered=3)
    texts = [keys.create(KeyWish("acme")).text for _ in range(10)]
    for _ in range(2):
        for text in texts:
            keys.verify(text)
            assert keys.remembered <= 3
    database.close()


def test_rotation_keeps_tenant_and_limits(tenancy: Tenancy, clock: ManualClock) -> None:
    old = tenancy.keys.create(KeyWish("acme", "web", clock.wall() + 99, True, RateLimits(5)))
    new = tenancy.keys.rotate(old.key.id, overlap=30)
    assert new.text != old.text
    fields = ("tenant", "name", "expires", "is_admin", "limits")
    assert [getattr(new.key, field) for field in fields] == [getattr(old.key, field) for field in fields]
    clock.advance(29)
    tenancy.keys.verify(old.text)
    clock.advance(1)
    tenancy.keys.verify(new.text)
    with pytest.raises(Unauthenticated):
        tenancy.keys.verify(old.text)
    with pytest.raises(TenantError, match="revoked"):
        tenancy.keys.rotate(old.key.id)


def test_a_key_that_is_rotating_can_be_revoked_early(tenancy: Tenancy) -> None:
    old = tenancy.keys.create(KeyWish("acme"))
    tenancy.keys.rotate(old.key.id, overlap=3600)
    tenancy.keys.revoke(old.key.id)
    with pytest.raises(Unauthenticated):
        tenancy.keys.verify(old.text)


def test_unknown_ids(tenancy: Tenancy) -> None:
    for verb in (tenancy.keys.get, tenancy.keys.revoke, tenancy.keys.rotate):
        with pytest.raises(UnknownKey, match="key_x"):
            verb("key_x")


def test_revoking_every_key_does_not_open_the_server(tenancy: Tenancy) -> None:
    assert not tenancy.keys.has_keys()
    made = tenancy.keys.create(KeyWish("acme"))
    tenancy.keys.revoke(made.key.id)
    assert tenancy.keys.has_keys()


@pytest.mark.parametrize("tenant", ["", "a b", "@public", "-a", "a/b", "open:x", "x" * 65, "ä"])
def test_names_of_tenants(tenant: str) -> None:
    with pytest.raises(TenantError, match="tenant's name"):
        KeyWish(tenant)


def test_names_of_keys_and_limits() -> None:
    for name in ("x" * 101, "a\nb"):
        with pytest.raises(TenantError, match="printable"):
            KeyWish("acme", name)
    for limit in (0, -1):
        with pytest.raises(TenantError, match="above 0"):
            RateLimits(limit)


def test_another_secret_knows_no_key(tmp_path: Path, clock: ManualClock) -> None:
    with open_tenancy(tmp_path, clock) as tenancy:
        made = tenancy.keys.create(KeyWish("acme"))
    (tmp_path / "tenants.secret").write_bytes(bytes(32))
    with open_tenancy(tmp_path, clock) as tenancy, pytest.raises(Unauthenticated):
        tenancy.keys.verify(made.text)


def test_a_damaged_secret_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tenants.secret"
    path.write_bytes(b"short")
    with pytest.raises(TenantError, match="holds 5 bytes"):
        read_secret(path)


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    first = read_secret(tmp_path / "a" / "tenants.secret")
    assert read_secret(tmp_path / "a" / "tenants.secret") == first
    assert read_secret(tmp_path / "b" / "tenants.secret") != first
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["tenants.secret"]


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(TenantError, match="newer Hotprefix"):
        Database(path)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite3"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(TenantError, match=r"t\.sqlite3 can't be used"):
        Database(path)


def test_a_transaction_that_fails_leaves_nothing(tenancy: Tenancy, tmp_path: Path) -> None:
    database = Database(tmp_path / "state" / "tenants.sqlite3")

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO public_prefix VALUES ('a', 'b', '{}', 1)")
        connection.execute("INSERT INTO public_prefix VALUES ('a', 'b', '{}', 1)")

    with pytest.raises(TenantError):
        database.write(work)
    assert database.rows("SELECT * FROM public_prefix") == []
    database.close()
