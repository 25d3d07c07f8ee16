"""What holds for any two prompts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.diagnosis.alignment import parting, shared_tokens
from hotprefix.diagnosis.compare import Scope, compare
from hotprefix.diagnosis.explain import explain
from hotprefix.diagnosis.facts import EXPLICIT, IMPLICIT, MissFacts
from hotprefix.diagnosis.headers import report_headers
from hotprefix.diagnosis.reason import Reason
from tests.diagnosis.world import Chat, Message, common

REQUEST_SIDE = set(list(Reason)[1 : list(Reason).index(Reason.NO_MARKER)])
WORDS = st.lists(
    st.sampled_from(["box ", "shelf ", "09:14", "仓库", "🧹", "\u2028", " \n", "7", "—", "\ud800"]),
    max_size=60,
)
TEXTS = WORDS.map("".join)
ROLES = st.sampled_from(["user", "assistant"])


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    messages: list[Message] = [{"role": "system", "content": draw(TEXTS)}]
    for role in draw(st.lists(ROLES, min_size=1, max_size=5)):
        if role == "user" and draw(st.booleans()):
            parts = [{"type": "text", "text": text} for text in draw(st.lists(TEXTS, min_size=1, max_size=3))]
            messages.append({"role": role, "content": parts})
        else:
            messages.append({"role": role, "content": draw(TEXTS)})
    return Chat(messages)


@st.composite
def variants(draw: st.DrawFn) -> tuple[Chat, Chat]:
    """A chat and one in which a message was edited, dropped, doubled or moved."""
    chat = draw(chats())
    messages = list(chat.messages)
    at = draw(st.integers(0, len(messages) - 1))
    match draw(st.sampled_from(["edit", "drop", "double", "swap"])):
        case "edit":
            messages[at] = messages[at] | {"content": draw(TEXTS)}
        case "drop" if len(messages) > 1:
            del messages[at]
        case "double":
            messages.insert(at, messages[at])
        case _:
            messages[at], messages[-1] = messages[-1], messages[at]
    return chat, Chat(messages)


@settings(max_examples=150, deadline=None)
@given(chats(), st.integers(0, 500), st.sampled_from([IMPLICIT, EXPLICIT]), st.integers(1, 64))
def test_equal_prompts_are_never_accused(chat: Chat, matched: int, mode: str, least: int) -> None:
    chat.markers = (0,)
    old, new = chat.snapshot(0.0), chat.snapshot(1.0)
    matched = min(matched, old.tokens)
    assert explain(MissFacts(new, old, mode, matched, least=least)).reason not in REQUEST_SIDE
    assert parting(old.blocks, new.blocks) is None


@settings(max_examples=300, deadline=None)
@given(variants())
def test_the_divergence_is_the_first_difference(chats: tuple[Chat, Chat]) -> None:
    one, other = (chat.prompt() for chat in chats)
    old, new = (chat.snapshot() for chat in chats)
    first = common(one.token_ids, other.token_ids)
    assert shared_tokens(old.blocks, new.blocks) == first
    result = compare(old, new, Scope(least=1))
    if result.change is None:
        return
    found = result.change.divergence
    assert found.token == first
    char = common(one.text, other.text)
    assert found.before in one.text
    assert found.after in other.text
    assert one.text[char : char + 10] in found.before
    assert other.text[char : char + 10] in found.after
    assert (
        (found.before[:20] == found.after[:20]) or char < 20 or found.before[0] == one.text[max(0, char - 20)]
    )


@settings(max_examples=200, deadline=None)
@given(variants(), st.integers(0, 300))
def test_reports_add_up_and_fit_into_headers(chats: tuple[Chat, Chat], matched: int) -> None:
    old, new = (chat.snapshot() for chat in chats)
    matched = min(matched, new.tokens)
    report = explain(MissFacts(new, old, IMPLICIT, matched, least=4, money_per_million=2.0))
    assert report.matched == matched
    assert report.lost_tokens == report.ideal - matched >= 0
    assert report.ideal <= new.tokens
    for name, value in report_headers(report):
        assert name.startswith("x-hotprefix-")
        assert all(" " <= character <= "~" for character in value)
