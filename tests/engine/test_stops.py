"""Stop strings: streaming gives what one search of the whole text gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.engine.stops import StopScanner


def whole_text_search(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """The meaning, spelled out: try every position, longest stop first."""
    for at in range(len(text)):
        for stop in sorted(stops, key=len, reverse=True):
            if stop and text[at : at + len(stop)] == stop:
                return text[:at], stop
    return text, None


def stream(pieces: Sequence[str], stops: Sequence[str]) -> tuple[str, str | None]:
    scanner = StopScanner(stops)
    out = []
    for piece in pieces:
        text, matched = scanner.push(piece)
        out.append(text)
        assert matched == scanner.matched
    out.append(scanner.finish())
    return "".join(out), scanner.matched


short_text = st.text(alphabet="abc", max_size=6)


@given(st.lists(short_text, max_size=12), st.lists(short_text, max_size=4))
def test_streaming_equals_whole_text_search(pieces: list[str], stops: list[str]) -> None:
    assert stream(pieces, stops) == whole_text_search("".join(pieces), stops)


@given(st.lists(st.text(max_size=5), max_size=12), st.lists(st.text(max_size=3), max_size=4))
def test_any_characters(pieces: list[str], stops: list[str]) -> None:
    assert stream(pieces, stops) == whole_text_search("".join(pieces), stops)


@given(st.lists(short_text, max_size=12), st.lists(short_text, max_size=4))
def test_never_holds_more_than_a_stop_could_need(pieces: list[str], stops: list[str]) -> None:
    scanner = StopScanner(stops)
    longest = max((len(stop) for stop in stops), default=0)
    pushed = emitted = 0
    for piece in pieces:
        text, matched = scanner.push(piece)
        if matched is not None:
            return
        pushed += len(piece)
        emitted += len(text)
        assert pushed - emitted <= max(0, longest - 1)


def test_holds_back_only_what_could_begin_a_stop() -> None:
    scanner = StopScanner(["\n\nUser:"])
    assert scanner.push("Hello\n") == ("Hello", None)
    assert scanner.push("there\n\n") == ("\nthere", None)
    assert scanner.push("Us") == ("", None)
    assert scanner.push("er: hi") == ("", "\n\nUser:")


def test_longest_stop_wins_at_the_same_place() -> None:
    assert stream(["x", "ab", "c"], ["ab", "abc"]) == ("x", "abc")
    assert stream(["x", "ab", "d"], ["ab", "abc"]) == ("x", "ab")
    assert stream(["xab"], ["ab", "abc"]) == ("x", "ab")


def test_earlier_stop_wins_over_one_that_ends_sooner() -> None:
    assert stream(["ab", "c", "d"], ["c", "bcd"]) == ("a", "bcd")


def test_text_after_a_stop_is_dropped() -> None:
    scanner = StopScanner(["."])
    assert scanner.push("One. Two.") == ("One", ".")
    assert scanner.push("Three") == ("", ".")
    assert scanner.finish() == ""


@pytest.mark.parametrize("stops", [[], [""]])
def test_without_stops_text_passes_straight_through(stops: list[str]) -> None:
    scanner = StopScanner(stops)
    assert scanner.push("any text") == ("any text", None)
    assert scanner.finish() == ""
