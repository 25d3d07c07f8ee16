"""Conversations that are too long lose their oldest turns, many at once and seldom."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hotprefix.prompt.preprocess.catalogue import StepName, Steps
from hotprefix.prompt.preprocess.truncate import turns_to_drop
from tests.prompt.test_preprocess import draft_of

TURNS = st.lists(st.integers(1, 60), min_size=1, max_size=60)


@given(st.integers(0, 50), TURNS, st.integers(120, 400))
def test_what_is_left_fits(head: int, turns: list[int], limit: int) -> None:
    dropped = turns_to_drop(head, turns, limit)
    assert 0 <= dropped < len(turns)
    assert head + sum(turns[dropped:]) <= limit
    if head + sum(turns) <= limit:
        assert dropped == 0


@given(TURNS)
def test_the_cut_only_moves_forward(turns: list[int]) -> None:
    cuts = [turns_to_drop(10, turns[: n + 1], 200) for n in range(len(turns))]
    assert cuts == sorted(cuts)


def test_t12_one_break_for_many_turns() -> None:
    cuts = [turns_to_drop(0, [10] * turns, 200) for turns in range(1, 101)]
    breaks = sum(1 for before, after in pairwise(cuts) if before != after)
    # 80 turns beyond the first 20; half of the room is ten turns.
    assert breaks == 8


def test_the_last_turn_stays_even_if_it_is_too_long() -> None:
    assert turns_to_drop(10, [50, 50, 1000], 200) == 2


def test_whole_turns_go_and_system_messages_stay() -> None:
    draft = draft_of(
        ("system", ["S" * 20]),
        ("user", ["a" * 60]),
        ("assistant", ["b" * 60]),
        ("tool", ["t" * 20]),
        ("user", ["c" * 60]),
        ("assistant", ["d"]),
        ("user", ["e"]),
    )
    done, report = Steps(limit=160, count=len).pipeline([StepName.TRUNCATE]).run(draft)
    assert [message["content"][:1] for message in done.messages] == ["S", "c", "d", "e"]
    assert [block.path for group in done.blocks for block in group][1] == "messages[4].content[0]"
    assert [(edit.path, len(edit.removed)) for edit in report.edits] == [
        ("messages[1]", 60),
        ("messages[2]", 60),
        ("messages[3]", 20),
    ]
    assert report.summary() == 'truncate;n=3;first="messages[1]+0"'
