"""What is due."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from hotprefix.doctor.prompts import open_registry
from hotprefix.doctor.prompts.edit import Facts, RegistryEditor
from hotprefix.doctor.prompts.review.due import Due, ReviewList
from hotprefix.doctor.prompts.review.linting import PromptLint
from hotprefix.doctor.prompts.review.review import Reviewer, ReviewRules
from hotprefix.doctor.prompts.review.usage import uses_of
from hotprefix.doctor.prompts.review.writing import review_csv, review_facts, review_markdown
from hotprefix.profiles.loader import load_profiles
from tests.doctor.prompts.folders import DAY, RULES

BOOK = load_profiles()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`greeting` with v1 released on DAY."""
    editor = RegistryEditor(tmp_path)
    editor.add("greeting", RULES.encode(), ".txt", None, Facts(owner="support", model="qwen-plus"))
    editor.release("greeting@v1", DAY)
    return tmp_path


def review(folder: Path, today: date = DAY, calls: pl.DataFrame | None = None, every: int = 90) -> ReviewList:
    uses = None if calls is None else uses_of(calls, 30)
    return Reviewer(
        open_registry(folder), BOOK, today, ReviewRules(every), uses=uses, lint=PromptLint(BOOK)
    ).review()


def dues(found: ReviewList) -> list[tuple[str, Due]]:
    return [(item.label, item.due) for item in found.items]


def calls(version: str, days: float, hit: float, count: int = 40, prompt: str = "greeting") -> pl.DataFrame:
    at = (DAY - date(1970, 1, 1)).days * 86_400.0 + days * 86_400
    return pl.DataFrame(
        {
            "prompt_name": [prompt] * count,
            "prompt_version": [version] * count,
            "at": [at] * count,
            "prompt": [1_000] * count,
            "read": [int(1_000 * hit)] * count,
        }
    )


def test_a_prompt_in_order_is_not_on_the_list(folder: Path) -> None:
    found = review(folder, calls=calls("v1", 0, 0.9))
    assert dues(found) == []
    assert "Nothing is due of 1 prompts with 1 versions" in review_markdown(found)


def test_reviews_fall_due_after_so_many_days(folder: Path) -> None:
    assert dues(review(folder, DAY + timedelta(89))) == []
    found = review(folder, DAY + timedelta(90))
    assert dues(found) == [("greeting@v1", Due.NOT_REVIEWED)]
    assert found.items[0].why == "Last reviewed on 2026-03-02, 90 days ago."
    assert found.items[0].owner == "support"
    assert dues(review(folder, DAY + timedelta(30), every=30)) == [("greeting@v1", Due.NOT_REVIEWED)]
    RegistryEditor(folder).reviewed("greeting@v1", DAY + timedelta(90))
    assert dues(review(folder, DAY + timedelta(90))) == []


def test_what_logs_say_of_use(folder: Path) -> None:
    editor = RegistryEditor(folder)
    editor.add("greeting", RULES.encode() + b"!", ".txt", None, Facts())
    editor.release("greeting@v2", DAY)
    editor.retire("greeting@v1")
    logs = pl.concat([calls("v1", 0, 0.9), calls("v9", 0, 0.9, count=3)])
    found = review(folder, calls=logs)
    assert dues(found) == [
        ("greeting@v1", Due.RETIRED_IN_USE),
        ("greeting@v9", Due.UNREGISTERED),
        ("greeting@v2", Due.UNUSED),
    ]
    assert found.items[1].why == "3 requests name it, last on 2026-03-02, but it has no file."
    assert found.requests == 43


def test_a_hit_rate_that_fell(folder: Path) -> None:
    before = calls("v1", -40, 0.9)
    assert dues(review(folder, calls=pl.concat([before, calls("v1", 0, 0.85)]))) == []
    found = review(folder, calls=pl.concat([before, calls("v1", 0, 0.6)]))
    assert dues(found) == [("greeting@v1", Due.HIT_RATE_FELL)]
    assert found.items[0].why == "From 90.0% to 60.0% of the prompt tokens."
    few = review(folder, calls=pl.concat([before, calls("v1", 0, 0.1, count=5)]))
    assert dues(few) == []


def test_texts_that_cache_badly(folder: Path) -> None:
    editor = RegistryEditor(folder)
    short = "Today is 2026-11-30 09:14. Answer politely."
    editor.add("short", short.encode(), ".txt", None, Facts(owner="x", model="qwen-plus"))
    editor.release("short@v1", DAY)
    messages = '[{"role": "system", "content": "Now: 2026-11-30T09:14:05Z. ' + RULES + '"}]'
    editor.add("chat", messages.encode(), ".json", None, Facts(owner="x"))
    editor.release("chat@v1", DAY)
    found = review(folder)
    assert dues(found) == [
        ("short@v1", Due.BELOW_MINIMUM),
        ("chat@v1", Due.LINT),
        ("short@v1", Due.LINT),
    ]
    assert "fewer than the 256" in found.items[0].why
    assert found.items[1].why.startswith("HP101")
    assert all(item.due.is_urgent for item in found.items)


def test_models_and_rules_that_end(folder: Path) -> None:
    file = folder / "prompts.toml"
    file.write_text(
        file.read_text().replace('model = "qwen-plus"', 'model = "qwen-plus"\nprofile = "dashscope-2026-03"')
        + '\n[retired_models]\n"qwen-p*" = 2026-05-01\n'
    )
    soon = review(folder, DAY)
    assert dues(soon) == [("greeting", Due.MODEL_RETIRED), ("greeting", Due.PROFILE_SUPERSEDED)]
    assert soon.items[0].why == "qwen-plus will be retired on 2026-05-01."
    assert "dashscope-2026-10" in soon.items[1].why
    assert review(folder, date(2026, 5, 2)).items[0].why == "qwen-plus is retired since 2026-05-01."
    assert dues(review(folder, date(2026, 1, 1)))[0][1] is Due.PROFILE_SUPERSEDED


def test_edits_owners_and_old_experiments(folder: Path) -> None:
    editor = RegistryEditor(folder)
    editor.add("greeting", RULES.encode() + b"!", ".txt", None, Facts(owner=""))
    editor.release("greeting@v2", DAY + timedelta(80))
    editor.split("greeting", {"v1": 1, "v2": 1}, DAY)
    open_registry(folder).find("greeting@v1").file.write_text("edited")
    assert dues(review(folder, DAY + timedelta(91))) == [
        ("greeting@v1", Due.EDITED),
        ("greeting", Due.EXPERIMENT_OLD),
        ("greeting", Due.NO_OWNER),
    ]


def test_files_for_people_and_programs(folder: Path) -> None:
    found = review(folder, DAY + timedelta(100))
    assert (
        review_markdown(found).splitlines()[2].startswith("- [ ] `greeting@v1` (support): not reviewed. Last")
    )
    assert review_csv(found).splitlines() == [
        "prompt,version,due,urgent,owner,why",
        'greeting,v1,not reviewed,no,support,"Last reviewed on 2026-03-02, 100 days ago."',
    ]
    assert review_facts(found)["items"][0]["due"] == "not_reviewed"
