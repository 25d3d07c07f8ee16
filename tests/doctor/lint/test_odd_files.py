"""Files as other programs and systems leave them: marks, line ends, other encodings, other contents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotprefix.doctor.lint.fixing import FixedFile, fixed, write
from hotprefix.doctor.lint.run import FileReport
from tests.doctor.lint.support import RULES, chat, fix_all, ids, linter, only

BAD = json.dumps(chat(f"Now: 09:14\n{RULES}", "Where?"))
CLOCK = 'import datetime\nsystem_prompt = f"{datetime.datetime.now()} abc"\n'


def report(folder: Path, name: str, data: bytes | str) -> FileReport:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return linter().check_file(path)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.yaml"])
def test_a_byte_order_mark_is_no_fault(tmp_path: Path, name: str) -> None:
    found = only(report(tmp_path, name, b"\xef\xbb\xbf" + BAD.encode()).findings, "HP101")
    assert (found.place.line, found.place.column > 40) == (1, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tsconfig.json", '{\n  // a comment\n  "input": ["messages"],\n}'),
        ("stack.yaml", "input: !Ref Messages\nrole: !Sub x\n"),
        ("server.log", "2026-11-30 10:00:00 INFO messages of a model\n"),
        ("locales.json", '{"messages": {"hello": "Hi"}}'),
        ("embed.jsonl", '{"model": "text-embedding-v3", "input": "Now: 09:14"}\n'),
        ("moderate.json", '{"input": ["Now: 09:14"], "model": "omni-moderation-latest"}'),
        ("points.json", '{"model": "m", "input": [1, 2]}'),
    ],
)
def test_files_of_other_programs_are_passed_over(tmp_path: Path, name: str, text: str) -> None:
    made = report(tmp_path, name, text)
    assert (made.findings, made.requests, made.is_readable) == ([], 0, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bell.yaml", 'messages: "\x07"\nrole: a\n'),
        ("date.yaml", "model: x\nmessages: []\ndate: 2026-99-99\n"),
        ("endless.yaml", "a: &a [*a, *a]\nmodel: x\nmessages: *a\n"),
        (
            "bomb.yaml",
            "model: x\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
            + "messages: *a8\n",
        ),
        ("digits.json", '{"model": "x", "messages": [], "n": ' + "9" * 5_000 + "}"),
        ("wide.json", b"\xff\xfe" + BAD.encode("utf-16-le")),
    ],
)
def test_what_can_not_be_read_is_told(tmp_path: Path, name: str, text: str | bytes) -> None:
    made = report(tmp_path, name, text)
    assert (ids(made.findings), made.is_readable) == (["HP901"], False)


def test_tags_of_other_programs_are_texts(tmp_path: Path) -> None:
    text = "model: qwen-plus\nmessages:\n"
    text += f"- {{role: system, content: {json.dumps(RULES)}, cache_control: null}}\n"
    text += "- {role: user, content: !include question.md}\n"
    assert ids(report(tmp_path, "a.yaml", text).findings) == ["HP303"]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_line_ends_of_programs(tmp_path: Path, end: str) -> None:
    found = only(report(tmp_path, "a.py", CLOCK.replace("\n", end)).findings, "HP101")
    assert (found.place.line, found.place.column) == (2, 20)


def test_lines_are_counted_as_python_counts_them(tmp_path: Path) -> None:
    text = CLOCK.replace("\n", "\n\x0c\nx = '\u2028'\n", 1).replace('abc"', 'abc"  # hotprefix: ignore')
    assert report(tmp_path, "a.py", text).findings == []


def test_other_encodings_are_read_and_left_as_they_are(tmp_path: Path) -> None:
    text = (
        f"# -*- coding: latin-1 -*-\nimport json\nRULES = 'é' + {RULES!r}\ndef ask(client, cfg, history):\n"
    )
    text += "    return client.chat.completions.create(messages=[\n"
    text += "        {'role': 'system', 'content': RULES + json.dumps(cfg) + RULES}, *history])\n"
    assert ids(report(tmp_path, "a.py", text.encode("latin-1")).findings) == ["HP502"]
    path = tmp_path / "a.py"
    assert fixed(path, lambda copy: linter().check_file(copy).findings) is None


def test_what_is_sorted_and_what_only_may_be(tmp_path: Path) -> None:
    text = f"""import json, os
from pathlib import Path
RULES = {RULES!r}

def ask(client, root, data, history):
    text = json.dumps(
        data  # as it is
    )
    for folder, folders, files in os.walk(root):
        text += folder
    with os.scandir(root) as entries:
        text += ",".join(entry.name for entry in entries)
    text += next(Path(root).iterdir()).name
    for path in Path(root).glob("*.md"):
        text += path.read_text()
    return client.chat.completions.create(messages=[{{"role": "system", "content": text + RULES}}, *history])
"""
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    assert ids(linter().check_file(path).findings) == ["HP501", "HP502"]
    expected = text.replace("data  #", "data, sort_keys=True  #")
    assert fix_all(path) == expected.replace('Path(root).glob("*.md")', 'sorted(Path(root).glob("*.md"))')


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old", encoding="utf-8")
    (tmp_path / "link.json").symlink_to("real.json")
    write(FixedFile(tmp_path / "link.json", "old", "new", 1))
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text(encoding="utf-8") == "new"
