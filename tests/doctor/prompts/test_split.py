"""The split by hash."""

from __future__ import annotations

from collections import Counter

import pytest

from hotprefix.doctor.prompts.split import arm_of, moved

UNITS = [f"user-{number}" for number in range(20_000)]


def arms(weights: dict[str, float], salt: str = "s") -> Counter[str]:
    return Counter(arm_of(unit, weights, salt) for unit in UNITS)


def test_units_fall_by_weight_of_any_scale() -> None:
    for weights in ({"v1": 90, "v2": 10}, {"v1": 0.9, "v2": 0.1}):
        # Four standard deviations of a binomial distribution.
        assert abs(arms(weights)["v2"] - 2_000) < 4 * (20_000 * 0.09) ** 0.5


def test_the_split_is_the_same_everywhere_and_for_ever() -> None:
    weights = {"v1": 50, "v2": 30, "v3": 20}
    assert [arm_of(f"user-{n}", weights, "greeting") for n in range(12)] == [
        "v2", "v2", "v2", "v1", "v1", "v1", "v1", "v2", "v1", "v1", "v2", "v2",
    ]  # fmt: skip
    assert arm_of("用户\ud800", weights, "s") in weights


def test_the_order_of_arms_does_not_matter_and_weight_0_gets_nobody() -> None:
    assert arms({"a": 1, "b": 2}) == arms({"b": 2, "a": 1})
    assert set(arms({"a": 1, "b": 0})) == {"a"}


def test_of_two_arms_only_those_move_that_have_to_and_in_one_direction() -> None:
    before, after = {"v1": 90, "v2": 10}, {"v1": 70, "v2": 30}
    changes = Counter((arm_of(unit, before, "s"), arm_of(unit, after, "s")) for unit in UNITS)
    assert changes["v2", "v1"] == 0
    gained = arms(after)["v2"] - arms(before)["v2"]
    assert changes["v1", "v2"] == gained == moved(UNITS, before, after, "s")


def test_a_new_arm_only_takes() -> None:
    before, after = {"v1": 60, "v2": 40}, {"v1": 60, "v2": 40, "v3": 25}
    changes = Counter((arm_of(unit, before, "s"), arm_of(unit, after, "s")) for unit in UNITS)
    assert {pair for pair in changes if pair[0] != pair[1]} == {("v1", "v3"), ("v2", "v3")}


@pytest.mark.parametrize(
    "after", [{"a": 40, "b": 30, "c": 30}, {"a": 20, "b": 50, "c": 30}, {"a": 0, "b": 50, "c": 50}]
)
def test_of_three_arms_few_more_move_than_have_to(after: dict[str, float]) -> None:
    before = {"a": 50, "b": 30, "c": 20}
    distance = sum(abs(before[arm] - after[arm]) for arm in before) / 200
    share = moved(UNITS, before, after, "s") / len(UNITS)
    assert distance - 0.015 < share < 2 * distance / (1 + distance) + 0.015


def test_salts_split_independently() -> None:
    weights = {"v1": 1, "v2": 1}
    both = sum(arm_of(unit, weights, "s") == arm_of(unit, weights, "t") for unit in UNITS)
    assert abs(both / len(UNITS) - 0.5) < 0.02


def test_parts_of_a_draw_can_not_be_mixed_up() -> None:
    pairs = [(arm_of("b", {"ca": 1, "cb": 1}, "a"), arm_of("", {"ca": 1, "cb": 1}, "ab"))]
    pairs += [
        (arm_of(f"{n}x", {"1": 1, "2": 1}, "s"), arm_of("x", {f"1{n}": 1, f"2{n}": 1}, "s"))
        for n in range(200)
    ]
    same = sum(one[0] == other[0] for one, other in pairs)
    assert 60 < same < 140
