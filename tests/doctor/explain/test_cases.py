"""The cases of users that are about two requests, by their numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotprefix.diagnosis.reason import Evidence, Reason
from hotprefix.doctor.explain.stages import StageName
from tests.doctor.explain.support import MARK, RULES, Body, Court, chat, pair, part, turns


def clocked(second: int, *, at_end: bool = False) -> str:
    stamp = f"Report time 2031-04-05T10:00:0{second}"
    return f"{RULES}\n{stamp}" if at_end else f"{stamp}\n{RULES}"


def tool(name: str, *, description: str = "", **properties: str) -> Body:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    told = description or f"Tells all about {name}, in few words."
    return {"type": "function", "function": {"name": name, "description": told, "parameters": schema}}


TOOLS = [tool(name, city="string", unit="string") for name in ("a", "b", "c", "d", "e", "f", "g")]


def test_t01_a_clock_at_the_head() -> None:
    found = pair(chat("Where?", system=clocked(1)), chat("Where?", system=clocked(2)))
    report = found.new.report
    assert (report.reason, report.detail) == (Reason.SYSTEM_CHANGED, "VOLATILE_TIME")
    assert report.divergence is not None
    assert report.divergence.path == "messages[0].content"
    assert report.divergence.token < 40
    assert report.lost_tokens >= 1_900
    assert report.avoidable
    assert report.evidence is Evidence.BYTES
    assert report.lost_money == pytest.approx(report.lost_tokens * 0.8 * 0.8 / 1e6)
    assert found.new.currency == "CNY"
    assert "messages[0].content" in report.advice_en
    assert "messages[0].content" in report.advice_zh


def test_t02_a_clock_at_the_end_of_the_system_prompt_loses_the_history() -> None:
    texts = turns(0, 15)
    found = pair(chat(*texts, system=clocked(1, at_end=True)), chat(*texts, system=clocked(2, at_end=True)))
    report, tokens = found.new.report, found.stages[-1]
    assert (report.reason, report.detail) == (Reason.SYSTEM_CHANGED, "VOLATILE_TIME")
    assert report.matched == tokens.shared - tokens.shared % 128
    assert report.lost_tokens > 15 * 20


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ([TOOLS[-1], *TOOLS[:-1]], (Reason.TOOLS_REORDERED, "g", "tools[0]")),
        (
            [
                *TOOLS[:6],
                tool("g", description="Tells all about g, in many words.", city="string", unit="string"),
            ],
            (Reason.TOOLS_CHANGED, "g", "tools[6].function.description"),
        ),
        (
            [tool(one["function"]["name"], unit="string", city="string") for one in TOOLS],
            (Reason.ARG_KEY_ORDER, "SCHEMA_KEY_ORDER", "tools[0].function.parameters"),
        ),
    ],
    ids=["T04", "T05", "T06"],
)
@pytest.mark.parametrize("model", ["qwen-plus", "gpt-5"])
def test_t04_t05_t06_tools(tools: list[Body], expected: tuple[Reason, str, str], model: str) -> None:
    found = pair(chat("Where?", tools=TOOLS, model=model), chat("Where?", tools=tools, model=model))
    report = found.new.report
    assert (report.reason, report.detail) == expected[:2]
    assert report.divergence is not None
    assert report.divergence.path.startswith(expected[2])
    stage = next(stage for stage in found.stages if stage.name is StageName.TOOLS)
    assert not stage.is_equal
    assert stage.note.startswith(str(expected[0]))
    # Qwen's template has the tools behind the system text, OpenAI's before it.
    assert (report.matched > 0) == (model == "qwen-plus")


def called(**arguments: Any) -> Body:
    call = {"id": "1", "type": "function", "function": {"name": "a", "arguments": json.dumps(arguments)}}
    talk = [
        {"role": "system", "content": RULES},
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "\n".join(turns(0, 12))},
        {"role": "user", "content": "And now?"},
    ]
    return {"model": "qwen-plus", "messages": talk, "tools": TOOLS}


def test_t08_arguments_of_a_call_in_another_order() -> None:
    report = pair(called(city="Bern", unit="C"), called(unit="C", city="Bern")).new.report
    assert report.reason is Reason.ARG_KEY_ORDER
    assert report.divergence is not None
    assert report.divergence.path == "messages[2].tool_calls[0]"
    assert report.lost_tokens > 12 * 15


@pytest.mark.parametrize("at", [10, 2_000])
def test_t10_other_scripts_share_as_much_as_ascii(at: int) -> None:
    shared = []
    for odd in ("x", "é", "中", "🙂", "—"):
        system = RULES[:at] + odd + RULES[at:]
        found = pair(chat("Where?", system=system), chat("Who?", system=system))
        assert found.new.report.reason is Reason.NONE
        shared.append(found.new.report.matched)
    assert max(shared) - min(shared) <= 128


@pytest.mark.parametrize("odd", ["\u007f", "\u2028", "\x00", "\u202e", "\ufdd0"])
def test_t11_odd_characters_are_told_apart_and_shown(odd: str) -> None:
    found = pair(
        chat("Where?", system=f"{RULES[:50]}{odd}{RULES}"), chat("Where?", system=RULES[:50] + RULES)
    )
    blocks = next(stage for stage in found.stages if stage.name is StageName.BLOCKS)
    assert blocks.difference is not None
    gone = "".join(piece.text for piece in blocks.difference.before if piece.part == "gone")
    assert f"U+{ord(odd):04X}" in gone


def test_t12_the_head_of_the_history_is_trimmed() -> None:
    report = pair(chat(*turns(0, 20)), chat(*turns(2, 20), "And now?", "Well.")).new.report
    assert (report.reason, report.detail) == (Reason.HEAD_TRIMMED, "2")
    assert report.divergence is not None
    assert report.divergence.path == "messages[1].content"


def spoken(*parts: str) -> Body:
    content = [part(text) for text in parts]
    return {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": content}]}


def test_t14_a_reminder_that_vanishes() -> None:
    question = "Where is box 7, and who has seen it? " * 9
    report = pair(spoken("Reminder: answer in short sentences.", question), spoken(question)).new.report
    assert report.reason is Reason.BLOCK_VANISHED
    assert report.divergence is not None
    assert report.divergence.path == "messages[1].content[0]"


def test_t15_a_constant_that_looks_volatile_is_no_change() -> None:
    court = Court()
    system = f"Document 8c4f1e2a9b7d4036a1f5c2e8d9b0a7f3 of 2031-04-05.\n{RULES}"
    for question in ("Where?", "Who?", "Why?"):
        report = court.report(chat(question, system=system))
        assert report.reason in (Reason.COLD_FIRST_USE, Reason.NONE)
        assert report.divergence is None


def marked(*texts: str, at: int) -> Body:
    """Blocks of one user message, of which one is marked."""
    content = [part(text, marked=number == at) for number, text in enumerate(texts)]
    return {"model": "qwen-plus", "messages": [{"role": "user", "content": content}]}


def words(tokens: int) -> str:
    """A text of so many pieces behind the opening of a message."""
    return " ".join(["word"] * tokens)


@pytest.mark.parametrize("missing", [1, 0])
def test_t16_below_the_minimum_by_one(missing: int) -> None:
    court = Court("dashscope-2026-10")
    opening = court.judge(marked(words(2_000), at=0)).rendered.prompt.spans[0].end_token - 2_000
    body = marked(words(1_024 - opening - missing), at=0)
    court = Court("dashscope-2026-10")
    first, second = court.report(body), court.judge(body)
    if missing:
        assert (first.reason, first.detail) == (Reason.BELOW_MIN, "1")
        assert second.report.reason is Reason.BELOW_MIN
        assert second.report.evidence is Evidence.INFERRED, "the count is an estimate"
    else:
        assert first.reason is Reason.COLD_FIRST_USE
        assert (second.report.reason, second.report.matched) == (Reason.NONE, 1_024)
        assert second.classes.written == {}


def test_t17_the_markers_that_do_not_count_are_named() -> None:
    content = [part(f"{RULES}\nPart {number}.", marked=True) for number in range(5)]
    body = {"model": "qwen-plus", "messages": [{"role": "user", "content": content}]}
    court = Court("dashscope-2026-10")
    judged = court.judge(body)
    assert judged.report.reason is Reason.TOO_MANY_MARKERS
    assert judged.report.detail == "messages[0].content[0].cache_control"
    assert any("messages[0].content[0]" in warning for warning in judged.warnings)


@pytest.mark.parametrize(("at", "is_hit"), [(30, True), (31, False)])
def test_t18_the_edge_of_the_look_back(at: int, is_hit: bool) -> None:
    texts = [f"{RULES}", *turns(1, 40)]
    first, second = marked(*texts[:12], at=10), marked(*texts[:33], at=at)
    found = pair(first, second, "dashscope-2026-10")
    report = found.new.report
    if is_hit:
        assert report.reason is Reason.NONE
        assert report.matched > 1_024
    else:
        assert (report.reason, report.detail) == (Reason.LOOKBACK_EXCEEDED, "21 of 20")
        assert report.matched == 0
    assert found.reach.lookback == 20


def test_t20_a_marker_on_the_newest_message_is_written_and_never_read() -> None:
    court = Court("dashscope-2026-10")
    for question in ("Where is the first box?", "Who came?", "How heavy is it, and why?", "Any news today?"):
        talk = [
            {"role": "system", "content": RULES},
            {"role": "user", "content": [part(question, marked=True)]},
        ]
        report = court.report({"model": "qwen-plus", "messages": talk})
    assert (report.reason, report.detail) == (Reason.WRITE_ONLY, "3")


def talk_with_markers(count: int, *, moves: bool) -> Body:
    """A conversation of `count` long messages; if the marker `moves`, the newest is marked as well."""
    texts = [f"{text} {RULES}" for text in turns(0, count)]
    body = chat(*texts, system=RULES)
    body["messages"][0]["content"] = [part(RULES, marked=True)]
    if moves:
        body["messages"][-1]["content"] = [part(texts[-1], marked=True)]
    return body


def test_a_last_marker_that_stays_while_the_conversation_grows() -> None:
    court = Court("dashscope-2026-10")
    reasons = [court.report(talk_with_markers(count, moves=False)).reason for count in (1, 3, 5, 7)]
    assert reasons[1:] == [Reason.NONE, Reason.FROZEN_MARKERS, Reason.FROZEN_MARKERS]
    lost = court.report(talk_with_markers(9, moves=False)).lost_tokens
    assert lost > 7 * 1_024
    court = Court("dashscope-2026-10")
    reasons = [court.report(talk_with_markers(count, moves=True)).reason for count in (1, 3, 5, 7)]
    assert reasons[1:] == [Reason.NONE] * 3


def asked(question: str, *, system: str = RULES) -> Body:
    talk = [
        {"role": "system", "content": [part(system, marked=True)]},
        {"role": "user", "content": question},
    ]
    return {"model": "qwen-plus", "messages": talk}


def test_t23_what_changes_behind_the_marker_is_no_break() -> None:
    found = pair(asked("At 09:14. " + "Where is it? " * 30), asked("At 09:15. " + "Where is it? " * 30))
    assert found.new.report.reason is Reason.NONE
    assert found.is_behind_marker
    assert not found.stages[-1].is_equal
    assert found.reach.marker == found.new.report.matched


def test_t23_what_changes_before_it_is_one() -> None:
    found = pair(asked("Where?", system=clocked(1)), asked("Where?", system=clocked(2)))
    assert (found.new.report.reason, found.new.report.detail) == (Reason.SYSTEM_CHANGED, "VOLATILE_TIME")
    assert not found.is_behind_marker


SESSION = {"x-dashscope-session-cache": "enable"}


def test_t24_markers_in_responses() -> None:
    item = {"role": "user", "content": [{"type": "input_text", "text": "Hello. " * 700, **MARK}]}
    request = {"model": "qwen-plus", "input": [item]}
    judged = Court().judge({"request": request, "headers": SESSION})
    assert (judged.report.reason, judged.report.detail) == (Reason.MODE_CONFLICT, "explicit/session")
    judged = Court().judge({"request": request})
    assert (judged.report.reason, judged.report.detail) == (Reason.MODE_CONFLICT, "explicit/implicit")
    assert "x-dashscope-session-cache" in judged.warnings[0]


def test_t24_the_session_header_in_chat() -> None:
    judged = Court().judge({"request": chat("Where?"), "headers": SESSION})
    assert (judged.report.reason, judged.report.detail) == (Reason.MODE_CONFLICT, "session/implicit")


def test_t26_five_minutes_from_the_last_hit_and_a_clock_for_each_prefix() -> None:
    court = Court("dashscope-2026-10")

    def at(seconds: float, body: Body) -> Reason:
        judged = court.judge({"timestamp": 1_790_000_000 + seconds, "request": body})
        reason = judged.report.reason
        if reason is Reason.TTL_EXPIRED:
            assert judged.report.evidence is Evidence.INFERRED
            assert judged.report.detail == "2 s after the end of 300 s"
        return reason

    other = asked("Where?", system=f"Another house.\n{RULES}")
    assert at(0, asked("Where?")) is Reason.COLD_FIRST_USE
    at(290, other)
    assert at(299, asked("Who?")) is Reason.NONE
    assert at(300, other) is Reason.NONE
    assert at(601, asked("Why?")) is Reason.TTL_EXPIRED


def test_t27_requests_that_come_before_the_first_one_is_answered() -> None:
    court = Court("dashscope-2026-10")
    found = [
        court.report({"timestamp": 1_790_000_000 + at, "ttft": 2.0, "request": asked("Where?")})
        for at in (0, 0.5, 1.0, 2.5)
    ]
    assert [report.reason for report in found] == [
        Reason.COLD_FIRST_USE,
        Reason.WRITE_PENDING,
        Reason.WRITE_PENDING,
        Reason.NONE,
    ]


def test_t30_money_is_that_of_the_profiles_date() -> None:
    price = {
        "dashscope-2026-10": (0.8, 0.2, "CNY"),
        "openai-2026-09": (1.25, 0.1, "USD"),
    }
    for profile, (million, read, currency) in price.items():
        found = pair(chat("?", system=clocked(1)), chat("?", system=clocked(2)), profile).new
        assert found.currency == currency
        assert found.report.lost_money == pytest.approx(found.report.lost_tokens * million * (1 - read) / 1e6)


USAGES: dict[str, tuple[Body, Body]] = {
    "chat": (
        chat("Where?"),
        {"usage": {"prompt_tokens": 2_100, "prompt_tokens_details": {"cached_tokens": 0}}},
    ),
    "responses": (
        {"model": "qwen-plus", "instructions": RULES, "input": "Where?"},
        {"usage": {"input_tokens": 2_100, "input_tokens_details": {"cached_tokens": 0}}},
    ),
    "dashscope": (
        {"model": "qwen-plus", "input": {"messages": chat("Where?")["messages"]}},
        {"usage": {"input_tokens": 2_100, "prompt_tokens_details": {"cached_tokens": 0}}},
    ),
    "anthropic": (
        {
            "model": "claude-sonnet-4-6",
            "system": [part(RULES, marked=True)],
            "messages": [{"role": "user", "content": "Where?"}],
        },
        {"usage": {"input_tokens": 20, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 2_080}},
    ),
}


@pytest.mark.parametrize("dialect", USAGES)
def test_t32_what_every_dialect_reported_counts(dialect: str) -> None:
    body, response = USAGES[dialect]
    court = Court()
    court.judge({"request": body})
    judged = court.judge({"request": body, "response": response})
    assert judged.reported is not None
    assert judged.report.matched == 0
    assert judged.expected.matched > 1_024
    assert judged.expected.reason is Reason.NONE
    expected = Reason.UNKNOWN if dialect == "anthropic" else Reason.BEST_EFFORT
    assert judged.report.reason is expected
    assert not judged.report.avoidable
