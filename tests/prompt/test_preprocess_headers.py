"""Known volatile lines go from the top of system messages; what only looks like them stays."""

from __future__ import annotations

import pytest

from hotprefix.prompt.preprocess.catalogue import StepName, Steps
from hotprefix.prompt.preprocess.volatile_headers import HeaderPattern, load_header_patterns
from tests.prompt.test_preprocess import draft_of

PIPELINE = Steps(limit=10_000, count=len).pipeline([StepName.VOLATILE_HEADERS])
RULES = "Rule 1: goods stand on shelf 1.\nRule 2: goods stand on shelf 2.\n"


def stripped(text: str, role: str = "system") -> str:
    done, _ = PIPELINE.run(draft_of((role, [text]), ("user", ["Hi"])))
    return str(done.messages[0]["content"])


@pytest.mark.parametrize("pattern", load_header_patterns(), ids=lambda pattern: pattern.name)
def test_every_pattern_has_sources_and_matches_its_examples(pattern: HeaderPattern) -> None:
    assert all(source.startswith("https://") for source in pattern.sources)
    for example in pattern.examples:
        assert stripped(f"{example}\n{RULES}") == RULES
        assert stripped(f"\n{example}  \n\n{RULES}") == f"\n{RULES}"
        assert stripped(f"{RULES}{example}\n") == f"{RULES}{example}\n"
        assert stripped(f"{example}\n{RULES}", "user") == f"{example}\n{RULES}"


def test_t01_a_report_time_that_moves() -> None:
    texts = {stripped(f"Report time 2031-04-05T10:00:0{second}\n{RULES}") for second in (1, 2)}
    assert texts == {RULES}


def test_several_lines_go_until_the_first_that_is_not_known() -> None:
    text = f"x-request-id: 9f3\nCurrent time: 10:00\nToday we sell 5 lamps.\nCurrent time: 10:00\n{RULES}"
    assert stripped(text) == f"Today we sell 5 lamps.\nCurrent time: 10:00\n{RULES}"


@pytest.mark.parametrize(
    "kept",
    [
        "Document 9b2d4c7e1f0a3856c4e2d19870bafe35",  # T15: a constant id goes by no label
        "9b2d4c7e1f0a3856c4e2d19870bafe35",
        "2031-04-05",
        "User id: u-48213",
        "Current date formats are DD.MM.2031 and 2031-04-05 in reports.",
        "Now is 5 times better than later.",
        "Today is a good day.",
        "Request time limits: 30 seconds for reads.",
        "今天是2031年，我们卖5盏灯。",
        "Timestamp: use the order's.",
    ],
)
def test_what_is_not_known_stays(kept: str) -> None:
    assert stripped(f"{kept}\n{RULES}") == f"{kept}\n{RULES}"


def test_text_behind_a_billing_header_is_kept() -> None:
    header = "x-anthropic-billing-header: cc_version=9.9.1; cch=a1b2c;"
    assert stripped(f"{header} You are a clerk.\n{RULES}") == f"You are a clerk.\n{RULES}"


def test_a_block_of_its_own_is_emptied_and_the_next_one_looked_at() -> None:
    draft = draft_of(("system", ["x-anthropic-billing-header: cch=0f;", "Now: 09:14\nRules.", "Now: 09:14"]))
    done, report = PIPELINE.run(draft)
    assert [block.text for block in done.blocks[0]] == ["", "Rules.", "Now: 09:14"]
    assert [(edit.path, edit.start) for edit in report.edits] == [
        ("messages[0].content[0]", 0),
        ("messages[0].content[1]", 0),
    ]


def test_a_long_line_of_dates_takes_no_time() -> None:
    text = "Current date: " + "sat 1 " * 20_000 + "no date"
    assert stripped(text) == text
