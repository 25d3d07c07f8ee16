from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hotprefix import __version__
from hotprefix.app import serve as serve_module
from hotprefix.app import serve_command as command_module
from hotprefix.app.cli import build_app
from hotprefix.app.settings import CachePolicy, KvPrecision, LogFormat, ServeSettings
from hotprefix.app.state import default_state_dir
from hotprefix.engine.settings import DecodeMode
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.modes.named_cache import NamedLimits
from tests.tiny_gguf import write_tiny_gguf

RUNNER = CliRunner()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """What the command line became; nothing is served."""
    asked: list[ServeSettings] = []
    monkeypatch.setattr(serve_module, "serve", lambda settings, *args, **more: asked.append(settings))
    monkeypatch.setattr(command_module, "configure_logs", lambda *args: None)
    return asked


def test_version() -> None:
    for asked in ("version", "--version"):
        assert RUNNER.invoke(build_app(), [asked]).output == f"hotprefix {__version__}\n"
    assert json.loads(RUNNER.invoke(build_app(), ["version", "--json"]).output) == {"version": __version__}


def test_defaults(asked: list[ServeSettings]) -> None:
    result = RUNNER.invoke(build_app(), ["serve"])
    assert result.exit_code == 0, result.output
    assert asked == [ServeSettings(model=DEFAULT_MODEL, state_dir=default_state_dir(os.environ))]


def test_every_option_arrives(asked: list[ServeSettings], tmp_path: Path) -> None:
    line = (
        "serve --host 0.0.0.0 --port 9 --model m.gguf --served-name n --kv-arena 1.5GiB --kv-precision u8 "
        "--no-cache --policy slru --max-context 512 --threads 3 --max-running 4 --max-waiting 5 "
        f"--prefill-chunk 64 --decode exact --drain-timeout 1.5 --body-limit 1M --log-format json "
        f"--log-level debug --state-dir {tmp_path} --named-caches 7 --named-caches-per-tenant 6 "
        "--named-tokens-per-tenant 5 --named-longest-ttl 4"
    )
    result = RUNNER.invoke(build_app(), line.split())
    assert result.exit_code == 0, result.output
    (settings,) = asked
    assert (settings.host, settings.port, settings.model, settings.served_name) == (
        "0.0.0.0",
        9,
        "m.gguf",
        "n",
    )
    assert (settings.kv_arena, settings.body_limit) == (3 * 1024**3 // 2, 1024**2)
    assert (settings.kv_precision, settings.policy) == (KvPrecision.U8, CachePolicy.SLRU)
    assert (settings.cache, settings.decode, settings.log_format) == (False, DecodeMode.EXACT, LogFormat.JSON)
    assert (settings.max_context, settings.threads, settings.max_running) == (512, 3, 4)
    assert (settings.max_waiting, settings.prefill_chunk, settings.drain_timeout) == (5, 64, 1.5)
    assert (settings.log_level.value, settings.state_dir) == ("debug", tmp_path)
    assert settings.named == NamedLimits(7, 6, 5, 4.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kv-arena", "3X"], "512M"),
        (["--kv-arena", "0"], "above 0"),
        (["--body-limit", "big"], "no size"),
        (["--kv-precision", "u3"], "bf16"),
        (["--policy", "fifo"], "adaptive"),
        (["--port", "70000"], "65535"),
        (["--threads", "0"], "threads"),
        (["--max-context", "1"], "max-context"),
        (["--drain-timeout", "-1"], "drain-timeout"),
        (["--decode", "slow"], "exact"),
        (["--frobnicate"], "frobnicate"),
    ],
)
def test_a_bad_option_is_named(asked: list[ServeSettings], arguments: list[str], says: str) -> None:
    result = RUNNER.invoke(build_app(), ["serve", *arguments])
    assert result.exit_code == 2
    assert says in result.output
    assert "Traceback" not in result.output
    assert asked == []


def test_help_teaches() -> None:
    text = RUNNER.invoke(build_app(), ["serve", "--help"]).output
    for panel in ("Address", "Model", "KV cache", "Load", "Operation", "Examples"):
        assert panel in text


def test_models_from_nothing_to_nothing(tmp_path: Path) -> None:
    app, state = build_app(), ["--home", str(tmp_path / "state")]
    assert json.loads(RUNNER.invoke(app, ["models", "list", "--json", *state]).output) == []
    assert "not here yet" in RUNNER.invoke(app, ["models", "list", *state], env={"COLUMNS": "160"}).output
    source = write_tiny_gguf(tmp_path / "tiny.gguf")
    added = RUNNER.invoke(app, ["models", "add", str(source), "--name", "small", "--json", *state])
    assert added.exit_code == 0, added.output
    assert json.loads(added.stdout)["name"] == "small"
    listed = json.loads(RUNNER.invoke(app, ["models", "list", "--json", *state]).output)
    assert [model["name"] for model in listed] == ["small"]
    assert listed[0]["bytes"] > 0
    assert "small" in RUNNER.invoke(app, ["models", "list", *state]).output
    assert RUNNER.invoke(app, ["models", "rm", "small", *state]).output == "Removed small.\n"
    assert json.loads(RUNNER.invoke(app, ["models", "list", "--json", *state]).output) == []
    assert source.exists()


def hotprefix(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hotprefix", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_errors_are_one_line_without_a_traceback(tmp_path: Path) -> None:
    result = hotprefix("models", "rm", "nothing", "--home", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("Error: No model 'nothing'")
    assert len(result.stderr.splitlines()) == 1


def test_a_taken_port_is_told_before_the_model_is_looked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = hotprefix("serve", "--port", port, "--model", "no-such", "--state-dir", str(tmp_path))
    assert result.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in result.stderr
    assert "no-such" not in result.stderr


def test_an_unknown_model(tmp_path: Path) -> None:
    result = hotprefix("serve", "--port", "0", "--model", "no-such", "--state-dir", str(tmp_path))
    assert result.returncode == 1
    assert "no-such" in result.stderr
    assert "Traceback" not in result.stderr


def test_ctrl_c_while_the_command_is_loaded() -> None:
    """Every second of that counts on a slow disk: what is imported before is next to nothing."""
    script = (
        "import builtins, sys\n"
        "from hotprefix.__main__ import main\n"
        "loaded = {name for name in sys.modules if name.startswith('hotprefix.')}\n"
        "assert loaded == {'hotprefix.__main__'}\n"
        "known = builtins.__import__\n"
        "def interrupted(name, *more):\n"
        "    if name == 'hotprefix.app.cli':\n"
        "        raise KeyboardInterrupt\n"
        "    return known(name, *more)\n"
        "builtins.__import__ = interrupted\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
