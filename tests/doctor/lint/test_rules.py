"""Rules one by one, where the users' cases and the corpus do not reach, and the table of all rules."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.checks.session import session_of
from hotprefix.doctor.lint.data_file import read_data
from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.rule import Language, Question, rule_called, rules
from hotprefix.doctor.lint.settings import ARTICLES, BadLintSettings, LintSettings, make_settings
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.shapes import suspects_in
from hotprefix.doctor.lint.suspect import Cause
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import load_profiles
from tests.api.scripted_engine import ByteTokenizer
from tests.doctor.lint.support import (
    MARKER,
    RULES,
    chat,
    found_in,
    ids,
    linter,
    only,
    part,
    tool,
    write,
)

ROOT = Path(__file__).resolve().parents[3]
TURNS = [
    f"Turn {n}: pallet {n * 17} of supplier {n % 7} goes to hall {n * 3}, by rule {n}, at the third gate."
    for n in range(30)
]


# All rules


def test_ids_are_the_documented_ones() -> None:
    text = (ROOT / "docs" / "LINT.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (HP\d+) \| `([\w-]+)` \| (\w+)", text, re.MULTILINE)
    assert rows == [(rule.id, rule.name, rule.severity.value) for rule in rules().values()]


def test_every_rule_speaks_both_languages_of_the_same_facts() -> None:
    def names(template: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(template) if name}

    for rule in rules().values():
        for texts in (rule.says, rule.fix):
            assert set(texts) == {"en", "zh"}, rule.id
            assert names(texts["en"]) == names(texts["zh"]), rule.id
            assert not re.search(r"[\u4e00-\u9fff]", texts["en"]) and texts["en"].endswith((".", "}")), (
                rule.id
            )
            assert re.search(r"[\u4e00-\u9fff]", texts["zh"]) or "{" in texts["zh"], rule.id
        assert rule_called(rule.name) is rule_called(rule.id.lower()) is rule


def test_every_rule_has_a_test() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.py"))
    assert [rule for rule in rules() if f'"{rule}"' not in text] == []


def test_every_question_has_rules() -> None:
    assert {rule.question for rule in rules().values()} == set(Question)
    assert {rule.step for rule in rules().values()} == set(range(7))


def test_no_word_of_a_message_is_missing(tmp_path: Path) -> None:
    seen = set()
    bad = chat(f"Now: 09:14\n{RULES}", *TURNS[:6], cache_key=1, temperature=2, max_tokens=9, stream=True)
    bad["messages"][0]["cache_control"] = {"type": "x"}
    other = json.loads(json.dumps(bad).replace("09:14", "09:15"))
    for finding in found_in(tmp_path, bad, other):
        seen.add(finding.rule.id)
        for language in Language:
            assert "?" not in finding.message(language) + finding.advice(language), finding
    assert {"HP111", "HP301", "HP304", "HP407", "HP701", "HP703"} <= seen


# Changes from one request to the next


def grown(*more: str) -> list[dict[str, Any]]:
    return [chat(RULES, *TURNS[:5]), chat(RULES, *TURNS[:5], *more)]


def test_a_conversation_that_grows_has_no_fault(tmp_path: Path) -> None:
    assert found_in(tmp_path, *(chat(RULES, *TURNS[:n]) for n in range(1, 15, 2))) == []


def test_other_conversations_with_the_same_rules_have_no_fault(tmp_path: Path) -> None:
    assert found_in(tmp_path, *(chat(RULES, *TURNS[n : n + 7]) for n in (0, 10, 20))) == []


def test_edited_history(tmp_path: Path) -> None:
    edited = [*TURNS[:3], TURNS[3].replace("third", "second"), *TURNS[4:9]]
    finding = only(found_in(tmp_path, chat(RULES, *TURNS[:9]), chat(RULES, *edited)), "HP117")
    assert finding.place.path == "messages[4].content"
    assert "third" in finding.message(Language.ENGLISH)


def test_inserted_block(tmp_path: Path) -> None:
    plain = chat(RULES, *TURNS[:9])
    more = {"role": "user", "content": "<note>Nothing is open.</note>"}
    inserted = {**plain, "messages": [*plain["messages"][:3], more, *plain["messages"][3:]]}
    only(found_in(tmp_path, plain, inserted), "HP116")


def test_replaced_image(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 20}}
    first = chat(RULES, [image, part("What is this?")], *TURNS[:6])
    other = json.loads(json.dumps(first))
    other["messages"][1]["content"][0] = part("[image was here]")
    assert only(found_in(tmp_path, first, other), "HP120").place.path == "messages[1].content[0]"


def test_changed_role(tmp_path: Path) -> None:
    plain = chat(RULES, *TURNS[:9])
    other = json.loads(json.dumps(plain))
    other["messages"][0]["role"] = "user"
    assert only(found_in(tmp_path, plain, other), "HP123").place.path == "messages[0].content"


def test_changed_parameter(tmp_path: Path) -> None:
    first, second = grown(*TURNS[5:7])
    first["enable_thinking"], second["enable_thinking"] = True, False
    assert only(found_in(tmp_path, first, second), "HP122").words["detail"] == "enable_thinking"


def test_two_versions_side_by_side_are_two_scenes(tmp_path: Path) -> None:
    versions = [RULES, RULES.replace("hall 0", "hall 99")]
    log = [chat(versions[n % 2], TURNS[n]) for n in range(6)]
    assert found_in(tmp_path, *log) == []
    assert "HP111" in ids(found_in(tmp_path, *log[:2]))


def test_a_stamp_that_comes_back_has_changed_all_the_same(tmp_path: Path) -> None:
    log = [chat(f"Now: 09:1{n % 2}\n{RULES}" if n % 3 else RULES, TURNS[n]) for n in range(9)]
    findings = found_in(tmp_path, *log)
    assert ids(findings) in (["HP101"], ["HP111"])
    same = [chat(f"Now: 09:10\n{RULES}" if n % 3 else RULES, TURNS[n]) for n in range(9)]
    assert found_in(tmp_path, *same) == []


def test_a_marker_that_stays_behind(tmp_path: Path) -> None:
    long = [f"{turn} {RULES[:3_000]}" for turn in TURNS]
    requests = [chat([part(RULES, marked=True)], *long[:n]) for n in (3, 5, 7)]
    finding = only(found_in(tmp_path, *requests), "HP313")
    assert int(finding.words["lost"]) > 1_024
    moving = []
    for n in (3, 5, 7):
        request = chat([part(RULES, marked=True)], *long[:n])
        request["messages"][-1]["content"] = [part(long[n - 1], marked=True)]
        moving.append(request)
    assert found_in(tmp_path, *moving) == []


def test_salts_by_tenant_are_no_fault(tmp_path: Path) -> None:
    log = [chat(RULES, TURNS[n], cache_salt=f"tenant-{n % 2}") for n in range(6)]
    assert found_in(tmp_path, *log) == []


# Sizes


def test_near_the_minimum_only_a_count_can_tell(tmp_path: Path) -> None:
    text = RULES[: len(RULES) // 2]
    assert ids(found_in(tmp_path, chat([part(text, marked=True)], "?"))) == ["HP203"]
    exact = TextModel("bytes", ByteTokenizer())
    assert found_in(tmp_path, chat([part(text, marked=True)], "?"), model=exact) == []


def test_the_minimum_depends_on_vendor_and_model(tmp_path: Path) -> None:
    model = TextModel("bytes", ByteTokenizer())
    claude: dict[str, Any] = {
        "model": "claude-opus-4-5",
        "max_tokens": 900,
        "system": [part("r" * 4_000, marked=True)],
        "messages": [{"role": "user", "content": "Hi"}],
    }
    finding = only(found_in(tmp_path, claude, model=model), "HP201")
    assert (finding.words["minimum"], finding.words["missing"]) == (4_096, 96)
    assert found_in(tmp_path, claude | {"model": "claude-sonnet-4-6"}, model=model) == []
    short = chat("r" * 500, "Hi")
    assert only(found_in(tmp_path, short, model=model), "HP202").words["missing"] == 1_024 - 502
    assert found_in(tmp_path, short, model=model, profile="dashscope-2026-03") == []
    assert found_in(tmp_path, short | {"model": "llama-3.1-8b"}, model=model) == []


# Sessions and decoding


def test_an_id_without_a_version_in_the_checklist(tmp_path: Path) -> None:
    good = chat(RULES, "Where?", temperature=0, top_p=0.1, max_tokens=64, session_id="intent@3")
    assert found_in(tmp_path, good, profile=ARTICLES) == []
    assert ids(found_in(tmp_path, good | {"session_id": "intent"}, profile=ARTICLES)) == ["HP602"]
    assert found_in(tmp_path, good | {"session_id": "intent"}) == []


def test_history_of_a_short_task_in_the_checklist(tmp_path: Path) -> None:
    talk = chat(RULES, *TURNS[:5], temperature=0, top_p=0.1, max_tokens=64)
    assert only(found_in(tmp_path, talk, profile=ARTICLES), "HP705").words["count"] == 4
    assert found_in(tmp_path, talk) == []


@pytest.mark.parametrize(
    ("settings", "rules_", "strict"),
    [
        ({"temperature": 0}, [], []),
        ({"temperature": 0.2}, [], ["HP701"]),
        ({"temperature": 0.9}, ["HP701"], ["HP701"]),
        ({"top_p": 0.9}, ["HP701"], ["HP701"]),
        ({"temperature": 0, "top_p": 0.9}, [], ["HP701"]),
        ({}, [], ["HP701"]),
        ({"temperature": 0, "stream": True}, ["HP703"], ["HP703"]),
    ],
)
def test_short_answers(
    tmp_path: Path, settings: dict[str, Any], rules_: list[str], strict: list[str]
) -> None:
    request = chat(RULES, "Where?", max_tokens=32, **settings)
    assert ids(found_in(tmp_path, request)) == rules_
    assert ids(found_in(tmp_path, request, profile=ARTICLES)) == strict


@pytest.mark.parametrize(
    "says",
    [
        "Answer with exactly one word.",
        "Only output the label.",
        "只输出类别名称。",
        "Reply with a single letter.",
    ],
)
def test_the_prompt_may_say_that_the_answer_is_short(tmp_path: Path, says: str) -> None:
    assert ids(found_in(tmp_path, chat(f"{says}\n{RULES}", "Where?"))) == ["HP702"]
    assert ids(found_in(tmp_path, chat(f"{says}\n{RULES}", "Where?", max_tokens=4_096))) == ["HP702"]


def test_sessions_are_found_wherever_they_are_written(tmp_path: Path) -> None:
    documents = [
        chat("a", "b", session_id="one"),
        {"model": "q", "input": {"prompt": "a", "session_id": "no"}, "parameters": {"session_id": "two"}},
        {"request": chat("a", "b"), "headers": {"X-Hotprefix-Session": "three@1"}},
        {"request": chat("a", "b"), "session_id": "four"},
    ]
    found = [session_of(one)[1] for one in read_data(write(tmp_path, documents), lambda _: False)]
    assert found == ["one", "two", "three@1", "four"]


# What text looks like


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Current date and time: Monday, 5 April 2031 10:00 UTC", Cause.TIME),
        ("The time is 10:05 PM.", Cause.TIME),
        ("timestamp=1933142401", Cause.TIME),
        ("<current_time>2031-04-05T10:00:01+08:00</current_time>", Cause.TIME),
        ("现在是2031年4月5日 星期六 10点03分", Cause.TIME),
        ("系统时间: 2031-04-05 10:00", Cause.TIME),
        ("Today is Saturday, April 5, 2031.", Cause.DAY),
        ("今天是2031年4月5日", Cause.DAY),
        ("Trace-ID: 7f3c9a1011114222", Cause.ID),
        ('"session_id": "a84213"', Cause.ID),
        ("Your customer number is: 8421377", Cause.ID),
        ("会话ID=8f3a22", Cause.ID),
        ("cwd: C:\\Users\\anna\\shop", Cause.ENV),
        ("pwd = ~/shop/api", Cause.ENV),
        ("当前分支:fix/rounding", Cause.ENV),
        ("git status: M src/a.py", Cause.ENV),
        ("Hostname: build-17", Cause.ENV),
        ("x-anthropic-billing-header: cc_version=2.1; cch=ab12;", Cause.HEADER),
    ],
)
def test_shapes(text: str, cause: Cause) -> None:
    assert [suspect.cause for suspect in suspects_in(f"You help.\n{text}\nBe kind.")] == [cause]


@pytest.mark.parametrize(
    "text",
    [
        "The office opens at 09:00. Last updated 2029-06-14, version 3.2.1.",
        "If today is 2031-01-01, wish a happy new year.",
        "Now answer. 10:00 is late.",
        "For example: Current time: 10:00, user id: 48213.",
        "Document 9f86d081884c7d659a2feaa0c55ad015 of 2029-06-14T10:00:01Z",
        "session_id: string, required",
        "The user id is sent by the client.",
        "working directory: /workspace",
        "timestamp: an integer",
        "现行版本自2029年6月14日起施行,营业时间为9:00至21:00。",
        "时间戳由前端生成。",
        "“现在是10点。”他说。",
        "x-request-header: sent by the client",
    ],
)
def test_shapes_of_documents(text: str) -> None:
    assert list(suspects_in(f"You help.\n{text}\nBe kind.")) == []


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("now", Cause.TIME),
        ("currentTime", Cause.TIME),
        ("today", Cause.DAY),
        ("user_id", Cause.ID),
        ("session.uuid", Cause.ID),
        ("customerName", Cause.ID),
        ("cwd", Cause.ENV),
        ("git_status", Cause.ENV),
        ("user_question", Cause.VARIABLE),
        ("USER_ID", None),
        ("doc_id", None),
        ("tool_name", None),
        ("runtime", None),
        ("model", None),
    ],
)
def test_names(name: str, cause: Cause | None) -> None:
    assert cause_of_name(name) is cause


# Vendors and settings


@pytest.mark.parametrize(
    ("dialect", "model", "vendor"),
    [
        (Dialect.CHAT, "qwen-plus", "dashscope"),
        (Dialect.CHAT, "dashscope/qwen3-max", "dashscope"),
        (Dialect.CHAT, "gpt-5.2", "openai"),
        (Dialect.CHAT, "gpt-oss-20b", "hotprefix"),
        (Dialect.CHAT, "us.anthropic.claude-sonnet-4-5-v1:0", "anthropic"),
        (Dialect.CHAT, "llama-3.1-8b", "hotprefix"),
        (Dialect.CHAT, "", "hotprefix"),
        (Dialect.ANTHROPIC, "", "anthropic"),
        (Dialect.ANTHROPIC, "qwen3-max", "dashscope"),
        (Dialect.DASHSCOPE, "my-own", "dashscope"),
    ],
)
def test_whose_rules_hold(dialect: Dialect, model: str, vendor: str) -> None:
    book = load_profiles()
    profile = Vendors(book).profile(dialect, model)
    assert profile.vendor == vendor
    assert profile.dated == max(one.dated for one in book.profiles.values() if one.vendor == vendor)


def test_models_can_be_added_to_the_list(tmp_path: Path) -> None:
    request = chat([part(RULES, marked=True)], "Where?", model="qwen2.5-72b-instruct")
    assert ids(found_in(tmp_path, request)) == ["HP405"]
    assert found_in(tmp_path, request, explicit_models=["qwen2.5-*"]) == []


def test_settings_are_checked() -> None:
    assert make_settings({"fail-on": "info"}, {"lang": "zh"}) == LintSettings(
        **{"fail-on": "info", "lang": "zh"}
    )
    for table in ({"select": ["HP99"]}, {"fail-on": "bad"}, {"nothing": 1}, {"lang": "de"}):
        with pytest.raises(BadLintSettings):
            make_settings(table, {})


def test_an_unknown_lifetime_is_a_smaller_fault(tmp_path: Path) -> None:
    request = chat([{"type": "text", "text": RULES, "cache_control": MARKER | {"ttl": "2h"}}], "Where?")
    assert only(found_in(tmp_path, request), "HP304").severity is Severity.WARNING


def test_a_property_called_cache_control_is_no_marker(tmp_path: Path) -> None:
    fetch = tool("fetch", url="string")
    fetch["function"]["parameters"]["properties"]["cache_control"] = {"type": "string"}
    arguments = json.dumps({"url": "x", "cache_control": "no-store"})
    call = {"id": "c", "type": "function", "function": {"name": "fetch", "arguments": arguments}}
    request = chat(RULES, "Get it.", tools=[fetch])
    request["messages"] += [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    assert found_in(tmp_path, request) == []


def test_requests_within_strings_have_their_line(tmp_path: Path) -> None:
    document = {"request": json.dumps(chat(f"Now: 09:14\n{RULES}", "Where?"))}
    finding = only(found_in(tmp_path, document), "HP101")
    assert (finding.place.line, finding.place.path) == (1, "messages[0].content")


def test_what_is_found_before_a_broken_line_stands(tmp_path: Path) -> None:
    path = write(tmp_path, [chat(f"Now: 09:14\n{RULES}", "Where?")])
    path.write_text(path.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    report = linter().check_file(path)
    assert not report.is_readable
    assert ids(report.findings) == ["HP101", "HP901"]
    assert only(report.findings, "HP901").place.line == 2
