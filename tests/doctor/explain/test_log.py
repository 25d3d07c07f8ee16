"""A log: sums, causes, bounds, and requests that can't be read."""

from __future__ import annotations

import pytest

from hotprefix.base.ids import BlockKey
from hotprefix.diagnosis.reason import Evidence, Reason
from hotprefix.doctor.explain import log as logs
from hotprefix.doctor.explain.log import LogExplanation, explain_log
from hotprefix.doctor.explain.prefixes import PrefixSet
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from tests.doctor.explain.support import RULES, Body, Court, chat, recorded, turns


def explained(*documents: Body) -> LogExplanation:
    court, seen = Court(), []
    requests = [recorded(document, line) for line, document in enumerate(documents, start=1)]
    found = explain_log(court.renderer, court.trial, requests, seen.append)
    assert seen == requests
    return found


def test_sums_and_causes() -> None:
    clocks = [
        {"request": chat("Where?", system=f"Now: 09:{minute}\n{RULES}"), "session": "a"}
        for minute in range(10, 15)
    ]
    quiet = [{"request": chat(*turns(0, count)), "session": "b"} for count in (1, 3, 5)]
    found = explained(*clocks, *quiet)
    assert (found.requests, found.sessions, found.unread) == (8, 2, 0)
    [cause, *_] = found.worst()
    assert (cause.reason, cause.detail, cause.pattern) == (
        Reason.SYSTEM_CHANGED,
        "VOLATILE_TIME",
        "messages[*].content",
    )
    assert cause.sum.requests == 4
    assert cause.place.line in range(2, 6)
    assert cause.earlier is not None
    assert cause.earlier.line == cause.place.line - 1
    assert found.avoidable.lost == sum(one.sum.lost for one in found.causes.values())
    assert found.reasons[Reason.NONE].requests == 2
    assert found.expected == found.read


def test_a_session_is_held_against_itself() -> None:
    """Two conversations in turn, of which one loses its head: that is told of that one."""
    documents = []
    for start in (0, 2):
        documents.append({"request": chat(*turns(start, start + 15)), "session": "a"})
        documents.append({"request": chat(*turns(100, 115 + start)), "session": "b"})
    court = Court()
    judged = [court.judge(document) for document in documents]
    assert judged[2].report.reason is Reason.HEAD_TRIMMED
    assert judged[2].earlier == Place("requests.jsonl", 1)
    assert judged[3].report.reason is Reason.NONE


def test_what_was_reported_goes_before_what_the_rules_give() -> None:
    usage = {"usage": {"prompt_tokens": 1_000, "prompt_tokens_details": {"cached_tokens": 950}}}
    late = [{"timestamp": at, "request": chat("Where?")} for at in (1_790_000_000, 1_790_100_000)]
    court = Court("openai-2026-09")
    court.judge(late[0])
    judged = court.judge(late[1] | {"response": usage})
    assert judged.reported is not None
    assert judged.report.reason is Reason.NONE
    assert judged.report.matched == judged.expected.matched, "950 of 1,000 is as much as the rules give"
    nothing = {"usage": {"prompt_tokens": 1_000, "prompt_tokens_details": None}}
    judged = court.judge(late[1] | {"response": nothing})
    assert judged.report.reason is Reason.NOT_REPORTED
    assert judged.expected.reason is Reason.NONE


def test_impossible_usage_is_no_usage() -> None:
    court = Court()
    court.judge({"request": chat("Where?")})
    usage = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 500}}
    assert court.judge({"request": chat("Where?"), "response": {"usage": usage}}).reported is None


def test_without_a_store_nothing_is_proved_by_its_log() -> None:
    court = Court()
    for document in (chat("Where?"), chat("Where?"), chat("Why?", system="Short.")):
        assert court.report(document).evidence is not Evidence.STORE_LOG


def test_requests_that_cannot_be_read_are_counted() -> None:
    found = explained(chat("Where?"), {"messages": [7]}, chat("Where?"))
    assert (found.requests, found.unread) == (2, 1)
    assert found.complaints[0].startswith("requests.jsonl:2: this request can't be read")


def test_a_vendor_that_refuses_is_quoted() -> None:
    marks = [{"type": "text", "text": f"{n}", "cache_control": {"type": "ephemeral"}} for n in range(5)]
    body = {"model": "claude-x", "system": "S", "messages": [{"role": "user", "content": marks}]}
    found = explained(body, chat("Where?"))
    assert "A maximum of 4 blocks with cache_control" in found.complaints[0]
    assert "messages[0].content[4]" in found.complaints[0]


def test_causes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_CAUSES", 1)
    clocked = [chat("Where?", system=f"Now: 09:{minute}\n{RULES}") for minute in range(10, 13)]
    trimmed = [chat(*turns(start, start + 12)) for start in (0, 2)]
    found = explained(*clocked, *trimmed)
    assert [one.pattern for one in found.worst()].count("…") == len(found.causes) - 1 > 0
    assert found.avoidable.lost == sum(one.sum.lost for one in found.causes.values())


def test_prefixes_are_forgotten_within_bounds() -> None:
    prefixes = PrefixSet(limit=8)

    def keys(start: int) -> list[BlockKey]:
        return [BlockKey(bytes([start, n]) * 16) for n in range(4)]

    prefixes.add(keys(0))
    assert prefixes.known([*keys(0), *keys(1)]) == 4
    for start in range(1, 4):
        prefixes.add(keys(start))
    assert prefixes.known(keys(3)) == 4
    assert prefixes.known(keys(0)) == 0


def test_places_of_files_are_kept() -> None:
    assert isinstance(recorded(chat("x"), 7), Recorded)
    found = explained(
        chat("Where?", system="Now: 09:10\n" + RULES), chat("Where?", system="Now: 09:11\n" + RULES)
    )
    assert str(found.worst()[0].place) == "requests.jsonl:2"
    hidden = found.redacted().worst()[0].sample
    assert hidden.divergence is not None
    assert hidden.divergence.before.endswith(" characters>")
