"""Long runs are shortened, but not where they mean something."""

from __future__ import annotations

import pytest

from hotprefix.prompt.preprocess.edit import applied
from hotprefix.prompt.preprocess.pollution import pollution_changes


def cleaned(text: str) -> str:
    return applied(text, pollution_changes(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a-----b", "a-----b"),
        ("a------b", "a---b"),
        ("x" + "=" * 500 + "y\n" + "+" * 7, "x===y\n+++"),
        ("------======", "---==="),
        ("Title\n==========", "Title\n==="),
        ("********\nsecret\n________", "***\nsecret\n___"),
        ("card 4242******4242, name ________ here", "card 4242******4242, name ________ here"),
        ("——————", "——————"),
    ],
)
def test_runs(text: str, wanted: str) -> None:
    assert cleaned(text) == wanted


@pytest.mark.parametrize(
    "kept",
    [
        "```\n------\n```",
        "~~~~~~ text\n======\n~~~~~~",
        "````\n```\n------\n````",
        "- a list\n  ```sh\n  ------\n  ```",
        "```\nnever closed\n------",
        "    indented ------",
        "\ttabbed ------",
        "`------` and ``a`======``",
        "| a | b |\n|--------|:-------:|\n| ------ | 1 |",
        "+------+--------+\n| a    | b      |\n+======+========+",
        "=====  ======\nname   value\n=====  ======",
        "---\ntitle: '------'\n---",
        "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_is_kept(kept: str) -> None:
    assert cleaned(kept) == kept
    # And only there: the same run before and behind it goes.
    assert cleaned(f"{kept}\n\n```\n```\n") == f"{kept}\n\n```\n```\n"


def test_behind_code_and_front_matter_runs_are_shortened_again() -> None:
    assert cleaned("---\na: ------\n---\n------") == "---\na: ------\n---\n---"
    assert cleaned("```\n------\n```\n------") == "```\n------\n```\n---"
    assert cleaned("`------` ------") == "`------` ---"
    assert cleaned("<<<<<<< a\n=======\n>>>>>>> b\n=======") == "<<<<<<< a\n=======\n>>>>>>> b\n==="


def test_backticks_in_every_length_are_looked_at_once() -> None:
    """Of runs of 3,000 lengths none has a partner. A regular expression takes minutes for such a line."""
    ticks = " ".join("`" * length for length in range(1, 3000))
    assert cleaned(f"------ {ticks} ------") == f"--- {ticks} ---"


def test_runs_of_backticks_find_the_next_of_their_length() -> None:
    assert cleaned("` ------ `` ------ ` ------ `` ------") == "` ------ `` ------ ` --- `` ---"
    assert cleaned("`` a ------ ` b `` ------") == "`` a ------ ` b `` ---"
