"""`hotprefix usage` on real ledgers."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.app.state import default_state_dir, ledger_file
from hotprefix.base.errors import HotprefixError
from hotprefix.ledger.store import open_store
from hotprefix.modes.classes import Mode, TokenClasses
from tests.ledger.rows import ROW, row

RUNNER = CliRunner()
DAY = 86_400


def usage(*options: str) -> Result:
    return RUNNER.invoke(build_app(), ["usage", *options], catch_exceptions=False)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Two days of two tenants; acme pays in two currencies."""
    with closing(open_store(ledger_file(tmp_path))) as store:
        store.append(
            [
                row(1, classes=TokenClasses(Mode.IMPLICIT, 250, 750, output=5)),
                row(2, at=ROW.at + DAY, tenant="[red]beta[/]", scene=""),
                row(3, at=ROW.at + DAY, currency="USD", model="qwen-plus"),
            ]
        )
    return tmp_path


def test_a_table_with_totals_and_the_formula(state: Path) -> None:
    shown = usage("--state-dir", str(state), "--by", "tenant").output
    lines = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line] for line in lines]
    assert [line[0] for line in cells] == ["[red]beta[/]", "acme", "acme", "total", "total"]
    assert [line[1] for line in cells] == ["1", "1", "1", "2", "1"]
    assert cells[3][3:8] == ["1,100", "260", "790", "50", "0"]
    assert (cells[3][9], cells[3][10], cells[3][12]) == ("71.8%", "250 ms", "0.000150 CNY")
    assert "hit rate = read / prompt" in shown


def test_a_narrow_terminal_gets_fewer_numbers_but_whole_ones(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    shown = usage("--state-dir", str(state), "--by", "model").output
    assert "--json shows every number" in shown
    assert "0.000150 CNY" in shown
    assert "…" not in shown


def test_json_has_every_number_and_exact_money(state: Path) -> None:
    told = json.loads(usage("--state-dir", str(state), "--by", "model", "--json").output)
    assert [group["model"] for group in told["groups"]] == [
        "qwen-plus",
        "smollm2",
    ][:2]
    cny, usd = told["totals"]
    assert (cny["requests"], cny["prompt"], cny["read"], cny["money"]) == (2, 1100, 790, "0.0001504")
    assert (usd["currency"], usd["lost_money"], usd["requests_hit"]) == ("USD", "0.000036", 1)
    for group in told["groups"]:
        assert group["prompt"] == group["computed"] + group["read"] + group["written"] + group["free"]


@pytest.mark.parametrize("by", ["tenant", "model", "reason", "scene", "day", "prompt"])
def test_every_grouping_adds_up(state: Path, by: str) -> None:
    told = json.loads(usage("--state-dir", str(state), "--by", by, "--json").output)
    assert sum(group["requests"] for group in told["groups"]) == 3


@pytest.mark.parametrize(
    ("options", "requests"),
    [
        (("--since", "2026-03-25"), 2),
        (("--until", "2026-03-25"), 1),
        (("--since", "2026-03-24", "--until", "2026-03-26"), 3),
        (("--since", "2026-03-24T00:00:01"), 2),
        (("--since", "2026-03-24T08:00:00+0800"), 3),
        (("--since", "2027-01-01"), 0),
    ],
)
def test_a_time_is_utc_unless_it_says_so(state: Path, options: tuple[str, ...], requests: int) -> None:
    told = json.loads(usage("--state-dir", str(state), "--json", *options).output)
    assert sum(total["requests"] for total in told["totals"]) == requests


def test_no_requests_are_said_in_words(state: Path) -> None:
    assert usage("--state-dir", str(state), "--since", "2030-01-01").output.startswith("No requests")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_export(state: Path, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"out.{suffix}"
    said = usage("--state-dir", str(state), "--export", str(file), "--since", "2026-03-25").output
    assert said == f"Wrote 2 requests to {file}.\n"
    frame = pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)
    assert frame["request_id"].to_list() == ["req-2", "req-3"]


def test_without_a_ledger_it_says_where_it_looked_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(HotprefixError, match=r"There is no ledger .*ledger\.sqlite3.*--state-dir"):
        usage("--state-dir", str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []


def test_a_url_is_taken_from_the_option_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HotprefixError, match="mysql://…"):
        usage("--url", "mysql://host/db")
    monkeypatch.setenv("HOTPREFIX_LEDGER_URL", "oracle://me:secret@host/db")
    with pytest.raises(HotprefixError, match="oracle://…") as caught:
        usage()
    assert "secret" not in str(caught.value)
    assert "secret" not in usage("--help").output


def test_the_default_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    assert default_state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/hotprefix")
    home = Path("~/.local/state/hotprefix").expanduser()
    assert default_state_dir({}) == default_state_dir({"XDG_STATE_HOME": "relative"}) == home
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    state.rename(state.parent / "hotprefix")
    assert json.loads(usage("--json").output)["totals"]
