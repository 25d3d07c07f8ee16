"""`hotprefix tune` as people run it."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hotprefix.app import serve as serve_module
from hotprefix.app import serve_command as serve_command_module
from hotprefix.app import tune_command as command_module
from hotprefix.app.cli import build_app
from hotprefix.app.settings import ServeSettings
from hotprefix.app.sizes import parse_size
from hotprefix.app.tune_command import config_text, hub_folder
from hotprefix.base.clock import ManualClock
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore
from hotprefix.quality.card import Group
from hotprefix.tune.decision import GIB
from hotprefix.tune.machine import Redis
from hotprefix.tune.wish import Goal
from tests.tune.test_planner import ALIKE
from tests.tune.test_quality_notes import card
from tests.tune.worlds import machine, planned, speeds

RUNNER = CliRunner()


@pytest.fixture
def tuned(tiny_model: ModelManifest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The tiny model's name, in the store that the command looks into; the current folder is empty."""
    store = ModelStore(tiny_model.folder.parent.parent)
    monkeypatch.setattr(command_module, "user_store", lambda home: store)
    monkeypatch.delenv("HOTPREFIX_REDIS_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tiny_model.name


def tune(*arguments: str) -> tuple[int, str]:
    result = RUNNER.invoke(build_app(), ["tune", *arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 1, str(result.exception)
    return result.exit_code, result.stdout


def served(config: Path, monkeypatch: pytest.MonkeyPatch) -> ServeSettings:
    """What `hotprefix serve` makes of a config."""
    asked: list[ServeSettings] = []
    monkeypatch.setattr(serve_module, "serve", lambda settings, *_, **__: asked.append(settings))
    monkeypatch.setattr(serve_command_module, "configure_logs", lambda *args: None)
    result = RUNNER.invoke(build_app(), ["serve", "--config", str(config)])
    assert result.exit_code == 0, result.output
    return asked[0]


@pytest.mark.parametrize("goal", Goal)
@pytest.mark.parametrize("size", [6, 24, 64])
@pytest.mark.parametrize("context", [None, 1024, 32_000])
def test_serve_takes_what_was_planned(
    goal: Goal, size: float, context: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis = Redis("redis://r/0", 8 * GIB)
    found = planned(machine(size, redis=redis), goal=goal, context=context, measured=speeds(ALIKE))
    path = tmp_path / "hotprefix.toml"
    path.write_text(config_text(found, tmp_path / "state", "redis://r/0", ManualClock()))
    settings = served(path, monkeypatch)
    chosen = {decision.key: decision.value for decision in found.decisions}
    assert settings.model == "small"
    assert settings.kv_precision == chosen["kv-precision"]
    assert (settings.prefill_chunk, settings.threads) == (chosen["prefill-chunk"], chosen["threads"])
    assert settings.kv_arena == parse_size(str(chosen["kv-arena"]))
    assert settings.kv_redis == parse_size(str(chosen["kv-redis"]))
    assert settings.kv_codec == chosen["kv-codec"]
    assert settings.strategy.name == chosen["kv-strategy"]
    assert settings.max_context == chosen.get("max-context")
    assert (settings.state_dir, settings.redis_url) == (tmp_path / "state", "redis://r/0")
    if context == 32_000:
        assert (settings.strategy.window, settings.strategy.longest) == (2048, 32_000)


def test_a_password_is_not_written_down() -> None:
    found = planned(machine(24, redis=Redis("redis://:***@r/0", GIB)))
    text = config_text(found, None, "redis://:secret@r/0", ManualClock())
    assert "secret" not in text
    assert "redis-url" not in tomllib.loads(text)
    assert "HOTPREFIX_REDIS_URL" in text


def test_every_choice_says_what_it_rests_on() -> None:
    text = config_text(planned(machine(24), goal=Goal.LATENCY), None, None, ManualClock())
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "=" in line and not line.startswith(("#", "model")):
            assert lines[number - 1].startswith("# "), line
    assert all(len(line) <= 102 for line in lines)
    assert "speeds not measured" in text
    assert "1970-01-01" in text


def test_measured_on_the_tiny_model(tuned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = tune("--model", tuned, "--quick", "--context", "1024", "--plot", "plot.html")
    assert code == 0, output
    for part in ("tiny", "prefill", "decode", "u8", "--kv-arena", "preset", "GB/s"):
        assert part in output
    config = tomllib.loads((tmp_path / "hotprefix.toml").read_text())
    assert config["max-context"] == 1024
    assert served(tmp_path / "hotprefix.toml", monkeypatch).max_context == 1024
    plot = (tmp_path / "plot.html").read_text()
    assert len(plot) > 1_000_000
    # The plotting library's own text names an address of icons that no plot of ours uses.
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=.?http", plot)
    before = (tmp_path / "hotprefix.toml").read_bytes()
    code, output = tune("--model", tuned, "--no-measure")
    assert (code, "--force" in output) == (1, True)
    assert (tmp_path / "hotprefix.toml").read_bytes() == before


def test_json_without_measuring(tuned: str, tmp_path: Path) -> None:
    code, output = tune("--model", tuned, "--no-measure", "--json", "--out", "x.toml", "--for", "memory")
    assert code == 0, output
    found = json.loads(output)
    assert (found["model"]["name"], found["wish"]["goal"], found["need"]["context"]) == (
        tuned,
        "memory",
        2048,
    )
    assert [one["precision"] for one in found["candidates"]][1:] == ["u8", "u4"]
    assert all(one["decode"] is None for one in found["candidates"])
    config = tomllib.loads((tmp_path / "x.toml").read_text())
    assert {key: config[key] for key in found["options"]} == found["options"]


def test_a_quality_card_is_shown(tuned: str, tmp_path: Path) -> None:
    """Another model's says nothing of this one."""
    other = card(("u8", Group.PRECISION, 0.00031))
    for whole, is_shown in ((other, False), (replace(other, model=tuned), True)):
        (tmp_path / "card.json").write_text(json.dumps(whole.to_json()))
        code, output = tune("--model", tuned, "--no-measure", "--quality", "card.json", "--force")
        assert (code, "KL 3.1e-04" in output, "card is of small" in output) == (0, is_shown, not is_shown)


def test_a_plot_without_plotly_is_told_before_anything_is_measured(
    tuned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    code, output = tune("--model", "no-such-model", "--plot", "plot.html")
    assert (code, "hotprefix[bench]" in output) == (1, True)
    assert tune("--model", tuned, "--no-measure")[0] == 0


def test_a_launch_line(tmp_path: Path) -> None:
    line = ["--vllm", "--gpu-memory", "80G", "--gpus", "2", "--model-config", "Meta-Llama-3-70B-Instruct"]
    code, output = tune(*line)
    assert code == 0
    assert output.startswith("# ")
    assert "\nvllm serve meta-llama/Meta-Llama-3-70B-Instruct \\\n  --tensor-parallel-size 2 \\\n" in output
    found = json.loads(tune(*line, "--json")[1])
    assert found["options"]["--kv-offloading-size"] == "32"
    assert found["layout"]["token_bytes"] == 81_920
    script = tmp_path / "serve.sh"
    assert tune(*line, "--out", str(script)) == (0, "")
    assert script.read_text() == "#!/bin/sh\n" + output
    assert "--force" in tune(*line, "--out", str(script))[1]


@pytest.mark.parametrize("missing", ["--gpu-memory", "--model-config"])
def test_a_launch_line_needs_gpu_and_model(missing: str) -> None:
    given = {"--gpu-memory": "80G", "--model-config": "Qwen3-8B"}
    del given[missing]
    assert tune("--vllm", *[word for pair in given.items() for word in pair])[0] == 2


def test_the_hub_cache() -> None:
    assert hub_folder({"HF_HUB_CACHE": "/a", "HF_HOME": "/b"}) == Path("/a")
    assert hub_folder({"HF_HOME": "/b"}) == Path("/b/hub")
    assert hub_folder({}).parts[-3:] == (".cache", "huggingface", "hub")
