"""`hotprefix keys`: API keys, quotas of tenants, and the public zone."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hotprefix.app.state import default_state_dir
from hotprefix.base.clock import SystemClock
from hotprefix.keys.zones import PUBLIC_TENANT
from hotprefix.kv.accounts import QuotaMode
from hotprefix.tenants.api_key import ApiKey, KeyState, KeyWish, NewKey, RateLimits
from hotprefix.tenants.facts import key_facts, prefix_facts, quota_facts
from hotprefix.tenants.public_prefix import PublicPrefix, read_prefix, read_raw
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy, open_tenancy

keys_app = typer.Typer(
    help="API keys, quotas of tenants, and prefixes that all tenants share.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
public_app = typer.Typer(
    help="Prompt prefixes whose cached blocks every tenant may read. Nothing is public unless added here.",
    no_args_is_help=True,
)
keys_app.add_typer(public_app, name="public")

_SPAN = re.compile(r"(\d+)\s*([smhdw])", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LONGEST = 10 * 366 * 86_400
_NO_LIMIT = "none"


def _span(text: str) -> float:
    match = _SPAN.fullmatch(text.strip())
    seconds = int(match[1]) * _SECONDS[match[2].lower()] if match else 0
    if match is None or not 0 <= seconds <= _LONGEST:
        raise typer.BadParameter(
            f"'{text}' is no time span of up to ten years; write one like 90s, 12h or 30d"
        )
    return float(seconds)


def _count(text: str) -> int:
    """A number above 0, or 0 for 'none'."""
    plain = text.replace(",", "").replace("_", "")
    if plain.lower() == _NO_LIMIT:
        return 0
    if not (plain.isascii() and plain.isdecimal() and 0 < int(plain) < 2**53):
        raise typer.BadParameter(f"'{text}' is no number above 0; write one, or '{_NO_LIMIT}'")
    return int(plain)


def _tokens(text: str) -> int:
    """A number of tokens, or -1 for 'none'."""
    return 0 if text.strip() == "0" else _count(text) or -1


StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir", help="Folder of the keys. Default: ~/.local/state/hotprefix.", file_okay=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="Id from 'hotprefix keys list'.")]
Tenant = Annotated[str, typer.Argument(help="Name of the tenant; its keys share cache, ledger and sessions.")]
PerMinute = Annotated[
    int | None, typer.Option("--rpm", help="Most requests a minute.", parser=_count, metavar="N|none")
]
TokensPerMinute = Annotated[
    int | None, typer.Option("--tpm", help="Most prompt tokens a minute.", parser=_count, metavar="N|none")
]
Concurrent = Annotated[
    int | None, typer.Option("--concurrent", help="Most requests at a time.", parser=_count, metavar="N|none")
]


@contextmanager
def _tenancy(state_dir: Path | None) -> Iterator[Tenancy]:
    folder = default_state_dir(os.environ) if state_dir is None else state_dir.expanduser()
    with open_tenancy(folder, SystemClock()) as tenancy:
        yield tenancy


@keys_app.command("create")
def create_command(
    tenant: Tenant,
    *,
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "",
    expires: Annotated[
        float | None,
        typer.Option("--expires", help="Valid for so long, like 30d.", parser=_span, metavar="SPAN"),
    ] = None,
    admin: Annotated[bool, typer.Option("--admin", help="May use the admin API.")] = False,
    rpm: PerMinute = None,
    tpm: TokensPerMinute = None,
    concurrent: Concurrent = None,
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Make a key for a tenant. It is shown once. The first key closes the server to everybody without one."""
    until = None if expires is None else SystemClock().wall() + expires
    wish = KeyWish(tenant, name, until, admin, RateLimits(rpm or None, tpm or None, concurrent or None))
    with _tenancy(state_dir) as tenancy:
        _show_new(tenancy.keys.create(wish), as_json=as_json)


@keys_app.command("list")
def list_command(
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant's.")] = None,
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Show all keys, revoked and expired ones too. What opens the server is not shown: it is not stored."""
    with _tenancy(state_dir) as tenancy:
        keys = tenancy.keys.list(tenant)
    now = SystemClock().wall()
    if as_json:
        Console().print_json(data=[key_facts(key, now) for key in keys])
    else:
        Console().print(_key_table(keys, now))


@keys_app.command("revoke")
def revoke_command(key_id: KeyId, as_json: AsJson = False, state_dir: StateDir = None) -> None:
    """Make a key worthless. Servers that run follow within seconds."""
    with _tenancy(state_dir) as tenancy:
        gone = tenancy.keys.revoke(key_id)
    _say(key_facts(gone, SystemClock().wall()), f"Revoked {gone.id} of {gone.tenant}.", as_json=as_json)


@keys_app.command("rotate")
def rotate_command(
    key_id: KeyId,
    overlap: Annotated[
        float,
        typer.Option("--overlap", help="How long the old key goes on.", parser=_span, metavar="SPAN"),
    ] = "0s",  # type: ignore[assignment]  # parsed like an argument
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Make a new key in the place of an old one, for the same tenant and with the same limits."""
    with _tenancy(state_dir) as tenancy:
        _show_new(tenancy.keys.rotate(key_id, overlap), as_json=as_json)


@keys_app.command("quota")
def quota_command(
    tenant: Annotated[
        str | None,
        typer.Argument(help=f"A tenant, or {PUBLIC_TENANT}. Without: show all."),
    ] = None,
    *,
    floor: Annotated[
        int | None,
        typer.Option(
            "--floor", help="Tokens that others can't evict.", parser=_tokens, metavar="TOKENS|none"
        ),
    ] = None,
    ceiling: Annotated[
        int | None,
        typer.Option("--ceiling", help="Most tokens kept.", parser=_tokens, metavar="TOKENS|none"),
    ] = None,
    mode: Annotated[
        QuotaMode | None,
        typer.Option(
            "--at-ceiling",
            help="borrow: keep more while there is room; replace: drop own blocks; reject: keep nothing new.",
        ),
    ] = None,
    rpm: PerMinute = None,
    tpm: TokensPerMinute = None,
    concurrent: Concurrent = None,
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Show or set what a tenant may have; running servers follow in a second.

    Options that are left out stay as they are.
    """
    with _tenancy(state_dir) as tenancy:
        if tenant is None:
            quotas = tenancy.quotas.list()
        else:
            old = tenancy.quotas.get(tenant)
            new = TenantQuota(
                tenant,
                old.floor_tokens if floor is None else max(0, floor),
                old.ceiling_tokens if ceiling is None else None if ceiling < 0 else ceiling,
                old.mode if mode is None else mode,
                _changed(old.limits, rpm, tpm, concurrent),
            )
            if new != old:
                tenancy.quotas.set(new)
            quotas = [new]
    if as_json:
        data = [quota_facts(quota) for quota in quotas]
        Console().print_json(data=data if tenant is None else data[0])
    else:
        Console().print(_quota_table(quotas))


@public_app.command("add")
def public_add_command(
    file: Annotated[
        Path,
        typer.Argument(help="Text of a system message, or JSON messages; '-' is stdin.", allow_dash=True),
    ],
    name: Annotated[str, typer.Option("--name", help="What to call it. Default: the file's name.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="The file is the beginning of a raw prompt.")] = False,
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Let all tenants share the cached blocks of a prefix; running servers follow in a second.

    Whoever sends it can tell that others did.
    """
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    document = read_raw(data) if raw else read_prefix(data)
    with _tenancy(state_dir) as tenancy:
        added = tenancy.public.add(document, name or file.name)
    _say(prefix_facts(added), f"{added.name} is public, as {added.id}.", as_json=as_json)


@public_app.command("list")
def public_list_command(as_json: AsJson = False, state_dir: StateDir = None) -> None:
    """Show the public prefixes."""
    with _tenancy(state_dir) as tenancy:
        prefixes = tenancy.public.list()
    if as_json:
        Console().print_json(data=[prefix_facts(prefix) for prefix in prefixes])
    else:
        Console().print(_prefix_table(prefixes))


@public_app.command("rm")
def public_remove_command(
    prefix_id: Annotated[str, typer.Argument(metavar="ID", help="Id from 'hotprefix keys public list'.")],
    as_json: AsJson = False,
    state_dir: StateDir = None,
) -> None:
    """Make a prefix private again."""
    with _tenancy(state_dir) as tenancy:
        gone = tenancy.public.remove(prefix_id)
    _say(prefix_facts(gone), f"{gone.name} is private again.", as_json=as_json)


def _changed(limits: RateLimits, rpm: int | None, tpm: int | None, concurrent: int | None) -> RateLimits:
    wanted = {"requests_per_minute": rpm, "tokens_per_minute": tpm, "concurrent": concurrent}
    return replace(limits, **{name: value or None for name, value in wanted.items() if value is not None})


def _show_new(made: NewKey, *, as_json: bool) -> None:
    key = made.key
    if as_json:
        Console().print_json(data=key_facts(key, SystemClock().wall()) | {"key": made.text})
        return
    # The key alone goes to stdout, so that it can be piped; what to know about it to stderr.
    kind = "administrator's key" if key.is_admin else "key"
    note = f"New {kind} {key.id} of {key.tenant}. It is shown only now: keep it in a safe place."
    Console(stderr=True).print(note, highlight=False, markup=False, soft_wrap=True)
    Console().print(made.text, highlight=False, markup=False, soft_wrap=True)


def _say(facts: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        Console().print_json(data=facts)
    else:
        Console().print(text, highlight=False, markup=False, soft_wrap=True)


def _key_table(keys: list[ApiKey], now: float) -> Table:
    table = Table("Id", "Tenant", "Name", "Key", "State", "Created", "Expires", "Limits", title="API keys")
    for key in keys:
        state = key.state(now)
        style = None if state is KeyState.ACTIVE else "dim"
        shown = f"{state.value}, admin" if key.is_admin else state.value
        row = (
            key.id,
            key.tenant,
            escape(key.name),
            f"hpk_…{key.hint}",
            shown,
            _day(key.created),
            _day(key.expires),
        )
        table.add_row(*row, _limits(key.limits), style=style)
    return table


def _quota_table(quotas: list[TenantQuota]) -> Table:
    table = Table("Tenant", "Floor", "Ceiling", "At ceiling", "Limits", title="Quotas, in tokens")
    for quota in quotas:
        ceiling = "none" if quota.ceiling_tokens is None else f"{quota.ceiling_tokens:,}"
        table.add_row(
            quota.tenant, f"{quota.floor_tokens:,}", ceiling, quota.mode.value, _limits(quota.limits)
        )
    return table


def _prefix_table(prefixes: list[PublicPrefix]) -> Table:
    table = Table("Id", "Name", "Kind", "Begins with", "Added", title="Public prefixes")
    for prefix in prefixes:
        facts = prefix_facts(prefix)
        row = (prefix.id, escape(prefix.name), facts["kind"], escape(facts["begins_with"]))
        table.add_row(*row, _day(prefix.created))
    return table


def _limits(limits: RateLimits) -> str:
    parts = (
        (limits.requests_per_minute, "requests/min"),
        (limits.tokens_per_minute, "tokens/min"),
        (limits.concurrent, "at a time"),
    )
    return ", ".join(f"{value:,} {what}" for value, what in parts if value is not None)


def _day(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}Z"
