"""The page: whole, self-contained, in two languages, and safe with any label."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from hotprefix.doctor.report.figures import Report
from hotprefix.doctor.report.page import report_page
from hotprefix.doctor.report.terminal import TerminalReport, sparks
from hotprefix.doctor.report.wording import Language
from tests.doctor.report.logs import SAMPLES, chat_answer, report_of, write_lines
from tests.doctor.report.test_comparing import RULES, chat

VOID = {"meta", "path", "rect", "circle", "br", "i"}
HOSTILE = '</script><img src=x onerror="alert(1)">&amp;{{ 7*7 }}[red]'


class Page(HTMLParser):
    """Checks that tags close; collects ids, links and the text of either language."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.outward: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        named = dict(attrs)
        self.ids += [named["id"] or ""] if "id" in named else []
        self.outward += [value for name in ("src", "href") if (value := named.get(name)) and value[0] != "#"]
        assert not [name for name in named if name.startswith("on")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def parsed(page: str) -> Page:
    parser = Page()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report with every part, and labels that would like to break out."""
    entries = [
        chat(n, 0, f"{HOSTILE} {n}\n{RULES}") | {"tenant": HOSTILE, "scene": "desk@1", "ttft": 0.5 + n / 10}
        for n in range(8)
    ]
    entries += [chat(n, 2432) | {"ttft": 0.1, "scene": HOSTILE} for n in range(8, 14)]
    return report_of(write_lines(tmp_path_factory.mktemp("page") / "log", entries))


@pytest.mark.parametrize("language", list(Language))
def test_the_page_is_whole_and_asks_for_nothing(full: Report, language: Language) -> None:
    page = report_page(full, language)
    found = parsed(page)
    assert f'data-language="{language.value}"' in page
    assert found.outward == []
    assert not re.search(r"https?://", page)
    assert "@import" not in page
    assert len(found.ids) == len(set(found.ids))
    assert {"three", "latency", "timeline", "offenders", "sessions", "notes", "by-scene"} <= set(found.ids)
    assert found.tags["svg"] == 3
    assert "NaN" not in page
    assert found.tags["script"] == 1


def test_both_languages_are_in_it(full: Report) -> None:
    text = parsed(report_page(full, Language.EN)).text
    for words in ("Ideal against actual", "理想与实际", "Prompt changed", "提示词变化", "Light or dark"):
        assert words in text


def test_labels_stay_labels(full: Report) -> None:
    page = report_page(full, Language.EN)
    found = parsed(page)
    assert found.tags["img"] == 0
    assert HOSTILE in found.text
    shown = StringIO()
    TerminalReport(Console(file=shown, width=300), Language.EN).show(full)
    assert "[red]" in shown.getvalue()


@pytest.mark.parametrize("name", [path.name for path in sorted(SAMPLES.iterdir())])
def test_a_page_and_a_terminal_view_of_every_kind_of_log(name: str) -> None:
    report = report_of(SAMPLES / name)
    parsed(report_page(report, Language.ZH))
    for language in Language:
        shown = StringIO()
        TerminalReport(Console(file=shown, width=90), language).show(report)
        assert f"{report.total.requests:,}" in shown.getvalue()


def test_words_of_a_log_do_not_steer_the_terminal(tmp_path: Path) -> None:
    red = "gpt\x1b[31m\x07\r"
    log = write_lines(
        tmp_path / "log", [chat_answer(1, 100, 50, model=red) | {"scene": red, "session_id": red}]
    )
    out = StringIO()
    TerminalReport(Console(file=out, width=200), Language.EN).show(report_of(log))
    assert "gpt" in out.getvalue()
    assert not set("\x1b\x07\r") & set(out.getvalue())


def test_one_call_without_a_time(tmp_path: Path) -> None:
    bare = chat_answer(1, 10, 0)
    del bare["created"]
    report = report_of(write_lines(tmp_path / "log", [bare]))
    assert report.timeline is None
    parsed(report_page(report, Language.EN))


def test_sparks() -> None:
    assert sparks([0.0, 0.5, 1.0, None], 1.0) == "▁▅█ "
    assert sparks([0.0, 0.0]) == "▁▁"
    assert sparks([]) == ""
