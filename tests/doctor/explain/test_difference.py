"""The first difference, made to be seen."""

from __future__ import annotations

import pytest

from hotprefix.doctor.explain.difference import Part, first_difference, plain, redacted, visible


def test_equal_texts_do_not_differ() -> None:
    assert first_difference("abc", "abc") is None


def test_only_what_changed_is_marked() -> None:
    found = first_difference("At 09:14, all is well.", "At 09:15, all is well.", "messages[0].content")
    assert found is not None
    assert (found.at, found.path, found.is_cut) == (7, "messages[0].content", False)
    assert [piece.text for piece in found.before if piece.part is Part.GONE] == ["4"]
    assert [piece.text for piece in found.after if piece.part is Part.NEW] == ["5"]
    assert plain(found.before) == "At 09:14, all is well."


def test_context_is_bounded() -> None:
    found = first_difference("a" * 500 + "x" + "b" * 500, "a" * 500 + "y" + "b" * 500, context=5)
    assert found is not None
    assert (found.at, plain(found.before), plain(found.after)) == (500, "aaaaaxbbbb", "aaaaaybbbb")


def test_a_text_that_goes_on() -> None:
    found = first_difference("abc", "abcdef")
    assert found is not None
    assert found.is_cut
    assert [piece.part for piece in found.after] == [Part.SAME, Part.NEW]


def test_islands_of_chance_are_no_islands() -> None:
    found = first_difference("8c4f1e2a", "91b7d40e")
    assert found is not None
    assert [piece.part for piece in found.before] == [Part.GONE]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\r", "a↵b→c␍"),
        ("\u00a0", "⍽"),
        ("\u200b\u202e\x00", "⟨U+200B⟩⟨U+202E⟩⟨U+0000⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\u2028\u3000", "⟨U+2028⟩⟨U+3000⟩"),
        ("中文 — 🙂", "中文 — 🙂"),
    ],
)
def test_what_has_no_shape_gets_one(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_blanks_are_seen_where_they_changed() -> None:
    found = first_difference("one  two", "one two")
    assert found is not None
    assert "·" in plain(found.before)
    assert "·" not in plain(found.after)


def test_redaction_leaves_lengths() -> None:
    found = first_difference("my secret is 42", "my secret is 43")
    assert found is not None
    hidden = redacted(found)
    assert plain(hidden.before) == "<14 characters><1 characters>"
    assert "secret" not in repr(hidden)
