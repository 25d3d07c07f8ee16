"""Advice, headers and redaction."""

from __future__ import annotations

import string
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from hotprefix.diagnosis.advice import _ADVICE, advice_for
from hotprefix.diagnosis.explain import redacted
from hotprefix.diagnosis.headers import report_headers
from hotprefix.diagnosis.reason import MissReport, Reason
from hotprefix.diagnosis.volatile import Volatile, volatile_kind
from tests.diagnosis.world import Chat, World, rules_text, system, user

RULES = rules_text(300)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_advice_in_both_languages(reason: Reason) -> None:
    english, chinese = advice_for(reason, "", {})
    assert english.isascii()
    assert english.endswith(".")
    assert english.count(". ") == 0
    assert chinese.endswith("。")
    assert any("一" <= character <= "鿿" for character in chinese)


def test_both_languages_name_the_same_specifics() -> None:
    def names(template: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(template) if name}

    for key, (english, chinese) in _ADVICE.items():
        assert names(chinese) <= names(english) | {"detail"}, key
        assert names(english) - names(chinese) <= {"lost", "subject"}, key


def accused(old: str = "At 09:14\n", new: str = "At 09:15\n") -> MissReport:
    world = World()
    world.implicit(Chat([system(old + RULES), user("Go")]))
    return world.implicit(Chat([system(new + RULES), user("Go")]), money_per_million=6.4)


def test_specifics_are_filled_in() -> None:
    report = accused()
    assert "messages[0].content" in report.advice_en
    assert str(report.lost_tokens) in report.advice_zh
    assert "{" not in report.advice_en + report.advice_zh
    assert "?" not in report.advice_en


def test_headers_of_a_miss() -> None:
    report = accused()
    headers = dict(report_headers(report))
    assert headers["x-hotprefix-miss-reason"] == "SYSTEM_CHANGED"
    assert headers["x-hotprefix-miss-detail"] == "VOLATILE_TIME"
    assert headers["x-hotprefix-matched-tokens"] == str(report.matched)
    assert headers["x-hotprefix-lost-tokens"] == str(report.lost_tokens)
    assert headers["x-hotprefix-avoidable"] == "true"
    assert headers["x-hotprefix-evidence"] == "proved by bytes"
    assert float(headers["x-hotprefix-lost-money"]) == pytest.approx(report.lost_money, abs=1e-8)
    assert report.divergence is not None
    assert headers["x-hotprefix-divergence"] == f"messages[0].content;0;{report.divergence.token}"
    assert headers["x-hotprefix-advice"] == report.advice_en
    charset, _, text = headers["x-hotprefix-advice-zh"].rpartition("'")
    assert charset == "UTF-8'"
    assert unquote(text) == report.advice_zh


def test_a_hit_has_short_headers() -> None:
    world, chat = World(), Chat([system(RULES), user("Go")])
    world.implicit(chat)
    headers = dict(report_headers(world.implicit(chat)))
    assert headers.pop("x-hotprefix-miss-reason") == "NONE"
    assert set(headers) == {f"x-hotprefix-{name}-tokens" for name in ("matched", "ideal", "lost")}


def test_odd_names_are_encoded_and_never_break_out_of_a_header() -> None:
    report = accused()
    assert report.divergence is not None
    odd = replace(report.divergence, path="tools[0].仓库;\r\nx-evil: 1")
    changed = replace(report, detail="工具\n\ud800", divergence=odd, advice_en="Rename 工具\r\n.")
    for _, value in report_headers(changed):
        assert value.isascii()
        assert value.isprintable()
    path = dict(report_headers(changed))["x-hotprefix-divergence"]
    assert path.count(";") == 2
    assert unquote(path.split(";")[0]) == odd.path


def test_no_word_of_the_prompt_is_in_the_headers() -> None:
    secret = accused("Code word marzipan 4711\n", "Code word nougat 4712\n")
    text = " ".join(value for _, value in report_headers(secret))
    assert "marzipan" not in text
    assert "nougat" not in text


def test_redaction_leaves_lengths() -> None:
    report = accused()
    assert report.divergence is not None
    hidden = redacted(report).divergence
    assert hidden is not None
    assert hidden.before == f"<{len(report.divergence.before)} characters>"
    assert "09:1" not in hidden.before + hidden.after
    assert (hidden.path, hidden.token) == (report.divergence.path, report.divergence.token)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("Now: 2031-04-05T10:00:01Z.", "Now: 2031-04-05T10:00:02Z.", Volatile.TIME),
        ("Today is 5 April 2031", "Today is 6 April 2031", Volatile.TIME),
        ("Today is Monday", "Today is Tuesday", Volatile.TIME),
        ("It is 9:59 AM", "It is 10:00 AM", Volatile.TIME),
        ("Apr 5, 2031", "May 5, 2031", Volatile.TIME),
        ("现在是2031年4月5日 上午9时", "现在是2031年4月6日 上午9时", Volatile.TIME),
        ("当前时间:10点30分", "当前时间:10点31分", Volatile.TIME),
        ("今天星期一", "今天星期二", Volatile.TIME),
        ("ts=1932811200", "ts=1932811260", Volatile.TIME),
        (
            "request 7b0e4c1e-58a5-4c9a-9d53-2f5b8f2a6d10",
            "request 7b0e4c1e-58a5-4c9a-9d53-2f5b8f2a6d11",
            Volatile.ID,
        ),
        ("user_id: u-17", "user_id: u-18", Volatile.ID),
        ("用户编号:10086", "用户编号:10087", Volatile.ID),
        ("trace 5d41402abc4b2a76", "trace 5d41402abc4b2a77", Volatile.ID),
        (
            "x-acme-billing-header: v=9; cch=a1b2c;",
            "x-acme-billing-header: v=9; cch=a1b2d;",
            Volatile.CLIENT_HEADER,
        ),
        ("cwd: /home/a/x", "cwd: /home/a/y", Volatile.ENV),
        ("Git branch: main", "Git branch: fix-1", Volatile.ENV),
        ("<files>\na.py\nb.py\n</files>", "<files>\na.py\nab.py\nb.py\n</files>", Volatile.ENV),
        (" M src/a.py\n M src/b.py", " M src/a.py\nA  src/b.py", Volatile.ENV),
        ("工作目录:/srv/one", "工作目录:/srv/two", Volatile.ENV),
        ("文档5d41402abc4b2a76的内容", "文档5d41402abc4b2a77的内容", Volatile.ID),
        ("编号为3377的登记信息", "编号为3377 的登记信息", Volatile.OTHER),
        ("Be kind and brief.", "Be kind and exact.", Volatile.OTHER),
        ("At most 15 items.", "At most 16 items.", Volatile.OTHER),
        ("Open 09:14 daily. Be kind.", "Open 09:14 daily. Be curt.", Volatile.OTHER),
        ("Use 7b0e4c1e58a54c9a and stop", "Use 7b0e4c1e58a54c9a and go on", Volatile.OTHER),
        ("", "A new line", Volatile.OTHER),
    ],
)
def test_kinds_of_changed_text(old: str, new: str, kind: Volatile) -> None:
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    assert volatile_kind(old, new, at) is kind
    assert volatile_kind(new, old, at) is kind


def test_every_reason_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "MISS_REASONS.md").read_text(encoding="utf-8")
    assert [reason for reason in Reason if f"`{reason}`" not in text] == []
    assert [kind for kind in Volatile if f"`{kind}`" not in text] == []
    for name, _ in report_headers(accused()):
        assert f"`{name}`" in text
