"""The prompt-side cases of users, by their numbers, as the linter sees them in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.text_model import TextModel
from tests.api.scripted_engine import ByteTokenizer
from tests.doctor.lint.support import (
    MARKER,
    RULES,
    chat,
    code,
    fix_all,
    found_in,
    ids,
    only,
    part,
    tool,
    write,
)

TOOLS = [
    tool(name, item="string", hall="integer")
    for name in ("count", "move", "order", "pack", "ship", "weigh", "zone")
]
TURNS = [
    text
    for n in range(30)
    for text in (
        f"Where does pallet {n * 17} of supplier {n % 7} go?",
        f"Into hall {n % 5}, row {n * 3}, by rule {n}.",
    )
]


def stamped(second: int, *, at_end: bool = False) -> str:
    stamp = f"Report time 2031-04-05T10:00:{second:02}"
    return f"{RULES}\n{stamp}" if at_end else f"{stamp}\n{RULES}"


# T01


def test_t01_one_request_is_warned_about(tmp_path: Path) -> None:
    finding = only(found_in(tmp_path, chat(stamped(1), "Where?")), "HP101")
    assert finding.severity is Severity.WARNING
    assert not finding.is_observed
    assert int(finding.words["offset"]) < 20
    assert int(finding.words["lost"]) >= 1_980
    assert finding.excerpt is not None
    assert (
        finding.excerpt.text[finding.excerpt.start : finding.excerpt.end] == "Report time 2031-04-05T10:00:01"
    )


def test_t01_two_requests_prove_it(tmp_path: Path) -> None:
    findings = found_in(tmp_path, chat(stamped(1), "Where?"), chat(stamped(2), "Where?"))
    finding = only(findings, "HP111")
    assert finding.words["detail"] == "VOLATILE_TIME"
    assert finding.is_observed
    assert finding.severity is Severity.ERROR
    assert int(finding.words["lost"]) >= 1_980
    assert "HP101" not in ids(findings)  # told once


def test_t01_moved_to_the_newest_turn_nothing_is_lost(tmp_path: Path) -> None:
    fixed = [chat(RULES, f"Where?\nReport time 2031-04-05T10:00:0{second}") for second in (1, 2)]
    assert found_in(tmp_path, *fixed) == []


# T02


def test_t02_a_clock_behind_the_system_prompt_loses_the_history(tmp_path: Path) -> None:
    requests = [chat(stamped(second, at_end=True), *TURNS[:31]) for second in (1, 2)]
    finding = only(found_in(tmp_path, *requests), "HP111")
    assert int(finding.words["usable"]) >= 1_980
    assert int(finding.words["lost"]) > 15 * 20
    alone = only(found_in(tmp_path, requests[0]), "HP101")
    assert int(alone.words["lost"]) > 15 * 20
    assert int(alone.words["offset"]) > 1_900


# T04, T05, T06


def test_t04_reordered_tools_name_the_first_that_moved(tmp_path: Path) -> None:
    order = [TOOLS[at] for at in (0, 2, 1, 3, 4, 5)]
    requests = [chat(RULES, "Where?", tools=tools) for tools in (TOOLS[:6], order)]
    finding = only(found_in(tmp_path, *requests), "HP112")
    assert finding.words["detail"] in ("move", "order")
    fixed = [json.loads(line) for line in fix_all(write(tmp_path, requests)).splitlines()]
    assert fixed[0]["tools"] == fixed[1]["tools"] == TOOLS[:6]
    assert found_in(tmp_path, *fixed) == []


def test_t05_a_changed_word_is_found_at_its_path(tmp_path: Path) -> None:
    changed = json.loads(json.dumps(TOOLS))
    changed[6]["function"]["description"] = "Works on zone of the warehouse and says how it went."
    findings = found_in(tmp_path, *(chat(RULES, *TURNS[:5], tools=tools) for tools in (TOOLS, changed)))
    finding = only(findings, "HP113")
    assert finding.words["detail"] == "zone"
    assert finding.place.path == "tools[6].function.description"


def test_t06_permuted_schema_keys_are_found_and_sorted(tmp_path: Path) -> None:
    function = TOOLS[0]["function"]
    schema = function["parameters"]
    swapped = {
        "required": schema["required"],
        "properties": dict(reversed(schema["properties"].items())),
        "type": "object",
    }
    other = [{"type": "function", "function": function | {"parameters": swapped}}]
    requests = [chat(RULES, *TURNS[:5], tools=tools) for tools in (TOOLS[:1], other)]
    assert only(found_in(tmp_path, *requests), "HP118").place.path.startswith("tools[0]")
    fixed = [json.loads(line) for line in fix_all(write(tmp_path, requests)).splitlines()]
    assert json.dumps(fixed[0]["tools"]) == json.dumps(fixed[1]["tools"])
    assert fixed == requests  # as JSON nothing changed
    assert found_in(tmp_path, *fixed) == []


# T08


def with_call(arguments: str, *more: dict[str, Any]) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "count", "arguments": arguments}}
    talk = [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "Of what?"},
        {"role": "user", "content": "Of pallets in hall 3."},
        {"role": "assistant", "content": "I look."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "There are 311 pallets in hall 3, 12 of them empty." * 4,
        },
        {
            "role": "assistant",
            "content": "There are 311 pallets in hall 3; 12 of them are empty and can be moved." * 4,
        },
    ]
    return {
        "model": "qwen-plus",
        "messages": [{"role": "system", "content": RULES}, *talk, *more],
        "tools": TOOLS[:1],
    }


def test_t08_reordered_arguments_are_found_at_the_call(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "And in hall 4?"}
    requests = [with_call('{"item": "pallet", "hall": 3}'), with_call('{"hall": 3, "item": "pallet"}', asked)]
    finding = only(found_in(tmp_path, *requests), "HP118")
    assert finding.place.path == "messages[5].tool_calls[0]"
    fixed = [json.loads(line) for line in fix_all(write(tmp_path, requests)).splitlines()]
    arguments = [one["messages"][5]["tool_calls"][0]["function"]["arguments"] for one in fixed]
    assert arguments[0] == arguments[1] == '{"hall": 3, "item": "pallet"}'


# T10, T11


@pytest.mark.parametrize("odd", ["—", "中文说明", "🚚", "é"])
@pytest.mark.parametrize("at", [10, 5_000])
def test_t10_characters_beyond_ascii_change_no_verdict(tmp_path: Path, odd: str, at: int) -> None:
    text = RULES[:at] + odd * 2 + RULES[at:]
    assert found_in(tmp_path, chat(text, "Where?"), chat(text, "When?"), chat(text, "Who?")) == []
    clocked = [chat(f"{text}\nNow: 09:1{n}", *TURNS[:5]) for n in (4, 5)]
    assert only(found_in(tmp_path, *clocked), "HP111").words["detail"] == "VOLATILE_TIME"


ODD_LINES = [
    r'{"model":"qwen-plus","messages":[{"role":"system","content":"\u007f\u2028</script> \\ \" '
    + RULES.replace("\n", "\\n")
    + r'\ud83d\ude9a","cache_control":{"type":"ephemeral"}},{"role":"user","content":"\u0000?"}]}',
    r'{"model":"qwen-plus","messages":[{"role":"system","content":"half \ud800 '
    + RULES.replace("\n", "\\n")
    + r'","cache_control":null},{"role":"user","content":"\ud800"}]}',
]


@pytest.mark.parametrize("line", ODD_LINES)
def test_t11_fixes_keep_odd_characters_byte_for_byte(tmp_path: Path, line: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(line, encoding="utf-8")
    after = fix_all(path)
    before, made = json.loads(line), json.loads(after)
    content = made["messages"][0]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    assert text == before["messages"][0]["content"]
    assert made["messages"][1] == before["messages"][1]
    assert after != line
    path.write_text(after, encoding="utf-8")
    assert fix_all(path) == after


def test_t11_a_file_without_a_fix_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    text = '{ "model":"qwen-plus","messages" : [ {"role":"system","content":"\\u007f ' + RULES.replace(
        "\n", "\\n"
    )
    text += '"},{"role":"user","content":"\\u2028"}] }'
    path.write_text(text, encoding="utf-8")
    assert fix_all(path) == text


# T12, T14, T15


def test_t12_a_window_that_slides_each_turn(tmp_path: Path) -> None:
    sliding = [chat(RULES, *TURNS[2 * n : 2 * n + 21]) for n in range(10)]
    finding = only(found_in(tmp_path, *sliding), "HP114")
    assert finding.times == 9
    steps = [
        chat(RULES, *TURNS[start:end]) for start in (0, 10, 20) for end in range(21 + start, 31 + start, 2)
    ]
    assert only(found_in(tmp_path, *steps), "HP114").times == 2


def test_t14_a_reminder_that_comes_and_goes(tmp_path: Path) -> None:
    reminder = {
        "role": "user",
        "content": "<system-reminder>The list of open tasks is empty.</system-reminder>",
    }
    plain = chat(RULES, *TURNS[:9])
    reminded = {**plain, "messages": [*plain["messages"][:3], reminder, *plain["messages"][3:]]}
    later = {
        **plain,
        "messages": [
            *plain["messages"],
            {"role": "assistant", "content": TURNS[9]},
            {"role": "user", "content": "So?"},
        ],
    }
    assert ids(found_in(tmp_path, reminded, later)) == ["HP115"]
    assert "system-reminder" in only(found_in(tmp_path, reminded, later), "HP115").message(language())


def language() -> Any:
    from hotprefix.doctor.lint.rule import Language

    return Language.ENGLISH


def test_t15_a_constant_that_looks_like_an_id_is_no_fault(tmp_path: Path) -> None:
    prefix = "Document 9f86d081884c7d659a2feaa0c55ad015, request id: 7f3c9a10-1111-4222-8333-944445556666.\n"
    twice = [chat(prefix + RULES, question) for question in ("Where?", "When?")]
    assert found_in(tmp_path, *twice) == []
    assert ids(found_in(tmp_path, twice[0])) == ["HP102"]  # alone, the cue is worth a word


# T16, T17, T18, T20, T23, T24


@pytest.mark.parametrize(("size", "missing"), [(1_023, 1), (1_024, None), (1_025, None)])
def test_t16_the_number_of_tokens_that_are_missing(tmp_path: Path, size: int, missing: int | None) -> None:
    marked = chat([part("r" * size, marked=True)], "Where?")
    findings = found_in(tmp_path, marked, model=TextModel("bytes", ByteTokenizer()))
    assert [one.words["missing"] for one in findings] == ([] if missing is None else [missing])
    assert ids(findings) == ([] if missing is None else ["HP201"])


def test_t17_five_markers(tmp_path: Path) -> None:
    texts = [part(RULES, marked=True)]
    turns = [[part(f"{turn} {n}", marked=n < 4)] for n, turn in enumerate(TURNS[:5])]
    lenient = only(found_in(tmp_path, chat(texts, *turns)), "HP305")
    assert (lenient.words["count"], lenient.words["most"]) == (5, 4)
    assert lenient.place.path == "messages[0].content[0].cache_control"
    assert lenient.severity is Severity.WARNING
    strict = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 500,
        "system": texts,
        "messages": [{"role": ("user", "assistant")[n % 2], "content": turn} for n, turn in enumerate(turns)],
    }
    refused = only(found_in(tmp_path, strict), "HP305")
    assert refused.severity is Severity.ERROR
    assert str(refused.words["ignored"]).count("cache_control") == 5


@pytest.mark.parametrize(("between", "is_out_of_reach"), [(20, False), (21, True)])
def test_t18_the_edge_of_the_look_back(tmp_path: Path, between: int, is_out_of_reach: bool) -> None:
    first = [[part(turn)] for turn in TURNS[:9]]
    more = [[part(turn)] for turn in TURNS[9 : 9 + between]]
    first[-1] = [part(TURNS[8], marked=True)]
    request = chat([part(RULES)], *first)
    following = chat([part(RULES)], *first[:-1], [part(TURNS[8])], *more)
    following["messages"][-1]["content"][0]["cache_control"] = MARKER
    findings = [one for one in found_in(tmp_path, request, following) if one.rule.id == "HP312"]
    assert bool(findings) is is_out_of_reach
    for finding in findings:
        assert (finding.words["behind"], finding.words["reach"]) == (21, 20)


def test_t20_a_marker_on_what_is_always_new(tmp_path: Path) -> None:
    requests = [chat(RULES, [part(f"Where is pallet {n}?", marked=True)]) for n in range(3)]
    finding = only(found_in(tmp_path, *requests), "HP311")
    assert finding.words["times"] == 3
    assert "HP311" not in ids(found_in(tmp_path, *requests[:2]))
    right = [chat([part(RULES, marked=True)], f"Where is pallet {n}?") for n in range(3)]
    assert found_in(tmp_path, *right) == []


def test_t23_what_changes_behind_the_last_marker_is_no_fault(tmp_path: Path) -> None:
    stamps = ("Now: 09:14", "Now: 09:15")
    requests = [chat([part(RULES, marked=True), part(stamp)], *TURNS[:7]) for stamp in stamps]
    assert found_in(tmp_path, *requests) == []


def test_t24_modes_that_do_not_go_together(tmp_path: Path) -> None:
    header = {"x-dashscope-session-cache": "enable"}
    responses = {"model": "qwen3-max", "input": [{"role": "user", "content": [part(RULES, marked=True)]}]}
    marked = chat([part(RULES, marked=True)], "Where?")
    assert ids(found_in(tmp_path, responses)) == ["HP401"]
    assert ids(found_in(tmp_path, {"request": chat(RULES, "Where?"), "headers": header})) == ["HP402"]
    assert ids(found_in(tmp_path, {"request": responses, "headers": header})) == ["HP403"]
    assert ids(found_in(tmp_path, {"request": marked, "headers": header})) == ["HP403"]


# The same in programs


def test_t01_in_a_program(tmp_path: Path) -> None:
    source = f"""
from datetime import datetime
RULES = {RULES!r}

def ask(client, question, history):
    messages = [{{"role": "system", "content": f"Report time {{datetime.now().isoformat()}}\\n{{RULES}}"}},
                *history, {{"role": "user", "content": question}}]
    return client.chat.completions.create(model="qwen-plus", messages=messages)
"""
    finding = only(code(tmp_path, source), "HP101")
    assert finding.place.line == 6
    assert int(finding.words["offset"]) < 20
    assert int(finding.words["lost"]) >= 1_980
