"""The drill-down: which blocks two prompts share, and the first character that differs."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.api.dashboard.comparison import CONTEXT, comparison
from hotprefix.api.dashboard.recent import Pair
from tests.diagnosis.world import Chat

RULES = "Be brief and polite, and answer in the language of the question. " * 4


def compared(old: list[dict[str, Any]], new: list[dict[str, Any]], *, words: bool = True) -> dict[str, Any]:
    return comparison(Pair(Chat(new).snapshot(12.5), Chat(old).snapshot(10.0), 0), words=words)


def said(*texts: str) -> list[dict[str, Any]]:
    roles = ("system", "user", "assistant")
    return [
        {"role": roles[0] if not number else roles[2 - number % 2], "content": text}
        for number, text in enumerate(texts)
    ]


def states(facts: dict[str, Any]) -> list[str]:
    return [block["state"] for block in facts["blocks"]]


def side(difference: dict[str, Any], name: str) -> str:
    pieces = [text for kind, text in difference["pieces"] if kind in ("same", name)]
    return difference["lead"] + "".join(pieces)


def test_a_clock_at_the_head_is_shown_to_the_character() -> None:
    old, new = (f"It is 10:00:0{second}. {RULES}" for second in (1, 2))
    facts = compared(said(old, "Hello", "Hi", "More"), said(new, "Hello", "Hi", "More"))
    found = facts["difference"]
    assert (found["path"], found["block"]) == ("messages[0].content", 0)
    assert new[found["char"]] == "2"
    assert found["lead"].endswith("It is 10:00:0")
    assert found["pieces"][:2] == [["old", "1"], ["new", "2"]]
    assert found["old_char"] == {"char": "1", "code": "U+0031", "name": "DIGIT ONE"}
    assert found["new_char"]["name"] == "DIGIT TWO"
    assert states(facts) == ["differs", "same", "same", "same"]
    assert (facts["seconds"], facts["shared_tokens"]) == (2.5, found["token"])


def test_what_comes_first_is_shared_and_what_is_only_here_is_new() -> None:
    facts = compared(said(RULES, "One", "Two"), said(RULES, "One", "Two", "Three", "Four"))
    assert set(states(facts)) <= {"shared", "differs", "new"}
    assert states(facts)[:3] == ["shared"] * 3
    facts = compared(said(RULES, "One", "Two", "Three"), said(RULES, "Two", "Three"))
    assert "gone" in states(facts)


def test_a_character_that_cannot_be_seen_has_a_name() -> None:
    facts = compared(said(RULES, "one two"), said(RULES, "one\u00a0two"))
    assert facts["difference"]["new_char"] == {"char": "\u00a0", "code": "U+00A0", "name": "NO-BREAK SPACE"}
    facts = compared(said(RULES, "one two"), said(RULES, "one\ntwo"))
    assert facts["difference"]["new_char"]["name"] == "LINE FEED"


def test_equal_prompts_differ_nowhere() -> None:
    facts = compared(said(RULES, "One"), said(RULES, "One"))
    assert facts["difference"] is None
    assert set(states(facts)) == {"shared"}


def test_without_words_none_are_told() -> None:
    old, new = said("The password is swordfish."), said("The password is hunter2.")
    told = orjson.dumps(compared(old, new, words=False)).decode()
    assert "password" not in told and "swordfish" not in told and "hunter2" not in told
    assert "messages[0].content" in told
    assert "swordfish" in orjson.dumps(compared(old, new)).decode()


def test_long_texts_are_shown_around_the_difference_only() -> None:
    head = "x y " * 2000
    facts = compared(said(f"{head} first {head}"), said(f"{head} other {head}"))
    found = facts["difference"]
    assert len(found["lead"]) == CONTEXT
    assert found["is_cut"]
    assert len(side(found, "old")) <= 2 * CONTEXT
    assert found["pieces"][-1][0] == "same"  # no false difference where the texts are cut


def test_many_blocks_are_bounded() -> None:
    texts = [f"message {number}" for number in range(900)]
    facts = compared(said("a", *texts), said("b", *texts))
    assert len(facts["blocks"]) <= 400


@given(st.text("ab é中\n", max_size=30), st.text("ab é中\n", max_size=30))
def test_both_sides_read_as_they_were_sent(one: str, other: str) -> None:
    old, new = (f"{RULES}{text}!" for text in (one, other))
    facts = compared(said(old), said(new))
    found = facts["difference"]
    if found is None:
        assert one == other
        return
    assert side(found, "old") in Chat(said(old)).prompt().text
    assert side(found, "new") in Chat(said(new)).prompt().text
    chars = [found[f"{name}_char"]["char"] for name in ("old", "new")]
    assert chars[0] != chars[1]
    for name, char in zip(("old", "new"), chars, strict=True):
        assert side(found, name)[len(found["lead"])] == char


@pytest.mark.parametrize("words", [True, False])
def test_another_template_text_is_no_secret(words: bool) -> None:
    """Blocks are counted in tokens, whatever is shown."""
    facts = compared(said(RULES, "One"), said(RULES, "Two"), words=words)
    assert all(block["new"]["tokens"] > 0 for block in facts["blocks"] if block["new"])
