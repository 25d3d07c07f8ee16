"""`hotprefix serve --config FILE`: what it takes, what goes before it, and how its mistakes are told."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hotprefix.app import serve as serve_module
from hotprefix.app import serve_command as command_module
from hotprefix.app.cli import build_app
from hotprefix.app.config_file import Setting, render_config, write_new
from hotprefix.app.settings import CachePolicy, KvPrecision, ServeSettings
from hotprefix.base.errors import HotprefixError

RUNNER = CliRunner()
WHOLE = """\
# every kind of value
host = "0.0.0.0"
port = 9
kv-arena = "1.5G"
kv-precision = "u8"
kv-ram = 1048576
policy = "slru"
no-cache = true
drain-timeout = 1.5
redis-url = "redis://elsewhere/1"
state-dir = "state"
warm = ["a.yaml", "b.yaml"]
kv-strategy = "window"
kv-keys = 0.25
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ServeSettings]:
    """What the command line became; nothing is served."""
    asked: list[ServeSettings] = []
    monkeypatch.setattr(serve_module, "serve", lambda settings, *args, **more: asked.append(settings))
    monkeypatch.setattr(command_module, "configure_logs", lambda *args: None)
    monkeypatch.delenv("HOTPREFIX_REDIS_URL", raising=False)
    return asked


def serve(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    result = RUNNER.invoke(build_app(), ["serve", *arguments], env={"COLUMNS": "400", **(env or {})})
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "hotprefix.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_every_kind_of_value_arrives(asked: list[ServeSettings], tmp_path: Path) -> None:
    code, output = serve("--config", config(tmp_path, WHOLE))
    assert code == 0, output
    (settings,) = asked
    assert (settings.host, settings.port, settings.kv_arena) == ("0.0.0.0", 9, 3 * 1024**3 // 2)
    assert (settings.kv_precision, settings.kv_ram) == (KvPrecision.U8, 1048576)
    assert (settings.policy, settings.cache, settings.drain_timeout) == (CachePolicy.SLRU, False, 1.5)
    assert (settings.redis_url, settings.state_dir) == ("redis://elsewhere/1", Path("state"))
    assert settings.warm == (Path("a.yaml"), Path("b.yaml"))
    assert (settings.strategy.name.value, settings.strategy.keys) == ("window", 0.25)


@pytest.mark.parametrize("before", [True, False])
def test_the_command_line_goes_before_it(asked: list[ServeSettings], tmp_path: Path, before: bool) -> None:
    options = ["--port", "10", "--warm", "c.yaml"]
    file = ["--config", config(tmp_path, WHOLE)]
    code, output = serve(*(options + file if before else file + options))
    assert code == 0, output
    assert (asked[0].port, asked[0].warm, asked[0].host) == (10, (Path("c.yaml"),), "0.0.0.0")


def test_the_environment_goes_before_it(asked: list[ServeSettings], tmp_path: Path) -> None:
    code, output = serve("--config", config(tmp_path, WHOLE), env={"HOTPREFIX_REDIS_URL": "redis://env/0"})
    assert code == 0, output
    assert asked[0].redis_url == "redis://env/0"


def test_an_empty_file_changes_nothing(asked: list[ServeSettings], tmp_path: Path) -> None:
    assert serve("--config", config(tmp_path, ""))[0] == 0
    assert serve()[0] == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('port = 1\nkv-arnea = "8G"', "line 2: there is no option 'kv-arnea'; did you mean 'kv-arena'?"),
        ('kv_arena = "8G"', "line 1: there is no option 'kv_arena'; did you mean 'kv-arena'?"),
        ('--kv-arena = "8G"', "did you mean 'kv-arena'?"),
        ("zzz = 1", "line 1: there is no option 'zzz'; 'hotprefix serve --help' shows them all"),
        ('config = "other.toml"', "there is no option 'config'"),
        ("\n\n[serve]\nport = 1", "line 3: there are no sections like [serve]"),
        ('kv-arena = "8X"', 'line 1: kv-arena = "8X": '),
        ("# size\nkv-arena = 0", "line 2: kv-arena = 0: '0' is out of range"),
        ('kv-precision = "u3"', 'line 1: kv-precision = "u3": '),
        ("port = 70000", "port = 70000: "),
        ("threads = 1.5", "threads = 1.5: "),
        ("threads = true", "threads = true: write a text in quotes or a number"),
        ("threads = [1]", "threads = [1]: write a text in quotes or a number"),
        ('no-cache = "yes"', 'no-cache = "yes": write true or false, without quotes'),
        ("warm = [1979-05-27]", "warm"),
        ("kv-arena = 8G", "no TOML: "),
        ("port = 1\nport = 2", "no TOML: "),
    ],
)
def test_mistakes_are_told_with_their_place(
    asked: list[ServeSettings], tmp_path: Path, text: str, says: str
) -> None:
    path = config(tmp_path, text)
    code, output = serve("--config", path)
    assert code == 2
    assert says in output
    assert path in output
    assert asked == []


def test_other_files_are_refused(asked: list[ServeSettings], tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path, says in (
        (tmp_path / "none", "does not exist"),
        (tmp_path, "dir"),
        (tmp_path / "binary", "UTF-8"),
    ):
        code, output = serve("--config", str(path))
        assert code == 2
        assert says in output
    assert asked == []


def test_help_is_shown_whatever_the_file_says(tmp_path: Path) -> None:
    code, output = serve("--config", config(tmp_path, "nonsense"), "--help")
    assert code == 0
    assert "--kv-arena" in output


def test_what_is_rendered_is_read_back() -> None:
    values = {"kv-arena": "8G", "threads": 2, "kv-keys": 0.25, "no-cache": True, "model": 'a "b"\\c\n\x7fé'}
    text = render_config([Setting(key, value, f"Why {key}") for key, value in values.items()], ["Made today"])
    assert tomllib.loads(text) == values
    assert text.startswith("# Made today\n")
    assert "# Why threads\nthreads = 2\n" in text


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "hotprefix.toml"
    write_new(path, "a", replace=False)
    with pytest.raises(HotprefixError, match="--force"):
        write_new(path, "b", replace=False)
    assert path.read_text() == "a"
    write_new(path, "c", replace=True)
    assert path.read_text() == "c"
