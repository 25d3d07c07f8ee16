"""The overview's sums: the ledger's own, on both databases."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from hotprefix.api.dashboard.figures import by_scene, summary
from hotprefix.api.dashboard.gate import Visitor
from hotprefix.api.dashboard.rows import page_of
from hotprefix.api.dashboard.selection import Selection, selection_of
from hotprefix.base.errors import InvalidRequest
from hotprefix.diagnosis.reason import MissReport, Reason
from hotprefix.ledger.facts import usage_facts
from hotprefix.ledger.money import bill
from hotprefix.ledger.query import Dimension, totals
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.store import LedgerStore
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.profiles.loader import load_profiles
from tests.ledger.rows import REPORT, ROW, row

PROFILES = load_profiles()
NOW = ROW.at + 3600
NOTHING_LOST = replace(REPORT, reason=Reason.NONE, detail="", lost_tokens=0, lost_money=0.0, avoidable=False)


def read(number: int, tokens: int, computed: int, **changes: Any) -> LedgerRow:
    """A request that read and computed so many tokens, at its right price."""
    classes = TokenClasses(Mode.IMPLICIT, computed, tokens, output=10)
    one = row(number, classes=classes, report=NOTHING_LOST, **changes)
    profile = PROFILES.get(one.profile)
    return replace(one, money=bill(classes, classes.prompt, profile, one.model, one.at))


def shown(store: LedgerStore, **chosen: Any) -> dict[str, Any]:
    return summary(store, PROFILES, Selection(**chosen), NOW)


def test_sums_are_those_of_hotprefix_usage(store: LedgerStore) -> None:
    store.append([row(0), row(1, currency="USD"), read(2, 900, 100)])
    told = shown(store)
    wanted = usage_facts(Dimension.REASON, (), totals(store))["totals"]
    for mine, theirs in zip(told["totals"], wanted, strict=True):
        assert {name: mine[name] for name in theirs} == theirs
    assert {group["reason"]: group["lost_tokens"] for group in told["reasons"]} == {
        "NONE": 0,
        "SYSTEM_CHANGED": 50,
    }


def test_money_saved_is_the_full_price_less_what_it_cost(store: LedgerStore) -> None:
    one = read(0, 900, 100)
    store.append([one, replace(one, request_id="again"), row(3, profile="gone", currency="XYZ")])
    told = {total["currency"]: total for total in shown(store)["totals"]}
    price = PROFILES.get(one.profile).prices[0]
    each = Decimal(str(price.input_per_million)) / 1_000_000
    # 900 tokens at a fifth of the price, twice.
    assert Decimal(told["CNY"]["saved_money"]) == 2 * 900 * each * (1 - Decimal(str(price.read_implicit)))
    assert told["CNY"]["unpriced"] == 0
    assert (told["XYZ"]["saved_money"], told["XYZ"]["unpriced"]) == ("0", 1)


@pytest.mark.parametrize(("span", "step"), [(60, 1), (3600, 30), (86_400, 900), (7 * 86_400, 7200)])
def test_every_request_is_in_the_bucket_of_its_time(store: LedgerStore, span: int, step: int) -> None:
    first = NOW - span
    places = [0.0, 0.25, step - 0.001, float(step), 7.5 * step, span - 0.5]
    store.append([read(number, 60, 40, at=first + place) for number, place in enumerate(places)])
    series = shown(store, since=first)["series"]
    assert series["step"] == step
    known = {}
    for number, requests, prompt, read_tokens, written, lost in series["buckets"]:
        known[number] = requests
        assert (prompt, read_tokens, written, lost) == (100 * requests, 60 * requests, 0, 0)
    wanted: dict[int, int] = {}
    for place in places:
        number = int((first + place - series["start"]) // step)
        wanted[number] = wanted.get(number, 0) + 1
    assert known == wanted
    assert series["start"] <= first and (NOW - series["start"]) / step <= 121


def test_an_open_range_begins_with_the_first_request(store: LedgerStore) -> None:
    store.append([read(0, 1, 1, at=NOW - 100)])
    series = shown(store)["series"]
    assert NOW - 102 <= series["start"] <= NOW - 100
    assert shown(store, since=NOW)["totals"] == []  # and nothing is no fault


def test_first_tokens_of_hits_and_misses(store: LedgerStore) -> None:
    hits = [read(number, 50, 50, first_token=0.010 * (number + 1)) for number in range(10)]
    misses = [read(10 + number, 0, 100, first_token=2.0) for number in range(3)]
    store.append([*hits, *misses, read(99, 0, 100, first_token=None)])
    first = shown(store)["first_token"]
    assert (first["hit"]["count"], first["miss"]["count"]) == (10, 3)
    assert first["hit"]["p50"] == pytest.approx(0.05)
    assert first["hit"]["p90"] == pytest.approx(0.09)
    assert first["hit"]["p99"] == pytest.approx(0.1)
    assert first["miss"]["p50"] == 2.0
    for kind in ("hit", "miss"):
        bins = first[kind]["bins"]
        assert len(bins) == len(first["bounds"]) + 1
        assert sum(bins) == first[kind]["count"]
    full = next(index for index, count in enumerate(first["miss"]["bins"]) if count)
    assert first["bounds"][full - 1] <= 2.0 < first["bounds"][full]


def test_what_is_chosen_counts_everywhere(store: LedgerStore) -> None:
    store.append(
        [
            read(0, 60, 40, tenant="a", scene="x@1"),
            read(1, 60, 40, tenant="a", scene=""),
            row(2, tenant="b", scene="x@1"),
        ]
    )
    for chosen, requests in (
        ({"tenant": "a"}, 2),
        ({"tenant": "a", "scene": "x@1"}, 1),
        ({"scene": ""}, 1),
        ({"reason": "SYSTEM_CHANGED"}, 1),
        ({"tenant": "nobody"}, 0),
        ({"until": ROW.at}, 0),
        ({"since": ROW.at, "until": ROW.at + 1}, 3),
    ):
        told = shown(store, **chosen)
        assert sum(total["requests"] for total in told["totals"]) == requests
        assert sum(bucket[1] for bucket in told["series"]["buckets"]) == requests
        assert sum(told["first_token"][kind]["count"] for kind in ("hit", "miss")) == requests
        assert len(page_of(store, Selection(**chosen), None)) == requests


def test_choices_are_those_that_could_be_made_instead(store: LedgerStore) -> None:
    store.append([row(0, tenant="a", scene="x@1"), row(1, tenant="b", scene="y@1")])
    choices = shown(store, tenant="a", scene="x@1")["choices"]
    assert [name for name, _ in choices["tenant"]] == ["a"]
    assert [name for name, _ in choices["scene"]] == ["x@1"]
    free = shown(store, scene="x@1")["choices"]
    assert sorted(name for name, _ in free["scene"]) == ["x@1", "y@1"]
    bound = shown(store, tenant="a", is_bound=True)["choices"]
    assert [name for name, _ in bound["tenant"]] == ["a"]
    assert [name for name, _ in bound["scene"]] == ["x@1"]


def test_a_tenant_can_choose_no_other_tenant() -> None:
    mine = selection_of({"tenant": "b"}, Visitor("a"), NOW)
    assert (mine.tenant, mine.is_bound) == ("a", True)
    assert mine.without("tenant").tenant == "a"
    assert selection_of({"tenant": ""}, Visitor(), NOW).tenant == ""
    assert selection_of({}, Visitor(), NOW).tenant is None
    assert selection_of({"last": "60", "since": "5"}, Visitor(), NOW).since == NOW - 60


@pytest.mark.parametrize("value", ["soon", "nan", "-1", "inf", "1e300"])
def test_odd_times_are_refused(value: str) -> None:
    with pytest.raises(InvalidRequest):
        selection_of({"last": value}, Visitor(), NOW)


def test_pages_follow_one_another_without_gap_or_repeat(store: LedgerStore) -> None:
    at = [ROW.at + number // 3 for number in range(120)]  # threes at the same moment
    store.append([row(number, at=moment) for number, moment in enumerate(at)])
    seen: list[str] = []
    before = None
    while page := page_of(store, Selection(), before):
        seen += [request["request_id"] for request in page]
        before = page[-1]["at"], page[-1]["request_id"]
    assert len(seen) == len(set(seen)) == 120


def test_scenes_with_what_cost_them_most(store: LedgerStore) -> None:
    worse: MissReport = replace(REPORT, reason=Reason.HISTORY_EDITED, lost_tokens=500)
    store.append(
        [
            row(0),
            row(1, report=worse, at=ROW.at + 9),
            read(2, 60, 40, scene="other@1", prompt_name="", prompt_version=""),
        ]
    )
    told = by_scene(store, Selection())
    scenes = {scene["scene"]: scene for scene in told["scenes"]}
    assert scenes["support"]["worst_reason"] == "HISTORY_EDITED"
    assert scenes["support"]["last_seen"] == ROW.at + 9
    assert scenes["other@1"]["worst_reason"] == ""
    assert [(one["prompt_name"], one["requests"], one["prompt"]) for one in told["prompts"]] == [
        ("greeting@3", 2, 200)
    ]
    assert told["left_out"] == 0


def test_of_very_many_scenes_the_largest_are_shown(store: LedgerStore) -> None:
    """Clients name them: a name for each of their users must not make a page that no browser can show."""
    sizes = {"a": 10, "b": 40, "c": 30}
    store.append(
        [
            read(number, size, size, scene=f"{name}@1", prompt_name=name, prompt_version="")
            for number, (name, size) in enumerate(sizes.items())
        ]
    )
    told = by_scene(store, Selection(), most=2)
    assert [scene["scene"] for scene in told["scenes"]] == ["b@1", "c@1"]
    assert [prompt["prompt_name"] for prompt in told["prompts"]] == ["b", "c"]
    assert told["left_out"] == 2
