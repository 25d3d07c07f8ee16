"""What --fix rewrites: the place it is for, and not a byte more; twice changes nothing."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.doctor.lint.edits import Edit, Fix, apply_fixes
from hotprefix.doctor.lint.fixing import FixedFile, write
from hotprefix.doctor.lint.json_fixes import Tree, remove_member, sort_items, sort_keys
from hotprefix.doctor.lint.spans import json_spans
from tests.doctor.lint.support import RULES, code, fix_all, linter, only

TEXT = json.dumps(RULES)
MARK = '{"type": "ephemeral"}'
CALM = '{"role": "user", "content": "Where?"}'


def fixed(folder: Path, text: str, name: str = "request.json") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    after = fix_all(path)
    path.write_text(after, encoding="utf-8")
    assert fix_all(path) == after
    return after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{"role": "system", "content": TEXT, "cache_control": MARK}',
            '{"role": "system", "content": [{"type": "text", "text": TEXT, "cache_control": MARK}]}',
        ),
        (
            '{"role":"system","cache_control":{"type":"ephemeral"},\n  "content":TEXT}',
            '{"role":"system","content":[{"type": "text", "text": TEXT, "cache_control": '
            '{"type":"ephemeral"}}]}',
        ),
        (
            '{"role": "system", "content": [{"type": "text", "text": TEXT}], "cache_control": MARK}',
            '{"role": "system", "content": [{"type": "text", "text": TEXT, "cache_control": MARK}]}',
        ),
        (
            '{"role": "system", "content": [{"type": "text", "text": TEXT, "cache_control": null}]}',
            '{"role": "system", "content": [{"type": "text", "text": TEXT}]}',
        ),
        (
            '{"cache_control": null, "role": "system", "content": TEXT}',
            '{"role": "system", "content": TEXT}',
        ),
    ],
)
def test_markers(tmp_path: Path, before: str, after: str) -> None:
    frame = '{"model":  "qwen-plus",\r\n "messages": [MESSAGE,' + CALM + "]\r\n}\n"
    texts = [
        frame.replace("MESSAGE", one).replace("TEXT", TEXT).replace("MARK", MARK) for one in (before, after)
    ]
    made = fixed(tmp_path, texts[0])
    assert made == texts[1]
    assert linter().check_file(tmp_path / "request.json").findings == []


YAML = """# the scene
model: qwen-plus
messages:
  - role: system   # fixed
    content: |
LITERAL
    cache_control:
      type: ephemeral
  - role: user
    content: 'It''s late: where?'
    cache_control: null
"""


def test_yaml_keeps_comments_and_lines(tmp_path: Path) -> None:
    literal = "\n".join(f"      {line}" for line in RULES.splitlines())
    text = YAML.replace("LITERAL", literal)
    made = fixed(tmp_path, text, "request.yaml")
    body = yaml.safe_load(made)
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": f"{RULES}\n", "cache_control": {"type": "ephemeral"}}
    ]
    assert body["messages"][1] == {"role": "user", "content": "It's late: where?"}
    assert made.startswith(
        "# the scene\nmodel: qwen-plus\nmessages:\n"
        "  - role: system   # fixed\n    content:\n      - type: text\n"
    )


def test_yaml_in_brackets_and_one_line_strings(tmp_path: Path) -> None:
    text = "model: qwen-plus\nmessages:\n"
    text += f"  - {{role: system, content: {TEXT}, cache_control: {{type: ephemeral}}}}\n"
    text += "  - role: user\n    content: plain words, [here]\n    cache_control: {type: ephemeral}\n"
    body = yaml.safe_load(fixed(tmp_path, text, "request.yml"))
    assert body["messages"][0]["content"][0]["text"] == RULES
    block = {"type": "text", "text": "plain words, [here]", "cache_control": {"type": "ephemeral"}}
    assert body["messages"][1]["content"] == [block]


def test_programs(tmp_path: Path) -> None:
    source = f"""import json, os
RULES = {RULES!r}

def ask(client, history, question, cfg):
    text = RULES + json.dumps(
        cfg,
        indent=1,
    ) + json.dumps(cfg) + "说明" + ", ".join(os.listdir("prompts"))
    return client.chat.completions.create(model="qwen-plus", messages=[
        {{"role": "system", "content": text}}, *history, {{"role": "user", "content": question}}])
"""
    made = fixed(tmp_path, source, "app.py")
    assert "indent=1, sort_keys=True\n    ) + json.dumps(cfg, sort_keys=True)" in made
    assert 'join(sorted(os.listdir("prompts")))' in made
    ast.parse(made)
    assert code(tmp_path, made) == []


def test_programs_with_other_line_ends(tmp_path: Path) -> None:
    source = f"import json\r\nRULES = {RULES!r}\r\n\r\ndef ask(client, question, cfg, history):\r\n"
    source += "    text = json.dumps(cfg) + RULES\r\n    return client.chat.completions.create(messages=[\r\n"
    source += (
        "        {'role': 'system', 'content': text}, *history, {'role': 'user', 'content': question}])\r\n"
    )
    path = tmp_path / "app.py"
    path.write_bytes(source.encode())
    assert fix_all(path) == source.replace("dumps(cfg)", "dumps(cfg, sort_keys=True)")
    path.write_bytes(b"\xef\xbb\xbf" + source.encode())
    assert only(linter().check_file(path).findings, "HP502").place.line == 5
    assert fix_all(path) == "\ufeff" + source


def test_what_can_not_be_located_is_left(tmp_path: Path) -> None:
    body = {"model": "qwen-plus", "messages": [{"role": "system", "content": RULES, "cache_control": None}]}
    text = json.dumps({"request": json.dumps(body)})
    assert fixed(tmp_path, text) == text


def test_fixes_that_touch_are_made_one_after_the_other() -> None:
    first, second = Fix((Edit(0, 4, "x"),)), Fix((Edit(2, 6, "y"),))
    assert apply_fixes("abcdefg", [first, second]) == ("xefg", 1)
    assert apply_fixes("abcdefg", [first, first]) == ("xefg", 2)
    assert apply_fixes("abc", [Fix((Edit(1, 1, "-"), Edit(2, 2, "+")))]) == ("a-b+c", 1)


def test_a_file_is_written_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    write(FixedFile(path, "old", "new\r\n", 1))
    assert path.read_bytes() == b"new\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 1, 4]), st.booleans())
def test_sorted_keys_mean_the_same(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    tree = Tree(text, json_spans(text))
    fix = sort_keys(tree, "")
    made = apply_fixes(text, [fix])[0] if fix is not None else text
    assert json.loads(made) == value
    assert json.dumps(json.loads(made)) == json.dumps(value, sort_keys=True)
    assert len(made) == len(text)


@given(st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=5), st.data())
def test_a_member_is_removed_whole(value: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 2])))
    fix = remove_member(Tree(text, json_spans(text)), "", key)
    assert fix is not None
    assert json.loads(apply_fixes(text, [fix])[0]) == {
        name: one for name, one in value.items() if name != key
    }


@given(st.lists(JSON, min_size=2, max_size=5), st.randoms())
def test_elements_change_places(value: list[Any], random: Any) -> None:
    order = list(range(len(value)))
    random.shuffle(order)
    text = json.dumps(value, indent=1)
    fix = sort_items(Tree(text, json_spans(text)), "", order)
    made = apply_fixes(text, [fix])[0] if fix is not None else text
    assert json.loads(made) == [value[number] for number in order]
