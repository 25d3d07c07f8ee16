"""Well-formed conversations are never accused."""

from __future__ import annotations

import pytest

from hotprefix.diagnosis.reason import Reason
from tests.diagnosis.conversations import Pair, pairs
from tests.diagnosis.world import World

INNOCENT = {Reason.NONE, Reason.COLD_FIRST_USE, Reason.EXPECTED_TEMPLATE}
PAIRS = list(pairs())


def test_the_corpus_is_large_and_varied() -> None:
    assert len(PAIRS) >= 100
    assert len({pair.second.prompt().text for pair in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_one_client(pair: Pair) -> None:
    world = World()
    assert world.implicit(pair.first, pair.answer).reason is Reason.COLD_FIRST_USE
    report = world.implicit(pair.second)
    assert report.reason in INNOCENT, report
    assert report.lost_tokens == 0 or not report.avoidable
    assert report.divergence is None


def test_all_clients_of_a_tenant_at_once() -> None:
    world = World()
    for pair in PAIRS:
        first = world.implicit(pair.first, pair.answer)
        assert first.reason in INNOCENT, (pair.name, first)
    for pair in PAIRS:
        second = world.implicit(pair.second)
        assert second.reason in INNOCENT, (pair.name, second)


def test_all_clients_in_one_scene() -> None:
    world = World()
    for pair in PAIRS:
        for chat, answer in ((pair.first, pair.answer), (pair.second, "")):
            chat.scene = "support"
            report = world.implicit(chat, answer)
            chat.scene = ""
            assert report.reason in INNOCENT, (pair.name, report)
