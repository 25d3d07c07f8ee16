"""`hotprefix explain`, as people call it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.models.manifest import ModelManifest
from tests.doctor.explain.support import MARK, RULES, Body, chat, turns, write

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPREFIX_HOME", str(tmp_path / "home"))


def explain(*arguments: str | Path) -> Result:
    return RUNNER.invoke(build_app(), ["explain", *map(str, arguments)])


def clocked(minute: int) -> Body:
    return chat("Where is my secret box?", system=f"Now: 09:{minute}\n{RULES}")


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "a.json", clocked(14)), write(tmp_path / "b.json", clocked(15))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "log.jsonl", *(clocked(minute) for minute in range(10, 20)))


def test_two_requests(two: tuple[Path, Path]) -> None:
    done = explain(*two)
    assert done.exit_code == 1
    for stage in ("bytes", "content blocks", "rendered prompt", "tokens"):
        assert stage in done.output
    assert "SYSTEM_CHANGED (VOLATILE_TIME)" in done.output
    assert "− Now: 09:14↵Rule 0" in done.output
    assert "+ Now: 09:15↵Rule 0" in done.output
    assert "请把 messages[0].content 中的时间" in done.output
    assert "Token counts are estimates" in done.output
    assert "\x1b" not in done.output, "no colours in a pipe"


def test_nothing_lost_is_exit_code_0(tmp_path: Path) -> None:
    same = write(tmp_path / "a.jsonl", chat("Where?"), chat("Who?"))
    done = explain(same)
    assert done.exit_code == 0
    assert "NONE" in done.output


def test_json(two: tuple[Path, Path]) -> None:
    found = json.loads(explain(*two, "--format", "json").output)
    assert found["verdict"]["reason"] == "SYSTEM_CHANGED"
    assert found["verdict"]["divergence"]["path"] == "messages[0].content"
    assert found["verdict"]["advice"]["zh"].endswith("。")
    blocks = next(stage for stage in found["stages"] if stage["stage"] == "content blocks")
    assert (blocks["difference"]["removed"], blocks["difference"]["added"]) == (["4"], ["5"])
    assert found["rules"]["profile"] == "dashscope-2026-10"
    assert found["reported"] is None


@pytest.mark.parametrize("form", ["terminal", "json", "html"])
def test_redacted(two: tuple[Path, Path], log: Path, form: str) -> None:
    for files in (two, (log,)):
        done = explain(*files, "--redact", "--format", form)
        assert done.exit_code == 1
        for word in ("Rule 0", "goods", "09:14", "secret"):
            assert word not in done.output


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_needs_nothing_else(two: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "why.html"
    assert explain(*two, "-f", "html", "-o", out).exit_code == 1
    source = out.read_text(encoding="utf-8")
    page = _Page()
    page.feed(source)
    assert page.addresses == []
    assert "@import" not in source
    assert "url(" not in source
    assert "prefers-color-scheme: dark" in source
    assert {"del", "ins", "table", "main"} <= set(page.tags)
    assert "VOLATILE_TIME" in page.text


def test_html_and_terminal_tell_the_same_rules(two: tuple[Path, Path]) -> None:
    rules = ("--profile", "openai-2026-09")
    for form in ("terminal", "html"):
        assert "in steps of 128" in explain(*two, *rules, "-f", form).output


def test_html_escapes_prompts(tmp_path: Path) -> None:
    odd = [chat("?", system=f"<script>alert({n})</script>{RULES}") for n in (1, 2)]
    source = explain(write(tmp_path / "x.jsonl", *odd), "-f", "html").output
    assert "<script>" not in source
    assert "&lt;script&gt;" in source


def test_a_log(log: Path) -> None:
    done = explain(log)
    assert done.exit_code == 1
    assert "10 requests" in done.output
    assert re.search(r"SYSTEM_CHANGED\s+│\s+9\s", done.output)
    assert "1. SYSTEM_CHANGED (VOLATILE_TIME) messages[*].content" in done.output
    assert "9 requests lost" in done.output


def test_a_log_as_json_and_html(log: Path) -> None:
    found = json.loads(explain(log, "-f", "json", "--worst", "1").output)
    assert found["requests"] == 10
    assert found["reasons"]["SYSTEM_CHANGED"]["requests"] == 9
    [cause] = found["causes"]
    assert cause["lost_tokens"] == found["tokens"]["avoidable"]
    assert cause["lost_money"]["CNY"] == pytest.approx(cause["lost_tokens"] * 0.64 / 1e6)
    page = _Page()
    page.feed(explain(log, "-f", "html").output)
    assert "9 requests lost" in page.text


def test_a_text_file_of_it(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.txt"
    assert explain(log, "-o", out).exit_code == 1
    assert "VOLATILE_TIME" in out.read_text(encoding="utf-8")


def test_by_a_models_own_tokenizer(two: tuple[Path, Path], tiny_model: ModelManifest) -> None:
    done = explain(*two, "--tokenizer", tiny_model.tokenizer)
    assert "Token counts are estimates" not in done.output
    assert "The layout is a plain one" in done.output


def test_markers_are_shown(tmp_path: Path) -> None:
    system = {"role": "system", "content": [{"type": "text", "text": RULES, **MARK}]}
    bodies = [
        {"messages": [system, {"role": "user", "content": text}]} for text in ("Now 1. " * 40, "Now 2. " * 40)
    ]
    done = explain(write(tmp_path / "m.jsonl", *bodies))
    assert done.exit_code == 0
    assert "The requests part behind the last marker" in done.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(chat("alone")), "nothing to compare with"),
        ("{", "no JSON"),
        ('{"a": 1}\n{"a": 2}\n', "has no request"),
        (json.dumps({"messages": [7]}) + "\n" + json.dumps(chat("x")), "can't be read"),
    ],
)
def test_trouble_is_exit_code_2(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    done = explain(file)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_unknown_names_are_trouble(two: tuple[Path, Path]) -> None:
    for option, said in (("--profile", "There is no profile"), ("--model", "No prepared model")):
        done = explain(*two, option, "nowhere")
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_long_conversation_reads_as_continued(tmp_path: Path) -> None:
    file = write(tmp_path / "talk.jsonl", chat(*turns(0, 9)), chat(*turns(0, 11)))
    found = json.loads(explain(file, "-f", "json").output)
    blocks = next(stage for stage in found["stages"] if stage["stage"] == "content blocks")
    assert blocks["is_continued"]
    assert found["verdict"]["reason"] == "NONE"


def test_what_can_not_be_read_or_written_is_exit_code_2(two: tuple[Path, Path], tmp_path: Path) -> None:
    for name, text in {"list.json": "[1]", "broken.json": "{", "none.json": "{}"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        done = explain(*two, "--template", tmp_path / name)
        assert (done.exit_code, type(done.exception)) == (2, SystemExit), name
        assert name in done.stderr
    done = explain(*two, "--output", tmp_path / "no" / "such.html")
    assert done.exit_code == 2
    assert "No such file or directory" in done.stderr


def test_a_template_among_several(two: tuple[Path, Path], tmp_path: Path) -> None:
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    config = {"chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": source}]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    done = explain(*two, "--template", tmp_path / "tokenizer_config.json")
    assert done.exit_code == 1
    assert "The layout is a plain one" not in done.output


def test_files_of_windows_are_read(tmp_path: Path) -> None:
    text = json.dumps(clocked(14)) + "\r\n" + json.dumps(clocked(15)) + "\r\n"
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert "SYSTEM_CHANGED (VOLATILE_TIME)" in explain(tmp_path / "a.jsonl").output
