"""Whatever a file holds, the linter ends, and says nothing that can't be shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotprefix.doctor.lint.report.machine import github_lines, json_report
from hotprefix.doctor.lint.report.sarif import sarif_report
from hotprefix.doctor.lint.rule import Language
from hotprefix.doctor.lint.run import LintReport
from tests.doctor.lint.support import linter

NAMES = st.sampled_from(
    [
        "role",
        "content",
        "text",
        "type",
        "cache_control",
        "messages",
        "tools",
        "system",
        "instructions",
        "input",
        "parameters",
        "function",
        "name",
        "arguments",
        "tool_calls",
        "properties",
        "history",
        "prompt",
        "model",
        "headers",
        "request",
        "body",
        "ttl",
        "temperature",
        "max_tokens",
    ]
)
WORDS = st.sampled_from(
    [
        "system",
        "user",
        "assistant",
        "tool",
        "text",
        "ephemeral",
        "Now: 09:14",
        "qwen-plus",
        "\ud800",
        "enable",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
BODIES = st.one_of(
    st.fixed_dictionaries(
        {"messages": st.lists(JSON, max_size=4)}, optional={"tools": JSON, "model": JSON, "system": JSON}
    ),
    st.fixed_dictionaries(
        {"input": JSON}, optional={"instructions": JSON, "tools": JSON, "previous_response_id": JSON}
    ),
    st.fixed_dictionaries(
        {"input": st.fixed_dictionaries({"messages": JSON})}, optional={"parameters": JSON}
    ),
)
PROGRAM = st.lists(
    st.sampled_from(
        [
            "x = f'{now}' + x",
            "x = x % (y, z)",
            "x = '{}'.format(*y)",
            "def f(a, *b, **c): return [*b, {**c}]",
            "messages = [{'role': 'system', 'content': x}, *messages]",
            "messages.append({'role': r, 'content': [x, {}]})",
            "for a, (b, *c) in x: messages += [a]",
            "client.messages.create(**x)",
            "client.responses.create(input=messages)",
            "x = {**x, 'a': [i for i in x if i]}",
            "x = lambda: (yield)",
            "x = x[1:2][-5]['a']",
            "class A(B): x: int = x",
            "with x as (a, b): pass",
            "x = await_(x) if x else x or y",
            "f(*x, **{'system': x})",
            "x = sorted({1, 2}) * 3",
            "match x:\n    case {'a': b}: system_prompt = b",
            "x = json.dumps({x: y}, **z)",
            "import json as j, os.path",
            "requests.post('u', json={'messages': messages, 'model': x})",
            "x: str",
            "x += '%s' % {'a': 1}",
            "del x",
        ]
    ),
    max_size=12,
).map("\n".join)
CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(path: Path) -> None:
    report = LintReport([linter().check_file(path)])
    json.dumps(json_report(report, Language.ENGLISH, with_checklist=True))
    json.dumps(sarif_report(report, Language.CHINESE, path.parent))
    github_lines(report, Language.ENGLISH)


@CALM
@given(
    st.lists(BODIES, min_size=1, max_size=3),
    st.sampled_from(["auto", "dashscope-articles", "anthropic-2026-09"]),
)
def test_requests(tmp_path: Path, documents: list[Any], profile: str) -> None:
    path = tmp_path / "any.jsonl"
    path.write_text("\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    LintReport([linter(profile=profile).check_file(path)])
    check(path)


@CALM
@given(PROGRAM)
def test_programs(tmp_path: Path, source: str) -> None:
    path = tmp_path / "any.py"
    path.write_text(f"# prompt\n{source}\n", encoding="utf-8")
    check(path)


@CALM
@given(st.text())
def test_templates(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.j2"
    path.write_text(f"{text} {{{{ now() }}}}", encoding="utf-8", errors="replace")
    check(path)


@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl", "deep.yaml"])
@pytest.mark.parametrize("depth", [200, 900, 50_000])
def test_deep_files(tmp_path: Path, name: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    text = (
        '{"messages": [{"role": "system", "content": "Now: 09:14"}], "tools": [{"name": "f", "x": '
        + deep
        + "}]}"
    )
    (tmp_path / name).write_text(text, encoding="utf-8")
    check(tmp_path / name)
