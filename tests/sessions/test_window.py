"""Which turns are left out: never too many, never the newest, and the same ones for a long time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.sessions.window import Cut, Sized, Window, cut

CONTEXT = 1000
ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
MESSAGES = st.lists(st.builds(Sized, ROLES, st.integers(0, 150)), min_size=1, max_size=60)
WINDOWS = st.builds(
    Window.of, st.just(CONTEXT), st.sampled_from([1.0, 0.8]), st.integers(1, 900), st.integers(0, 20)
)


def total(messages: list[Sized], left_out: Cut) -> int:
    return sum(one.tokens for at, one in enumerate(messages) if at not in left_out.dropped)


def newest_turn(messages: list[Sized]) -> set[int]:
    """By going back: to the last user message, and over those right before it."""
    spoken = [at for at, one in enumerate(messages) if one.role != "system"]
    users = [at for at in spoken if messages[at].role == "user"]
    if not users:
        return set(spoken)
    begin = spoken.index(users[-1])
    while begin > 0 and messages[spoken[begin - 1]].role == "user":
        begin -= 1
    return set(spoken[begin:])


@given(MESSAGES, WINDOWS)
def test_system_messages_and_the_newest_turn_stay(messages: list[Sized], window: Window) -> None:
    left_out = cut(messages, window)
    assert not left_out.dropped & newest_turn(messages)
    assert all(messages[at].role != "system" for at in left_out.dropped)
    assert left_out.tokens == sum(messages[at].tokens for at in left_out.dropped)


@given(MESSAGES, WINDOWS)
def test_the_result_fits_if_anything_can(messages: list[Sized], window: Window) -> None:
    left_out = cut(messages, window)
    stays = newest_turn(messages) | {at for at, one in enumerate(messages) if one.role == "system"}
    if sum(messages[at].tokens for at in stays) <= window.high:
        assert total(messages, left_out) <= window.high
    else:
        assert left_out.dropped == set(range(len(messages))) - stays


@given(MESSAGES, WINDOWS)
def test_what_fits_is_left_alone(messages: list[Sized], window: Window) -> None:
    if total(messages, Cut()) <= window.high:
        assert cut(messages, window) == Cut()


@given(MESSAGES, WINDOWS)
def test_whole_turns_go_oldest_first(messages: list[Sized], window: Window) -> None:
    left_out = cut(messages, window)
    spoken = [at for at, one in enumerate(messages) if one.role != "system"]
    assert left_out.dropped == set(spoken[: len(left_out.dropped)])
    kept = spoken[len(left_out.dropped) :]
    if left_out.dropped and kept:
        assert messages[kept[0]].role == "user"


def requests(messages: list[Sized]) -> list[list[Sized]]:
    """The talks as they were sent: each up to where an answer follows, and the last."""
    ends = [
        at
        for at in range(1, len(messages))
        if messages[at].role == "assistant" and messages[at - 1].role != "assistant"
    ]
    return [messages[:end] for end in [*ends, len(messages)]]


@given(MESSAGES, WINDOWS)
@settings(max_examples=300)
def test_the_beginning_is_stable_until_the_window_is_full_again(
    messages: list[Sized], window: Window
) -> None:
    for earlier, later in itertools.pairwise(requests(messages)):
        before, after = cut(earlier, window), cut(later, window)
        assert before.dropped <= after.dropped
        with_old_cut = total(later, before)
        if with_old_cut <= window.high:
            assert before.dropped == after.dropped
        elif after.dropped != before.dropped and total(later, after) > window.low:
            # All that could go went.
            assert after.dropped | newest_turn(later) | systems(later) == set(range(len(later)))


def systems(messages: list[Sized]) -> set[int]:
    return {at for at, one in enumerate(messages) if one.role == "system"}


def test_a_cut_lasts_for_several_turns() -> None:
    window = Window.of(CONTEXT, 1.0, 1)
    talk = [Sized("system", 100)]
    cuts = []
    for _ in range(40):
        talk.append(Sized("user", 20))
        cuts.append(cut(talk, window).turns)
        talk.append(Sized("assistant", 20))
    changes = [later - earlier for earlier, later in itertools.pairwise(cuts) if later != earlier]
    assert len(changes) >= 2
    # A fifth of the window is five turns of forty tokens.
    assert set(changes) == {5, 6} or set(changes) == {5} or set(changes) == {6}


def test_steps_of_one_turn_are_never_torn_apart() -> None:
    call = [Sized("assistant", 100), Sized("tool", 300)]
    talk = [Sized("user", 100), *call, Sized("user", 100), *call, *call]
    assert cut(talk, Window(high=950, low=750)) == Cut(frozenset({0, 1, 2}), 1, 500)


@pytest.mark.parametrize(
    ("fullness", "answer", "margin", "window"),
    [
        (1.0, 1, 0, Window(999, 799)),
        (0.8, 1, 0, Window(800, 600)),
        (0.8, 300, 0, Window(700, 500)),
        (1.0, 900, 10, Window(390, 190)),
    ],
)
def test_windows(fullness: float, answer: int, margin: int, window: Window) -> None:
    assert Window.of(CONTEXT, fullness, answer, margin) == window
