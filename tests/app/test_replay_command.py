"""`hotprefix replay` on recorded traffic."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app import replay_work
from hotprefix.app.cli import build_app
from hotprefix.app.replay_sweep import MOST_RUNS, KvShape
from hotprefix.base.errors import HotprefixError
from hotprefix.traces.errors import BadReplay, BrokenTrace
from hotprefix.traces.lines import nothing
from hotprefix.traces.made_up import made_up
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.source import TraceSource
from tests.traces.places import AZURE, SYNTHETIC

RUNNER = CliRunner()


def replay(*options: str | Path) -> Result:
    return RUNNER.invoke(build_app(), ["replay", *map(str, options)], catch_exceptions=False)


def facts(*options: str | Path) -> dict[str, Any]:
    found = replay(*options, "--json")
    assert found.exit_code == 0
    content: dict[str, Any] = json.loads(found.stdout)
    return content


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("traces") / "made_up.jsonl"
    file.write_bytes(b"".join(made_up(1500, seed=2)))
    return file


def test_the_table_names_what_differs(trace: Path) -> None:
    told = replay(trace, "--capacity", "5%,20%", "--policy", "lru,adaptive").stdout
    assert "1,500 requests" in told
    assert "A cache without limits finds" in told
    for word in ("capacity", "policy", "cold", "evicted", "TTFT p50"):
        assert word in told
    for word in ("codec", "routing", "expired", "cost"):
        assert word not in told


def test_json_has_every_run(trace: Path) -> None:
    content = facts(trace, "--capacity", "5%,20%", "--policy", "lru,adaptive", "--ttl", "30,none")
    runs = content["runs"]
    assert len(runs) == 8
    assert {(run["policy"], run["ttl"]) for run in runs} == {
        (policy, ttl) for policy in ("lru", "adaptive") for ttl in ("30 s", "none")
    }
    assert all(0 < run["token_hit_rate"] <= run["ideal_token_hit_rate"] for run in runs)
    assert all(run["requests"] == content["trace"]["requests"] == 1500 for run in runs)
    lru = {
        run["capacity_blocks"]: run["hit_tokens"]
        for run in runs
        if run["policy"] == "lru" and run["ttl"] == "none"
    }
    assert [lru[size] for size in sorted(lru)] == sorted(lru.values())


def test_processes_find_what_one_finds(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_work, "_SMALL_BYTES", 0)
    wide = [trace, "--capacity", "1%,5%,20%", "--policy", "lru,adaptive"]
    assert facts(*wide, "--jobs", "2") == facts(*wide, "--jobs", "1")


def test_an_error_in_a_process_is_told(trace: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(trace.read_bytes() + b"{}\n")
    source = TraceSource([broken])
    groups = replay_work.grouped(2, 2)
    with pytest.raises(BrokenTrace, match=r"broken\.jsonl:1501"):
        list(replay_work._spread(source, [ReplaySettings(50), ReplaySettings(60)], groups, nothing))


def test_a_smaller_codec_holds_more(trace: Path) -> None:
    runs = facts(trace, "--capacity", "1G", "--codec", "raw,int8,mixed", "--policy", "lru")["runs"]
    raw, int8, mixed = (run["capacity_blocks"] for run in runs)
    assert raw == (1 << 30) // (512 * 23040)
    assert 1.9 < int8 / raw < 2
    assert mixed > 1.7 * int8
    rates = [run["token_hit_rate"] for run in runs]
    assert rates == sorted(rates)


def test_behind_an_arena_the_codec_is_the_tiers(trace: Path) -> None:
    runs = facts(trace, "--capacity", "200", "--tier", "400", "--codec", "raw,int8", "--policy", "lru")[
        "runs"
    ]
    assert [run["capacity_blocks"] for run in runs] == [200, 200]
    assert runs[0]["tier_blocks"] == 400
    assert runs[1]["tier_blocks"] > 750
    assert runs[1]["restored_blocks"] > runs[0]["restored_blocks"] > 0


def test_replicas_and_routing(trace: Path) -> None:
    runs = facts(trace, "--capacity", "10%", "--replicas", "1,4", "--routing", "affinity,round-robin")["runs"]
    # With one replica there is nothing to choose.
    assert [(run["replicas"], run["routing"]) for run in runs] == [
        (1, "–"), (4, "affinity"), (4, "round-robin"),
    ]  # fmt: skip
    assert runs[1]["token_hit_rate"] > runs[2]["token_hit_rate"]
    assert runs[2]["lost_tokens"]["routed elsewhere"] > 0


def test_a_vendors_rules_and_prices(trace: Path) -> None:
    (run,) = facts(trace, "--capacity", "20%", "--profile", "dashscope-2026-10", "--model", "qwen-plus")[
        "runs"
    ]
    assert run["money"]["currency"] == "CNY"
    assert float(run["money"]["ideal"]) <= float(run["money"]["actual"]) < float(run["money"]["uncached"])
    assert 0 < run["counted_tokens"] <= run["hit_tokens"]
    told = replay(trace, "--capacity", "20%", "--profile", "dashscope-2026-10").stdout
    assert "cost (CNY)" in told


def test_larger_blocks(trace: Path) -> None:
    runs = facts(trace, "--capacity", "100%", "--block", "512,2048")["runs"]
    assert runs[0]["hit_tokens"] > runs[1]["hit_tokens"] > 0


def test_lengths_alone_are_said_to_be_that() -> None:
    told = replay(AZURE, "--capacity", "10%").stdout
    assert "--shared-tokens" in told
    (run,) = facts(AZURE, "--capacity", "10%", "--shared-tokens", "256")["runs"]
    assert run["token_hit_rate"] > 0.1


def test_the_page_needs_nothing_else(trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "replay.html"
    told = replay(
        trace,
        "--capacity",
        "5%,20%",
        "--policy",
        "lru,adaptive",
        "--profile",
        "dashscope-2026-03",
        "--html",
        page,
    ).stdout
    assert str(page) in told.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert "What became of the prompt tokens" in text
    assert "Cost of the trace" in text
    assert "Plotly.newPlot" in text
    assert "<script src=" not in text
    assert "<link" not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--capacity", "x"], "'x' is no capacity"),
        (["--capacity", "1K"], "does not hold a single block"),
        (["--capacity", ","], "A list is empty"),
        (["--policy", "fifo"], "no policy 'fifo'"),
        (["--codec", "zip"], "There is no codec 'zip'"),
        (["--block", "700"], "a multiple of the trace's 512 tokens"),
        (["--ttl", "soon"], "'soon' is no lifetime"),
        (["--replicas", "0"], "a number from 1 on"),
        (["--routing", "random"], "no routing 'random'"),
        (["--kv-shape", "30x3"], "'30x3' is no shape"),
        (["--profile", "nobody"], "no profile 'nobody'"),
        (["--profile", "openai-2026-09", "--mode", "explicit"], "no explicit cache"),
        (["--capacity", ",".join(map(str, range(1, MOST_RUNS + 2)))], "more than 200"),
    ],
)
def test_what_can_not_be(trace: Path, options: list[str], said: str) -> None:
    with pytest.raises(HotprefixError) as caught:
        replay(trace, *options)
    assert said in str(caught.value)


def test_the_collector_is_left_as_it_was(trace: Path) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    facts(trace, "--capacity", "10%")
    assert (gc.get_threshold(), gc.get_freeze_count()) == before


def test_runs_are_spread_evenly() -> None:
    groups = replay_work.grouped(7, 3)
    assert sorted(number for group in groups for number in group) == list(range(7))
    assert [len(group) for group in groups] == [3, 2, 2]
    assert len(replay_work.grouped(2, 8)) == 2


def test_the_shape_of_a_model() -> None:
    assert KvShape.parse("30x3x64").token_bytes == 23_040
    with pytest.raises(BadReplay):
        KvShape.parse("0x3x64")


def test_a_known_trace_on_the_command_line() -> None:
    content = facts(SYNTHETIC, "--capacity", "10%", "--policy", "lru")
    assert content["trace"]["ideal_block_hit_rate"] == pytest.approx(0.640, abs=0.0006)
    assert content["runs"][0]["block_hit_rate"] == pytest.approx(0.262, abs=0.0006)
